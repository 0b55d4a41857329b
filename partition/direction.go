package partition

import (
	"ndls/catalog"
	"ndls/dataset"
)

// maxDirected is the largest number of nodes of a graph with directions: the key of an edge has
// one bit for its direction.
const maxDirected = 1 << 31

// checkDirected refuses a graph with directions that has too many nodes, or weights.
func (j *job) checkDirected(nodes int64) error {
	switch {
	case !j.info.Directed:
	case j.info.Weighted:
		return badData("%s: its edges have directions and weights, and no rule takes both: leave out directed=true or the weight", j.info.Name)
	case nodes > maxDirected:
		return badData("%s has %d nodes, and a graph with directions can have %d: leave out directed=true", j.info.Name, nodes, int64(maxDirected))
	}
	return nil
}

// pairOf is the key of an edge of input ids: where edges have directions, (source,
// destination), and (smaller, larger) elsewhere.
func (j *job) pairOf(e dataset.Edge) uint64 {
	if j.info.Directed {
		return pairKey(e.U, e.V)
	}
	return pairKey(min(e.U, e.V), max(e.U, e.V))
}

// rowPieces is the number of pieces of the step Rows. Each is an interval; in a graph with
// directions the intervals of the edges come first, then those of the reversed edges.
func (o ordered) rowPieces() int {
	if o.Directed {
		return 2 * o.Intervals
	}
	return o.Intervals
}

// rowFiles are the files of a piece of the step Rows.
type rowFiles struct {
	interval    int
	shard, hops catalog.Entry // without what only the files can tell
}

// files are those of a piece of the step Rows.
func (o ordered) files(piece int) rowFiles {
	kind, interval := catalog.KindEdges, piece
	if piece >= o.Intervals {
		kind, interval = catalog.KindReversed, piece-o.Intervals
	}
	return filesOf(kind, interval)
}

// filesOf are the files of an interval; kind is that of the shard.
func filesOf(kind string, interval int) rowFiles {
	shard, hops := catalog.Describe(kind, EdgesPath(interval)), catalog.Describe(catalog.KindHops, HopPath(interval))
	if kind == catalog.KindReversed {
		shard.Path = ReversedPath(interval)
		hops = catalog.Describe(catalog.KindReversedHops, ReversedHopPath(interval))
	}
	return rowFiles{interval, shard.In(interval), hops.In(interval)}
}

// reversedBlock is the block that stands in keys for the first one of the reversed edges.
func (j *job) reversedBlock() int64 { return int64(j.ordered.Intervals) * int64(j.o.IntervalBlocks) }

// reversedFrom is what a destination of the reversed edges has in keys beyond the node, and 0
// for other pieces of the step Rows. It counts modulo 2^32, as nodes that come from keys do.
func (j *job) reversedFrom(piece int) uint32 {
	if piece < j.ordered.Intervals {
		return 0
	}
	return uint32(j.reversedBlock()) << rowBits
}
