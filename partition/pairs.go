package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ndls/dataset"
	"ndls/internal/extsort"
)

// splitEdges writes the sorted pairs of a part of the edge list. Where the nodes are
// the ids that occur, a worker that does all steps notes the ids on the way; others
// keep a self-loop as a pair of the same id.
func (j *job) splitEdges(ctx context.Context, p Piece) error {
	if len(uncovered(j.keys.have(Split), []Piece{p})) == 0 {
		return nil
	}
	j.part = p
	j.info.EdgeHint = j.info.EdgeHint * int64(p.Last-p.First) / Slices
	if j.info.NumNodes >= 0 || j.alone && j.ordered.Nodes == 0 {
		if err := j.noteIDs(); err != nil {
			return err
		}
	}
	if err := j.loadNumbers(ctx); err != nil {
		return err
	}
	s, err := j.sortPairs(ctx)
	j.freeNumbers()
	if err != nil {
		return err
	}
	return j.keys.save(ctx, Split, p, s, [2]int64{j.rows.Load(), j.loops.Load()})
}

// mergePairs writes the unique pairs of a range of keys.
func (j *job) mergePairs(ctx context.Context, p Piece) error {
	if len(uncovered(j.keys.have(Merge), []Piece{p})) == 0 {
		return nil
	}
	return j.keys.merge(ctx, p)
}

// noteIDs sets j.ids to the stated ids, or to none.
func (j *job) noteIDs() (err error) {
	if j.info.NumNodes >= 0 {
		j.ids = allIDs(j.info.NumNodes)
		return nil
	}
	j.ids, err = newIDSet(j.o.Budget)
	return err
}

// growth is the memory that the map of all input ids may take while keys are added.
const growth = 544 << 20

// sortOptions are those of a sort of so many keys, 0 if that is not known. notes says
// that input ids are noted while keys are added.
func sortOptions(want int64, threads int, notes bool) extsort.Options {
	o := extsort.Options{Want: want, Threads: threads}
	if notes {
		o.Leave = growth
	}
	return o
}

// sortPairs reads the edge list, drops self-loops and sorts. Without j.ids it
// keeps self-loops: they may be all that names a node.
func (j *job) sortPairs(ctx context.Context) (*extsort.Sorter, error) {
	note := j.ids != nil && !j.ids.all
	readers, err := j.takeReaders()
	if err != nil {
		return nil, err
	}
	defer readers.release()
	s, err := extsort.NewSorter(ctx, j.o.Budget, j.scratch, sortOptions(j.info.EdgeHint+j.info.EdgeHint/8, j.o.Threads, note))
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

// addPairs adds the pairs of the edge list to s, and their ids to j.ids if it is to
// note them.
func (j *job) addPairs(ctx context.Context, threads int, s *extsort.Sorter, note bool) error {
	err := j.eachEdges(ctx, threads, func() func([]dataset.Edge) error {
		keys := make([]uint64, 0, edgeBatch)
		return func(batch []dataset.Edge) (err error) {
			if keys, err = j.pairsOf(batch, keys[:0], note); err != nil {
				return err
			}
			return s.Add(keys)
		}
	})
	if threads > 1 && errors.Is(err, dataset.ErrData) {
		return cmp.Or(j.firstBadEdge(ctx), err)
	}
	return err
}

// firstBadEdge reads the edge list on one thread, to find the first row that is wrong and
// its number: several threads read parts of the list, and know neither.
func (j *job) firstBadEdge(ctx context.Context) error {
	j.rows.Store(0)
	keys := make([]uint64, 0, edgeBatch)
	return j.eachEdges(ctx, 1, func() func([]dataset.Edge) error {
		return func(batch []dataset.Edge) error {
			_, err := j.pairsOf(batch, keys[:0], false)
			return err
		}
	})
}

// pairsOf appends the pairs of some edges to keys, and counts the edges and the
// self-loops.
func (j *job) pairsOf(batch []dataset.Edge, keys []uint64, note bool) ([]uint64, error) {
	limit := int64(dataset.MaxID) + 1
	if j.info.NumNodes >= 0 {
		limit = j.info.NumNodes
	}
	loops := int64(0)
	for i, e := range batch {
		lo, hi := min(e.U, e.V), max(e.U, e.V)
		if int64(hi) >= limit {
			return nil, badData("%s: edge row %d%s is (%d, %d), and node ids end at %d: correct the row or the number of nodes",
				j.info.Name, j.rows.Load()+int64(i)+1, j.ofPart(), e.U, e.V, limit-1)
		}
		if note {
			if err := j.ids.add(lo); err != nil {
				return nil, err
			}
			if err := j.ids.add(hi); err != nil {
				return nil, err
			}
		}
		if lo == hi {
			loops++
			if j.ids != nil {
				continue
			}
		}
		keys = append(keys, pairKey(lo, hi))
	}
	j.rows.Add(int64(len(batch)))
	j.loops.Add(loops)
	return keys, nil
}

// ofPart says where rows are counted from.
func (j *job) ofPart() string {
	if j.part == allSlices {
		return ""
	}
	return fmt.Sprintf(" from %d/%d of the list", j.part.First, Slices)
}
