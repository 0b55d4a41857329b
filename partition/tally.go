package partition

import (
	"context"
	"sync/atomic"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/steps"
)

// countPairs implements edgeSteps. If the dataset does not state all ids, it ranks the ids of the piece among themselves, and the first
// piece includes ids that occur elsewhere than in edges.
func (j *sortedEdges[T]) countPairs(ctx context.Context, p steps.Piece) error {
	if p.In(j.have(Count)) {
		return nil
	}
	pairs, err := j.keys.openPairs(ctx, p)
	if err != nil {
		return err
	}
	defer pairs.close()
	files := j.cat.Batch()
	defer files.Abort()
	if err := j.turnPairs(ctx, p, pairs, files); err != nil {
		return err
	}
	defer j.counting().forgetIDs()
	j.dropped.Store(0)
	if err := j.counting().noteIDsOf(pairs.keys()); err != nil {
		return err
	}
	if err := j.notePairs(ctx, pairs); err != nil {
		return err
	}
	if p.First == 0 && j.info.NumNodes < 0 {
		if err := j.addOtherIDs(ctx); err != nil {
			return err
		}
	}
	return j.counting().commitTally(func(t tally) error {
		if err := j.countDegrees(ctx, pairs, t.components, t.degrees.S); err != nil {
			return err
		}
		return j.counting().saveCounts(ctx, p, t, files)
	})
}

// gatherIDs implements edgeSteps: it adds up what all pieces of the step Count know of a range of input ids.
func (j *sortedEdges[T]) gatherIDs(ctx context.Context, p steps.Piece) error {
	if p.In(j.have(Gather)) {
		return nil
	}
	keys := j.runFiles()
	files, err := keys.open(ctx, Count, allSlices, false)
	if err != nil {
		return err
	}
	// One range has all that is known of an id.
	r := idRange{piece: p, lo: idOf(files.Border(p.First, Slices)), hi: idOf(files.Border(p.Last, Slices))}
	r.limit(j.info.NumNodes)
	numbers, dropped := files.Keys()*int64(p.Last-p.First)/Slices, int64(0)
	if p.First == 0 {
		for _, f := range files {
			dropped += f.Notes()[0]
		}
	}
	files.Close()
	defer j.counting().forgetIDs()
	if err := j.counting().noteIDsOf(numbers); err != nil {
		return err
	}
	if !j.ids.all {
		if err := j.counting().noteTallies(ctx, Count, r); err != nil {
			return err
		}
	}
	return j.counting().commitTally(func(t tally) error {
		named, err := mem.Alloc[uint64](j.o.Budget, (j.ids.n+63)/64, "components of ranges")
		if err != nil {
			return err
		}
		defer named.Free()
		if err := j.counting().addTallies(ctx, Count, r, t, named.S); err != nil {
			return err
		}
		if err := j.addStrengthsOf(ctx, r); err != nil {
			return err
		}
		return j.counting().saveGathered(ctx, r, t, named.S, dropped)
	})
}

// noteTallies adds to j.ids the ids in the tallies of a range and the ids connected to them.
func (j counting) noteTallies(ctx context.Context, step string, r idRange) error {
	if err := j.eachTally(ctx, step+tallyDegrees, r, func(id, _ uint32) error { return j.ids.add(id) }); err != nil {
		return err
	}
	return j.eachTally(ctx, step+tallyRoots, r, func(_, root uint32) error { return j.ids.add(root) })
}

// addTallies adds up tallies of a range, whose ids are all in j.ids. It sets a bit in named for each id that is a root in a tally.
func (j counting) addTallies(ctx context.Context, step string, r idRange, t tally, named []uint64) error {
	sum := func(to []uint32) func(id, n uint32) error {
		return func(id, n uint32) error {
			rank, _ := j.ids.rank(id)
			atomic.AddUint32(&to[rank], n)
			return nil
		}
	}
	if err := j.eachTally(ctx, step+tallyDegrees, r, sum(t.degrees.S)); err != nil {
		return err
	}
	if j.info.Directed {
		if err := j.eachTally(ctx, step+tallyStarts, r, sum(j.outDegree.S)); err != nil {
			return err
		}
	}
	return j.eachTally(ctx, step+tallyRoots, r, func(id, root uint32) error {
		v, _ := j.ids.rank(id)
		if id == root {
			atomic.OrUint64(&named[v/64], 1<<(v%64))
			return nil
		}
		u, _ := j.ids.rank(root)
		t.components.join(u, v)
		return nil
	})
}

