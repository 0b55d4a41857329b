package extsort

import (
	"cmp"
	"context"
	"slices"

	"ndls/internal/inorder"
	"ndls/internal/invariants"
	"ndls/internal/mem"
)

// merger merges the items in [lo, hi) of sorted runs, a range of items after the other, on
// several threads at a time. Its caller reads the blocks of the runs in which there are
// items of a range.
type merger[T Item] struct {
	ctx    context.Context
	runs   []run[T]
	lo, hi T // of what is not cut into ranges yet
	next   []int64
	layout layout
}

// chunk is a range of keys on its way through a merger.
type chunk[T Item] struct {
	lo, hi T
	pieces []piece[T]
	in     []T // the blocks of the pieces, one piece after the other
	out    []T // the keys in order, where they wait for their turn
	n      int // keys in out
}

// piece is the blocks of a run that have keys of a chunk.
type piece[T Item] struct {
	run   run[T]
	block int64
	keys  []T
}

// newMerger prepares to merge runs whose blocks have the same length.
func newMerger[T Item](ctx context.Context, runs []run[T], lo, hi T, l layout) *merger[T] {
	m := &merger[T]{ctx: ctx, runs: runs, lo: lo, hi: hi, next: make([]int64, len(runs)), layout: l}
	for i, r := range runs {
		m.next[i] = firstBlock(r, lo)
	}
	return m
}

// plan cuts off the next range of keys, as large as the chunk can hold the blocks of,
// and says whether there is one. Before and after, next counts the blocks of each run
// that begin below lo. The last of these may have keys from lo on.
func (m *merger[T]) plan(c *chunk[T]) bool {
	if !less(&m.lo, &m.hi) {
		return false
	}
	c.lo, c.hi = m.lo, m.hi
	from := make([]int64, len(m.runs))
	left := m.layout.blocks
	for i, n := range m.next {
		from[i] = max(n-1, 0)
		left -= n - from[i]
	}
	for {
		i, first := m.smallest()
		if !less(&first, &m.hi) {
			break
		}
		if left == 0 {
			c.hi = first
			break
		}
		m.next[i]++
		left--
	}
	c.pieces = c.pieces[:0]
	at := int64(0)
	for i, r := range m.runs {
		for m.next[i] > 0 {
			if first := r.first(m.next[i] - 1); less(&first, &c.hi) {
				break
			}
			m.next[i]--
		}
		if n := min(m.next[i]*r.blockKeys(), r.Keys()) - from[i]*r.blockKeys(); n > 0 {
			c.pieces = append(c.pieces, piece[T]{r, from[i], c.in[at:][:n]})
			at += (n + minBlockKeys - 1) &^ (minBlockKeys - 1) // blocks begin on pages
		}
	}
	m.lo = c.hi
	return true
}

// smallest is the run whose next block begins with the smallest key, and that key, End
// if no block is left.
func (m *merger[T]) smallest() (at int, first T) {
	first = least[T](End)
	for i, r := range m.runs {
		if m.next[i] < blocksOf(r) {
			if f := r.first(m.next[i]); less(&f, &first) {
				at, first = i, f
			}
		}
	}
	return at, first
}

// load reads the blocks of a chunk.
func (c *chunk[T]) load() error {
	for _, p := range c.pieces {
		if err := p.run.read(p.keys, p.block); err != nil {
			return err
		}
	}
	return nil
}

// source checks the blocks of a chunk, and gives its keys.
func (c *chunk[T]) source() (*uniqueItems[T], error) {
	var lists []list[T]
	for _, p := range c.pieces {
		if err := p.run.check(p.keys, p.block); err != nil {
			return nil, err
		}
		last := firstOf(p.keys, c.hi)
		first := firstOf(p.keys[:last], c.lo)
		if first < last {
			lists = append(lists, list[T]{p.keys[first:last]})
		}
	}
	if len(lists) == 0 {
		lists = []list[T]{{}}
	}
	return &uniqueItems[T]{from: merged(lists)}, nil
}

// visit gives the keys of a chunk to a function in batches.
func (c *chunk[T]) visit(ctx context.Context, visit func([]T) error) error {
	keys, err := c.source()
	if err != nil {
		return err
	}
	buf := batches[T]().Get().(*[]T)
	defer batches[T]().Put(buf)
	for {
		n := keys.read(*buf)
		if n == 0 {
			return ctx.Err()
		}
		if err := visit((*buf)[:n]); err != nil {
			return err
		}
	}
}

// merge puts the keys of a chunk into out.
func (c *chunk[T]) merge() error {
	keys, err := c.source()
	if err != nil {
		return err
	}
	c.n = 0
	for n := -1; n != 0; c.n += n { // as much at a time as the cache holds
		n = keys.read(c.out[c.n:min(c.n+BatchKeys, len(c.out))])
	}
	return nil
}

