package extsort

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"ndls/internal/inorder"
	"ndls/internal/mem"
)

const (
	// BatchKeys is the number of keys that are passed on at a time.
	BatchKeys = 1 << 14
	// minSortKeys keeps sorted runs from being absurdly small.
	minSortKeys = 1 << 11
)

// Sorter sorts more items than fit into memory. Any number of goroutines add keys until
// Finish. If one buffer does not have space for all keys, there are two: when one is full, it
// is sorted and written while they fill the other.
type Sorter[T Item] struct {
	ctx     context.Context
	budget  *mem.Budget
	scratch *Scratch
	threads int
	block   int64           // keys of the blocks of runs
	arrays  []*mem.Array[T] // buffers
	help    *mem.Array[T]   // for sorting

	gate        sync.RWMutex // held by those who add keys, and alone by who changes the buffer
	fill, other []T          // the same if there is one buffer
	n           atomic.Int64 // keys in fill, or more if it is full
	// ones and zeros are the bits that are one, and zero, in any of the keys in fill.
	ones, zeros atomic.Uint64
	spills      int // how often fill was full

	writing sync.WaitGroup
	mu      sync.Mutex
	runs    []run[T]
	err     error // of a write

	lo, hi T              // of the keys that are wanted
	memory *memoryKeys[T] // the result, if nothing was spilled
}

// Options say what a Sorter is for.
type Options struct {
	// Want is the expected number of keys, 0 if unknown.
	Want int64
	// Threads that sort at a time, at least one.
	Threads int
	// Leave is the number of bytes of the budget that others may need while keys are added. The
	// Sorter leaves them that, or a quarter of the free bytes.
	Leave int64
	// Width is the size of an item in bytes, 0 for that of a key. NewSorter sets it.
	Width int64
}

// NewSorter takes buffers for all keys that are wanted, or for as many as the
// budget allows.
func NewSorter[T Item](ctx context.Context, b *mem.Budget, s *Scratch, o Options) (*Sorter[T], error) {
	o.Width = width[T]()
	size, buffers := o.buffers(b.Free())
	t := &Sorter[T]{ctx: ctx, budget: b, scratch: s, threads: max(o.Threads, 1), block: blockOf(size), hi: least[T](End)}
	for range buffers {
		a, err := mem.Alloc[T](b, size, "sort buffer")
		if err != nil {
			t.Close()
			return nil, err
		}
		t.arrays = append(t.arrays, a)
	}
	var err error
	if t.help, err = mem.Alloc[T](b, helpKeys(size, t.threads), "sorting"); err != nil {
		t.Close()
		return nil, err
	}
	t.fill, t.other = t.arrays[0].S, t.arrays[buffers-1].S
	return t, nil
}

