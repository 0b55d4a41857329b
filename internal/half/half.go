package half

import "math"

const infinite = 0x7c00

// FromFloat rounds to the nearest float16, ties to even; what is too large
// becomes infinite and what is not a number a quiet one, as VCVTPS2PH does.
func FromFloat(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	exp := int32(bits>>23&0xff) - 127
	frac := bits & 0x7fffff
	switch {
	case exp == 128 && frac != 0:
		return sign | 0x7e00 | uint16(frac>>13)
	case exp > 15:
		return sign | infinite
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

// Float is exact; what is not a number becomes a quiet one, as VCVTPH2PS does.
func Float(h uint16) float32 {
	sign, bits := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	switch {
	case bits < infinite<<13:
		// Moves the exponent, and gives subnormal numbers theirs.
		bits = math.Float32bits(math.Float32frombits(bits) * 0x1p112)
	case bits == infinite<<13:
		bits = 0x7f800000
	default:
		bits |= 0x7fc00000
	}
	return math.Float32frombits(sign | bits)
}
