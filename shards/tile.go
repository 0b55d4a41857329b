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

// TilePath returns the name of the tile of an interval and a panel of TileColumns columns, such as TilePath("graph/features", 0, 1, false)
// = "graph/features/tile-00000-00001.f32". A tile holds the rows of the interval, row-major, as little-endian float32, or as float16 in a
// file .f16; columns past the width are zero.
func TilePath(prefix string, interval, panel int, half bool) string {
	suffix := "f32"
	if half {
		suffix = "f16"
	}
	return fmt.Sprintf("%s/tile-%05d-%05d.%s", prefix, interval, panel, suffix)
}

// TileRowBytes returns the length of a row of a tile: 64 bytes, or 32 for float16.
func TileRowBytes(half bool) int {
	if half {
		return TileColumns * 2
	}
	return TileColumns * 4
}

// EncodeTile writes values in tile form to dst, which has room for them. It returns false, and leaves dst undefined, if half is set and a
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

// Normal float16 numbers have exponents from 1 to 30. In a float32 the exponent is 112 more and the fraction has 13 more bits; a shift
// converts one to the other. Other numbers except zero are rare.
const (
	moreBits     = 13
	moreExponent = 112
)

// Constants for two float32 in one word of 64 bits.
const (
	both      = 1<<32 | 1
	bothSigns = both << 31
	bothLost  = both * (1<<moreBits - 1)
	// Added to the absolute value of a float32, they carry into its sign bit from the smallest normal float16 on, and from infinity on.
	bothLeast = both * (1<<31 - (moreExponent+1)<<23)
	bothMost  = both * (1<<31 - (moreExponent+31)<<23)
)

func encodeHalves(dst []byte, values []float32) bool {
	dst = dst[:2*len(values)]
	from := mem.AsBytes(values)
	for len(from) >= 32 {
		// Convert eight normal numbers at a time, two per word, without a branch for each.
		a, b := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
		c, d := binary.LittleEndian.Uint64(from[16:]), binary.LittleEndian.Uint64(from[24:])
		if others(a)|others(b)|others(c)|others(d) != 0 {
			if !encodeAnyHalves(dst[:16], values[:8]) {
				return false
			}
		} else {
			binary.LittleEndian.PutUint64(dst, normalHalves(a)|normalHalves(b)<<32)
			binary.LittleEndian.PutUint64(dst[8:], normalHalves(c)|normalHalves(d)<<32)
		}
		dst, from, values = dst[16:], from[32:], values[8:]
	}
	return encodeAnyHalves(dst, values)
}

// others returns zero if both float32 of a word are normal float16 numbers.
func others(two uint64) uint64 {
	abs := two &^ bothSigns
	return (^(abs+bothLeast)|(abs+bothMost))&bothSigns | two&bothLost
}

// normalHalves returns both float32 of a word as normal float16 numbers, in the lower half.
func normalHalves(two uint64) uint64 {
	h := two>>16&(both<<15) | (two&^bothSigns>>moreBits - both*(moreExponent<<10))
	return h&0xffff | h>>16&0xffff0000
}

// isNormalHalf reports whether a float32 has the exponent of a normal float16.
func isNormalHalf(bits uint32) bool {
	return bits&0x7fffffff-(moreExponent+1)<<23 < 30<<23
}

// normalHalf returns the float16 of a float32 without the bits that a float16 lacks.
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
