package extsort

import (
	"math/bits"
	"unsafe"
)

// source gives ascending items.
type source[T Item] interface {
	// read fills out, unless the source ends, and returns how many keys it holds.
	read(out []T) int
}

// list is a source of the keys of a slice.
type list[T Item] struct{ keys []T }

func (l *list[T]) read(out []T) int {
	n := copy(out, l.keys)
	l.keys = l.keys[n:]
	return n
}

// portion is the number of keys of a source that a pair has at a time. A few portions stay in the
// first-level cache.
const portion = 1 << 9

// side is a source of a pair, with the keys that are merged next.
type side[T Item] struct {
	from source[T]
	keys []T
	buf  []T // nil for a list, whose keys are in memory already
}

func sideOf[T Item](from source[T]) side[T] {
	if l, ok := from.(*list[T]); ok {
		return side[T]{from: from, keys: l.keys}
	}
	return side[T]{from: from, buf: make([]T, portion)}
}

// more reports whether there are keys. It reads some if there are none.
func (s *side[T]) more() bool {
	if len(s.keys) == 0 && s.buf != nil {
		s.keys = s.buf[:s.from.read(s.buf)]
	}
	return len(s.keys) > 0
}

// pair merges two sources.
type pair[T Item] struct{ a, b side[T] }

// read implements source. Its loop has no branch that depends on keys: which source
// has the smaller one cannot be predicted.
func (p *pair[T]) read(out []T) (n int) {
	for n < len(out) {
		if !p.a.more() || !p.b.more() {
			break
		}
		steps := min(len(p.a.keys), len(p.b.keys), len(out)-n)
		fromA := mergeSteps(out[n:n+steps], p.a.keys, p.b.keys)
		p.a.keys, p.b.keys = p.a.keys[fromA:], p.b.keys[steps-fromA:]
		n += steps
	}
	for _, s := range []*side[T]{&p.a, &p.b} { // one of them has ended
		for n < len(out) && s.more() {
			m := copy(out[n:], s.keys)
			s.keys = s.keys[m:]
			n += m
		}
	}
	return n
}

// mergeSteps fills out with the smallest keys of a and b, each of which has as many,
// and returns how many of them are from a. What a step takes depends on the step before: so
// that the processor need not wait for it, both halves of out are merged side by side.
func mergeSteps[T Item](out, a, b []T) (fromA int) {
	half := len(out) / 2
	split := inFirst(a, b, half)
	i, k := 0, 0
	lo, hi := out[:half], out[half:]
	aLo, bLo := a[:half], b[:half]
	aHi, bHi := a[split:][:len(hi)], b[half-split:][:len(hi)]
	for n := range lo {
		if wide[T]() {
			i += int(putRecord(wordsOf(&lo[n]), wordsOf(&aLo[i]), wordsOf(&bLo[n-i])))
			k += int(putRecord(wordsOf(&hi[n]), wordsOf(&aHi[k]), wordsOf(&bHi[n-k])))
			continue
		}
		i += int(putKey(first(&lo[n]), first(&aLo[i]), first(&bLo[n-i])))
		k += int(putKey(first(&hi[n]), first(&aHi[k]), first(&bHi[n-k])))
	}
	if n := half; n < len(hi) {
		hi[n] = bHi[n-k]
		if less(&aHi[k], &bHi[n-k]) {
			hi[n] = aHi[k]
			k++
		}
	}
	return split + k
}

// putKey puts the smaller one of two keys, of equal ones y, to a place, and returns 1 if that is
// x, else 0. It has no branch that depends on keys.
func putKey(to, x, y *uint64) (isX uint64) {
	a, b := *x, *y
	_, isX = bits.Sub64(a, b, 0)
	*to = b ^ (a^b)&-isX
	return isX
}

// putRecord is putKey for records.
func putRecord(to, x, y *words) (isX uint64) {
	isX = isLess(x, y)
	pick(to, x, y, isX)
	return isX
}

// words is a record as two words. The lower half of the second one has the bits of the value,
// which are in the order of values as long as none is negative.
type words [2]uint64

func wordsOf[T Item](item *T) *words { return (*words)(unsafe.Pointer(item)) }

func isLess(x, y *words) (less uint64) {
	_, less = bits.Sub64(x[1]<<32, y[1]<<32, 0)
	_, less = bits.Sub64(x[0], y[0], less)
	return less
}

func pick(to, x, y *words, isX uint64) {
	to[0], to[1] = y[0]^(x[0]^y[0])&-isX, y[1]^(x[1]^y[1])&-isX
}

// inFirst returns the number of the n smallest keys of a and b that are from a; of equal keys those
// of b come first.
func inFirst[T Item](a, b []T, n int) int {
	least, most := 0, n
	for least < most {
		mid := (least + most + 1) / 2
		if less(&a[mid-1], &b[n-mid]) {
			least = mid
		} else {
			most = mid - 1
		}
	}
	return least
}

// merged is the source of the keys of all lists.
func merged[T Item](lists []list[T]) source[T] {
	if len(lists) == 1 {
		return &lists[0]
	}
	half := len(lists) / 2
	return &pair[T]{sideOf(merged(lists[:half])), sideOf(merged(lists[half:]))}
}

// uniqueItems reads a source without repetitions. It holds the last item back until it knows
// how often that is repeated.
type uniqueItems[T Item] struct {
	from  source[T]
	held  T
	holds bool
}

// read is like read of a source, but it may return fewer items before the source ends, though not
// none. out holds at least two items, unless only one is left.
func (u *uniqueItems[T]) read(out []T) int {
	for len(out) > 0 {
		n := 0
		if u.holds {
			out[0], n = u.held, 1
		}
		more := u.from.read(out[n:])
		if more == 0 {
			u.holds = false
			return n
		}
		items := unique(out[:n+more])
		last := len(items) - 1
		if u.held, u.holds = items[last], true; last > 0 {
			return last
		}
	}
	return 0
}
