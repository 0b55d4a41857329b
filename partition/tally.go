package partition

import (
	"context"
	"sync/atomic"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/progress"
)

// A tally is what a piece knows of the nodes that it came across. It is in files of pairs of numbers
// in order, of which the first is an input id. Tallies add up: degrees are sums, and nodes are
// connected that any tally connects. The step Count leaves those of ranges of unique pairs, the
// step Gather those of ranges of input ids, and the step Order reads the latter.
const (
	tallyDegrees = ""        // the degree of each node
	tallyStarts  = "-starts" // how many edges begin at it, in a graph with directions
	tallyRoots   = "-roots"  // another node that it is connected to, the first one known
)

// tallyOf are the kinds of files of a tally.
func (j *job) tallyOf() []string {
	if j.info.Directed {
		return []string{tallyDegrees, tallyRoots, tallyStarts}
	}
	return []string{tallyDegrees, tallyRoots}
}

// tally is the arrays that tallies are added up in, by rank of the input ids.
type tally struct {
	degrees, parents *mem.Array[uint32]
	components       forest
}

// newTally prepares for the nodes of j.ids, j.outDegree included.
func (j *job) newTally() (t tally, err error) {
	if t.degrees, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "degrees"); err != nil {
		return t, err
	}
	if t.parents, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "components"); err != nil {
		t.free()
		return t, err
	}
	t.components = newForest(t.parents.S)
	if j.info.Directed {
		if j.outDegree, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "out-degrees"); err != nil {
			t.free()
		}
	}
	return t, err
}

func (t tally) free() {
	t.degrees.Free()
	t.parents.Free()
}

// countPairs implements edgeSteps. Where the dataset does not state all ids, those of the piece are
// ranked among themselves; gatherIDs does the same.
func (j *sortedEdges[T]) countPairs(ctx context.Context, p Piece) error {
	if len(uncovered(j.have(Count), []Piece{p})) == 0 {
		return nil
	}
	pairs, err := j.keys.pairs(ctx, p)
	if err != nil {
		return err
	}
	defer pairs.close()
	defer j.forgetIDs()
	j.dropped.Store(0)
	if err := j.notePairs(ctx, pairs); err != nil {
		return err
	}
	return j.commitTally(func(t tally) error {
		if err := j.countDegrees(ctx, pairs, t.components, t.degrees.S); err != nil {
			return err
		}
		return j.saveTally(ctx, Count, p, 0, extsort.End, t, j.dropped.Load())
	})
}

// commitTally ranks j.ids, and has commit fill and commit a tally of them.
func (j *job) commitTally(commit func(t tally) error) error {
	if err := j.ids.rankAll(); err != nil {
		return err
	}
	t, err := j.newTally()
	if err != nil {
		return err
	}
	defer t.free()
	return commit(t)
}

// gatherIDs implements edgeSteps: it adds up what all pieces of the step Count know of a range of
// input ids.
func (j *sortedEdges[T]) gatherIDs(ctx context.Context, p Piece) error {
	if len(uncovered(j.have(Gather), []Piece{p})) == 0 {
		return nil
	}
	keys := catalogKeys[uint64]{j.job}
	files, err := keys.open(ctx, Count, allSlices, false)
	if err != nil {
		return err
	}
	// All that is known of an id is in one range.
	const ids = 1<<32 - 1
	lo, hi := files.Border(p.First, Slices)&^ids, files.Border(p.Last, Slices)
	if hi != extsort.End {
		hi &^= ids
	}
	dropped := int64(0)
	if p.First == 0 {
		for _, f := range files {
			dropped += f.Notes()[0]
		}
	}
	files.Close()
	defer j.forgetIDs()
	if err := j.noteIDs(); err != nil {
		return err
	}
	if !j.ids.all {
		if err := j.noteTallies(ctx, Count, lo, hi, true); err != nil {
			return err
		}
	}
	return j.commitTally(func(t tally) error {
		if err := j.addTallies(ctx, Count, lo, hi, t); err != nil {
			return err
		}
		return j.saveTally(ctx, Gather, p, lo, hi, t, dropped)
	})
}

// forgetIDs gives back what one piece of Count or Gather knows: another piece has other ids.
func (j *job) forgetIDs() {
	if j.ids != nil {
		j.ids.free()
	}
	j.outDegree.Free()
	j.ids, j.outDegree = nil, nil
}

