package partition

import (
	"context"
	"slices"
	"sync/atomic"

	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/progress"
	"ndls/internal/share"
)

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
			c.tallyPairs(part)
		}
		if j.strength != nil {
			addStrengths(j.strength.S, batch)
		}
		return pairs.pass(batch)
	})
}

// lookAhead is the number of pairs that are read before they are counted, so that the processor fetches their data at the same time and not
// one after the other.
const lookAhead = 1 << 9

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

// tallyPairs counts both ends of pairs, and joins them.
func (c *degreeCounter[T]) tallyPairs(pairs []T) {
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
