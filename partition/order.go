package partition

import (
	"context"
	"slices"
	"sync/atomic"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
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
	pairs, err := j.keys.pairs(ctx, allSlices)
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

// addOrdered adds the file that later steps read to files that are committed together.
func (j *job) addOrdered(ctx context.Context, files *catalog.Batch) error {
	return files.Write(ctx, keysOf(Order, orderPath).Counting(1), writeJSON(j.ordered))
}

// lookAhead is the number of pairs that are read before they are counted, so that the processor fetches their data at the same time and not
// one after the other.
const lookAhead = 1 << 9

// countDegrees counts the degrees, by rank, and joins the ends of all edges. If j.strength is set, it adds up strengths in order of the
// pairs.
func (j *sortedEdges[T]) countDegrees(ctx context.Context, pairs pairSource[T], components forest, degrees []uint32) error {
	all, alone := pairs.each, j.o.Threads == 1
	if j.strength != nil {
		all, alone = pairs.inOrder, true
	}
	c := degreeCounter[T]{degrees: degrees, components: components, alone: alone}
	if j.outDegree != nil {
		c.out = j.outDegree.S
	}
	return j.eachPair(ctx, "counting degrees", pairs, all, func(batch []T) error {
		for rest := batch; len(rest) > 0; {
			part := rest[:min(len(rest), lookAhead)]
			rest = rest[len(part):]
			c.fetch(part)
			c.count(part)
		}
		if j.strength != nil {
			addStrengths(j.strength.S, batch)
		}
		return pairs.pass(batch)
	})
}

// degreeCounter counts degrees and joins components, on several threads unless it is alone.
type degreeCounter[T extsort.Item] struct {
	degrees    []uint32
	out        []uint32 // of edges that begin at the node; nil without directions
	components forest
	alone      bool
}

// fetch loads the data that pairs need. The compiler keeps atomic loads.
func (c *degreeCounter[T]) fetch(pairs []T) {
	for i := range pairs {
		_, v := pairOfKey(extsort.Key(&pairs[i]))
		atomic.LoadUint32(&c.degrees[v])
		atomic.LoadUint32(&c.components[v])
	}
}

// count counts both ends of pairs, and joins them.
func (c *degreeCounter[T]) count(pairs []T) {
	first := uint32(0) // consecutive edges mostly share this end
	edges := uint32(0)
	for i := range pairs {
		u, v := pairOfKey(extsort.Key(&pairs[i]))
		if u != first {
			c.addFirst(first, edges)
			first, edges = u, 0
		}
		edges++
		c.add(c.degrees, v, 1)
		c.components.join(u, v)
	}
	c.addFirst(first, edges)
}

// addFirst counts edges whose first end is u. With directions, they begin there.
func (c *degreeCounter[T]) addFirst(u, edges uint32) {
	c.add(c.degrees, u, edges)
	if c.out != nil {
		c.add(c.out, u, edges)
	}
}

func (c *degreeCounter[T]) add(degrees []uint32, v, edges uint32) {
	if c.alone {
		degrees[v] += edges
	} else {
		atomic.AddUint32(&degrees[v], edges)
	}
}

// notePairs adds the ids of pairs to j.ids, unless the dataset states all ids.
func (j *sortedEdges[T]) notePairs(ctx context.Context, pairs pairSource[T]) error {
	if j.ids.all {
		return nil
	}
	meter := progress.Start(ctx, "reading node ids", pairs.keys(), "edges")
	defer meter.Done()
	return pairs.each(ctx, j.o.Threads, func(batch []T) error {
		for i := range batch {
			u, v := pairOfKey(extsort.Key(&batch[i]))
			if err := j.ids.add(u); err != nil {
				return err
			}
			if err := j.ids.add(v); err != nil {
				return err
			}
		}
		meter.Add(int64(len(batch)))
		return nil
	})
}

// visitPairs visits the pairs of a source.
type visitPairs[T extsort.Item] func(ctx context.Context, threads int, visit func([]T) error) error

// eachPair visits the pairs of a source by the ranks of their ids, without self-loops and dropped edges. all is the way to visit the
// source.
func (j *sortedEdges[T]) eachPair(ctx context.Context, what string, pairs pairSource[T], all visitPairs[T], visit func([]T) error) error {
	meter := progress.Start(ctx, what, pairs.keys(), "edges")
	defer meter.Done()
	ranked := pairs.ranked() || j.ids.all
	// Pairs of ranks come from an earlier visit, which dropped edges.
	drop, draw := j.o.DropEdges > 0 && !pairs.ranked(), j.o.edgeDraw()
	return all(ctx, j.o.Threads, func(batch []T) error {
		meter.Add(int64(len(batch)))
		if drop {
			before := len(batch)
			batch = left(draw, batch)
			j.dropped.Add(int64(before - len(batch)))
		}
		if ranked {
			return visit(batch)
		}
		n := 0
		for i := range batch {
			lo, hi := pairOfKey(extsort.Key(&batch[i]))
			if lo == hi {
				continue
			}
			u, _ := j.ids.rank(lo)
			v, _ := j.ids.rank(hi)
			batch[n] = batch[i]
			extsort.SetKey(&batch[n], pairKey(u, v))
			n++
		}
		return visit(batch[:n])
	})
}

// rankIDs prepares j.ids, which holds the ids of all edges, for ranking.
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
		return j.noNodes()
	}
	return nil
}

func (j *job) noNodes() error {
	return badData("%s has no nodes: give it an edge list that is not empty", j.info.Name)
}

// addOtherIDs adds the nodes without an edge that have a label, a split or a feature row; in a part of the graph, all its members.
func (j *job) addOtherIDs(ctx context.Context) error {
	if j.members != nil {
		return j.members.ids.each(func(_, id uint32) error {
			if !j.holds(id) {
				return nil
			}
			return j.ids.add(id)
		})
	}
	add := func(_ int64, id uint32) error { return j.ids.add(id) }
	if j.info.HasLabels {
		if err := j.eachLabel(ctx, func(row int64, id uint32, _ int32) error { return add(row, id) }); err != nil {
			return err
		}
	}
	if j.info.HasSplits {
		if err := j.eachSplit(ctx, 0, func(row int64, id uint32, _ dataset.Split) error { return add(row, id) }); err != nil {
			return err
		}
	}
	if j.info.NumFeatures > 0 {
		return j.eachFeatureRow(ctx, "reading node ids", func(row int64, f dataset.FeatureRow) error { return add(row, f.ID) })
	}
	return nil
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

// largestOf returns the largest degree.
func largestOf(degrees []uint32, threads int) uint32 {
	var largest atomic.Uint32
	_ = share.Ranges(threads, len(degrees), rankedNodes, func(lo, hi int) error {
		most := slices.Max(degrees[lo:hi])
		for old := largest.Load(); most > old && !largest.CompareAndSwap(old, most); old = largest.Load() {
		}
		return nil
	})
	return largest.Load()
}

// rankedNodes is the number of degrees that a thread reads at a time.
const rankedNodes = 1 << 16

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
