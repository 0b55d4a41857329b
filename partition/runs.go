package partition

import (
	"context"
	"fmt"

	"ndls/internal/extsort"
	"ndls/internal/progress"
	"ndls/internal/seal"
)

// keyStore is where the steps of a partition leave sorted keys for the next ones:
// run files of the catalogue where several workers do the steps, memory and scratch
// files where one does all of them.
type keyStore interface {
	// have lists the pieces of a step of which sorted keys are there, in order.
	have(step string) []Piece
	// save takes over what a piece of a step has sorted, and two counts of the input
	// it was made from.
	save(ctx context.Context, step string, p Piece, s *extsort.Sorter, counts [2]int64) error
	// merge writes the unique pairs of a range of keys.
	merge(ctx context.Context, p Piece) error
	// pairs opens the unique pairs of some pieces.
	pairs(ctx context.Context, p Piece) (pairSource, error)
	// edges gives the directed edges with keys in [lo, hi), or more of them. The caller
	// closes the Sorter.
	edges(ctx context.Context, lo, hi uint64) (*extsort.Sorter, error)
	close()
}

// pairSource gives unique pairs: of input ids, or of their ranks.
type pairSource interface {
	// keys is how many pairs there are, at most.
	keys() int64
	// counts are those of the input.
	counts() [2]int64
	// ranked says that the pairs are ranks, without self-loops.
	ranked() bool
	// each visits the pairs in batches, which may be overwritten, on so many threads at
	// a time and in any order of batches.
	each(ctx context.Context, threads int, visit func([]uint64) error) error
	// pass takes the visited pairs by rank, where they cannot be visited again
	// otherwise: the next source will give those. Several threads may call it.
	pass(pairs []uint64) error
	close()
}

// catalogKeys are run files in the catalogue.
type catalogKeys struct{ *job }

func (c catalogKeys) close() {}

func (c catalogKeys) have(step string) []Piece { return havePieces(c.cat, step) }

// save commits a run file.
func (c catalogKeys) save(ctx context.Context, step string, p Piece, s *extsort.Sorter, counts [2]int64) error {
	defer s.Close()
	f, err := c.cat.Create(ctx, keysOf(step, p.path(step)).Panels(p.First, p.Last))
	if err != nil {
		return err
	}
	defer f.Abort()
	w := extsort.NewRunWriter(f)
	meter := progress.Start(ctx, "writing sorted edges", 0, "edges")
	defer meter.Done()
	if err := s.InOrder(func(keys []uint64) error {
		meter.Add(int64(len(keys)))
		return w.Write(keys)
	}); err != nil {
		return err
	}
	if f.Rows, err = w.Close(counts); err != nil {
		return err
	}
	return c.cat.Commit(ctx, f)
}

// open opens the run files that make up some pieces of a step. Where all of a file is
// to be read a store may keep a copy of it.
func (c catalogKeys) open(ctx context.Context, step string, p Piece, all bool) (files extsort.RunFiles, err error) {
	open := c.cat.OpenOnce
	if all {
		open = c.cat.Open
	}
	next := p.First
	for _, e := range runs(c.cat, step) {
		q := pieceOf(e)
		if q.Last <= p.First || q.First >= p.Last {
			continue
		}
		if q.First != next || q.Last > p.Last {
			break
		}
		next = q.Last
		file, err := open(ctx, e)
		if err != nil {
			files.Close()
			return nil, err
		}
		r, err := extsort.OpenRun(c.o.Budget, file, e.Path)
		if err != nil {
			_ = file.Close()
			files.Close()
			return nil, err
		}
		files = append(files, r)
	}
	if next != p.Last {
		files.Close()
		return nil, fmt.Errorf("the files that step %s left end at %d, and %d to %d are needed: %w", step, next, p.First, p.Last, seal.ErrCorrupt)
	}
	return files, nil
}

// sorter merges the keys in [lo, hi) of files, which it takes over.
func (c catalogKeys) sorter(ctx context.Context, files extsort.RunFiles, lo, hi uint64) *extsort.Sorter {
	return extsort.Merge(ctx, c.o.Budget, c.scratch, c.o.Threads, files, lo, hi)
}

