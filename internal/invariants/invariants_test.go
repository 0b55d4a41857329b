package invariants

import (
	"strings"
	"testing"
)

// broken says what f panics with, "" if it does not.
func broken(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = r.(string)
		}
	}()
	f()
	return ""
}

func TestAscending(t *testing.T) {
	for _, c := range []struct {
		first  bool
		after  int
		values []int
		ok     bool
	}{
		{true, 9, nil, true},
		{true, 9, []int{1, 2, 3}, true},
		{false, 0, []int{1, 2, 3}, true},
		{false, 1, []int{1, 2, 3}, false},
		{true, 0, []int{1, 3, 3}, false},
		{true, 0, []int{2, 1}, false},
	} {
		text := broken(func() { Ascending("keys", c.first, c.after, c.values) })
		if (text == "") != c.ok || text != "" && !strings.HasPrefix(text, "invariant broken: keys: ") {
			t.Errorf("%+v: %q", c, text)
		}
	}
}
