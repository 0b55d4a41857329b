package smooth

import (
	"math/bits"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
)

// Targets holds the set of rows that are written.
type Targets struct {
	n    int64
	set  *mem.Array[uint64] // nil: all rows
	rank *mem.Array[uint32] // number of targets before each strip
	size int64
}

// AllTargets returns all of n rows.
func AllTargets(n int64) *Targets { return &Targets{n: n, size: n} }

// NewTargets returns an empty set of n rows. Add rows in any order, then call Finish.
func NewTargets(b *mem.Budget, n int64) (*Targets, error) {
	t := &Targets{n: n}
	var err error
	if t.set, err = mem.Alloc[uint64](b, (n+63)/64, "target rows"); err != nil {
		return nil, err
	}
	if t.rank, err = mem.Alloc[uint32](b, (n+packed.StripRows-1)/packed.StripRows+1, "target rows"); err != nil {
		t.Free()
		return nil, err
	}
	return t, nil
}

// TargetsBytes returns the memory of targets that are not all of n rows.
func TargetsBytes(n int64) int64 { return n/8 + n/packed.StripRows*4 + 2*4096 }

// Add makes row i a target.
func (t *Targets) Add(i int64) { t.set.S[i/64] |= 1 << (i % 64) }

// Finish counts the targets.
func (t *Targets) Finish() {
	t.size = 0
	for w, x := range t.set.S {
		if w%(packed.StripRows/64) == 0 {
			t.rank.S[w/(packed.StripRows/64)] = uint32(t.size)
		}
		t.size += int64(bits.OnesCount64(x))
	}
	t.rank.S[len(t.rank.S)-1] = uint32(t.size)
}

// Thin keeps `most` of the targets, spread evenly, or all if there are no more. Call it after
// Finish. It uses so many threads.
func (t *Targets) Thin(threads int, most int64) {
	if t.size <= most {
		return
	}
	const words = packed.StripRows / 64
	_ = share.Ranges(threads, len(t.set.S), words, func(lo, hi int) error {
		// Of the first i targets, i·most/size stay, rounded up.
		left := func(i int64) int64 { return (i*most + t.size - 1) / t.size }
		i := int64(t.rank.S[lo/words])
		for w := lo; w < hi; w++ {
			for x := t.set.S[w]; x != 0; x &= x - 1 {
				if left(i+1) == left(i) {
					t.set.S[w] &^= x & -x
				}
				i++
			}
		}
		return nil
	})
	t.Finish()
}

// Part returns the targets among rows [lo, hi), numbered from the first of them; lo starts a strip.
func (t *Targets) Part(b *mem.Budget, lo, hi int64) (*Targets, error) {
	if t.All() {
		return AllTargets(hi - lo), nil
	}
	part, err := NewTargets(b, hi-lo)
	if err != nil {
		return nil, err
	}
	copy(part.set.S, t.set.S[lo/64:])
	if last := (hi - lo) % 64; last > 0 {
		part.set.S[(hi-lo)/64] &= 1<<last - 1
	}
	part.Finish()
	return part, nil
}

// Free returns the memory.
func (t *Targets) Free() {
	t.set.Free()
	t.rank.Free()
}

// Len returns the number of targets.
func (t *Targets) Len() int64 { return t.size }

// All reports whether every row is a target.
func (t *Targets) All() bool { return t.set == nil }

// Has reports whether row i is a target.
func (t *Targets) Has(i int64) bool { return t.All() || t.set.S[i/64]>>(i%64)&1 == 1 }

// Before returns the number of targets among the rows below row i, which starts a strip or is the
// number of rows.
func (t *Targets) Before(i int64) int64 {
	if t.All() {
		return i
	}
	return int64(t.rank.S[(i+packed.StripRows-1)/packed.StripRows])
}

// Below returns the number of targets among the rows below row i.
func (t *Targets) Below(i int64) int64 {
	if t.All() {
		return i
	}
	strip := i / packed.StripRows
	return int64(t.rank.S[strip]) + t.count(strip*packed.StripRows, i)
}

// count returns the number of targets in rows [lo, hi).
func (t *Targets) count(lo, hi int64) (n int64) {
	if t.All() {
		return hi - lo
	}
	for w := lo / 64; w*64 < hi; w++ {
		x := t.set.S[w]
		if lo > w*64 {
			x &= ^uint64(0) << (lo - w*64)
		}
		if hi < w*64+64 {
			x &= 1<<(hi-w*64) - 1
		}
		n += int64(bits.OnesCount64(x))
	}
	return n
}

// after returns the end of the rows from lo on that have at most `most` targets, or end if all of
// them have. lo is a multiple of 64, and so is the result unless it is end.
func (t *Targets) after(lo, end, most int64) int64 {
	if t.All() {
		return min(lo+most, end)
	}
	for n := int64(0); lo < end; lo += 64 {
		if n += t.count(lo, min(lo+64, end)); n > most {
			return lo
		}
	}
	return end
}

// each calls f for the targets in rows [lo, hi), in ascending order.
func (t *Targets) each(lo, hi int64, f func(i int64)) {
	if t.All() {
		for i := lo; i < hi; i++ {
			f(i)
		}
		return
	}
	for w := lo / 64; w*64 < hi; w++ {
		for x := t.set.S[w]; x != 0; x &= x - 1 {
			if i := w*64 + int64(bits.TrailingZeros64(x)); i >= lo && i < hi {
				f(i)
			}
		}
	}
}