// noteTallies adds the ids of tallies with keys in [lo, hi) to j.ids; roots says that those which
// they are connected to are wanted, too.
func (j *job) noteTallies(ctx context.Context, step string, lo, hi uint64, roots bool) error {
	if err := j.eachTally(ctx, step+tallyDegrees, lo, hi, func(id, _ uint32) error { return j.ids.add(id) }); err != nil || !roots {
		return err
	}
	return j.eachTally(ctx, step+tallyRoots, lo, hi, func(_, root uint32) error { return j.ids.add(root) })
}

// addTallies adds up tallies with keys in [lo, hi), whose ids are all in j.ids.
func (j *job) addTallies(ctx context.Context, step string, lo, hi uint64, t tally) error {
	sum := func(to []uint32) func(id, n uint32) error {
		return func(id, n uint32) error {
			rank, _ := j.ids.rank(id)
			atomic.AddUint32(&to[rank], n)
			return nil
		}
	}
	if err := j.eachTally(ctx, step+tallyDegrees, lo, hi, sum(t.degrees.S)); err != nil {
		return err
	}
	if j.info.Directed {
		if err := j.eachTally(ctx, step+tallyStarts, lo, hi, sum(j.outDegree.S)); err != nil {
			return err
		}
	}
	return j.eachTally(ctx, step+tallyRoots, lo, hi, func(id, root uint32) error {
		v, _ := j.ids.rank(id)
		u, _ := j.ids.rank(root)
		t.components.join(u, v)
		return nil
	})
}

// eachTally visits the numbers with keys in [lo, hi) that a step has left in all files of a kind,
// on all threads.
func (j *job) eachTally(ctx context.Context, files string, lo, hi uint64, visit func(id, n uint32) error) error {
	keys := catalogKeys[uint64]{j}
	meter := progress.Start(ctx, "adding up degrees and components", 0, "nodes")
	defer meter.Done()
	for _, p := range havePieces(j.cat, files) {
		opened, err := keys.open(ctx, files, p, false)
		if err != nil {
			return err
		}
		err = opened.EachWithin(ctx, j.o.Threads, lo, hi, func(batch []uint64) error {
			meter.Add(int64(len(batch)))
			for _, key := range batch {
				if err := visit(pairOfKey(key)); err != nil {
					return err
				}
			}
			return nil
		})
		opened.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// saveTally commits a tally of a piece of a step: the degrees of the ids with keys in [lo, hi), and
// all that is connected. It uses the degrees up.
func (j *job) saveTally(ctx context.Context, step string, p Piece, lo, hi uint64, t tally, dropped int64) error {
	keys := catalogKeys[uint64]{j}
	var files []*catalog.File
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	// Where all ids are stated, those without an edge are known anyway.
	sparse := func(of []uint32, all bool) func(rank, id uint32) (uint32, bool) {
		return func(rank, id uint32) (uint32, bool) {
			at := uint64(id) << 32
			return of[rank], (all || of[rank] > 0) && lo <= at && at < hi
		}
	}
	values := map[string]func(rank, id uint32) (uint32, bool){
		tallyDegrees: sparse(t.degrees.S, !j.ids.all),
		tallyRoots: func(rank, id uint32) (uint32, bool) {
			// A root comes before the others of its component, so that its id is there already.
			t.degrees.S[rank] = id
			root := t.components.root(rank)
			return t.degrees.S[root], root != rank
		},
	}
	if j.info.Directed {
		values[tallyStarts] = sparse(j.outDegree.S, false)
	}
	for _, kind := range j.tallyOf() {
		f, err := keys.create(ctx, step+kind, p, j.ids.n, j.pairsOfIDs(values[kind]), [2]int64{dropped, 0})
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	return j.cat.Commit(ctx, files...)
}

// pairsOfIDs are the ids, in order, for which value gives a number, with that number.
func (j *job) pairsOfIDs(value func(rank, id uint32) (n uint32, ok bool)) visits[uint64] {
	return func(visit func([]uint64) error) error {
		batch := make([]uint64, 0, extsort.BatchKeys)
		err := j.ids.each(func(rank, id uint32) error {
			n, ok := value(rank, id)
			if !ok {
				return nil
			}
			batch = append(batch, pairKey(id, n))
			if len(batch) < cap(batch) {
				return nil
			}
			full := batch
			batch = batch[:0]
			return visit(full)
		})
		if err == nil && len(batch) > 0 {
			err = visit(batch)
		}
		return err
	}
}
