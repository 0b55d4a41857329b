package stage

import (
	"context"
	"fmt"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
)

// aheadColumns read the columns of the next block into memory, 4 bytes a value, while the caller
// makes hops of the block that it has. The caller asks for blocks in ascending order, each as many columns after the one
// before, and for each once.
type aheadColumns struct {
	lsi.Columns
	rows int64
	step int // columns from one block to the next
	end  int // the columns from here on are not the task's

	memory *mem.Array[float32]
	first  int // of the columns that are read ahead
	stop   context.CancelFunc
	done   chan struct{} // nil where nothing is read ahead
	err    error         // what reading ahead ended with
}

// ahead is in with columns that are read ahead, up to panel last, in blocks of so many panels, of which every
// step-th is the caller's.
func (g engine) ahead(in input, panels, step, last int) (_ input, err error) {
	columns := panels * packed.PanelColumns
	in.ahead, err = readAhead(in.Columns, g.Budget, g.hi-g.lo, columns, step*columns, last*packed.PanelColumns)
	in.Columns = in.ahead
	return in, err
}

// readAhead has blocks of columns of so many rows read ahead, of which each begins step columns after the one before,
// and none at column end or behind it.
func readAhead(c lsi.Columns, b *mem.Budget, rows int64, columns, step, end int) (a *aheadColumns, err error) {
	a = &aheadColumns{Columns: c, rows: rows, step: step, end: end}
	a.memory, err = mem.Alloc[float32](b, rows*int64(columns), "the next columns")
	return a, err
}

// Rows implements lsi.Columns.
func (a *aheadColumns) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	a.wait()
	if a.done != nil && a.first == first {
		if a.err != nil {
			return a.err
		}
		batch := max(batchValues/columns, 1) * columns
		for rows := a.memory.S[:a.rows*int64(columns)]; len(rows) > 0; {
			part := rows[:min(batch, len(rows))]
			if err := put(part); err != nil {
				return err
			}
			rows = rows[len(part):]
		}
	} else if err := a.Columns.Rows(ctx, first, columns, put); err != nil {
		return err
	}
	a.done = nil
	if first+a.step >= a.end {
		return nil
	}
	return a.read(ctx, first+a.step, columns)
}

// read begins to read a block.
func (a *aheadColumns) read(ctx context.Context, first, columns int) (err error) {
	ctx, a.stop = context.WithCancel(ctx)
	done := make(chan struct{})
	a.first, a.done = first, done
	go func() {
		defer close(done)
		at := 0
		a.err = a.Columns.Rows(ctx, first, columns, func(rows []float32) error {
			if at+len(rows) > len(a.memory.S) {
				return fmt.Errorf("there are more than %d rows of columns", a.rows)
			}
			at += copy(a.memory.S[at:], rows)
			return nil
		})
		if a.err == nil && int64(at) != a.rows*int64(columns) {
			a.err = fmt.Errorf("%d values of %d rows of %d columns", at, a.rows, columns)
		}
	}()
	return nil
}

// wait waits until nothing is read: what reading takes beside the next columns is free then. An
// error is that of who takes these.
func (a *aheadColumns) wait() {
	if a != nil && a.done != nil {
		<-a.done
		a.stop()
	}
}

// free ends reading, and gives the memory back.
func (a *aheadColumns) free() {
	if a.done != nil {
		a.stop()
		a.wait()
	}
	a.memory.Free()
}
