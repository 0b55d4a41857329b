package extsort

import (
	"context"
	"errors"
	"io"
	"sync"

	"ndls/internal/mem"
)

const (
	// BatchKeys is how many keys are handed on at a time.
	BatchKeys = 1 << 15
	// minSortKeys keeps sorted runs from being absurdly small.
	minSortKeys = 1 << 12
)

// End is larger than every key.
const End = ^uint64(0)

// Sorter sorts more keys than fit into memory. Keys are added until Finish.
// While one buffer is filled, a second one is sorted with the help of a third, or
// written.
type Sorter struct {
	ctx     context.Context
	budget  *mem.Budget
	scratch *Scratch
	threads int
	arrays  []*mem.Array[uint64]
	fill    []uint64
	n       int
	memory  *memoryKeys   // the result, if nothing was spilled
	free    chan []uint64 // buffers that neither fill nor a spilling goroutine holds

	mu   sync.Mutex
	runs []Run
	err  error
}

// Options say what a Sorter is for.
type Options struct {
	// Want is how many keys will be added, 0 if that is not known.
	Want int64
	// Threads that sort at a time, at least one.
	Threads int
	// Leave is how many bytes of the budget others may need while keys are added.
	// The Sorter leaves them that, or a quarter of what is free.
	Leave int64
}

// NewSorter takes buffers for all keys that are wanted, or for as many as the
// budget allows.
func NewSorter(ctx context.Context, b *mem.Budget, s *Scratch, o Options) (*Sorter, error) {
	buffers, size := o.buffers(), o.bufferKeys(b.Free())
	t := &Sorter{ctx: ctx, budget: b, scratch: s, threads: max(o.Threads, 1), free: make(chan []uint64, buffers)}
	for range buffers {
		a, err := mem.Alloc[uint64](b, size, "sort buffer")
		if err != nil {
			t.Close()
			return nil, err
		}
		t.arrays = append(t.arrays, a)
		t.free <- a.S
	}
	t.fill = <-t.free
	return t, nil
}

// Add takes more keys.
func (t *Sorter) Add(keys []uint64) error {
	for len(keys) > 0 {
		if t.n == len(t.fill) {
			if err := t.spill(); err != nil {
				return err
			}
		}
		n := copy(t.fill[t.n:], keys)
		t.n += n
		keys = keys[n:]
	}
	return nil
}

// spill hands the filled buffer to a goroutine and goes on with a free one.
func (t *Sorter) spill() error {
	keys, tmp := t.fill[:t.n], <-t.free
	if err := t.failure(); err != nil {
		t.free <- tmp
		return err
	}
	go func() {
		SortKeys(keys, tmp, t.threads)
		t.free <- tmp
		t.ended(t.writeRun(keys))
		t.free <- keys[:cap(keys)]
	}()
	t.fill, t.n = <-t.free, 0
	return t.ctx.Err()
}

func (t *Sorter) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// ended notes what became of a run.
func (t *Sorter) ended(r Run, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
	} else {
		t.runs = append(t.runs, r)
	}
}

func (t *Sorter) writeRun(sorted []uint64) (Run, error) {
	w, err := t.scratch.CreateKeys()
	if err != nil {
		return nil, err
	}
	if err := w.Write(unique(sorted)); err != nil {
		w.Abort()
		return nil, err
	}
	return w.finishRun()
}

// wait returns when the spilling goroutines are done.
func (t *Sorter) wait() error {
	held := make([][]uint64, 0, len(t.arrays)-1)
	for range cap(held) {
		held = append(held, <-t.free)
	}
	for _, b := range held {
		t.free <- b
	}
	return t.failure()
}

// Finish ends the adding and gives the buffers back, but for the one that holds
// the result if nothing was spilled.
func (t *Sorter) Finish() error {
	if err := t.wait(); err != nil {
		return err
	}
	if len(t.runs) == 0 {
		t.sortInMemory()
		return nil
	}
	if t.n > 0 {
		if err := t.spill(); err != nil {
			return err
		}
		if err := t.wait(); err != nil {
			return err
		}
	}
	t.freeArrays()
	return nil
}