func (c catalogKeys) merge(ctx context.Context, p Piece) error {
	files, err := c.open(ctx, Split, allSlices, false)
	if err != nil {
		return err
	}
	var counts [2]int64
	if p.First == 0 { // of all
		for _, r := range files {
			counts[0] += r.Notes()[0]
			counts[1] += r.Notes()[1]
		}
	}
	return c.save(ctx, Merge, p, c.sorter(ctx, files, files.Border(p.First, Slices), files.Border(p.Last, Slices)), counts)
}

func (c catalogKeys) pairs(ctx context.Context, p Piece) (pairSource, error) {
	files, err := c.open(ctx, Merge, p, true)
	return catalogPairs{files}, err
}

func (c catalogKeys) edges(ctx context.Context, lo, hi uint64) (*extsort.Sorter, error) {
	files, err := c.open(ctx, Relabel, allSlices, false)
	if err != nil {
		return nil, err
	}
	return c.sorter(ctx, files, lo, hi), nil
}

// catalogPairs are the unique pairs of run files. They may be visited again.
type catalogPairs struct{ files extsort.RunFiles }

func (c catalogPairs) keys() int64         { return c.files.Keys() }
func (c catalogPairs) counts() [2]int64    { return c.files[0].Notes() }
func (c catalogPairs) ranked() bool        { return false }
func (c catalogPairs) pass([]uint64) error { return nil }
func (c catalogPairs) close()              { c.files.Close() }

func (c catalogPairs) each(ctx context.Context, threads int, visit func([]uint64) error) error {
	return c.files.Each(ctx, threads, visit)
}

// localKeys are in the memory of the one worker that does all steps, and in its
// scratch folder. One run needs no merge: the sorted pairs are the unique pairs.
type localKeys struct {
	scratch  *extsort.Scratch
	input    [2]int64
	sorted   *extsort.Sorter  // pairs of input ids
	unique   *extsort.KeyFile // the same by rank
	directed *extsort.Sorter
}

func (l *localKeys) close() {
	if l.sorted != nil {
		l.sorted.Close()
	}
	if l.unique != nil {
		l.unique.Close()
	}
	if l.directed != nil {
		l.directed.Close()
	}
}

func (l *localKeys) have(step string) []Piece {
	there := l.directed != nil
	if step != Relabel {
		there = l.sorted != nil || l.unique != nil
	}
	if there {
		return []Piece{allSlices}
	}
	return nil
}

func (l *localKeys) save(_ context.Context, step string, _ Piece, s *extsort.Sorter, counts [2]int64) error {
	if step == Relabel {
		l.directed = s
	} else {
		l.sorted, l.input = s, counts
	}
	return nil
}

// merge has nothing to do, and is not called.
func (l *localKeys) merge(context.Context, Piece) error { return nil }

func (l *localKeys) pairs(context.Context, Piece) (pairSource, error) {
	if l.unique != nil {
		return &rankedPairs{l}, nil
	}
	return &sortedPairs{localKeys: l}, nil
}

func (l *localKeys) edges(context.Context, uint64, uint64) (*extsort.Sorter, error) {
	s := l.directed
	l.directed = nil
	return s, nil
}

// sortedPairs are pairs of input ids that are visited once.
type sortedPairs struct {
	*localKeys
	out *extsort.KeyWriter
}

func (s *sortedPairs) keys() int64      { return s.sorted.Keys() }
func (s *sortedPairs) counts() [2]int64 { return s.input }
func (s *sortedPairs) ranked() bool     { return false }
func (s *sortedPairs) close()           {}

func (s *sortedPairs) each(_ context.Context, _ int, visit func([]uint64) error) (err error) {
	if s.out, err = s.scratch.CreateKeys(); err != nil {
		return err
	}
	if err := s.sorted.Each(visit); err != nil {
		s.out.Abort()
		return err
	}
	s.sorted = nil
	s.unique, err = s.out.Finish()
	return err
}

func (s *sortedPairs) pass(pairs []uint64) error { return s.out.Write(pairs) }

// rankedPairs are pairs of ranks that are visited once.
type rankedPairs struct{ *localKeys }

func (r *rankedPairs) keys() int64         { return r.unique.Keys() }
func (r *rankedPairs) counts() [2]int64    { return r.input }
func (r *rankedPairs) ranked() bool        { return true }
func (r *rankedPairs) pass([]uint64) error { return nil }
func (r *rankedPairs) close()              {}

func (r *rankedPairs) each(ctx context.Context, threads int, visit func([]uint64) error) error {
	file := r.unique
	r.unique = nil
	return file.Each(ctx, threads, visit)
}
