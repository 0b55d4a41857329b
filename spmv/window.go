package spmv

import (
	"context"

	"golang.org/x/sync/errgroup"

	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/packed"
)

// span is rows [lo, hi) of a graph.
type span struct{ lo, hi int64 }

// windows are the source rows of a graph in ascending order, cut into windows of which
// each lies in the block's rows [first, last), or outside of them. Rows of the block
// that are in memory are one window.
func (l Layout) windows(first, last, nodes int64) (all []span) {
	for lo := int64(0); lo < nodes; {
		end, size := nodes, l.Window
		if lo < first {
			end = first
		} else if lo < last {
			if end = last; l.Residency != External {
				size = last - first
			}
		}
		hi := min(lo+size, end)
		all = append(all, span{lo, hi})
		lo = hi
	}
	return all
}

// window is source rows in memory.
type window struct {
	span
	rows Rows
	buf  Rows // of the block's buffers; its zero value if the block's own rows are meant
	err  error
}

// exchange brings the rows of other workers and of the file into memory, one window after the other.
type exchange struct{ *Block }

func (b *Block) exchange() exchange { return exchange{b} }

// agree finds, before the first hop of the block, which way rows take. All workers of the group do so together. Where they send
// each other the rows alone that are read, and all have memory for the rows of the others, each fetches from the worker after
// it first, so that no two ask the same one at the same time. Otherwise they pass all rows on, if all can.
func (b exchange) agree(ctx context.Context) error {
	if b.agreed || !b.layout.Shared {
		return nil
	}
	can := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	relays, err := group.Min(ctx, b.group, can(b.layout.Relays(b.n)))
	if err != nil {
		return err
	}
	holds := 0
	if b.group.Listed() {
		if holds, err = group.Min(ctx, b.group, can(b.layout.Windows >= len(b.sources)-1)); err != nil {
			return err
		}
	}
	b.agreed, b.rotates, b.relays = true, holds == 1, relays == 1 && holds == 0
	return nil
}

// early are the windows that are fetched before all others, and held until it is their turn.
func (b exchange) early() (all []span) {
	for _, s := range b.sources {
		if b.rotates && s.lo > b.first {
			all = append(all, s)
		}
	}
	return all
}

// send sends all windows, some times over, until ctx ends or one cannot be read. It
// reads on while the receiver works, as far as there are buffers, and then closes the channel.
func (b exchange) send(ctx context.Context, times int, to chan<- window) {
	defer close(to)
	for range times {
		var held []window
		fetch := func(s span) (w window, ok bool) {
			if len(held) > 0 && held[0].span == s {
				w, held = held[0], held[1:]
				return w, true
			}
			return b.window(ctx, s)
		}
		pass := func(w window) bool {
			select {
			case to <- w:
				return w.err == nil
			case <-ctx.Done():
				b.release(w)
				return false
			}
		}
		goOn := true
		for _, s := range b.early() {
			w, ok := b.window(ctx, s)
			if ok && w.err == nil {
				held = append(held, w)
			} else if goOn = false; ok {
				pass(w)
			}
			if !goOn {
				break
			}
		}
		for i := 0; goOn && i < len(b.sources); i++ {
			var w window
			w, goOn = fetch(b.sources[i])
			goOn = goOn && pass(w)
		}
		if !goOn {
			for _, w := range held {
				b.release(w)
			}
			return
		}
	}
}

// window makes the rows of a window; it is not ok if ctx ended first.
func (b exchange) window(ctx context.Context, s span) (w window, ok bool) {
	w.span = s
	if b.layout.Residency != External && s.lo == b.first {
		w.rows = b.cur
		return w, true
	}
	select {
	case w.buf = <-b.buffers:
	case <-ctx.Done():
		return w, false
	}
	w.rows = w.buf.Slice(0, s.hi-s.lo)
	if s.lo < b.first || s.lo >= b.first+b.n {
		raw, _, _ := w.rows.Bytes()
		w.err = b.group.Fetch(ctx, b.format(), s.lo, s.hi, raw)
	} else {
		w.err = b.readWindow(w)
	}
	return w, true
}

// release gives the buffer of a window back.
func (b exchange) release(w window) {
	if w.buf.Stride > 0 {
		b.buffers <- w.buf
	}
}

// readWindow reads rows of the block from disk, some strips at a time.
func (b exchange) readWindow(w window) error {
	var g errgroup.Group
	g.SetLimit(len(b.threads))
	for at := w.lo; at < w.hi; at += packed.StripRows {
		g.Go(func() error {
			strip := w.rows.Slice(at-w.lo, min(at+packed.StripRows, w.hi)-w.lo)
			return b.file[0].ReadAt(b.pages(strip, strip.Len()), b.offset(at-b.first))
		})
	}
	return g.Wait()
}

// format is how rows are stored.
func (b exchange) format() group.Format {
	return group.Format{Columns: b.layout.Columns, Precision: b.layout.Precision.String()}
}

// readRows is the [group.ReadRows] of the block's rows, numbered as in the graph.
func (b exchange) readRows(page []byte, row, n int64) error {
	row -= b.first
	if b.layout.Residency == External {
		return b.file[0].ReadAt(page[:direct.RoundUp(n*b.layout.rowBytes())], b.offset(row))
	}
	raw, _, _ := b.cur.Slice(row, row+n).Bytes()
	copy(page, raw)
	return nil
}
