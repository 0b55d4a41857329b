package partition

import (
	"context"
	"sync"

	"ndls/internal/extsort"
	"ndls/steps"
)

// keyStore keeps the sorted keys of a step for the next steps: in run files of the catalogue if several workers do the steps, in memory and
// scratch files if one does all.
type keyStore[T extsort.Item] interface {
	// have lists the pieces of a step whose sorted keys exist, in order.
	have(step string) []steps.Piece
	// held returns the number of pairs by rank that are in memory.
	held() int64
	// save takes over the sorted keys of a piece of a step, and two counts of its input.
	save(ctx context.Context, step string, p steps.Piece, s *extsort.Sorter[T], counts [2]int64) error
	// merge writes the unique pairs of a range of keys.
	merge(ctx context.Context, p steps.Piece) error
	// openPairs opens the unique pairs of some pieces.
	openPairs(ctx context.Context, p steps.Piece) (pairSource[T], error)
	// openEdges returns the directed edges with keys in [lo, hi), or more. The caller closes the Sorter.
	openEdges(ctx context.Context, lo, hi uint64) (*extsort.Sorter[T], error)
	close()
}

// pairSource yields unique pairs, of input ids or of their ranks.
type pairSource[T extsort.Item] interface {
	// keys returns the number of pairs or a larger number.
	keys() int64
	// counts returns the counts of the input.
	counts() [2]int64
	// ranked says that the pairs are ranks, without self-loops.
	ranked() bool
	// each visits the pairs in batches, which may be overwritten, on threads and in any order of batches.
	each(ctx context.Context, threads int, visit func([]T) error) error
	// inOrder visits the pairs in ascending order, by one goroutine at a time.
	inOrder(ctx context.Context, threads int, visit func([]T) error) error
	// pass stores the visited pairs by rank if they cannot be visited again; the next source yields these. Several threads may call it.
	pass(pairs []T) error
	// again returns a Sorter of so many keys that has the pairs, by rank, in its memory, and these pairs. It is nil if they are not in memory.
	again(keys int64) (s *extsort.Sorter[T], pairs []T, err error)
	close()
}

func (c catalogKeys[T]) held() int64 { return 0 }

func (c catalogKeys[T]) merge(ctx context.Context, p steps.Piece) error {
	files, err := c.open(ctx, Split, allSlices, false)
	if err != nil {
		return err
	}
	var counts [2]int64
	if p.First == 0 { // counts of all files
		for _, r := range files {
			counts[0] += r.Notes()[0]
			counts[1] += r.Notes()[1]
		}
	}
	s := c.sorter(ctx, files, files.Border(p.First, Slices), files.Border(p.Last, Slices))
	defer s.Close()
	return c.write(ctx, Merge, p, s.Keys(), united(ctx, c.job, s.InOrder), counts)
}

func (c catalogKeys[T]) openPairs(ctx context.Context, p steps.Piece) (pairSource[T], error) {
	files, err := c.open(ctx, Merge, p, true)
	return catalogPairs[T]{files}, err
}

func (c catalogKeys[T]) openEdges(ctx context.Context, lo, hi uint64) (*extsort.Sorter[T], error) {
	files, err := c.open(ctx, Relabel, allSlices, false)
	if err != nil {
		return nil, err
	}
	return c.sorter(ctx, files, lo, hi), nil
}

// catalogPairs yields the unique pairs of run files. They may be visited again.
type catalogPairs[T extsort.Item] struct{ files extsort.RunFiles[T] }

func (c catalogPairs[T]) keys() int64      { return c.files.Keys() }
func (c catalogPairs[T]) counts() [2]int64 { return c.files[0].Notes() }
func (c catalogPairs[T]) ranked() bool     { return false }
func (c catalogPairs[T]) pass([]T) error   { return nil }

func (c catalogPairs[T]) again(int64) (*extsort.Sorter[T], []T, error) { return nil, nil, nil }

func (c catalogPairs[T]) close() { c.files.Close() }

func (c catalogPairs[T]) each(ctx context.Context, threads int, visit func([]T) error) error {
	return c.files.Each(ctx, threads, visit)
}

func (c catalogPairs[T]) inOrder(ctx context.Context, threads int, visit func([]T) error) error {
	return c.files.InOrder(ctx, threads, visit)
}

// localKeys keeps sorted keys in the memory and the scratch folder of the one worker that does all steps. One run needs no merge: the
// sorted pairs are unique once the rows of a pair are united.
type localKeys[T extsort.Item] struct {
	job      *job
	once     bool // pairs are visited once, and not kept by rank
	input    [2]int64
	sorted   *extsort.Sorter[T]  // pairs of input ids
	unique   *extsort.KeyFile[T] // pairs by rank, or else
	kept     *heldPairs[T]       // pairs by rank, in memory
	directed *extsort.Sorter[T]
}

func (l *localKeys[T]) close() {
	if l.sorted != nil {
		l.sorted.Close()
	}
	if l.unique != nil {
		l.unique.Close()
	}
	if l.kept != nil {
		l.kept.sorted.Close()
	}
	if l.directed != nil {
		l.directed.Close()
	}
}

