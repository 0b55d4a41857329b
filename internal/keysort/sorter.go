package keysort

import (
	"bytes"
	"container/heap"
	"context"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"ndls/internal/extsort"
	"ndls/internal/mem"
)

// Sorter sorts keys. Close frees what it holds.
type Sorter struct {
	budget  *mem.Budget
	scratch *extsort.Scratch
	adders  []*Adder
	merging int64 // bytes of the budget for buffers of runs

	mu   sync.Mutex
	runs []*storedRun
}

// LeastBytes is the smallest memory with which keys can be sorted.
const LeastBytes = 2 * leastBytes

// shareOfRuns is the part of the memory that is kept for the buffers of runs: one in so
// many.
const shareOfRuns = 8

// New prepares sorting with so many bytes of the budget, by at most so many adders; fewer
// where each would have little memory.
func New(b *mem.Budget, scratch *extsort.Scratch, size int64, adders int) (_ *Sorter, err error) {
	s := &Sorter{budget: b, scratch: scratch}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	merging, each, adders := layout(size, adders)
	if err := b.Reserve(merging, "merging sorted keys"); err != nil {
		return nil, err
	}
	s.merging = merging
	for range adders {
		a, err := s.newAdder(each)
		if err != nil {
			return nil, err
		}
		s.adders = append(s.adders, a)
	}
	return s, nil
}

// layout shares so many bytes out: to the buffers of runs, and to each of at most so many
// adders.
func layout(size int64, most int) (merging, each int64, adders int) {
	size = max(size, LeastBytes)
	merging = size / shareOfRuns
	size -= merging
	adders = int(min(int64(max(most, 1)), max(size/leastBytes, 1)))
	return merging, size/int64(adders) - 3*4096, adders
}

// Touched is about how much memory is used to sort so many different keys of so many bytes
// in all, where each adder is given all of them: memory is only filled as far as there are
// keys.
func Touched(keys, bytes, size int64, adders int) int64 {
	merging, each, adders := layout(size, adders)
	most := capacity(each)
	n := min(keys, most)
	record := (recordHead + bytes/max(keys, 1) + recordAlign - 1) &^ (recordAlign - 1)
	records := min(n*record, each-most*keyBytes)
	slots := 8 * min(most*4/3+1, max(n*8/3, leastSlots))
	touched := int64(adders) * (entryBytes*n + records + slots)
	if n < keys || n*record > records {
		touched += merging
	}
	return touched
}

// Adders are those to whom keys are added, each for one goroutine.
func (s *Sorter) Adders() []*Adder { return s.adders }

// Close frees memory and scratch files.
func (s *Sorter) Close() {
	for _, a := range s.adders {
		a.free()
	}
	for _, r := range s.runs {
		r.f.Close()
	}
	s.adders, s.runs = nil, nil
	s.budget.Release(s.merging)
	s.merging = 0
}

// Longest is the length of the longest key that was added.
func (s *Sorter) Longest() (n int) {
	for _, a := range s.adders {
		n = max(n, a.longest)
	}
	return n
}

// Spilled reports whether runs were written.
func (s *Sorter) Spilled() bool { return len(s.runs) > 0 }

// Each visits all keys in ascending order, each once, with the number of times that it was
// added, up to 2^32-1. It is called once, when all keys are added. A key is valid until
// visit returns.
func (s *Sorter) Each(ctx context.Context, visit func(key []byte, times uint32) error) error {
	var sorting errgroup.Group
	for _, a := range s.adders {
		sorting.Go(func() error {
			err := a.addComing()
			a.sort()
			return err
		})
	}
	err := sorting.Wait()
	if err == nil {
		err = s.fewerRuns(ctx)
	}
	if err != nil {
		return err
	}
	var runs []run
	for _, a := range s.adders {
		runs = append(runs, &memoryRun{a: a})
	}
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	return merge(ctx, runs, visit)
}

// runBytes is the memory of a stored run while it is merged.
const runBytes = blockBytes + (4 << 10)

// fewerRuns merges some runs to longer ones, until all that are left can be merged with
// the memory there is.
func (s *Sorter) fewerRuns(ctx context.Context) error {
	most := int(max(s.merging/runBytes, 2))
	for len(s.runs) > most {
		w, err := s.newRun()
		if err != nil {
			return err
		}
		n := min(len(s.runs)-most+1, most)
		var some []run
		for _, r := range s.runs[:n] {
			some = append(some, r)
		}
		if err := merge(ctx, some, w.write); err != nil {
			w.abort()
			return err
		}
		for _, r := range s.runs[:n] {
			r.f.Close()
		}
		s.runs = s.runs[n:]
		if err := w.finish(); err != nil {
			return err
		}
	}
	return nil
}

// head is the next key of a run.
type head struct {
	run
	key   []byte
	times uint32
}

// heads is a heap of runs with the smallest key on top.
type heads []*head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) < 0 }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)        { *h = append(*h, x.(*head)) }
func (h *heads) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// ctxEvery is the number of keys after which the context is checked.
const ctxEvery = 1 << 14

// merge visits the keys of runs in ascending order, each once.
func merge(ctx context.Context, runs []run, visit func(key []byte, times uint32) error) error {
	var h heads
	for _, r := range runs {
		key, times, ok, err := r.next()
		if err != nil {
			return err
		}
		if ok {
			h = append(h, &head{r, key, times})
		}
	}
	heap.Init(&h)
	var (
		last  []byte
		total uint64
		have  bool
	)
	give := func() error { return visit(last, uint32(min(total, math.MaxUint32))) }
	for i := 0; len(h) > 0; i++ {
		if i%ctxEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		top := h[0]
		if have && bytes.Equal(top.key, last) {
			total += uint64(top.times)
		} else {
			if have {
				if err := give(); err != nil {
					return err
				}
			}
			last, total, have = append(last[:0], top.key...), uint64(top.times), true
		}
		key, times, ok, err := top.next()
		switch {
		case err != nil:
			return err
		case ok:
			top.key, top.times = key, times
			heap.Fix(&h, 0)
		default:
			heap.Pop(&h)
		}
	}
	if have {
		return give()
	}
	return nil
}
