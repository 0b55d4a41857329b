package partition

import (
	"context"
	"errors"
	"io"
	"sync"

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
	maxRunBuffer = 4 << 20
	// growth is what arrays that grow while keys are added may need: the map of
	// all input ids.
	growth = 544 << 20
)

// endOfRun is larger than every key: see edgeKey and pairKey.
const endOfRun = ^uint64(0)

// sorter sorts more keys than fit into memory. Keys are added until finish.
// While one buffer is filled, a second is sorted into a third and back, or
// written.
type sorter struct {
	ctx     context.Context
	budget  *mem.Budget
	scratch *scratch
	threads int
	arrays  []*mem.Array[uint64]
	fill    []uint64
	n       int
	memory  *memoryKeys   // the result, if nothing was spilled
	free    chan []uint64 // buffers that neither fill nor a spilling goroutine holds

	mu   sync.Mutex
	runs []run
	err  error
}

// run is a sorted file without repeated keys, read once from front to back.
type run interface {
	// fill reads the next keys and returns how many there are, none only with
	// io.EOF. keys has room for a multiple of runBlock.
	fill(keys []uint64) (int, error)
	close()
}

// spilledRun is a run in the scratch folder.
type spilledRun struct {
	*spilled
	off, left int64 // bytes read, keys not read
}

func (r *spilledRun) fill(keys []uint64) (int, error) {
	n := min(r.left, int64(len(keys)))
	if n == 0 {
		return 0, io.EOF
	}
	p := mem.AsBytes(keys[:n])
	if got, err := r.ReadAt(p, r.off); got < len(p) {
		return 0, readBackError(r.spilled, err)
	}
	r.left -= n
	r.off += int64(len(p))
	r.drop(r.off)
	return int(n), nil
}

// sortOptions say what a sorter is for.
type sortOptions struct {
	want    int64 // keys, 0 if unknown
	threads int
	grows   bool // other arrays grow while keys are added
}

// buffers is how many arrays a sorter works with: on one thread keys are not
// added while others are sorted.
func (o sortOptions) buffers() int64 { return int64(min(o.threads, 2)) + 1 }

// bufferKeys is the length of each array, with so many bytes free.
func (o sortOptions) bufferKeys(free int64) int64 {
	if o.grows {
		free -= min(free/4, growth)
	}
	size := free / o.buffers() &^ (direct.Align - 1) / 8
	if o.want > 0 {
		size = min(size, o.want)
	}
	return max(size, minSortKeys)
}

// newSorter takes buffers for all keys that are wanted, or for as many as the
// budget allows.
func newSorter(ctx context.Context, b *mem.Budget, s *scratch, o sortOptions) (*sorter, error) {
	buffers, size := o.buffers(), o.bufferKeys(b.Free())
	t := &sorter{ctx: ctx, budget: b, scratch: s, threads: o.threads, free: make(chan []uint64, buffers)}
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

// add takes more keys.
func (t *sorter) add(keys []uint64) error {
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
func (t *sorter) spill() error {
	keys, tmp := t.fill[:t.n], <-t.free
	if err := t.failure(); err != nil {
		t.free <- tmp
		return err
	}
	go func() {
		radixSort(keys, tmp, t.threads)
		t.free <- tmp
		t.ended(t.writeRun(keys))
		t.free <- keys[:cap(keys)]
	}()
	t.fill, t.n = <-t.free, 0
	return t.ctx.Err()
}

func (t *sorter) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// ended notes what became of a run.
func (t *sorter) ended(r run, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
	} else {
		t.runs = append(t.runs, r)
	}
}

func (t *sorter) writeRun(sorted []uint64) (run, error) {
	sorted = unique(sorted)
	f, err := t.scratch.create()
	if err != nil {
		return nil, err
	}
	if err := f.writeKeys(sorted); err != nil {
		f.abort()
		return nil, err
	}
	return f.finishRun(int64(len(sorted)))
}

// wait returns when the spilling goroutines are done.
func (t *sorter) wait() error {
	held := make([][]uint64, 0, len(t.arrays)-1)
	for range cap(held) {
		held = append(held, <-t.free)
	}
	for _, b := range held {
		t.free <- b
	}
	return t.failure()
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
	radixSort(t.fill[:t.n], <-t.free, t.threads)
	t.memory = &memoryKeys{ctx: t.ctx, keys: unique(t.fill[:t.n])}
	for i, a := range t.arrays {
		if &a.S[0] == &t.fill[0] {
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
		return nil, err
	}
	defer m.close()
	f, err := t.scratch.create()
	if err != nil {
		return nil, err
	}
	total := int64(0)
	buf := make([]uint64, batchKeys)
	for {
		keys, err := m.next(buf)
		if err == nil {
			err = f.writeKeys(keys)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.abort()
			return nil, err
		}
		total += int64(len(keys))
	}
	return f.finishRun(total)
}

// mergeOf is a sorter that has runs to merge already.
func mergeOf(ctx context.Context, b *mem.Budget, s *scratch, runs []run) *sorter {
	return &sorter{ctx: ctx, budget: b, scratch: s, runs: runs}
}

// close waits for the spilling goroutines and gives everything back.
func (t *sorter) close() {
	if t.fill != nil {
		_ = t.wait()
	}
	t.freeArrays()
	for _, r := range t.runs {
		r.close()
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
	// next returns at most len(buf) keys, in buf or elsewhere, free to be
	// overwritten, or io.EOF.
	next(buf []uint64) ([]uint64, error)
	close()
}

// aheadKeys reads a keyStream ahead.
type aheadKeys = ahead[keyBatch]

type keyBatch struct{ buf, keys []uint64 }

func readAhead(threads int, s keyStream) *aheadKeys {
	batches := make([]keyBatch, 3)
	for i := range batches {
		batches[i].buf = make([]uint64, batchKeys)
	}
	return newAhead(threads, batches, func(b *keyBatch) (err error) {
		b.keys, err = s.next(b.buf)
		return err
	})
}

// memoryKeys is a keyStream over one array.
type memoryKeys struct {
	ctx   context.Context
	array *mem.Array[uint64]
	keys  []uint64
}

func (m *memoryKeys) next(buf []uint64) ([]uint64, error) {
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

func (m *memoryKeys) close() { m.array.Free() }
