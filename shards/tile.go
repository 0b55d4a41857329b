package shards

import "fmt"

// TileColumns is the number of float32 columns of a tile: 64 bytes a row.
const TileColumns = 16

// TilePath is the name of the tile of an interval and a granule of TileColumns
// columns, such as TilePath("graph/features", 0, 1) =
// "graph/features/tile-00000-00001.f32". A tile holds the rows of the interval,
// little-endian float32, row-major; columns past the width are zero.
func TilePath(prefix string, interval, granule int) string {
	return fmt.Sprintf("%s/tile-%05d-%05d.f32", prefix, interval, granule)
}
