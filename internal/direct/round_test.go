package direct

import "testing"

func TestRoundUp(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 1: Align, Align - 1: Align, Align: Align, Align + 1: 2 * Align} {
		if got := RoundUp(n); got != want {
			t.Errorf("%d becomes %d, not %d", n, got, want)
		}
	}
}