// saveCounts adds the tally of a piece of the step Count to files and commits them. It destroys the degrees.
func (j counting) saveCounts(ctx context.Context, p steps.Piece, t tally, files *catalog.Batch) error {
	list := j.degreeFiles(t, func(uint32) bool { return true })
	// A root precedes the others of its component, so its id is stored already.
	list = append(list, tallyFile{kind: tallyRoots, all: j.pairsOfIDs(func(rank, id uint32) (uint32, bool) {
		root, alone := t.components.root(rank), t.degrees.S[rank] == 0
		t.degrees.S[rank] = id
		return t.degrees.S[root], root != rank || !alone
	})})
	for i := range list {
		list[i] = list[i].with(j.dropped.Load(), 0)
	}
	return j.commitTallies(ctx, Count, p, list, files)
}

// saveGathered commits what is known of a range. It destroys the degrees.
func (j counting) saveGathered(ctx context.Context, r idRange, t tally, named []uint64, dropped int64) error {
	classes, err := j.countClasses(r, t.degrees.S)
	if err != nil {
		return err
	}
	defer classes.Free()
	files := append(j.degreeFiles(t, r.has), tallyFile{kind: tallyRoots, all: j.pairsOfIDs(func(rank, id uint32) (uint32, bool) {
		t.degrees.S[rank] = id
		root := t.components.root(rank)
		return t.degrees.S[root], root != rank && r.has(id)
	})}, tallyFile{kind: tallyLinks, all: j.pairsOfIDs(func(rank, id uint32) (uint32, bool) {
		root := t.components.root(rank)
		return t.degrees.S[root], root != rank && (!r.has(id) || named[rank/64]>>(rank%64)&1 == 1)
	})})
	classesFile := tallyFile{kind: tallyClasses, most: int64(len(classes.S)), all: batched(func(add func(key uint64) error) error {
		for degree, n := range classes.S {
			if n > 0 {
				if err := add(pairKey(uint32(degree), n)); err != nil {
					return err
				}
			}
		}
		return nil
	})}
	for i := range files {
		files[i] = files[i].with(dropped, 0)
	}
	files = append(files, classesFile.with(r.lo, r.hi))
	return j.commitTallies(ctx, Gather, r.piece, append(files, j.strengthFiles(r)...), j.cat.Batch())
}

// countClasses counts the nodes of a range by degree.
func (j counting) countClasses(r idRange, degrees []uint32) (*mem.Array[uint32], error) {
	classes, err := mem.Alloc[uint32](j.o.Budget, int64(largestOf(degrees, j.o.Threads))+1, "degree counts")
	if err != nil {
		return nil, err
	}
	counted := int64(0)
	err = j.ids.each(func(rank, id uint32) error {
		if r.has(id) {
			classes.S[degrees[rank]]++
			counted++
		}
		return nil
	})
	if n := j.info.NumNodes; n >= 0 {
		classes.S[0] += uint32(r.hi - r.lo - counted) // nodes without an edge
	}
	return classes, err
}

// degreeFiles returns the files of degrees of the wanted ids. If all ids are stated, it omits ids without an edge.
func (j counting) degreeFiles(t tally, wanted func(id uint32) bool) []tallyFile {
	sparse := func(of []uint32, all bool) visits[uint64] {
		return j.pairsOfIDs(func(rank, id uint32) (uint32, bool) { return of[rank], (all || of[rank] > 0) && wanted(id) })
	}
	files := []tallyFile{{kind: tallyDegrees, all: sparse(t.degrees.S, j.info.NumNodes < 0)}}
	if j.info.Directed {
		files = append(files, tallyFile{kind: tallyStarts, all: sparse(j.outDegree.S, false)})
	}
	return files
}

// commitTallies adds the files of a piece to `to`, and commits all of them.
func (j counting) commitTallies(ctx context.Context, step string, p steps.Piece, files []tallyFile, to *catalog.Batch) error {
	defer to.Abort()
	for _, x := range files {
		if x.most == 0 {
			x.most = j.ids.n
		}
		if err := j.runFiles().add(ctx, to, step+x.kind, p, x.most, x.all, x.notes); err != nil {
			return err
		}
	}
	return to.Commit(ctx)
}
