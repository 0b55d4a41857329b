package partition

import (
	"math"

	"ndls/internal/direct"
	"ndls/shards"
)

// Counts is what the cost of a run is worked out from.
type Counts struct {
	Nodes int64
	// Rows is the length of the edge list, Edges what is left of it without
	// self-loops and repetitions.
	Rows, Edges int64
	// StatedNodes says that the dataset states the number of nodes.
	StatedNodes bool
	// Features is the width of the feature rows, 0 for none, and Half whether all
	// values are exactly float16.
	Features int
	Half     bool
	Threads  int
}

// Bytes in a run directory: of a directed edge in its hop stream, and of a node
// in the node table.
const (
	hopEdge = 4
	nodeRow = 9
)

// shardEdge is the bytes of a directed edge in a shard, a curve through what was
// measured at degree 28: destinations take 4, sources the less the more edges of
// a block share one. From 4.3 with 0.4 million nodes to 7 with 100 million.
func shardEdge(n, m int64) float64 {
	block := float64(2*m) * float64(min(n, BlockRows)) / float64(n)
	gap := math.Pow(float64(n)/max(block, 1), 0.8) // of the sources of two edges that follow each other
	return 4 + 4*gap/(gap+0.9)
}

// PeakMemory is what Run takes of a budget of so many bytes, and the smallest
// budget with which it runs. Arrays by degree are left out.
func PeakMemory(c Counts, budget int64) (peak, least int64) {
	n := c.Nodes
	ids := c.ids()
	least = ids + max(8*n+c.sorting(0), 17*n)
	most := ids + max(c.sorting(c.Rows+c.Rows/8), 8*n+c.sorting(2*c.Edges), 17*n)
	if granules := int64(granulesOf(c.Features)); granules > 0 {
		rows, tiles := ids+4*n+n/8, n*granules*int64(shards.TileRowBytes(c.Half))
		least = max(least, rows+min(tiles, minSpill))
		most = max(most, rows+tiles)
	}
	return min(most, max(budget, least)), least
}

// minSpill is enough to spill features in chunks that a disk likes.
const minSpill = 16 << 20

// ids is the map of input ids, without gaps.
func (c Counts) ids() int64 {
	if c.StatedNodes {
		return 0
	}
	return c.Nodes/8 + c.Nodes/128 + 4<<(32-chunkShift)
}

func (c Counts) options(want int64, grows bool) sortOptions {
	return sortOptions{want: want, threads: max(c.Threads, 1), grows: grows}
}

// sorting is the memory to sort so many keys without a file.
func (c Counts) sorting(keys int64) int64 {
	return c.options(0, false).buffers() * 8 * max(keys, minSortKeys)
}

// PeakDisk is the largest number of bytes that the run directory and the scratch
// folder hold at any time of a Run with a budget of so many bytes, and what the
// run directory holds in the end.
func PeakDisk(c Counts, budget int64) (peak, final int64) {
	n, m := c.Nodes, c.Edges
	free := budget - c.ids()
	if c.Rows > c.options(c.Rows, !c.StatedNodes).bufferKeys(free) {
		peak = 8 * c.Rows
	}
	peak = max(peak, 8*m) // the unique edges
	if 2*m > c.options(2*m, false).bufferKeys(free-8*n) {
		peak = max(peak, 16*m)
	}
	final = int64(2*float64(m)*(shardEdge(n, m)+hopEdge)) + nodeRow*n
	peak = max(peak, final)

	granules := granulesOf(c.Features)
	if granules == 0 {
		return peak, final
	}
	rowBytes := int64(shards.TileRowBytes(c.Half))
	tiles := n * int64(granules) * rowBytes
	free -= 4*n + n/8
	if lot := tileLot(free, n, granules, c.Half); n*int64(lot)*rowBytes+direct.Align > free {
		groups := int64(granules+tileGroup-1) / tileGroup
		peak = max(peak, final+tiles+4*n*groups)
	}
	final += tiles
	return max(peak, final), final
}
