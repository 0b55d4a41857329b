package half

import (
	"encoding/binary"
)

// Encode writes values as little-endian float16 to dst, which has space for them, and rounds them like [FromFloat]. It reports whether
// all values are exact; what is not a number is not.
func Encode(dst []byte, values []float32) (exact bool) {
	dst = dst[:2*len(values)]
	n, exact := encodeMost(dst, values)
	for i, v := range values[n:] {
		h := FromFloat(v)
		exact = exact && Float(h) == v
		binary.LittleEndian.PutUint16(dst[2*(n+i):], h)
	}
	return exact
}

// Decode fills dst with the values of little-endian float16 from the front of src. The values may lie in the memory of dst, if they end
// where it ends.
func Decode(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	n := decodeMost(dst, src)
	for i := range dst[n:] {
		dst[n+i] = Float(binary.LittleEndian.Uint16(src[2*(n+i):]))
	}
}
