package shards

import (
	"fmt"

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

// EncodeTile writes values in tile form to dst, which has room for them. It returns false if isHalf is set and a value is not exactly a
// float16.
func EncodeTile(dst []byte, values []float32, isHalf bool) (exact bool) {
	if isHalf {
		return half.Encode(dst, values)
	}
	copy(dst[:4*len(values)], mem.AsBytes(values))
	return true
}

// DecodeTile is the inverse of EncodeTile: it fills dst from the front of src.
func DecodeTile(dst []float32, src []byte, isHalf bool) {
	if isHalf {
		half.Decode(dst, src)
		return
	}
	copy(mem.AsBytes(dst), src[:4*len(dst)])
}
