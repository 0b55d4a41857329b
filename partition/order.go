package partition

import (
	"context"
	"slices"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
)

// orderNodes implements edgeSteps. A worker that does all steps counts degrees here.
func (j *sortedEdges[T]) orderNodes(ctx context.Context) error {
	var t tally
	counts, err := j.findTally(ctx, &t)
	defer t.free()
	defer func() { j.outDegree.Free() }()
	defer func() { j.strength.Free() }()
	if err != nil {
		return err
	}
	ends, err := j.nodeTable().relabel(t.degrees)
	if err != nil {
		return err
	}
	defer ends.Free()
	t.degrees.Free()
	component, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "components")
	if err != nil {
		return err
	}
	defer component.Free()
	count, largest := t.components.number(j.nodeOf.S, component.S)
	t.parents.Free()

	j.ordered = ordered{
		Rows: counts[0], Loops: counts[1], Dropped: j.dropped.Load(),
		Nodes: j.ids.n, Stated: j.info.NumNodes >= 0, Intervals: j.intervalsOf(j.ids.n), Directed: j.info.Directed,
		Weighted: j.info.Weighted, NoShards: j.o.NoShards,
		counted: counted{Components: count, LargestComponent: largest},
	}
	j.ordered.cutEdges(j.intervalRows(), ends.S)
	if j.wantFeatures() {
		j.ordered.Panels = packed.Panels(j.info.NumFeatures)
	}
	return j.nodeTable().writeNodes(ctx, ends.S, component.S)
}

// findTally sets j.ids and computes degrees and components of all nodes. It returns the counts of the input.
func (j *sortedEdges[T]) findTally(ctx context.Context, t *tally) (counts [2]int64, err error) {
	pairs, err := j.keys.openPairs(ctx, allSlices)
	if err != nil {
		return counts, err
	}
	defer pairs.close()
	if j.ids == nil {
		if err = j.noteIDs(); err == nil {
			err = j.notePairs(ctx, pairs)
		}
	}
	if err == nil {
		err = j.counting().prepareTally(ctx, t)
	}
	if err == nil {
		err = j.counting().allocStrength()
	}
	if err == nil {
		err = j.countDegrees(ctx, pairs, t.components, t.degrees.S)
	}
	return pairs.counts(), err
}

// prepareTally ranks j.ids, which holds the ids of all edges, and prepares a tally.
func (j counting) prepareTally(ctx context.Context, t *tally) (err error) {
	if err := j.rankIDs(ctx); err != nil {
		return err
	}
	if err := j.checkDirected(j.ids.n); err != nil {
		return err
	}
	*t, err = j.counting().newTally()
	return err
}

// relabel numbers the nodes by descending degree, then ascending input id, and sets j.nodeOf. Nodes of degree d end before ends[d].
func (j nodeTable) relabel(degrees *mem.Array[uint32]) (ends *mem.Array[uint32], err error) {
	if j.nodeOf, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "relabelling"); err != nil {
		return nil, err
	}
	largest := largestOf(degrees.S, j.o.Threads)
	if ends, err = mem.Alloc[uint32](j.o.Budget, int64(largest)+1, "degree counts"); err != nil {
		return nil, err
	}
	// Each thread but one counts in a table of its own, as far as memory allows and all tables together are not longer than the degrees.
	size := len(ends.S)
	tables := [][]uint32{ends.S}
	if others := min(j.o.Threads-1, len(degrees.S)/size, int(j.o.Budget.Free()/4)/size-1); others > 0 {
		more, err := mem.Alloc[uint32](j.o.Budget, int64(others*size), "degree counts")
		if err != nil {
			ends.Free()
			return nil, err
		}
		defer more.Free()
		tables = append(slices.Collect(slices.Chunk(more.S, size)), ends.S)
	}
	byDegree(degrees.S, j.nodeOf.S, tables)
	return ends, nil
}

// byDegree gives each rank its place in descending order of degree, then ascending order of rank. One thread per table counts a part of the
// degrees there. At the end, the last table holds the place after the last rank of each degree.
func byDegree(degrees, to []uint32, tables [][]uint32) {
	each := func(do func(first int, degrees, table []uint32)) {
		_ = share.Each(len(tables), len(tables), func(part int) error {
			lo, hi := len(degrees)*part/len(tables), len(degrees)*(part+1)/len(tables)
			do(lo, degrees[lo:hi], tables[part])
			return nil
		})
	}
	each(func(_ int, degrees, table []uint32) {
		for _, d := range degrees {
			table[d]++
		}
	})
	at := uint32(0)
	for d := len(tables[0]) - 1; d >= 0; d-- {
		for _, table := range tables {
			table[d], at = at, at+table[d]
		}
	}
	each(func(first int, degrees, table []uint32) {
		for i, d := range degrees {
			to[first+i] = table[d]
			table[d]++
		}
	})
}