// done lets the runs drop what was read.
func (c *chunk[T]) done() {
	for _, p := range c.pieces {
		blocks := int64(len(p.keys)) / p.run.blockKeys()
		p.run.done(p.block + max(blocks-1, 0)) // the last block may have keys of the next chunk
	}
}

// each calls visit for batches of keys, which may be overwritten, in any order, on
// several threads at a time.
func (m *merger[T]) each(chunks []chunk[T], visit func([]T) error) error {
	return m.run(chunks, m.layout.threads, func(c *chunk[T]) error { return c.visit(m.ctx, visit) }, func(c *chunk[T]) error {
		c.done()
		return nil
	})
}

// inOrder calls visit for batches of keys, which may be overwritten, in their order.
func (m *merger[T]) inOrder(chunks []chunk[T], visit func([]T) error) error {
	var before []T // a copy of the last item that was visited, if there is one
	checked := func(keys []T) error {
		if invariants.Enabled && len(keys) > 0 {
			ascend := slices.IsSortedFunc(keys, compare) && (len(before) == 0 || less(&before[0], &keys[0]))
			invariants.Check(ascend, "merged keys do not ascend")
			before = append(before[:0], keys[len(keys)-1])
		}
		return visit(keys)
	}
	work := (*chunk[T]).merge
	use := func(c *chunk[T]) error {
		for keys := c.out[:c.n]; len(keys) > 0; {
			n := min(len(keys), BatchKeys)
			if err := checked(keys[:n]); err != nil {
				return err
			}
			keys = keys[n:]
		}
		return nil
	}
	if !m.layout.out {
		work = func(*chunk[T]) error { return nil }
		use = func(c *chunk[T]) error { return c.visit(m.ctx, checked) }
	}
	return m.run(chunks, m.layout.threads, work, func(c *chunk[T]) error {
		defer c.done()
		return use(c)
	})
}

// run takes all chunks through a line.
func (m *merger[T]) run(chunks []chunk[T], threads int, work, use func(*chunk[T]) error) error {
	line := inorder.New(threads, chunks, work, use)
	for {
		c, err := line.Next()
		if err == nil && !m.plan(c) {
			return line.Close()
		}
		if err == nil {
			err = m.ctx.Err()
		}
		if err == nil {
			err = c.load()
		}
		if err != nil {
			_ = line.Close()
			return err
		}
		line.Put()
	}
}

// mergeRuns calls each or inOrder of a merger of runs, with chunks from the budget.
func mergeRuns[T Item](ctx context.Context, b *mem.Budget, runs []run[T], lo, hi T, l layout, do func(*merger[T], []chunk[T]) error) error {
	in, out := l.inKeys(), l.outKeys()
	buffers, err := mem.Alloc[T](b, int64(l.chunks)*(in+out), "merge buffers")
	if err != nil {
		return err
	}
	defer buffers.Free()
	chunks := make([]chunk[T], l.chunks)
	for i := range chunks {
		keys := buffers.S[int64(i)*(in+out):]
		chunks[i].in, chunks[i].out = keys[:in], keys[in:][:out]
	}
	return do(newMerger(ctx, runs, lo, hi, l), chunks)
}

// batch is some blocks of a run.
type batch[T Item] struct {
	buf   *[]T
	keys  []T
	block int64
}

// eachOf calls visit for the items of one run in batches: in any order, on several threads at
// a time, or in order, by one goroutine at a time. It takes nothing of a budget.
func eachOf[T Item](ctx context.Context, threads int, r run[T], inOrder bool, visit func([]T) error) error {
	all := make([]batch[T], threads+2)
	for i := range all {
		all[i].buf = batches[T]().Get().(*[]T)
		defer batches[T]().Put(all[i].buf)
	}
	line := inorder.New(threads, all, func(b *batch[T]) error {
		err := r.check(b.keys, b.block)
		if err == nil && !inOrder {
			err = visit(b.keys)
		}
		return err
	}, func(b *batch[T]) (err error) {
		if inOrder {
			err = visit(b.keys)
		}
		r.done(b.block)
		return cmp.Or(err, ctx.Err())
	})
	for at := int64(0); at < r.Keys(); at += BatchKeys {
		b, err := line.Next()
		if err == nil {
			b.block, b.keys = at/r.blockKeys(), (*b.buf)[:min(BatchKeys, r.Keys()-at)]
			err = r.read(b.keys, b.block)
		}
		if err != nil {
			_ = line.Close()
			return err
		}
		line.Put()
	}
	return line.Close()
}
