package partition

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
)

// orderNodes numbers the nodes, and commits the node table and what later steps have
// to know.
func (j *job) orderNodes(ctx context.Context) error {
	pairs, err := j.keys.pairs(ctx, allSlices)
	if err != nil {
		return err
	}
	defer pairs.close()
	if err := j.findNodes(ctx, pairs); err != nil {
		return err
	}
	degrees, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "degrees")
	if err != nil {
		return err
	}
	defer degrees.Free()
	parents, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "components")
	if err != nil {
		return err
	}
	defer parents.Free()
	components := newForest(parents.S)
	if err := j.countDegrees(ctx, pairs, components, degrees.S); err != nil {
		return err
	}
	ends, err := j.relabel(degrees)
	if err != nil {
		return err
	}
	defer ends.Free()
	degrees.Free()
	component, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "components")
	if err != nil {
		return err
	}
	defer component.Free()
	components.number(j.nodeOf.S, component.S)
	parents.Free()

	j.ordered = ordered{
		Rows: pairs.counts()[0], Loops: pairs.counts()[1],
		Nodes: j.ids.n, Stated: j.info.NumNodes >= 0, Intervals: j.intervalsOf(j.ids.n),
	}
	if j.wantFeatures() {
		j.ordered.Panels = packed.Panels(j.info.NumFeatures)
	}
	return j.writeNodes(ctx, ends.S, component.S)
}

// createOrdered writes the file that is committed with the node table.
func (j *job) createOrdered(ctx context.Context) (*catalog.File, error) {
	text, err := json.Marshal(j.ordered)
	if err != nil {
		return nil, err
	}
	f, err := j.cat.Create(ctx, keysOf(Order, orderPath))
	if err != nil {
		return nil, err
	}
	f.Rows = 1
	if _, err := f.Write(append(text, '\n')); err != nil {
		f.Abort()
		return nil, err
	}
	return f, nil
}

// countDegrees counts the degrees, by rank, and joins the ends of all edges.
func (j *job) countDegrees(ctx context.Context, pairs pairSource, components forest, degrees []uint32) error {
	return j.eachPair(ctx, "counting degrees", pairs, func(batch []uint64) error {
		first := uint32(0) // the end that edges which follow each other mostly share
		count := uint32(0)
		for _, k := range batch {
			u, v := pairOfKey(k)
			if u != first {
				atomic.AddUint32(&degrees[first], count)
				first, count = u, 0
			}
			count++
			atomic.AddUint32(&degrees[v], 1)
			components.join(u, v)
		}
		atomic.AddUint32(&degrees[first], count)
		return pairs.pass(batch)
	})
}

// findNodes sets j.ids, unless the step Split has noted them.
func (j *job) findNodes(ctx context.Context, pairs pairSource) error {
	if j.ids != nil {
		return j.rankIDs(ctx)
	}
	if err := j.noteIDs(); err != nil {
		return err
	}
	if j.ids.all {
		return j.rankIDs(ctx)
	}
	meter := progress.Start(ctx, "reading node ids", pairs.keys(), "edges")
	defer meter.Done()
	if err := pairs.each(ctx, j.o.Threads, func(batch []uint64) error {
		for _, k := range batch {
			u, v := pairOfKey(k)
			if err := j.ids.add(u); err != nil {
				return err
			}
			if err := j.ids.add(v); err != nil {
				return err
			}
		}
		meter.Add(int64(len(batch)))
		return nil
	}); err != nil {
		return err
	}
	return j.rankIDs(ctx)
}

// eachPair visits the pairs of a source by the ranks of their ids, without
// self-loops, on all threads at a time and in any order of batches.
func (j *job) eachPair(ctx context.Context, what string, pairs pairSource, visit func([]uint64) error) error {
	meter := progress.Start(ctx, what, pairs.keys(), "edges")
	defer meter.Done()
	ranked := pairs.ranked() || j.ids.all
	return pairs.each(ctx, j.o.Threads, func(batch []uint64) error {
		meter.Add(int64(len(batch)))
		if ranked {
			return visit(batch)
		}
		n := 0
		for _, k := range batch {
			lo, hi := pairOfKey(k)
			if lo == hi {
				continue
			}
			u, _ := j.ids.rank(lo)
			v, _ := j.ids.rank(hi)
			batch[n] = pairKey(u, v)
			n++
		}
		return visit(batch[:n])
	})
}

// rankIDs prepares j.ids, to which the ids of all edges were added, for ranking.
func (j *job) rankIDs(ctx context.Context) error {
	if !j.ids.all {
		if err := j.addOtherIDs(ctx); err != nil {
			return err
		}
	}
	if err := j.ids.rankAll(); err != nil {
		return err
	}
	if j.ids.n == 0 {
		return badData("%s has no nodes: give it an edge list that is not empty", j.info.Name)
	}
	return nil
}

// addOtherIDs adds the nodes that have no edge but a label, a split or a
// feature row.
func (j *job) addOtherIDs(ctx context.Context) error {
	add := func(_ int64, id uint32) error { return j.ids.add(id) }
	if j.info.HasLabels {
		if err := j.eachLabel(ctx, func(row int64, id uint32, _ int32) error { return add(row, id) }); err != nil {
			return err
		}
	}
	if j.info.HasSplits {
		if err := j.eachSplit(ctx, func(row int64, id uint32, _ dataset.Split) error { return add(row, id) }); err != nil {
			return err
		}
	}
	if j.info.NumFeatures > 0 {
		return j.eachFeatureRow(ctx, "reading node ids", func(row int64, f dataset.FeatureRow) error { return add(row, f.ID) })
	}
	return nil
}

// relabel numbers the nodes by descending degree, equal degrees by ascending
// input id, and sets j.nodeOf. Nodes of degree d end before ends[d].
func (j *job) relabel(degrees *mem.Array[uint32]) (ends *mem.Array[uint32], err error) {
	if j.nodeOf, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "relabelling"); err != nil {
		return nil, err
	}
	largest := uint32(0)
	for _, d := range degrees.S {
		largest = max(largest, d)
	}
	if ends, err = mem.Alloc[uint32](j.o.Budget, int64(largest)+1, "degree counts"); err != nil {
		return nil, err
	}
	for _, d := range degrees.S {
		ends.S[d]++
	}
	at := uint32(0)
	for d := int64(largest); d >= 0; d-- {
		ends.S[d], at = at, at+ends.S[d]
	}
	for rank, d := range degrees.S {
		j.nodeOf.S[rank] = ends.S[d]
		ends.S[d]++
	}
	return ends, nil
}
