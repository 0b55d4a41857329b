package rng

import "math/bits"

const golden = 0x9e3779b97f4a7c15

// mix is a bijection that spreads every bit of z over all of its result.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Hash returns 64 random bits that depend on the seed and on every key, in
// order. It does not allocate.
func Hash(seed uint64, keys ...uint64) uint64 {
	h := mix(seed + golden)
	for _, k := range keys {
		h = mix((h ^ k) + golden)
	}
	return h
}

// Stem is the common part of the hashes of many keys: Stem(Hash(seed, a)).Hash(b) is Hash(seed, a,
// b).
type Stem uint64

// Hash is the hash with one key more.
func (s Stem) Hash(key uint64) uint64 { return mix((uint64(s) ^ key) + golden) }

// Float64 turns 64 random bits into a number in [0, 1), a multiple of 2^-53.
func Float64(x uint64) float64 { return float64(x>>11) * 0x1p-53 }

// Below turns 64 random bits into an integer in [0, n), n > 0. The bias is at
// most n/2^64.
func Below(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}

// Normal turns 64 random bits into a number of mean 0 and variance 1: the sum of
// twelve uniform numbers, less 6. All are multiples of 2^-16, so the sum is exact.
func Normal(x uint64) float64 {
	sum := lanes(mix(x)) + lanes(mix(x+golden)) + lanes(mix(x-golden))
	// Each lane stands for the middle of its 2^-16 interval: 12 halves.
	return float64(int64(sum)+6-(6<<16)) * 0x1p-16
}

// lanes adds the four 16-bit parts of x.
func lanes(x uint64) uint64 {
	return x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48
}

// Source is a sequence of random numbers. It is not safe for concurrent use.
type Source struct{ state uint64 }

// New returns a source whose sequence is decided by seed.
func New(seed uint64) *Source { return &Source{state: mix(seed)} }

// Uint64 returns 64 random bits.
func (s *Source) Uint64() uint64 {
	s.state += golden
	return mix(s.state)
}

// State returns the place of the source in its sequence: what comes next is [At] of it and 0.
func (s *Source) State() uint64 { return s.state }

// At is number i, from 0, of the sequence of a source from a state on.
func At(state, i uint64) uint64 { return mix(state + (i+1)*golden) }

// Intn returns an integer in [0, n). It panics if n <= 0.
func (s *Source) Intn(n int) int {
	if n <= 0 {
		panic("rng: Intn needs a positive bound")
	}
	hi, lo := bits.Mul64(s.Uint64(), uint64(n))
	for threshold := -uint64(n) % uint64(n); lo < threshold; {
		hi, lo = bits.Mul64(s.Uint64(), uint64(n))
	}
	return int(hi)
}

// Float64 returns a number in [0, 1).
func (s *Source) Float64() float64 { return Float64(s.Uint64()) }

// Shuffle calls swap so that every order of n elements is equally likely.
func (s *Source) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.Intn(i+1))
	}
}

// Perm returns the numbers 0..n-1 in random order.
func (s *Source) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	s.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}
