package byhop

import (
	"reflect"
	"testing"
)

// TestAdd keeps hops in order whatever the order of passes, and puts those beyond the last entry together.
func TestAdd(t *testing.T) {
	var l List
	l.Add(Hop{3, 1, 10, 0.5}, Hop{1, 2, 5, 1}, Hop{3, 1, 1, 0.25})
	l.Add(Hop{Most + 7, 1, 2, 4}, Hop{Most, 1, 3, 5})
	if want := (List{{1, 2, 5, 1}, {3, 2, 11, 0.75}, {Most, 2, 5, 9}}); !reflect.DeepEqual(l, want) {
		t.Errorf("%v, want %v", l, want)
	}
}
