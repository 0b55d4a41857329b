package extsort

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"ndls/internal/invariants"
)

const (
	digitBits = 11
	digitSize = 1 << digitBits
	// cacheKeys and tmp for as many fit into a second-level cache of 1 MiB. To deal keys once
	// more costs as much as all the passes over keys that are there.
	cacheKeys = 1 << 16
	// bucketKeys is about how many keys a bucket should have.
	bucketKeys = 1 << 13
	// Fewer keys are sorted by smaller digits, and hardly any by insertion.
	smallKeys  = 1 << 9
	smallDigit = 8
	fewKeys    = 32
)

type digitCounts [digitSize]int64

// SortKeys sorts keys with the help of tmp, which is as long, and returns the
// sorted array. The highest digit deals the keys into buckets, on
// all threads at a time, until a bucket fits the cache; there the lowest digit
// comes first. Digits in which all keys agree cost nothing.
func SortKeys[T Item](keys, tmp []T, threads int) (sorted []T) {
	varying := make([]uint64, threads)
	if len(keys) > cacheKeys {
		parts := cut(len(keys), threads)
		parallel(threads, threads, func(i int) { varying[i] = differences(keys[parts[i].lo:parts[i].hi], Key(&keys[0])) })
	}
	return sortVarying(keys, tmp, or(varying), threads)
}

// sortVarying is SortKeys for keys that agree in all bits but those that vary.
func sortVarying[T Item](keys, tmp []T, varying uint64, threads int) (sorted []T) {
	if invariants.Enabled {
		defer func() { invariants.Check(slices.IsSortedFunc(sorted, compare), "%d keys are not sorted", len(sorted)) }()
	}
	tmp = tmp[:len(keys)]
	if len(keys) <= cacheKeys {
		sortInto(keys, tmp, false)
		return keys
	}
	parts := cut(len(keys), threads)
	shift := highDigit(varying, len(keys))
	counts := make([]digitCounts, len(parts))
	parallel(threads, len(parts), func(i int) { count(keys[parts[i].lo:parts[i].hi], shift, &counts[i]) })
	at := int64(0)
	var ends [digitSize]int64
	for d := range digitSize {
		for i := range counts {
			counts[i][d], at = at, at+counts[i][d]
		}
		ends[d] = at
	}
	parallel(threads, len(parts), func(i int) { deal(tmp, keys[parts[i].lo:parts[i].hi], shift, &counts[i]) })
	parallel(threads, digitSize, func(d int) {
		lo := int64(0)
		if d > 0 {
			lo = ends[d-1]
		}
		sortInto(tmp[lo:ends[d]], keys[lo:ends[d]], true)
	})
	return keys
}

type span struct{ lo, hi int }

// cut divides n into equal parts.
func cut(n, parts int) []span {
	spans := make([]span, parts)
	for i := range spans {
		spans[i] = span{n * i / parts, n * (i + 1) / parts}
	}
	return spans
}

