package partition

import (
	"context"
	"errors"
	"io"

	"ndls/internal/direct"
	"ndls/internal/mem"
)

const (
	// batchKeys is how many keys are handed on at a time.
	batchKeys = 1 << 15
	// minSortKeys keeps sorted runs from being absurdly small.
	minSortKeys = 1 << 12
	// minRunBuffer and maxRunBuffer bound what is read of a run at a time.
	minRunBuffer = 64 << 10
	maxRunBuffer = 1 << 20
)

// endOfRun is larger than every key: see edgeKey and pairKey.
const endOfRun = ^uint64(0)

// sorter sorts more keys than fit into memory. Keys are added until finish.
// While one buffer is filled, a goroutine sorts and spills another.
type sorter struct {
	ctx     context.Context
	budget  *mem.Budget
	scratch *scratch
	arrays  []*mem.Array[uint64]
	fill    []uint64
	n       int
	memory  *memoryKeys   // the result, if nothing was spilled
	free    chan []uint64 // buffers that neither fill nor the spilling goroutine holds

	// Written by the spilling goroutine before it gives its buffers back.
	runs []run
	err  error
}

// run is a sorted file without repeated keys.
type run struct {
	f    *direct.File
	keys int64
}

// newSorter takes buffers for want keys (0 if unknown), or for as many as the
// budget allows: two buffers, or three if sorting may overlap with adding.
func newSorter(ctx context.Context, b *mem.Budget, s *scratch, want int64, overlap bool) (*sorter, error) {
	buffers := int64(2)
	if overlap {
		buffers = 3
	}
	// A quarter is left to arrays that grow meanwhile.
	size := b.Free() * 3 / 4 / buffers / 8
	if want > 0 {
		size = min(size, want)
	}
	size = max(size, minSortKeys)
	t := &sorter{ctx: ctx, budget: b, scratch: s, free: make(chan []uint64, buffers)}
	for range buffers {
		a, err := mem.Alloc[uint64](b, size, "sort buffer")
		if err != nil {
			t.close()
			return nil, err
		}
		t.arrays = append(t.arrays, a)
		t.free <- a.S
	}
	t.fill = <-t.free
	return t, nil
}

// add takes one more key.
func (t *sorter) add(key uint64) error {
	if t.n == len(t.fill) {
		if err := t.spill(); err != nil {
			return err
		}
	}
	t.fill[t.n] = key
	t.n++
	return nil
}

// spill hands the filled buffer to a goroutine and goes on with a free one.
func (t *sorter) spill() error {
	keys, tmp := t.fill[:t.n], <-t.free
	if t.err != nil {
		t.free <- tmp
		return t.err
	}
	go func() {
		r, err := t.writeRun(radixSort(keys, tmp))
		if err != nil {
			t.err = err
		} else {
			t.runs = append(t.runs, r)
		}
		t.free <- tmp
		t.free <- keys[:cap(keys)]
	}()
	t.fill, t.n = <-t.free, 0
	return t.ctx.Err()
}

func (t *sorter) writeRun(sorted []uint64) (run, error) {
	sorted = unique(sorted)
	f, err := t.scratch.create()
	if err != nil {
		return run{}, err
	}
	if err := f.writeKeys(sorted); err != nil {
		f.abort()
		return run{}, err
	}
	r, err := f.finish()
	return run{r, int64(len(sorted))}, err
}

// wait returns when the spilling goroutine is idle.
func (t *sorter) wait() error {
	held := make([][]uint64, 0, len(t.arrays)-1)
	for range cap(held) {
		held = append(held, <-t.free)
	}
	for _, b := range held {
		t.free <- b
	}
	return t.err
}

// finish ends the adding and gives the buffers back, but for the one that holds
// the result if nothing was spilled.
func (t *sorter) finish() error {
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
func (t *sorter) sortInMemory() {
	sorted := radixSort(t.fill[:t.n], <-t.free)
	t.memory = &memoryKeys{ctx: t.ctx, keys: unique(sorted)}
	for i, a := range t.arrays {
		if len(sorted) > 0 && &a.S[0] == &sorted[0] {
			t.memory.array = a
			t.arrays[i] = nil
		}
	}
	t.freeArrays()
}

// stream returns all keys added, in order and without repetitions. It comes
// once, after finish, and takes what it needs of the budget.
func (t *sorter) stream() (keyStream, error) {
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
func (t *sorter) reduceRuns() error {
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

func (t *sorter) mergeRuns(runs []run) (run, error) {
	m, err := newMerger(t.ctx, t.budget, runs)
	if err != nil {
		return run{}, err
	}
	defer m.close()
	f, err := t.scratch.create()
	if err != nil {
		return run{}, err
	}
	total := int64(0)
	for {
		keys, err := m.next()
		if err == nil {
			err = f.writeKeys(keys)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.abort()
			return run{}, err
		}
		total += int64(len(keys))
	}
	r, err := f.finish()
	return run{r, total}, err
}

// close waits for the spilling goroutine and gives everything back.
func (t *sorter) close() {
	if t.fill != nil {
		_ = t.wait()
	}
	t.freeArrays()
	for _, r := range t.runs {
		_ = r.f.Close()
	}
	t.runs = nil
	if t.memory != nil {
		t.memory.close()
	}
}

func (t *sorter) freeArrays() {
	for _, a := range t.arrays {
		a.Free()
	}
	t.arrays, t.fill = nil, nil
}

// keyStream gives ascending keys, each once.
type keyStream interface {
	// next returns a few keys, valid until the next call and free to be
	// overwritten, or io.EOF.
	next() ([]uint64, error)
	close()
}

// memoryKeys is a keyStream over one array.
type memoryKeys struct {
	ctx   context.Context
	array *mem.Array[uint64]
	keys  []uint64
}

func (m *memoryKeys) next() ([]uint64, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	n := min(len(m.keys), batchKeys)
	if n == 0 {
		return nil, io.EOF
	}
	keys := m.keys[:n]
	m.keys = m.keys[n:]
	return keys, nil
}

func (m *memoryKeys) close() { m.array.Free() }
