package partition

import (
	"ndls/catalog"
	"ndls/dataset"
)

// maxDirected is the largest number of nodes of a graph with directions, because the key of an edge has one bit for its direction.
const maxDirected = 1 << 31

// checkDirected refuses a graph with directions that has too many nodes, or weights.
func (j *job) checkDirected(nodes int64) error {
	switch {
	case !j.info.Directed:
	case j.info.Weighted:
		return badData("%s: its edges have directions and weights, and no rule takes both: leave out directed=true or the weight", j.info.Name)
	case nodes > maxDirected:
		return badData("%s has %d nodes, and a graph with directions can have at most %d: leave out directed=true", j.info.Name, nodes, int64(maxDirected))
	}
	return nil
}

// pairOf returns the key of an edge of input ids: (source, destination) with directions, else (smaller, larger).
func (j *job) pairOf(e dataset.Edge) uint64 {
	if j.info.Directed {
		return pairKey(e.U, e.V)
	}
	return pairKey(min(e.U, e.V), max(e.U, e.V))
}

// rowPieces returns the number of pieces of the step Rows without joining the node table: a piece per file of edges, then one per file of
// reversed edges in a graph with directions.
func (o ordered) rowPieces() int {
	if o.Directed {
		return 2 * o.Cuts.files()
	}
	return o.Cuts.files()
}

// rowFiles describes the files of a piece of the step Rows; they have the edges of rows [lo, hi).
type rowFiles struct {
	number      int
	lo, hi      int64
	reversed    bool
	shard, hops catalog.Entry // without fields that only the files can tell
}

// files returns the files of a piece of the step Rows.
func (o ordered) files(piece int) rowFiles {
	kind, number := catalog.KindEdges, piece
	if piece >= o.Cuts.files() {
		kind, number = catalog.KindReversed, piece-o.Cuts.files()
	}
	f := filesOf(kind, number)
	f.lo, f.hi = o.Cuts[number], o.Cuts[number+1]
	return f
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