// parallel calls do for 0..n-1.
func parallel(threads, n int, do func(int)) {
	if threads == 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range threads {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// sortInto sorts keys, into other if move says so, else in their place. It
// overwrites both.
func sortInto[T Item](keys, other []T, move bool) {
	if len(keys) <= fewKeys {
		insertionSort(keys)
		if move {
			copy(other, keys)
		}
		return
	}
	varying := differences(keys, Key(&keys[0]))
	if len(keys) <= cacheKeys || varying>>digitBits == 0 {
		sortLow(keys, other, varying, move)
		return
	}
	shift := highDigit(varying, len(keys))
	var counts digitCounts
	count(keys, shift, &counts)
	starts(&counts)
	deal(other, keys, shift, &counts)
	lo := int64(0)
	for _, end := range counts { // dealing has moved starts to ends
		sortInto(other[lo:end], keys[lo:end], !move)
		lo = end
	}
}

// highDigit is the shift of a digit with the highest of the varying bits, one
// that leaves buckets of bucketKeys if bits are random, as far as digits go.
func highDigit(varying uint64, n int) (shift int) {
	width := min(max(bits.Len(uint(n/bucketKeys)), 2), digitBits)
	return max(bits.Len64(varying)-width, 0)
}

// sortLow sorts by one digit after the other from the lowest. A digit is of bits that
// follow each other: it ends where bits do not vary.
func sortLow[T Item](keys, other []T, varying uint64, move bool) {
	width, pass := digitBits, sortDigit[T]
	if len(keys) < smallKeys {
		width, pass = smallDigit, sortSmallDigit[T]
	}
	for varying != 0 {
		shift := bits.TrailingZeros64(varying)
		run := bits.TrailingZeros64(^(varying >> shift)) // bits that follow each other
		// Digits of equal width, as few as can be.
		digits := (run + width - 1) / width
		size := (run + digits - 1) / digits
		mask := uint64(1)<<size - 1
		pass(other, keys, shift, mask)
		varying &^= mask << shift
		keys, other, move = other, keys, !move
	}
	if move {
		copy(other, keys)
		keys = other
	}
	if wide[T]() {
		sortValues(keys)
	}
}

// sortValues sorts records of the same key, which follow each other, by their values.
func sortValues[T Item](items []T) {
	for lo := 0; lo < len(items); {
		hi := lo + 1
		for hi < len(items) && Key(&items[hi]) == Key(&items[lo]) {
			hi++
		}
		if hi-lo > fewKeys {
			slices.SortFunc(items[lo:hi], compare)
		} else {
			insertionSort(items[lo:hi])
		}
		lo = hi
	}
}

// compare is less for package slices.
func compare[T Item](x, y T) int {
	switch {
	case less(&x, &y):
		return -1
	case less(&y, &x):
		return 1
	}
	return 0
}

// sortDigit deals keys by a digit of at most digitBits.
func sortDigit[T Item](to, keys []T, shift int, mask uint64) {
	var counts [digitSize]uint32
	by := uint(shift) & 63 // so that the processor's shift is enough
	mask &= digitSize - 1
	for i := range keys {
		counts[Key(&keys[i])>>by&mask&(digitSize-1)]++
	}
	at := uint32(0)
	for d, n := range counts[:mask+1] {
		counts[d], at = at, at+n
	}
	for i := range keys {
		k := keys[i]
		next := &counts[Key(&keys[i])>>by&mask&(digitSize-1)]
		at := *next
		*next = at + 1
		to[at] = k
	}
}

// sortSmallDigit is sortDigit for digits of at most smallDigit.
func sortSmallDigit[T Item](to, keys []T, shift int, mask uint64) {
	var counts [1 << smallDigit]uint32
	by := uint(shift) & 63
	for i := range keys {
		counts[Key(&keys[i])>>by&mask&(1<<smallDigit-1)]++
	}
	at := uint32(0)
	for d, n := range counts[:mask+1] {
		counts[d], at = at, at+n
	}
	for i := range keys {
		k := keys[i]
		next := &counts[Key(&keys[i])>>by&mask&(1<<smallDigit-1)]
		at := *next
		*next = at + 1
		to[at] = k
	}
}

func insertionSort[T Item](keys []T) {
	for i := 1; i < len(keys); i++ {
		for j := i; j > 0 && less(&keys[j], &keys[j-1]); j-- {
			keys[j-1], keys[j] = keys[j], keys[j-1]
		}
	}
}

// differences has a one wherever a key differs from the other one.
func differences[T Item](keys []T, other uint64) uint64 {
	var v uint64
	for i := range keys {
		v |= Key(&keys[i]) ^ other
	}
	return v
}

func or(words []uint64) (all uint64) {
	for _, w := range words {
		all |= w
	}
	return all
}

func count[T Item](keys []T, shift int, counts *digitCounts) {
	by := uint(shift) & 63
	for i := range keys {
		counts[Key(&keys[i])>>by&(digitSize-1)]++
	}
}

// starts turns the number of keys of each digit into the place of the first.
func starts(counts *digitCounts) {
	at := int64(0)
	for d, n := range counts {
		counts[d], at = at, at+n
	}
}

// deal moves keys to where their digits start.
func deal[T Item](to, keys []T, shift int, counts *digitCounts) {
	by := uint(shift) & 63
	for i := range keys {
		k := keys[i]
		next := &counts[Key(&keys[i])>>by&(digitSize-1)]
		at := *next
		*next = at + 1
		to[at] = k
	}
}

// unique drops repeated neighbours in place.
func unique[T Item](keys []T) []T {
	n := 1
	for n < len(keys) && !same(&keys[n-1], &keys[n]) {
		n++
	}
	if n >= len(keys) {
		return keys // mostly, as none is repeated
	}
	for i := n; i < len(keys); i++ {
		if same(&keys[n-1], &keys[i]) {
			join(&keys[n-1], &keys[i])
			continue
		}
		keys[n] = keys[i]
		n++
	}
	return keys[:n]
}
