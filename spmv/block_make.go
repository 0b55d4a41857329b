package spmv

import (
	"fmt"
)

// Make replaces the rows by those that a function of the row gives: fill is given rows
// first, first+1, …, all zero, and sets them. Calls at the same time are for different rows.
func (b *Block) Make(fill func(first int64, rows []float32)) error {
	b.changed()
	return b.parallel(b.strips(), func(t *thread, s int) error {
		lo, hi := b.bounds(s)
		to := t.stage
		if b.layout.Residency != External {
			to = b.cur.Slice(lo, hi)
		}
		buf := make([]float32, min(visitRows, hi-lo)*int64(b.layout.Columns))
		for at := int64(0); at < hi-lo; at += visitRows {
			part := to.Slice(at, min(at+visitRows, hi-lo))
			rows := buf[:part.Len()*int64(part.Stride)]
			clear(rows)
			fill(lo+at, rows)
			b.kernel.store(part, rows)
		}
		if b.layout.Residency != External {
			return nil
		}
		if err := b.file[0].WriteAt(b.pages(to.Slice(0, hi-lo), hi-lo), b.offset(lo)); err != nil {
			return fmt.Errorf("rows of hop 0: %w", err)
		}
		return nil
	})
}