// sortInMemory keeps the one array that holds the result.
func (t *Sorter) sortInMemory() {
	SortKeys(t.fill[:t.n], <-t.free, t.threads)
	t.memory = &memoryKeys{ctx: t.ctx, keys: unique(t.fill[:t.n])}
	for i, a := range t.arrays {
		if &a.S[0] == &t.fill[0] {
			t.memory.array = a
			t.arrays[i] = nil
		}
	}
	t.freeArrays()
}

// Stream returns all keys added, in order and without repetitions. It may be called
// once, after Finish, and takes what it needs of the budget.
func (t *Sorter) Stream() (Stream, error) {
	if m := t.memory; m != nil {
		t.memory = nil
		return m, nil
	}
	if err := t.reduceRuns(); err != nil {
		return nil, err
	}
	m, err := newMerger(t.ctx, t.budget, t.runs)
	if err != nil {
		return nil, err
	}
	t.runs = nil
	return m, nil
}

// reduceRuns merges runs until the buffers of the last merge fit the budget.
func (t *Sorter) reduceRuns() error {
	for {
		fanIn := int(max(t.budget.Free()/minRunBuffer, 2))
		if len(t.runs) <= fanIn {
			return nil
		}
		// No more than needed, so that the last merge is full.
		group := min(fanIn, len(t.runs)-fanIn+1)
		merged, err := t.mergeRuns(t.runs[:group])
		if err != nil {
			return err
		}
		t.runs = append(t.runs[group:], merged)
	}
}

func (t *Sorter) mergeRuns(runs []Run) (Run, error) {
	m, err := newMerger(t.ctx, t.budget, runs)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	w, err := t.scratch.CreateKeys()
	if err != nil {
		return nil, err
	}
	if err := copyKeys(w, m); err != nil {
		w.Abort()
		return nil, err
	}
	return w.finishRun()
}

// copyKeys writes all keys of a stream.
func copyKeys(w *KeyWriter, from Stream) error {
	buf := make([]uint64, BatchKeys)
	for {
		keys, err := from.Next(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.Write(keys)
		}
		if err != nil {
			return err
		}
	}
}

// Keys is how many keys the Sorter has, after Finish; of several runs, at most.
func (t *Sorter) Keys() int64 {
	if t.memory != nil {
		return int64(len(t.memory.keys))
	}
	total := int64(0)
	for _, r := range t.runs {
		total += r.Keys()
	}
	return total
}

// Merge returns a Sorter of runs that are sorted already. It takes them over, and
// wants nothing but Stream and Close.
func Merge(ctx context.Context, b *mem.Budget, s *Scratch, runs []Run) *Sorter {
	return &Sorter{ctx: ctx, budget: b, scratch: s, runs: runs}
}

// Close waits for the spilling goroutines and gives everything back.
func (t *Sorter) Close() {
	if t.fill != nil {
		_ = t.wait()
	}
	t.freeArrays()
	for _, r := range t.runs {
		r.Close()
	}
	t.runs = nil
	if t.memory != nil {
		t.memory.Close()
	}
}

func (t *Sorter) freeArrays() {
	for _, a := range t.arrays {
		a.Free()
	}
	t.arrays, t.fill = nil, nil
}

// memoryKeys is a Stream over one array.
type memoryKeys struct {
	ctx   context.Context
	array *mem.Array[uint64]
	keys  []uint64
}

// Next implements Stream.
func (m *memoryKeys) Next(buf []uint64) ([]uint64, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	n := min(len(m.keys), len(buf))
	if n == 0 {
		return nil, io.EOF
	}
	keys := m.keys[:n]
	m.keys = m.keys[n:]
	return keys, nil
}

// Close implements Stream.
func (m *memoryKeys) Close() { m.array.Free() }
