package partition

import (
	"context"
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
	s, err := j.sortPairs(ctx)
	if err != nil {
		return err
	}
	return j.keys.save(ctx, Split, p, s, [2]int64{j.rows, j.loops})
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
	s, err := extsort.NewSorter(ctx, j.o.Budget, j.scratch, sortOptions(j.info.EdgeHint+j.info.EdgeHint/8, j.o.Threads, note))
	if err != nil {
		return nil, err
	}
	if err = j.addPairs(ctx, s, note); err == nil {
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
func (j *job) addPairs(ctx context.Context, s *extsort.Sorter, note bool) error {
	limit := int64(dataset.MaxID) + 1
	if j.info.NumNodes >= 0 {
		limit = j.info.NumNodes
	}
	keys := make([]uint64, 0, extsort.BatchKeys)
	return j.eachEdges(ctx, "reading edges", func(batch []dataset.Edge) error {
		keys = keys[:0]
		for i, e := range batch {
			lo, hi := min(e.U, e.V), max(e.U, e.V)
			if int64(hi) >= limit {
				return badData("%s: edge row %d%s is (%d, %d), and node ids end at %d: correct the row or the number of nodes",
					j.info.Name, j.rows+int64(i)+1, j.ofPart(), e.U, e.V, limit-1)
			}
			if note {
				if err := j.ids.add(lo); err != nil {
					return err
				}
				if err := j.ids.add(hi); err != nil {
					return err
				}
			}
			if lo == hi {
				j.loops++
				if j.ids != nil {
					continue
				}
			}
			keys = append(keys, pairKey(lo, hi))
		}
		j.rows += int64(len(batch))
		return s.Add(keys)
	})
}

// ofPart says where rows are counted from.
func (j *job) ofPart() string {
	if j.part == allSlices {
		return ""
	}
	return fmt.Sprintf(" from %d/%d of the list", j.part.First, Slices)
}
