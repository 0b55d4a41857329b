package extsort

import (
	"cmp"
	"context"
	"slices"

	"ndls/internal/direct"
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
	layout layout
	// next counts the blocks of each run that begin below lo. ahead is the first item of the
	// block that follows, End if there is none, and before that of the block before it, if
	// that was counted since lo was chosen.
	next          []int64
	ahead, before []T
}

// chunk is a range of keys on its way through a merger.
type chunk[T Item] struct {
	lo, hi T
	pieces []piece[T]
	in     []T      // the blocks of the pieces, one piece after the other
	sums   []uint32 // of the blocks
	out    []T      // the keys in order, where they wait for their turn
	n      int      // keys in out
}

// piece is the blocks of a run that have keys of a chunk.
type piece[T Item] struct {
	run   run[T]
	block int64
	keys  []T
	sums  []uint32 // of the blocks, as the run says
}

// newMerger prepares to merge runs whose blocks have the same length.
func newMerger[T Item](ctx context.Context, runs []run[T], lo, hi T, l layout) (*merger[T], error) {
	n := len(runs)
	m := &merger[T]{ctx: ctx, runs: runs, lo: lo, hi: hi, layout: l, next: make([]int64, n), ahead: make([]T, n), before: make([]T, n)}
	for i, r := range runs {
		var err error
		if m.next[i], err = firstBlock(r, lo); err != nil {
			return nil, err
		}
		if err = m.look(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// look notes with which item the next block of a run begins.
func (m *merger[T]) look(i int) (err error) {
	m.before[i], m.ahead[i] = m.ahead[i], least[T](End)
	if r := m.runs[i]; m.next[i] < blocksOf(r) {
		m.ahead[i], err = r.first(m.next[i])
	}
	return err
}

// plan cuts off the next range of keys, as large as the chunk can hold the blocks of,
// and reports whether there is one. The last of the blocks that begin below it may have keys
// of the range.
func (m *merger[T]) plan(c *chunk[T]) (bool, error) {
	if !less(&m.lo, &m.hi) {
		return false, nil
	}
	c.lo, c.hi = m.lo, m.hi
	begun := slices.Clone(m.next)
	left := m.layout.blocks
	for _, n := range begun {
		left -= min(n, 1)
	}
	for {
		i := m.smallest()
		first := m.ahead[i]
		if !less(&first, &m.hi) {
			break
		}
		if left == 0 {
			c.hi = first
			break
		}
		m.next[i]++
		left--
		if err := m.look(i); err != nil {
			return false, err
		}
	}
	c.pieces, c.sums = c.pieces[:0], slices.Grow(c.sums[:0], int(m.layout.blocks))
	at := int64(0)
	for i, r := range m.runs {
		// A run has one block at most that begins with the item with which the range ends.
		if m.next[i] > begun[i] && !less(&m.before[i], &c.hi) {
			m.next[i]--
			m.ahead[i] = m.before[i]
		}
		from := max(begun[i]-1, 0)
		blocks := m.next[i] - from
		if n := min(m.next[i]*r.blockKeys(), r.Keys()) - from*r.blockKeys(); n > 0 {
			c.sums = c.sums[:int64(len(c.sums))+blocks]
			c.pieces = append(c.pieces, piece[T]{r, from, c.in[at:][:n], c.sums[int64(len(c.sums))-blocks:]})
			at += (n + minBlockKeys - 1) &^ (minBlockKeys - 1) // blocks begin on pages
		}
	}
	m.lo = c.hi
	return true, nil
}

// smallest is the run whose next block begins with the smallest item.
func (m *merger[T]) smallest() (at int) {
	for i := range m.ahead {
		if less(&m.ahead[i], &m.ahead[at]) {
			at = i
		}
	}
	return at
}

// load reads the blocks of a chunk.
func (c *chunk[T]) load() error {
	for _, p := range c.pieces {
		if err := p.run.read(p.keys, p.sums, p.block); err != nil {
			return err
		}
	}
	return nil
}

// source checks the blocks of a chunk, and gives its keys.
func (c *chunk[T]) source() (*uniqueItems[T], error) {
	var lists []list[T]
	for _, p := range c.pieces {
		if err := p.run.check(p.keys, p.sums, p.block); err != nil {
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
		more := false
		if err == nil {
			more, err = m.plan(c)
		}
		if err == nil && !more {
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
	pages, err := lendPages(b, runs)
	if err != nil {
		return err
	}
	defer pages.Free()
	chunks := make([]chunk[T], l.chunks)
	for i := range chunks {
		keys := buffers.S[int64(i)*(in+out):]
		chunks[i].in, chunks[i].out = keys[:in], keys[in:][:out]
	}
	m, err := newMerger(ctx, runs, lo, hi, l)
	if err != nil {
		return err
	}
	return do(m, chunks)
}

// lendPages lends each run a page, until they are freed.
func lendPages[T Item](b *mem.Budget, runs []run[T]) (*mem.Array[byte], error) {
	pages, err := mem.Alloc[byte](b, int64(len(runs))*pageBytes, "marks of runs")
	if err != nil {
		return nil, err
	}
	for i, r := range runs {
		r.lend(pages.S[i*pageBytes:][:pageBytes])
	}
	return pages, nil
}

// batch is some blocks of a run.
type batch[T Item] struct {
	buf   *[]T
	keys  []T
	block int64
	sums  [BatchKeys / minBlockKeys]uint32
}

// eachOf calls visit for the items of the blocks [from, to) of one run in batches: in any order, on
// several threads at a time, or in order, by one goroutine at a time. It takes nothing of a budget.
func eachOf[T Item](ctx context.Context, threads int, r run[T], inOrder bool, from, to int64, visit func([]T) error) error {
	r.lend(direct.AlignedBytes(pageBytes))
	all := make([]batch[T], threads+2)
	for i := range all {
		all[i].buf = batches[T]().Get().(*[]T)
		defer batches[T]().Put(all[i].buf)
	}
	sums := func(b *batch[T]) []uint32 { return b.sums[:blocksFor(int64(len(b.keys)), r.blockKeys())] }
	line := inorder.New(threads, all, func(b *batch[T]) error {
		err := r.check(b.keys, sums(b), b.block)
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
	end := min(to*r.blockKeys(), r.Keys())
	for at := from * r.blockKeys(); at < end; at += BatchKeys {
		b, err := line.Next()
		if err == nil {
			b.block, b.keys = at/r.blockKeys(), (*b.buf)[:min(BatchKeys, end-at)]
			err = r.read(b.keys, sums(b), b.block)
		}
		if err != nil {
			_ = line.Close()
			return err
		}
		line.Put()
	}
	return line.Close()
}
