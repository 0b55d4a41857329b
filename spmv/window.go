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
	buf  Rows // of the block's buffers; its zero value if rows are those of the block
	err  error
}

// send sends all windows, some times over, until ctx ends or one cannot be read. It
// reads one while the receiver works on the one before, if there are buffers for both.
func (b *Block) send(ctx context.Context, times int, to chan<- window) {
	defer close(to)
	for range times {
		for _, s := range b.sources {
			w, ok := b.window(ctx, s)
			if !ok {
				return
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

// window makes the rows of a window; it is not ok if ctx ended first.
func (b *Block) window(ctx context.Context, s span) (w window, ok bool) {
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
func (b *Block) release(w window) {
	if w.buf.Stride > 0 {
		b.buffers <- w.buf
	}
}

// readWindow reads rows of the block from disk, some strips at a time.
func (b *Block) readWindow(w window) error {
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
func (b *Block) format() group.Format {
	return group.Format{Columns: b.layout.Columns, Precision: b.layout.Precision.String()}
}

// readRows is the [group.ReadRows] of the block's rows, numbered as in the graph.
func (b *Block) readRows(page []byte, row, n int64) error {
	row -= b.first
	if b.layout.Residency == External {
		return b.file[0].ReadAt(page[:direct.RoundUp(n*b.layout.rowBytes())], b.offset(row))
	}
	raw, _, _ := b.cur.Slice(row, row+n).Bytes()
	copy(page, raw)
	return nil
}
