package partition

import "math/bits"

const (
	digitBits = 11
	digitSize = 1 << digitBits
)

// radixSort sorts keys with the help of tmp, which is as long, and returns the
// sorted array: one of the two. Digits in which all keys agree cost nothing.
func radixSort(keys, tmp []uint64) []uint64 {
	if len(keys) < 2 {
		return keys
	}
	var shifts []int
	for rest := varyingBits(keys); rest != 0; {
		shift := bits.TrailingZeros64(rest)
		shifts = append(shifts, shift)
		rest &^= (digitSize - 1) << shift
	}
	counts := make([][digitSize]int64, len(shifts))
	for _, k := range keys {
		for i, shift := range shifts {
			counts[i][k>>shift&(digitSize-1)]++
		}
	}
	for i, shift := range shifts {
		scatter(tmp[:len(keys)], keys, shift, &counts[i])
		keys, tmp = tmp[:len(keys)], keys
	}
	return keys
}

// varyingBits has a one wherever two keys differ.
func varyingBits(keys []uint64) uint64 {
	var v uint64
	for _, k := range keys {
		v |= k ^ keys[0]
	}
	return v
}

// scatter moves src to dst in the order of one digit, stably.
func scatter(dst, src []uint64, shift int, counts *[digitSize]int64) {
	var at int64
	for d, n := range counts {
		counts[d] = at
		at += n
	}
	for _, k := range src {
		d := k >> shift & (digitSize - 1)
		dst[counts[d]] = k
		counts[d]++
	}
}

// unique drops repeated neighbours in place.
func unique(keys []uint64) []uint64 {
	if len(keys) == 0 {
		return keys
	}
	n := 1
	for _, k := range keys[1:] {
		keys[n] = k
		if k != keys[n-1] {
			n++
		}
	}
	return keys[:n]
}