func (l *localKeys[T]) have(step string) []steps.Piece {
	there := l.directed != nil
	if step != Relabel {
		there = l.sorted != nil || l.unique != nil || l.kept != nil
	}
	if there {
		return []steps.Piece{allSlices}
	}
	return nil
}

func (l *localKeys[T]) held() int64 {
	if l.kept == nil {
		return 0
	}
	return l.kept.keys
}

func (l *localKeys[T]) save(_ context.Context, step string, _ steps.Piece, s *extsort.Sorter[T], counts [2]int64) error {
	if step == Relabel {
		l.directed = s
		return nil
	}
	l.sorted, l.input = s, counts
	if j := l.job; j.info.Weighted && j.o.Budget.Free() < orderBytes(j.info.NumNodes, s.Keys()) {
		return s.Spill()
	}
	return nil
}

// merge is not called: there is nothing to merge.
func (l *localKeys[T]) merge(context.Context, steps.Piece) error { return nil }

func (l *localKeys[T]) openPairs(context.Context, steps.Piece) (pairSource[T], error) {
	return &localPairs[T]{localKeys: l, byRank: l.unique, held: l.kept}, nil
}

func (l *localKeys[T]) openEdges(context.Context, uint64, uint64) (*extsort.Sorter[T], error) {
	s := l.directed
	l.directed = nil
	return s, nil
}

// localPairs yields pairs once: those by rank, or else the sorted ones of input ids.
type localPairs[T extsort.Item] struct {
	*localKeys[T]
	byRank *extsort.KeyFile[T]
	held   *heldPairs[T]
	// keep takes pairs by rank while those of input ids are visited: in memory or in a file.
	keep func(pairs []T) error
}

func (s *localPairs[T]) counts() [2]int64 { return s.input }
func (s *localPairs[T]) ranked() bool     { return s.byRank != nil || s.held != nil }
func (s *localPairs[T]) close()           {}

func (s *localPairs[T]) keys() int64 {
	switch {
	case s.held != nil:
		return s.held.keys
	case s.byRank != nil:
		return s.byRank.Keys()
	}
	return s.sorted.Keys()
}

func (s *localPairs[T]) again(keys int64) (_ *extsort.Sorter[T], pairs []T, err error) {
	if s.held == nil {
		return nil, nil, nil
	}
	s.kept = nil
	pairs, err = s.held.sorted.Again(s.held.batches, keys)
	return s.held.sorted, pairs, err
}

// each visits pairs with weights in order, because their rows have to be united.
func (s *localPairs[T]) each(ctx context.Context, threads int, visit func([]T) error) error {
	switch {
	case s.byRank != nil:
		s.unique = nil
		return s.byRank.Each(ctx, threads, visit)
	case s.job.info.Weighted:
		return s.inOrder(ctx, threads, visit)
	case !s.once && s.staysInMemory():
		return s.hold(visit)
	}
	return s.take(s.sorted.Each, visit)
}

// hold visits all pairs of input ids in memory. What pass receives meanwhile stays there, in their place.
func (s *localPairs[T]) hold(visit func([]T) error) error {
	held := &heldPairs[T]{sorted: s.sorted}
	s.keep = held.add
	err := s.sorted.EachKept(visit)
	s.sorted, s.kept = nil, held
	return err
}

// inOrder visits pairs of input ids.
func (s *localPairs[T]) inOrder(ctx context.Context, _ int, visit func([]T) error) error {
	return s.take(united(ctx, s.job, s.sorted.InOrder), visit)
}

// take visits and consumes all pairs of input ids. What pass receives meanwhile is written to a file.
func (s *localPairs[T]) take(all visits[T], visit func([]T) error) error {
	if s.once {
		err := all(visit)
		s.sorted = nil
		return err
	}
	out, err := extsort.CreateKeys[T](s.job.scratch)
	if err != nil {
		return err
	}
	s.keep = out.Write
	if err := all(visit); err != nil {
		out.Abort()
		return err
	}
	s.sorted = nil
	file, err := out.Finish()
	if err == nil {
		s.unique = file
	}
	return err
}

// staysInMemory reports whether pairs stay in the memory in which they were sorted, until both directions of each are sorted beside them.
// Pairs with weights never do: their rows are united in other memory.
func (s *localPairs[T]) staysInMemory() bool {
	j := s.job
	return s.sorted.InMemory() && keepsPairs(j.o.Budget.Free()-j.info.RowMemory, j.ids.n, s.sorted.Keys(), j.o.Threads)
}

func (s *localPairs[T]) pass(pairs []T) error {
	if s.once || s.ranked() {
		return nil
	}
	return s.keep(pairs)
}

// heldPairs are pairs by rank in the memory of a Sorter, in any order.
type heldPairs[T extsort.Item] struct {
	sorted  *extsort.Sorter[T]
	mu      sync.Mutex
	batches [][]T
	keys    int64
}

func (h *heldPairs[T]) add(pairs []T) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batches = append(h.batches, pairs)
	h.keys += int64(len(pairs))
	return nil
}
