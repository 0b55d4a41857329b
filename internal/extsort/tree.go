package extsort

import "math/bits"

// source gives ascending keys.
type source interface {
	// read fills out, unless the source ends, and returns how many keys it holds.
	read(out []uint64) int
}

// list is a source of the keys of a slice.
type list struct{ keys []uint64 }

func (l *list) read(out []uint64) int {
	n := copy(out, l.keys)
	l.keys = l.keys[n:]
	return n
}

// portion is how many keys of a source a pair has at a time. A few portions stay in the
// first-level cache.
const portion = 1 << 9

// side is a source of a pair, with the keys that are merged next.
type side struct {
	from source
	keys []uint64
	buf  []uint64 // nil for a list, whose keys are in memory already
}

func sideOf(from source) side {
	if l, ok := from.(*list); ok {
		return side{from: from, keys: l.keys}
	}
	return side{from: from, buf: make([]uint64, portion)}
}

// more says whether there are keys. It reads some if there are none.
func (s *side) more() bool {
	if len(s.keys) == 0 && s.buf != nil {
		s.keys = s.buf[:s.from.read(s.buf)]
	}
	return len(s.keys) > 0
}

// pair merges two sources.
type pair struct{ a, b side }

// read implements source. Its loop has no branch that depends on keys: nobody can
// foretell which source has the smaller one.
func (p *pair) read(out []uint64) (n int) {
	for n < len(out) {
		if !p.a.more() || !p.b.more() {
			break
		}
		steps := min(len(p.a.keys), len(p.b.keys), len(out)-n)
		fromA := mergeSteps(out[n:n+steps], p.a.keys, p.b.keys)
		p.a.keys, p.b.keys = p.a.keys[fromA:], p.b.keys[steps-fromA:]
		n += steps
	}
	for _, s := range []*side{&p.a, &p.b} { // one of them has ended
		for n < len(out) && s.more() {
			m := copy(out[n:], s.keys)
			s.keys = s.keys[m:]
			n += m
		}
	}
	return n
}

// mergeSteps fills out with the smallest keys of a and b, each of which has as many,
// and returns how many of them are from a.
func mergeSteps(out, a, b []uint64) (fromA int) {
	a, b = a[:len(out)], b[:len(out)]
	i := 0
	for n := range out {
		x, y := a[i], b[n-i]
		_, less := bits.Sub64(x, y, 0)
		out[n] = y ^ (x^y)&-less
		i += int(less)
	}
	return i
}

// merged is the source of the keys of all lists.
func merged(lists []list) source {
	if len(lists) == 1 {
		return &lists[0]
	}
	half := len(lists) / 2
	return &pair{sideOf(merged(lists[:half])), sideOf(merged(lists[half:]))}
}

// uniqueKeys reads a source without repetitions.
type uniqueKeys struct {
	from source
	last uint64 // End at the beginning
}

// read is that of a source, but it may return fewer keys before the source ends, though
// not none.
func (u *uniqueKeys) read(out []uint64) int {
	for {
		n := u.from.read(out)
		if n == 0 {
			return 0
		}
		keys, last := 0, u.last
		for _, k := range out[:n] {
			out[keys] = k
			if k != last {
				keys++
			}
			last = k
		}
		if u.last = last; keys > 0 {
			return keys
		}
	}
}
