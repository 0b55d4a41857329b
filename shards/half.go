package shards

import "math"

// halfFromFloat rounds to the nearest float16, ties to even; what is too large
// becomes infinite. (The library's own conversion cuts off.)
func halfFromFloat(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	exp := int32(bits>>23&0xff) - 127
	frac := bits & 0x7fffff
	switch {
	case exp == 128 && frac != 0:
		return sign | 0x7e00 | uint16(frac>>13)
	case exp > 15:
		return sign | 0x7c00
	case exp >= -14:
		// A carry out of the fraction raises the exponent, up to infinity.
		return sign | uint16(roundShift(uint32(exp+15)<<23|frac, 13))
	case exp >= -25:
		return sign | uint16(roundShift(frac|0x800000, uint32(-1-exp)))
	default:
		return sign
	}
}

// roundShift shifts right, to the nearest, ties to even.
func roundShift(v, by uint32) uint32 {
	half := uint32(1) << (by - 1)
	return (v + half - 1 + v>>by&1) >> by
}

// floatFromHalf is exact.
func floatFromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h >> 10 & 0x1f)
	frac := uint32(h & 0x3ff)
	switch exp {
	case 0:
		f := float32(frac) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(f))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
