package shards

import (
	"encoding/binary"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// TileColumns is the number of columns of a tile.
const TileColumns = packed.PanelColumns

// The types of the values of tiles; see Summary.FeatureType.
const (
	Float32 = catalog.Float32
	Float16 = catalog.Float16
)

// TilePath is the name of the tile of an interval and a panel of TileColumns
// columns, such as TilePath("graph/features", 0, 1, false) =
// "graph/features/tile-00000-00001.f32". A tile holds the rows of the interval,
// little-endian float32 or, in a file .f16, float16, row-major; columns past the
// width are zero.
func TilePath(prefix string, interval, panel int, half bool) string {
	suffix := "f32"
	if half {
		suffix = "f16"
	}
	return fmt.Sprintf("%s/tile-%05d-%05d.%s", prefix, interval, panel, suffix)
}

// TileRowBytes is the length of a row of a tile: 64 bytes, or 32 of float16.
func TileRowBytes(half bool) int {
	if half {
		return TileColumns * 2
	}
	return TileColumns * 4
}

// EncodeTile writes values as those of a tile to dst, which has room for all of
// them. It returns false, and leaves dst undefined, if half is asked for and a
// value is not exactly a float16.
func EncodeTile(dst []byte, values []float32, half bool) (exact bool) {
	if half {
		return encodeHalves(dst, values)
	}
	copy(dst[:4*len(values)], mem.AsBytes(values))
	return true
}

// DecodeTile is the inverse of EncodeTile: it fills dst from the front of src.
func DecodeTile(dst []float32, src []byte, half bool) {
	if half {
		decodeHalves(dst, src)
		return
	}
	copy(mem.AsBytes(dst), src[:4*len(dst)])
}

// Normal float16 numbers have exponents from 1 to 30, which are 112 more in a
// float32, and 13 bits fewer; a shift turns one into the other. What is left is
// rare but for zero.
const (
	moreBits     = 13
	moreExponent = 112
)

func encodeHalves(dst []byte, values []float32) bool {
	dst = dst[:2*len(values)]
	for len(values) >= 4 {
		// Four normal numbers at a time, without a branch for each.
		a, b := math.Float32bits(values[0]), math.Float32bits(values[1])
		c, d := math.Float32bits(values[2]), math.Float32bits(values[3])
		if !isNormalHalf(a) || !isNormalHalf(b) || !isNormalHalf(c) || !isNormalHalf(d) || (a|b|c|d)&(1<<moreBits-1) != 0 {
			if !encodeAnyHalves(dst[:8], values[:4]) {
				return false
			}
		} else {
			binary.LittleEndian.PutUint64(dst, normalHalf(a)|normalHalf(b)<<16|normalHalf(c)<<32|normalHalf(d)<<48)
		}
		dst, values = dst[8:], values[4:]
	}
	return encodeAnyHalves(dst, values)
}

// isNormalHalf says whether a float32 has the exponent of a normal float16, and normalHalf
// is that float16, of a float32 without the bits that a float16 lacks.
func isNormalHalf(bits uint32) bool {
	return bits&0x7fffffff-(moreExponent+1)<<23 < 30<<23
}

func normalHalf(bits uint32) uint64 {
	return uint64(bits>>16&0x8000 | (bits&0x7fffffff>>moreBits - moreExponent<<10))
}

func encodeAnyHalves(dst []byte, values []float32) bool {
	for i, v := range values {
		bits := math.Float32bits(v)
		h := uint16(bits >> 16 & 0x8000)
		switch {
		case isNormalHalf(bits) && bits&(1<<moreBits-1) == 0:
			h = uint16(normalHalf(bits))
		case bits<<1 != 0:
			if h = half.FromFloat(v); half.Float(h) != v {
				return false
			}
		}
		binary.LittleEndian.PutUint16(dst[2*i:], h)
	}
	return true
}

func decodeHalves(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		h := binary.LittleEndian.Uint16(src[2*i:])
		if exponent := h >> 10 & 31; exponent-1 < 30 {
			dst[i] = math.Float32frombits(uint32(h&0x8000)<<16 | uint32(h&0x7fff)<<moreBits + moreExponent<<23)
		} else {
			dst[i] = half.Float(h)
		}
	}
}
