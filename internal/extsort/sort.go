package extsort

import (
	"context"
	"sync"
	"sync/atomic"

	"ndls/internal/inorder"
	"ndls/internal/mem"
)

const (
	// BatchKeys is how many keys are handed on at a time.
	BatchKeys = 1 << 14
	// minSortKeys keeps sorted runs from being absurdly small.
	minSortKeys = 1 << 12
)

// End is larger than every key.
const End = ^uint64(0)

// Sorter sorts more keys than fit into memory. Any number of goroutines add keys until
// Finish. When the buffer that they fill is full they wait, all threads sort it with the
// help of a second one, and it is written while they fill the second one.
type Sorter struct {
	ctx     context.Context
	budget  *mem.Budget
	scratch *Scratch
	threads int
	block   int64 // keys of the blocks of runs
	arrays  []*mem.Array[uint64]

	gate        sync.RWMutex // held by those who add keys, and alone by who sorts them
	fill, other []uint64
	n           atomic.Int64 // keys in fill, or more if it is full
	spills      int          // how often fill was full

	writing sync.WaitGroup
	mu      sync.Mutex
	runs    []run
	err     error // of a write

	lo, hi uint64      // of the keys that are wanted
	memory *memoryKeys // the result, if nothing was spilled
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
	size := o.bufferKeys(b.Free())
	t := &Sorter{ctx: ctx, budget: b, scratch: s, threads: max(o.Threads, 1), block: blockOf(size), hi: End}
	for range buffers {
		a, err := mem.Alloc[uint64](b, size, "sort buffer")
		if err != nil {
			t.Close()
			return nil, err
		}
		t.arrays = append(t.arrays, a)
	}
	t.fill, t.other = t.arrays[0].S, t.arrays[1].S
	return t, nil
}

// Add takes more keys. Several goroutines may call it at a time.
func (t *Sorter) Add(keys []uint64) error {
	for len(keys) > 0 {
		t.gate.RLock()
		spills := t.spills
		if at := t.n.Add(int64(len(keys))) - int64(len(keys)); at < int64(len(t.fill)) {
			keys = keys[copy(t.fill[at:], keys):]
		}
		t.gate.RUnlock()
		if len(keys) > 0 {
			if err := t.spill(spills); err != nil {
				return err
			}
		}
	}
	return nil
}

// spill sorts the buffer that is full, begins to write it, and goes on with the other
// one, unless another goroutine has done so.
func (t *Sorter) spill(spills int) error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.spills > spills {
		return t.ctx.Err()
	}
	if err := t.written(); err != nil {
		return err
	}
	keys := memoryKeys{keys: SortKeys(t.fill[:min(t.n.Load(), int64(len(t.fill)))], t.other, t.threads)}
	batches := keys.unique(t.threads)
	t.writing.Go(func() { t.ended(t.writeRun(batches)) })
	t.fill, t.other = t.other, t.fill
	t.n.Store(0)
	t.spills++
	return t.ctx.Err()
}

// written waits for the run that is being written.
func (t *Sorter) written() error {
	t.writing.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// ended notes what became of a run.
func (t *Sorter) ended(r run, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
	} else {
		t.runs = append(t.runs, r)
	}
}

// writeRun writes sorted keys.
func (t *Sorter) writeRun(batches [][]uint64) (run, error) {
	w, err := t.scratch.createRun(t.block)
	if err != nil {
		return nil, err
	}
	for _, keys := range batches {
		if err := w.Write(keys); err != nil {
			w.Abort()
			return nil, err
		}
	}
	return w.finishRun()
}

// Finish ends the adding and gives the buffers back, but for the one that holds
// the result if nothing was spilled.
func (t *Sorter) Finish() error {
	if err := t.written(); err != nil {
		return err
	}
	if t.spills == 0 {
		t.sortInMemory()
		return nil
	}
	if t.n.Load() > 0 {
		if err := t.spill(t.spills); err != nil {
			return err
		}
		if err := t.written(); err != nil {
			return err
		}
	}
	t.freeArrays()
	return nil
}

// sortInMemory keeps the one array that holds the result.
func (t *Sorter) sortInMemory() {
	keys := SortKeys(t.fill[:min(t.n.Load(), int64(len(t.fill)))], t.other, t.threads)
	t.memory = &memoryKeys{array: t.arrays[0], keys: keys}
	t.arrays[1].Free()
	t.arrays, t.fill, t.other = nil, nil, nil
}

// Each calls visit for all keys added, each once, in batches of at most [BatchKeys] that
// may be overwritten: on all threads at a time and in any order of batches. Each or
// InOrder may be called once, after Finish. They take what they need of the budget, and
// no keys are left afterwards.
func (t *Sorter) Each(visit func([]uint64) error) error {
	return t.visit(false, visit)
}

// InOrder is Each in ascending order, by one goroutine at a time: the threads prepare the
// batches that come next.
func (t *Sorter) InOrder(visit func([]uint64) error) error {
	return t.visit(true, visit)
}

