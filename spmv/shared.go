package spmv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Peers are the workers among which the rows of a graph are shared out. All of them
// run the same passes over blocks of the same width and precision, each over its own
// rows, and make the same calls in the same order.
type Peers interface {
	// Range says that this worker has rows [first, last) of n; first, and last
	// where it is not n, are multiples of packed.StripRows.
	Range() (first, last, n int64)
	// Offer lets the others read this worker's rows of a hop until Withdraw, after
	// which read is not called any more. An error is why this worker cannot go on,
	// which ends the work of all.
	Offer(columns int, p Precision, read ReadRows)
	Withdraw(err error)
	// Fetch reads rows [lo, hi), none of them this worker's, of the hop whose rows
	// it offers, and waits until the others offer theirs.
	Fetch(ctx context.Context, lo, hi int64, into Rows) error
	// Gather returns the values of all workers, equally many each, by worker. It
	// is a barrier: what others did before they called it has been done.
	Gather(values []float64) ([][]float64, error)
}

// ReadRows copies n rows from row on as they are stored to page, which begins on a
// page of memory and has room up to a whole one; row is a multiple of [PageRows].
// It is safe for concurrent use.
type ReadRows func(page []byte, row, n int64) error

// PageRows is a number of rows that take whole pages, whatever their width.
const PageRows = direct.Align / (2 * Granule)

// NewShared maps a block of the rows that p says are this worker's, numbered from the
// first of them. They are in memory or on disk as l says; those of others come
// through two windows.
func NewShared(b *mem.Budget, k *Kernel, p Peers, l Layout, threads int, dir string) (*Block, error) {
	l.Shared = true
	first, last, n := p.Range()
	switch {
	case l.Place == Spilled:
		return nil, errors.New("spmv: rows that others read are in memory or external, not spilled")
	case l.Window <= 0 || l.Window%packed.StripRows != 0 || l.grouped() && l.Accumulators <= 0:
		return nil, fmt.Errorf("spmv: windows of %d rows and %d accumulators: whole strips of %d and at least one are needed",
			l.Window, l.Accumulators, packed.StripRows)
	case first%packed.StripRows != 0 || last%packed.StripRows != 0 && last != n || first >= last:
		return nil, fmt.Errorf("spmv: rows [%d, %d) of %d are no whole strips of %d", first, last, n, packed.StripRows)
	}
	bl, err := newBlock(b, k, last-first, l, threads, dir)
	if err != nil {
		return nil, err
	}
	bl.peers, bl.first, bl.nodes = p, first, n
	for range cap(bl.windows) {
		w, err := bl.rows(b, l.Window, "rows of other workers")
		if err != nil {
			bl.Free()
			return nil, err
		}
		bl.windows <- w
	}
	return bl, nil
}

// readRows is the [ReadRows] of the block's rows, numbered as in the graph.
func (b *Block) readRows(page []byte, row, n int64) error {
	row -= b.first
	if b.layout.Place == External {
		return b.file[0].ReadAt(page[:whole(n*b.layout.rowBytes())], b.offset(row))
	}
	raw, _, _ := b.cur.Slice(row, row+n).Bytes()
	copy(page, raw)
	return nil
}

// sharedWindows are how many windows there are: one that is added, and one that is
// on its way.
const sharedWindows = 2

// window is source rows [lo, hi) of a graph.
type window struct {
	lo, hi int64
	rows   Rows
	own    bool // rows are those of the block
	err    error
}

// cuts are the sources of a graph in ascending order, in windows that either are
// the block's or none of them.
func (b *Block) cuts() iter.Seq2[int64, int64] {
	last := b.first + b.n
	return func(yield func(lo, hi int64) bool) {
		for lo := int64(0); lo < b.nodes; {
			end, size := b.nodes, b.layout.Window
			if lo < b.first {
				end = b.first
			} else if lo < last {
				if end = last; b.layout.Place == Resident {
					size = b.n
				}
			}
			hi := min(lo+size, end)
			if !yield(lo, hi) {
				return
			}
			lo = hi
		}
	}
}

