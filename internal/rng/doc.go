// Package rng gives random numbers that are a pure function of a seed and a
// position, so that a generator can be restarted anywhere, by any number of
// threads, and gives the same bits on every platform.
//
// # Algorithm
//
// [Hash] absorbs its keys one by one through the finaliser of SplitMix64
// (Steele, Lea and Flood, OOPSLA 2014; constants of Stafford's variant 13).
// [Source] is SplitMix64 itself. Bounded integers use the multiply-shift method
// (Lemire, 2019), in [Source] with rejection, so that they are unbiased.
//
// # Determinism
//
// Only integer operations, exact conversions and single multiplications by
// constants: nothing that a compiler may fuse, no mathematical library.
//
// # Not supported
//
// Cryptographic use. [Normal] is a sum of twelve uniform numbers: its tails end
// at ±6 standard deviations.
package rng