func (t *Sorter) visit(ordered bool, visit func([]uint64) error) error {
	defer t.Close()
	if t.memory != nil {
		return t.memory.each(t.ctx, t.threads, ordered, visit)
	}
	if len(t.runs) == 0 {
		return nil
	}
	l, err := t.reduceRuns(ordered)
	if err != nil {
		return err
	}
	return mergeRuns(t.ctx, t.budget, t.runs, t.lo, t.hi, l, func(m *merger, chunks []chunk) error {
		if ordered {
			return m.inOrder(chunks, visit)
		}
		return m.each(chunks, visit)
	})
}

// reduceRuns merges runs until the chunks of the last merge fit the budget.
func (t *Sorter) reduceRuns(ordered bool) (layout, error) {
	for {
		l, ok := layoutOf(t.budget.Free(), len(t.runs), t.block, t.wanted(t.runs), t.threads, ordered)
		if ok || len(t.runs) <= 2 {
			return l, nil
		}
		fanIn := 2
		for ; fanIn+1 < len(t.runs); fanIn++ {
			if _, ok := layoutOf(t.budget.Free(), fanIn+1, t.block, t.wanted(t.runs[:fanIn+1]), t.threads, true); !ok {
				break
			}
		}
		// No more than needed, so that the last merge is full.
		group := min(fanIn, len(t.runs)-fanIn+1)
		merged, err := t.mergeSome(t.runs[:group])
		if err != nil {
			return l, err
		}
		for _, r := range t.runs[:group] {
			r.Close()
		}
		t.runs = append(t.runs[group:], merged)
	}
}

// wanted is how many keys of some runs are in the wanted range, but for a block at each end
// of the range.
func (t *Sorter) wanted(runs []run) (keys int64) {
	for _, r := range runs {
		keys += min(r.Keys(), max(firstBlock(r, t.hi)-firstBlock(r, t.lo), 0)*r.blockKeys())
	}
	return keys
}

// mergeSome merges some runs to a longer one.
func (t *Sorter) mergeSome(runs []run) (run, error) {
	l, _ := layoutOf(t.budget.Free(), len(runs), t.block, t.wanted(runs), t.threads, true)
	w, err := t.scratch.createRun(t.block)
	if err != nil {
		return nil, err
	}
	if err := mergeRuns(t.ctx, t.budget, runs, t.lo, t.hi, l, func(m *merger, chunks []chunk) error {
		return m.inOrder(chunks, w.Write)
	}); err != nil {
		w.Abort()
		return nil, err
	}
	return w.finishRun()
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

// Merge returns a Sorter of the keys in [lo, hi) of run files, which it takes over. It
// wants nothing but Each or InOrder, and Close.
func Merge(ctx context.Context, b *mem.Budget, s *Scratch, threads int, files RunFiles, lo, hi uint64) *Sorter {
	t := &Sorter{ctx: ctx, budget: b, scratch: s, threads: max(threads, 1), block: blockKeys, lo: lo, hi: hi}
	for _, f := range files {
		t.runs = append(t.runs, f)
	}
	return t
}

// Close waits for the run that is being written and gives everything back.
func (t *Sorter) Close() {
	_ = t.written()
	t.freeArrays()
	for _, r := range t.runs {
		r.Close()
	}
	t.runs = nil
	if t.memory != nil {
		t.memory.array.Free()
		t.memory = nil
	}
}

func (t *Sorter) freeArrays() {
	for _, a := range t.arrays {
		a.Free()
	}
	t.arrays, t.fill, t.other = nil, nil, nil
}

// memoryKeys are sorted keys in one array.
type memoryKeys struct {
	array *mem.Array[uint64]
	keys  []uint64
}

// cut takes the next batch, in which all keys are that equal its last one: if more than
// a batch are equal it drops some of them.
func (m *memoryKeys) cut() []uint64 {
	n := min(BatchKeys, len(m.keys))
	if n == 0 {
		return nil
	}
	keys := m.keys[:n]
	m.keys = m.keys[n:]
	for len(m.keys) > 0 && m.keys[0] == keys[n-1] {
		m.keys = m.keys[1:]
	}
	return keys
}

// unique cuts all keys into batches, without repetitions.
func (m *memoryKeys) unique(threads int) (batches [][]uint64) {
	for keys := m.cut(); len(keys) > 0; keys = m.cut() {
		batches = append(batches, keys)
	}
	parallel(threads, len(batches), func(i int) { batches[i] = unique(batches[i]) })
	return batches
}

func (m *memoryKeys) each(ctx context.Context, threads int, ordered bool, visit func([]uint64) error) error {
	work := func(keys *[]uint64) error {
		*keys = unique(*keys)
		return nil
	}
	use := func(keys *[]uint64) error { return visit(*keys) }
	if !ordered {
		work = func(keys *[]uint64) error { return visit(unique(*keys)) }
		use = func(*[]uint64) error { return nil }
	}
	line := inorder.New(threads, make([][]uint64, threads+2), work, use)
	for {
		keys, err := line.Next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			_ = line.Close()
			return err
		}
		if *keys = m.cut(); len(*keys) == 0 {
			return line.Close()
		}
		line.Put()
	}
}