// read makes the rows of a window, in buf unless they are the block's.
func (b *Block) readWindow(ctx context.Context, lo, hi int64, buf Rows) (Rows, error) {
	rows := buf.Slice(0, hi-lo)
	if lo < b.first || lo >= b.first+b.n {
		return rows, b.peers.Fetch(ctx, lo, hi, rows)
	}
	for at := lo; at < hi; at += packed.StripRows {
		part := rows.Slice(at-lo, min(at+packed.StripRows, hi)-lo)
		if err := b.file[0].ReadAt(b.pages(part, part.Len()), b.offset(at-b.first)); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// stream sends all windows, some times over, until ctx ends or one fails.
func (b *Block) stream(ctx context.Context, times int, to chan<- window) {
	defer close(to)
	for range times {
		for lo, hi := range b.cuts() {
			w := window{lo: lo, hi: hi}
			if w.own = b.layout.Place == Resident && lo == b.first; w.own {
				w.rows = b.cur
			} else {
				select {
				case w.rows = <-b.windows:
				case <-ctx.Done():
					return
				}
				buf := w.rows
				if w.rows, w.err = b.readWindow(ctx, lo, hi, buf); w.err != nil {
					b.windows <- buf
				}
			}
			select {
			case to <- w:
			case <-ctx.Done():
				b.release(w)
				return
			}
			if w.err != nil {
				return
			}
		}
	}
}

// release gives the buffer of a window back.
func (b *Block) release(w window) {
	if w.own || w.err != nil {
		return
	}
	size := b.layout.Window * int64(b.layout.Columns)
	if w.rows.H != nil {
		w.rows.H = w.rows.H[:size]
	} else {
		w.rows.S = w.rows.S[:size]
	}
	b.windows <- w.rows
}

// group is how many strips are accumulated at a time.
func (b *Block) group() int {
	if b.layout.grouped() {
		return min(b.layout.Accumulators, b.strips())
	}
	return b.strips()
}

// accumulator is where strip s, the i-th of its group, is summed: in the next hop
// itself, or beside it.
func (b *Block) accumulator(s, i int) []float32 {
	lo, hi := b.bounds(s)
	columns := b.layout.Columns
	if b.layout.grouped() {
		return b.accs[i*packed.StripRows*columns:][:int(hi-lo)*columns]
	}
	return b.next.Slice(lo, hi).S
}

// shared computes the strips in groups, each from the rows of the hop in ascending
// order, of which others have most: while one window is added the next is on its
// way.
func (h *step) shared() error {
	b := h.b
	size := b.group()
	b.peers.Offer(b.layout.Columns, b.layout.Precision, b.readRows)
	ctx, cancel := context.WithCancel(context.Background())
	windows := make(chan window)
	var wg sync.WaitGroup
	wg.Go(func() { b.stream(ctx, (b.strips()+size-1)/size, windows) })
	defer wg.Wait()
	defer cancel()
	for first := 0; first < b.strips(); first += size {
		if err := h.addGroup(first, min(size, b.strips()-first), windows); err != nil {
			return err
		}
	}
	want := int64(0)
	for s := range b.strips() {
		want += h.Source.Edges(s)
	}
	if got := h.edges.Load(); got != want {
		return fmt.Errorf("spmv: %d edges of %d: %w", got, want, packed.ErrFrame)
	}
	return nil
}

// addGroup computes count strips.
func (h *step) addGroup(first, count int, windows <-chan window) error {
	b := h.b
	if err := b.parallel(count, func(t *thread, i int) error {
		self, err := b.read(t, first+i)
		if err == nil {
			h.Kernel.load(b.accumulator(first+i, i), self)
		}
		return err
	}); err != nil {
		return err
	}
	for range b.cuts() {
		w := <-windows
		err := w.err
		if err == nil {
			err = h.stream(first, count, w.lo, w.hi, func(t *thread, s int, frames packed.Frames) error {
				return h.accumulate(t, b.accumulator(s, s-first), s, frames, w.rows, w.lo, w.hi)
			})
		}
		b.release(w)
		if err != nil {
			return err
		}
	}
	return b.parallel(count, func(t *thread, i int) error { return h.finish(t, first+i, b.accumulator(first+i, i)) })
}

// together adds up what all workers found, in their order. No worker reads rows of
// the hop any more when it returns.
func (s *balance) together(p Peers) error {
	own := append(append(s.before[:], s.after[:]...), s.volume, s.squares)
	all, err := p.Gather(own)
	if err != nil {
		return err
	}
	*s = balance{}
	for _, values := range all {
		for c := range s.before {
			s.before[c] += values[c]
			s.after[c] += values[len(s.before)+c]
		}
		s.volume += values[len(values)-2]
		s.squares += values[len(values)-1]
	}
	return nil
}
