package partition

import (
	"fmt"

	"ndls/catalog"
	"ndls/internal/packed"
)

const (
	// BlockRows is the number of destination rows of a block.
	BlockRows = packed.BlockRows
	// DefaultIntervalBlocks is the number of blocks of an interval: at 16 columns of float32 its rows take 1 GiB.
	DefaultIntervalBlocks = 16
)

// EdgesPath returns the path of a shard in a run directory. Shards are numbered in order of their rows.
func EdgesPath(number int) string { return fmt.Sprintf("graph/edges/part-%05d.parquet", number) }

// ReversedPath returns the path of a shard of the reversed edges, in a graph with directions.
func ReversedPath(number int) string { return fmt.Sprintf("graph/reversed/part-%05d.parquet", number) }

// HopPath returns the path of the hop stream of a shard in a run directory. It has the shard's number.
func HopPath(number int) string { return fmt.Sprintf("graph/hops/part-%05d.hops", number) }

// ReversedHopPath returns the path of the hop stream of a shard of the reversed edges, in a graph with directions.
func ReversedHopPath(number int) string {
	return fmt.Sprintf("graph/reversed-hops/part-%05d.hops", number)
}

// NodesPath is the path of the node table in a run directory.
const NodesPath = "graph/nodes.parquet"

// SplitPath returns the path of the file of a split after the first: a byte per node, in order of the node table.
func SplitPath(number int) string { return fmt.Sprintf("graph/splits/split-%03d.u8", number) }

// rowFiles describes the files of a piece of the step Rows; they have the edges of rows [lo, hi).
type rowFiles struct {
	number      int
	lo, hi      int64
	reversed    bool
	shard, hops catalog.Entry // without fields that only the files can tell
}

// filesOf returns the files with this number; kind is the kind of the shard. It does not set their rows.
func filesOf(kind string, number int) rowFiles {
	shard, hops := catalog.Describe(kind, EdgesPath(number)), catalog.Describe(catalog.KindHops, HopPath(number))
	reversed := kind == catalog.KindReversed
	if reversed {
		shard.Path = ReversedPath(number)
		hops = catalog.Describe(catalog.KindReversedHops, ReversedHopPath(number))
	}
	return rowFiles{number: number, reversed: reversed, shard: shard.In(number), hops: hops.In(number)}
}