// Add takes more keys. Several goroutines may call it at a time.
func (t *Sorter[T]) Add(keys []T) error {
	for len(keys) > 0 {
		t.gate.RLock()
		spills := t.spills
		if at := t.n.Add(int64(len(keys))) - int64(len(keys)); at < int64(len(t.fill)) {
			keys = t.copy(at, keys)
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

// AddFrom is Add for n keys, which put writes to the slice it is given. Mostly that is where
// the keys stay until they are sorted, so that they need not be copied there.
func (t *Sorter[T]) AddFrom(n int, put func(keys []T)) error {
	t.gate.RLock()
	spills, at := t.spills, t.n.Add(int64(n))-int64(n)
	if at+int64(n) <= int64(len(t.fill)) {
		keys := t.fill[at : at+int64(n)]
		put(keys)
		t.noteBits(keys)
		t.gate.RUnlock()
		return nil
	}
	keys := make([]T, n)
	put(keys)
	if at < int64(len(t.fill)) {
		keys = t.copy(at, keys)
	}
	t.gate.RUnlock()
	if err := t.spill(spills); err != nil {
		return err
	}
	return t.Add(keys)
}

// copy puts keys at a place of the buffer, as many as fit, and returns the others.
func (t *Sorter[T]) copy(at int64, keys []T) (rest []T) {
	n := copy(t.fill[at:], keys)
	t.noteBits(keys[:n])
	return keys[n:]
}

// noteBits notes which bits are one and zero in keys, while these are in the cache: to look
// for the highest bit that varies among all keys would take reading them once more.
func (t *Sorter[T]) noteBits(keys []T) {
	var ones, zeros uint64
	for i := range keys {
		k := Key(&keys[i])
		ones |= k
		zeros |= ^k
	}
	if t.ones.Load()|ones != t.ones.Load() {
		t.ones.Or(ones)
	}
	if t.zeros.Load()|zeros != t.zeros.Load() {
		t.zeros.Or(zeros)
	}
}

// sorts returns a function that sorts the keys in the buffer that is filled.
func (t *Sorter[T]) sorts() func() []T {
	varying := t.ones.Swap(0) & t.zeros.Swap(0)
	keys := t.fill[:min(t.n.Load(), int64(len(t.fill)))]
	return func() []T {
		sortVarying(keys, t.help.S, varying, t.threads)
		return keys
	}
}

// spill begins to sort and write the buffer that is full, and goes on with the other one,
// unless another goroutine has done so.
func (t *Sorter[T]) spill(spills int) error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.spills > spills {
		return t.ctx.Err()
	}
	if err := t.written(); err != nil {
		return err
	}
	sorted := t.sorts()
	t.writing.Go(func() {
		keys := memoryKeys[T]{keys: sorted()}
		t.ended(t.writeRun(keys.unique(t.threads)))
	})
	if len(t.arrays) == 1 {
		if err := t.written(); err != nil {
			return err
		}
	}
	t.fill, t.other = t.other, t.fill
	t.n.Store(0)
	t.spills++
	return t.ctx.Err()
}

// written waits for the run that is being written.
func (t *Sorter[T]) written() error {
	t.writing.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// ended notes what became of a run.
func (t *Sorter[T]) ended(r run[T], err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
	} else {
		t.runs = append(t.runs, r)
	}
}

// writeRun writes sorted keys.
func (t *Sorter[T]) writeRun(batches [][]T) (run[T], error) {
	w, err := createRun[T](t.scratch, t.block)
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
func (t *Sorter[T]) Finish() error {
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

// Spill writes what is in memory to a file and gives the memory back, after Finish.
func (t *Sorter[T]) Spill() error {
	if t.memory == nil {
		return nil
	}
	if len(t.memory.keys) > 0 {
		r, err := t.writeRun(t.memory.unique(t.threads))
		if err != nil {
			return err
		}
		t.runs = append(t.runs, r)
	}
	t.memory.array.Free()
	t.memory = nil
	return nil
}

// sortInMemory keeps the one array that holds the result.
func (t *Sorter[T]) sortInMemory() {
	t.memory = &memoryKeys[T]{array: t.arrays[0], keys: t.sorts()()}
	t.arrays = t.arrays[1:]
	t.freeArrays()
}

// Each calls visit for all keys added, each once, in batches of at most [BatchKeys] that
// may be overwritten: on all threads at a time and in any order of batches. Each or
// InOrder may be called once, after Finish. They take what they need of the budget, and
// no keys are left afterwards.
func (t *Sorter[T]) Each(visit func([]T) error) error {
	return t.visit(false, visit)
}

// InMemory reports whether all keys are in memory, after Finish.
func (t *Sorter[T]) InMemory() bool { return t.memory != nil }

// EachKept is Each of keys in memory, which stay there, as visit leaves them, until Close.
func (t *Sorter[T]) EachKept(visit func([]T) error) error {
	return t.memory.each(t.ctx, t.threads, false, visit)
}

// Again begins another sort, for want keys, in the memory in which EachKept left some keys: those in batches, which lie in any order. They
// count as added, and are returned in one slice. Whoever gives them other values tells Changed.
func (t *Sorter[T]) Again(batches [][]T, want int64) (kept []T, err error) {
	array, threads := t.memory.array, t.threads
	slices.SortFunc(batches, func(a, b []T) int { return cap(b) - cap(a) }) // all end where the array ends
	n := 0
	for _, batch := range batches {
		n += copy(array.S[n:], batch)
	}
	if err := array.Grow(want, "sort buffer"); err != nil {
		return nil, err
	}
	help, err := mem.Alloc[T](t.budget, helpKeys(want, threads), "sorting")
	if err != nil {
		return nil, err
	}
	t.memory, t.arrays, t.help, t.fill, t.other = nil, []*mem.Array[T]{array}, help, array.S, array.S
	t.n.Store(int64(n))
	return t.fill[:n], nil
}

// Changed takes keys that Again returned and that have other values now.
func (t *Sorter[T]) Changed(keys []T) { t.noteBits(keys) }

// InOrder is Each in ascending order, by one goroutine at a time: the threads prepare the
// batches that come next.
func (t *Sorter[T]) InOrder(visit func([]T) error) error {
	return t.visit(true, visit)
}

func (t *Sorter[T]) visit(ordered bool, visit func([]T) error) error {
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
	return mergeRuns(t.ctx, t.budget, t.runs, t.lo, t.hi, l, func(m *merger[T], chunks []chunk[T]) error {
		if ordered {
			return m.inOrder(chunks, visit)
		}
		return m.each(chunks, visit)
	})
}

// reduceRuns merges runs until the chunks of the last merge fit the budget.
func (t *Sorter[T]) reduceRuns(ordered bool) (layout, error) {
	for {
		l, ok := layoutOf(t.budget.Free(), len(t.runs), t.block, t.wanted(t.runs), t.threads, ordered, width[T]())
		if ok || len(t.runs) <= 2 {
			return l, nil
		}
		fanIn := 2
		for ; fanIn+1 < len(t.runs); fanIn++ {
			if _, ok := layoutOf(t.budget.Free(), fanIn+1, t.block, t.wanted(t.runs[:fanIn+1]), t.threads, true, width[T]()); !ok {
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

// wanted returns an upper bound of the number of keys of some runs in the wanted range.
func (t *Sorter[T]) wanted(runs []run[T]) (keys int64) {
	for _, r := range runs {
		keys += r.within(t.lo, t.hi)
	}
	return keys
}

// mergeSome merges some runs to a longer one.
func (t *Sorter[T]) mergeSome(runs []run[T]) (run[T], error) {
	l, _ := layoutOf(t.budget.Free(), len(runs), t.block, t.wanted(runs), t.threads, true, width[T]())
	w, err := createRun[T](t.scratch, t.block)
	if err != nil {
		return nil, err
	}
	if err := mergeRuns(t.ctx, t.budget, runs, t.lo, t.hi, l, func(m *merger[T], chunks []chunk[T]) error {
		return m.inOrder(chunks, w.Write)
	}); err != nil {
		w.Abort()
		return nil, err
	}
	return w.finishRun()
}

// Keys returns an upper bound of the number of keys of the Sorter, after Finish.
func (t *Sorter[T]) Keys() int64 {
	if t.memory != nil {
		return int64(len(t.memory.keys))
	}
	return t.wanted(t.runs)
}

// Merge returns a Sorter of the items with keys in [lo, hi) of run files, which it takes over.
// It wants nothing but Each or InOrder, and Close.
func Merge[T Item](ctx context.Context, b *mem.Budget, s *Scratch, threads int, files RunFiles[T], lo, hi uint64) *Sorter[T] {
	t := &Sorter[T]{ctx: ctx, budget: b, scratch: s, threads: max(threads, 1), block: blockKeys, lo: least[T](lo), hi: least[T](hi)}
	for _, f := range files {
		t.runs = append(t.runs, f)
	}
	return t
}

// Close waits for the run that is being written and gives everything back.
func (t *Sorter[T]) Close() {
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

func (t *Sorter[T]) freeArrays() {
	for _, a := range t.arrays {
		a.Free()
	}
	t.help.Free()
	t.arrays, t.help, t.fill, t.other = nil, nil, nil, nil
}

// memoryKeys are sorted keys in one array.
type memoryKeys[T Item] struct {
	array *mem.Array[T]
	keys  []T
}

// cut takes the next batch, in which all keys are that equal its last one: if more than
// a batch are equal it drops some of them.
func (m *memoryKeys[T]) cut() []T {
	n := min(BatchKeys, len(m.keys))
	if n == 0 {
		return nil
	}
	keys := m.keys[:n]
	m.keys = m.keys[n:]
	for len(m.keys) > 0 && same(&keys[n-1], &m.keys[0]) {
		join(&keys[n-1], &m.keys[0])
		m.keys = m.keys[1:]
	}
	return keys
}

// unique cuts all keys into batches, without repetitions.
func (m *memoryKeys[T]) unique(threads int) (batches [][]T) {
	for keys := m.cut(); len(keys) > 0; keys = m.cut() {
		batches = append(batches, keys)
	}
	parallel(threads, len(batches), func(i int) { batches[i] = unique(batches[i]) })
	return batches
}

func (m *memoryKeys[T]) each(ctx context.Context, threads int, ordered bool, visit func([]T) error) error {
	work := func(keys *[]T) error {
		*keys = unique(*keys)
		return nil
	}
	use := func(keys *[]T) error { return visit(*keys) }
	if !ordered {
		work = func(keys *[]T) error { return visit(unique(*keys)) }
		use = func(*[]T) error { return nil }
	}
	line := inorder.New(threads, make([][]T, threads+2), work, use)
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
