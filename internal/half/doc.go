// Package half converts between float32 and the float16 of IEEE 754 (binary16:
// sign, 5 bits of exponent, 10 of fraction), to the bits that processors give.
// Many values are converted by the processor, where it can (F16C).
//
// # Not supported
//
// Other roundings than to the nearest, ties to even, and bfloat16.
package half
