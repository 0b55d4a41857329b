package byhop

import (
	"reflect"
	"testing"
)

// TestAdd keeps hops in order whatever the order of passes, and puts those beyond the last entry together.
func TestAdd(t *testing.T) {
	var l List
	l.Add(Hop{3, 1, 10, 0.5, 30, 640, 7, 8}, Hop{1, 2, 5, 1, 15, 320, 0, 4}, Hop{3, 1, 1, 0.25, 3, 64, 1, 2})
	l.Add(Hop{Most + 7, 1, 2, 4, 1, 1, 1, 1}, Hop{Most, 1, 3, 5, 1, 1, 1, 1})
	if want := (List{{1, 2, 5, 1, 15, 320, 0, 4}, {3, 2, 11, 0.75, 33, 704, 8, 10}, {Most, 2, 5, 9, 2, 2, 2, 2}}); !reflect.DeepEqual(l, want) {
		t.Errorf("%v, want %v", l, want)
	}
}
