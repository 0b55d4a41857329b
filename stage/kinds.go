package stage

import (
	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
)

// CountRows counts the rows of a file of Arrow rows.
func CountRows(r storage.Reader, name string) (n int64, err error) {
	rows, err := shards.OpenRows(r, name)
	if err != nil {
		return 0, err
	}
	var b shards.RowBatch
	for i := range rows.NumBatches() {
		if err := rows.ReadBatch(i, &b); err != nil {
			return n, err
		}
		n += int64(len(b.ID))
	}
	return n, nil
}

// EdgeKinds returns the kinds of the shards and of the hop streams that hops in a direction read.
func EdgeKinds(direction string) (shard, hops string) {
	if direction == plan.Out {
		return catalog.KindReversed, catalog.KindReversedHops
	}
	return catalog.KindEdges, catalog.KindHops
}

// HasShards reports whether a run directory has edge shards, from which hop streams can be rebuilt.
func HasShards(cat *catalog.Catalog) bool { return len(cat.Entries(catalog.KindEdges)) > 0 }

// EdgesOf returns the kind of the files that hold the edges which hops in a direction read: the shards, or the hop streams if there are no
// shards.
func EdgesOf(cat *catalog.Catalog, direction string) string {
	shard, hops := EdgeKinds(direction)
	if HasShards(cat) {
		return shard
	}
	return hops
}

// TrainedKind returns the kind of the rows that models read, which the stage commits last: the rule's sums, or hops if it makes no sums.
func TrainedKind(out estimate.Output) string {
	if out.Sums || out.Joins {
		return catalog.KindSmoothed
	}
	return catalog.KindKeptHops
}

// RowsKind returns the kind of the smoothed rows that models read, whatever the graph.
func RowsKind(p plan.Options) string { return TrainedKind(estimate.OutputOf(p, 0, 0)) }
