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
	// Fewer keys are sorted by smaller digits, and hardly any by insertion.
	smallKeys  = 1 << 9
	smallDigit = 8
	fewKeys    = 32
)

// SortKeys sorts keys in place on all threads, each of which takes up to 1 MiB of the heap.
func SortKeys[T Item](keys []T, threads int) {
	if len(keys) == 0 {
		return
	}
	varying := make([]uint64, threads)
	parts := cut(len(keys), threads)
	parallel(threads, threads, func(i int) { varying[i] = differences(keys[parts[i].lo:parts[i].hi], Key(&keys[0])) })
	sortVarying(keys, make([]T, helpKeys(int64(len(keys)), threads)), or(varying), threads)
}

// helpKeys is the number of keys for which all threads together need memory beside those that they sort.
func helpKeys(keys int64, threads int) int64 {
	return int64(threads) * min(max(keys/int64(8*threads), fewKeys), cacheKeys)
}

// sortVarying sorts keys that agree in all bits but those that vary. Each thread has an equal part of help. The highest digit puts
// the keys into buckets, by all threads at a time. Then each thread sorts one bucket after the other.
func sortVarying[T Item](keys, help []T, varying uint64, threads int) {
	if invariants.Enabled {
		defer func() { invariants.Check(slices.IsSortedFunc(keys, compare), "%d keys are not sorted", len(keys)) }()
	}
	each := len(help) / threads
	if len(keys) <= each || varying == 0 {
		sortInPlace(keys, help[:each])
		return
	}
	ends := deal(keys, help, varying, threads)
	free := make(chan []T, threads)
	for i := range threads {
		free <- help[i*each:][:each]
	}
	parallel(threads, len(ends), func(d int) {
		part := <-free
		sortInPlace(dealtTo(keys, ends, d), part)
		free <- part
	})
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

// sortInPlace sorts keys on one thread: by the highest digit first, until the keys of a bucket fit help, and from there by the lowest
// digit first.
func sortInPlace[T Item](keys, help []T) {
	if len(keys) <= fewKeys {
		insertionSort(keys)
		return
	}
	varying := differences(keys, Key(&keys[0]))
	if len(keys) <= len(help) || varying == 0 {
		sortLow(keys, help, varying)
		return
	}
	ends := deal(keys, help, varying, 1)
	for d := range ends {
		sortInPlace(dealtTo(keys, ends, d), help)
	}
}

// dealtTo returns the keys with a digit. Those of each digit end at its place in ends.
func dealtTo[T Item](keys []T, ends []int, digit int) []T {
	lo := 0
	if digit > 0 {
		lo = ends[digit-1]
	}
	return keys[lo:ends[digit]]
}

// sortLow sorts with the help of other, which is as long or longer: by as many of the highest bits as tell most keys apart, if they are
// random, and then by insertion. If that takes long, it sorts by all bits.
func sortLow[T Item](keys, other []T, varying uint64) {
	const apart = 4 // more bits than it takes to count the keys
	high := varying
	for bits.OnesCount64(high) > bits.Len(uint(len(keys)))+apart {
		high &= high - 1
	}
	sortDigits(keys, other, high)
	if high != varying && !insertAll(keys) {
		sortDigits(keys, other, varying)
	}
	if wide[T]() {
		sortValues(keys)
	}
}

// sortDigits sorts by one digit after the other from the lowest. A digit is of bits that follow each other: it ends where bits do not vary.
func sortDigits[T Item](keys, other []T, varying uint64) {
	width, pass := digitBits, sortDigit[T]
	if len(keys) < smallKeys {
		width, pass = smallDigit, sortSmallDigit[T]
	}
	from, to := keys, other
	for varying != 0 {
		shift := bits.TrailingZeros64(varying)
		run := bits.TrailingZeros64(^(varying >> shift)) // bits that follow each other
		// Digits of equal width, as few as can be.
		digits := (run + width - 1) / width
		size := (run + digits - 1) / digits
		mask := uint64(1)<<size - 1
		pass(to, from, shift, mask)
		varying &^= mask << shift
		from, to = to[:len(keys)], from
	}
	if &from[0] != &keys[0] {
		copy(keys, from)
	}
}

// insertAll sorts keys that are nearly in order by insertion. It gives up once it has moved keys more than twice as many places as there
// are keys.
func insertAll[T Item](keys []T) bool {
	left := 2 * len(keys)
	for i := 1; i < len(keys); i++ {
		if Key(&keys[i-1]) <= Key(&keys[i]) {
			continue
		}
		k, j := keys[i], i
		for ; j > 0 && Key(&k) < Key(&keys[j-1]); j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = k
		if left -= i - j; left < 0 {
			return false
		}
	}
	return true
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
	by := uint(shift) & 63
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
