package extsort

import (
	"context"
	"slices"

	"ndls/internal/inorder"
	"ndls/internal/invariants"
	"ndls/internal/mem"
)

// merger merges the keys in [lo, hi) of sorted runs, a range of keys after the other, on
// several threads at a time. Its caller reads the blocks of the runs in which there are
// keys of a range.
type merger struct {
	ctx    context.Context
	runs   []run
	lo, hi uint64 // of what is not cut into ranges yet
	next   []int64
	layout layout
}

// chunk is a range of keys on its way through a merger.
type chunk struct {
	lo, hi uint64
	pieces []piece
	in     []uint64 // the blocks of the pieces, one piece after the other
	out    []uint64 // the keys in order, where they wait for their turn
	n      int      // keys in out
}

// piece is the blocks of a run that have keys of a chunk.
type piece struct {
	run   run
	block int64
	keys  []uint64
}

// newMerger prepares to merge runs whose blocks have the same length.
func newMerger(ctx context.Context, runs []run, lo, hi uint64, l layout) *merger {
	m := &merger{ctx: ctx, runs: runs, lo: lo, hi: hi, next: make([]int64, len(runs)), layout: l}
	for i, r := range runs {
		m.next[i] = firstBlock(r, lo)
	}
	return m
}

// plan cuts off the next range of keys, as large as the chunk can hold the blocks of,
// and says whether there is one. Before and after, next counts the blocks of each run
// that begin below lo. The last of these may have keys from lo on.
func (m *merger) plan(c *chunk) bool {
	if m.lo >= m.hi {
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
		if first >= m.hi {
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
		for m.next[i] > 0 && r.first(m.next[i]-1) >= c.hi {
			m.next[i]--
		}
		if n := min(m.next[i]*r.blockKeys(), r.Keys()) - from[i]*r.blockKeys(); n > 0 {
			c.pieces = append(c.pieces, piece{r, from[i], c.in[at:][:n]})
			at += (n + minBlockKeys - 1) &^ (minBlockKeys - 1) // blocks begin on pages
		}
	}
	m.lo = c.hi
	return true
}

// smallest is the run whose next block begins with the smallest key, and that key, End
// if no block is left.
func (m *merger) smallest() (at int, first uint64) {
	first = End
	for i, r := range m.runs {
		if m.next[i] < blocksOf(r) {
			if f := r.first(m.next[i]); f < first {
				at, first = i, f
			}
		}
	}
	return at, first
}

// load reads the blocks of a chunk.
func (c *chunk) load() error {
	for _, p := range c.pieces {
		if err := p.run.read(p.keys, p.block); err != nil {
			return err
		}
	}
	return nil
}

// source checks the blocks of a chunk, and gives its keys.
func (c *chunk) source() (*uniqueKeys, error) {
	var lists []list
	for _, p := range c.pieces {
		if err := p.run.check(p.keys, p.block); err != nil {
			return nil, err
		}
		last, _ := slices.BinarySearch(p.keys, c.hi)
		first, _ := slices.BinarySearch(p.keys[:last], c.lo)
		if first < last {
			lists = append(lists, list{p.keys[first:last]})
		}
	}
	if len(lists) == 0 {
		lists = []list{{}}
	}
	return &uniqueKeys{merged(lists), End}, nil
}

// visit gives the keys of a chunk to a function in batches.
func (c *chunk) visit(ctx context.Context, visit func([]uint64) error) error {
	keys, err := c.source()
	if err != nil {
		return err
	}
	buf := batches.Get().(*[]uint64)
	defer batches.Put(buf)
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
func (c *chunk) merge() error {
	keys, err := c.source()
	if err == nil {
		c.n = keys.read(c.out) // all: out is as long as in
	}
	return err
}

// done lets the runs drop what was read.
func (c *chunk) done() {
	for _, p := range c.pieces {
		blocks := int64(len(p.keys)) / p.run.blockKeys()
		p.run.done(p.block + max(blocks-1, 0)) // the last block may have keys of the next chunk
	}
}

// each calls visit for batches of keys, which may be overwritten, in any order, on
// several threads at a time.
func (m *merger) each(chunks []chunk, visit func([]uint64) error) error {
	return m.run(chunks, m.layout.threads, func(c *chunk) error { return c.visit(m.ctx, visit) }, func(c *chunk) error {
		c.done()
		return nil
	})
}

// inOrder calls visit for batches of keys, which may be overwritten, in their order.
func (m *merger) inOrder(chunks []chunk, visit func([]uint64) error) error {
	last := End
	checked := func(keys []uint64) error {
		if invariants.Enabled && len(keys) > 0 {
			invariants.Ascending("merged keys", last == End, last, keys)
			last = keys[len(keys)-1]
		}
		return visit(keys)
	}
	work := (*chunk).merge
	use := func(c *chunk) error {
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
		work = func(*chunk) error { return nil }
		use = func(c *chunk) error { return c.visit(m.ctx, checked) }
	}
	return m.run(chunks, m.layout.threads, work, func(c *chunk) error {
		defer c.done()
		return use(c)
	})
}

// run takes all chunks through a line.
func (m *merger) run(chunks []chunk, threads int, work, use func(*chunk) error) error {
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
func mergeRuns(ctx context.Context, b *mem.Budget, runs []run, lo, hi uint64, l layout, do func(*merger, []chunk) error) error {
	in, out := l.inKeys(), l.outKeys()
	buffers, err := mem.Alloc[uint64](b, int64(l.chunks)*(in+out), "merge buffers")
	if err != nil {
		return err
	}
	defer buffers.Free()
	chunks := make([]chunk, l.chunks)
	for i := range chunks {
		keys := buffers.S[int64(i)*(in+out):]
		chunks[i].in, chunks[i].out = keys[:in], keys[in:][:out]
	}
	return do(newMerger(ctx, runs, lo, hi, l), chunks)
}

// eachOf calls visit for the keys of one run in batches, in any order, on several threads
// at a time. It takes nothing of a budget.
func eachOf(ctx context.Context, threads int, r run, visit func([]uint64) error) error {
	type batch struct {
		buf   *[]uint64
		keys  []uint64
		block int64
	}
	all := make([]batch, threads+2)
	for i := range all {
		all[i].buf = batches.Get().(*[]uint64)
		defer batches.Put(all[i].buf)
	}
	line := inorder.New(threads, all, func(b *batch) error {
		if err := r.check(b.keys, b.block); err != nil {
			return err
		}
		return visit(b.keys)
	}, func(b *batch) error {
		r.done(b.block)
		return ctx.Err()
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
