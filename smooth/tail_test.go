package smooth

import (
	"math"
	"testing"
)

// TestGeometric compares with the sum, term by term.
func TestGeometric(t *testing.T) {
	for _, rate := range []float64{0, 0.001, 0.5, 0.999, 65534.0 / 65535, 1} {
		for _, n := range []int{1, 2, 3, 7, 64, 199} {
			want, power := 0.0, 1.0
			for range n {
				power *= rate
				want += power
			}
			if got := geometric(rate, n); math.Abs(got-want) > 1e-9*(1+want) {
				t.Errorf("rate %g, %d terms: %g, not %g", rate, n, got, want)
			}
		}
	}
}
