package stage

import (
	"ndls/internal/mem"
)

// Session keeps open what consecutive tasks of the same part of a stage share, so that small tasks do not each open a large graph.
type Session struct {
	Budget *mem.Budget
	kept   []kept
}

// kept holds the content of a place of a session, and a key that tells it from other contents.
type kept struct {
	place string
	key   any
	what  interface{ Free() }
}

// Keep returns what the session keeps in a place under this key. If the place is empty, or has another key, whose content Keep frees, then
// open makes it. [Session.Release] frees it.
func Keep[T interface{ Free() }](x *Session, place string, key any, open func() (T, error)) (T, error) {
	for _, k := range x.kept {
		if k.place == place && k.key == key {
			return k.what.(T), nil
		}
	}
	x.Drop(place)
	what, err := open()
	if err == nil {
		x.kept = append(x.kept, kept{place, key, what})
	}
	return what, err
}

// Kept returns what the session keeps in a place, whatever its key, or the zero value.
func Kept[T interface{ Free() }](x *Session, place string) (what T) {
	for _, k := range x.kept {
		if k.place == place {
			return k.what.(T)
		}
	}
	return what
}

// Drop frees what the session keeps in a place, if anything.
func (x *Session) Drop(place string) {
	for i, k := range x.kept {
		if k.place == place {
			k.what.Free()
			x.kept = append(x.kept[:i], x.kept[i+1:]...)
			return
		}
	}
}

// Release frees everything; later calls open it again.
func (x *Session) Release() {
	for len(x.kept) > 0 {
		x.Drop(x.kept[0].place)
	}
}

// Close releases everything and ends the budget.
func (x *Session) Close() {
	x.Release()
	x.Budget.Close()
}
