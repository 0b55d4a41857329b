package invariants

import "testing"

func TestCheck(t *testing.T) {
	Check(true, "%d", 1)
	defer func() {
		if text := recover(); text != "invariant broken: 1 follows 2" {
			t.Errorf("%v", text)
		}
	}()
	Check(false, "%d follows %d", 1, 2)
	t.Error("a broken invariant stops nothing")
}
