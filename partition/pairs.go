package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/steps"
)

// splitEdges implements edgeSteps. If the nodes are the ids that occur, a worker that does all steps notes the ids on the way; others keep
// a self-loop as a pair of equal ids.
func (j *sortedEdges[T]) splitEdges(ctx context.Context, p steps.Piece) error {
	if p.In(j.have(Split)) {
		return nil
	}
	j.part = p
	j.info.EdgeHint = j.info.EdgeHint * int64(p.Last-p.First) / Slices
	if j.info.NumNodes >= 0 || j.alone && j.ordered.Nodes == 0 {
		if err := j.noteIDs(); err != nil {
			return err
		}
	}
	if err := j.numbering().load(ctx); err != nil {
		return err
	}
	s, err := j.sortPairs(ctx)
	j.numbering().free()
	if err != nil {
		return err
	}
	return j.keys.save(ctx, Split, p, s, [2]int64{j.rows.Load() - j.outside.Load(), j.loops.Load()})
}

// mergePairs implements edgeSteps.
func (j *sortedEdges[T]) mergePairs(ctx context.Context, p steps.Piece) error {
	if p.In(j.have(Merge)) {
		return nil
	}
	return j.keys.merge(ctx, p)
}

// sortPairs reads the edge list, drops self-loops and sorts. Without j.ids it keeps self-loops, because nothing else may name their nodes.
func (j *sortedEdges[T]) sortPairs(ctx context.Context) (*extsort.Sorter[T], error) {
	note := j.ids != nil && !j.ids.all
	readers, err := j.takeReaders(j.info.EdgeMemory)
	if err != nil {
		return nil, err
	}
	defer readers.release()
	s, err := extsort.NewSorter[T](ctx, j.o.Budget, j.scratch, sortOptions(j.info.EdgeHint+j.info.EdgeHint/8, j.o.Threads, note))
	if err != nil {
		return nil, err
	}
	if err = j.addPairs(ctx, readers.n, s, note); err == nil {
		err = s.Finish()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// addPairs adds the pairs of the edge list to s and, with note, their ids to j.ids.
func (j *sortedEdges[T]) addPairs(ctx context.Context, threads int, s *extsort.Sorter[T], note bool) error {
	err := j.eachEdges(ctx, threads, func() visitEdges {
		pairs := make([]T, edgeBatch)
		return func(batch []dataset.Edge, weights []float32) error {
			n, err := j.pairsOf(batch, weights, pairs, note)
			if err != nil {
				return err
			}
			return s.Add(pairs[:n])
		}
	})
	if threads > 1 && errors.Is(err, dataset.ErrData) {
		return cmp.Or(j.firstBadEdge(ctx), err)
	}
	return err
}

// firstBadEdge reads the edge list on one thread to find the first bad row and its number, which several threads do not know.
func (j *sortedEdges[T]) firstBadEdge(ctx context.Context) error {
	j.rows.Store(0)
	pairs := make([]T, edgeBatch)
	return j.eachEdges(ctx, 1, func() visitEdges {
		return func(batch []dataset.Edge, weights []float32) error {
			_, err := j.pairsOf(batch, weights, pairs, false)
			return err
		}
	})
}

// pairsOf writes the pairs of some edges to pairs and returns their number. It counts the edges and the self-loops.
func (j *sortedEdges[T]) pairsOf(batch []dataset.Edge, weights []float32, pairs []T, note bool) (n int, err error) {
	limit := j.limit()
	loops, outside := int64(0), int64(0)
	for i, e := range batch {
		lo, hi := min(e.U, e.V), max(e.U, e.V)
		if int64(hi) >= limit {
			return 0, badData("%s: edge row %d%s is (%d, %d), and node ids end at %d: correct the row or the number of nodes",
				j.info.Name, j.rows.Load()+int64(i)+1, j.ofPart(), e.U, e.V, limit-1)
		}
		if j.members != nil && !(j.holds(lo) && j.holds(hi)) {
			outside++
			continue
		}
		if note {
			if err := j.ids.add(lo); err != nil {
				return 0, err
			}
			if err := j.ids.add(hi); err != nil {
				return 0, err
			}
		}
		if lo == hi {
			loops++
			if j.ids != nil {
				continue
			}
		}
		weight := float32(0)
		if weights != nil {
			weight = weights[i]
		}
		extsort.Set(&pairs[n], j.pairOf(e), weight)
		n++
	}
	j.rows.Add(int64(len(batch)))
	j.loops.Add(loops)
	j.outside.Add(outside)
	return n, nil
}

// ofPart returns where row numbers start, for an error.
func (j *job) ofPart() string {
	if j.part == allSlices {
		return ""
	}
	return fmt.Sprintf(" from %d/%d of the list", j.part.First, Slices)
}
