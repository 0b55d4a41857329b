package graph

import (
	"context"
	"fmt"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// aheadColumns reads the columns of the next block into memory, at 4 bytes a value, while the caller computes hops of the present block.
// The caller asks for each block once, in ascending order at a constant distance.
type aheadColumns struct {
	columns Columns
	budget  *mem.Budget
	rows    int64
	step    int  // columns from one block to the next
	end     int  // first column that is not the task's
	on      bool // there is memory for the next block

	memory *mem.Array[float32]
	first  int // first column of the block that is read ahead
	stop   context.CancelFunc
	done   chan struct{} // nil if no block is read ahead
	err    error         // result of reading ahead
}

// ahead returns in with columns that may be read ahead, up to panel last; each block begins step panels after the one before.
func (g Engine) ahead(in Input, step, last int) Input {
	in.ahead = &aheadColumns{
		columns: in.Columns, budget: g.Budget, rows: g.Hi - g.Lo,
		step: step * packed.PanelColumns, end: last * packed.PanelColumns,
	}
	in.Columns = in.ahead.read
	return in
}

// read is the columns, with those of the next block read ahead.
func (a *aheadColumns) read(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	a.wait()
	if a.done != nil && a.first == first {
		if a.err != nil {
			return a.err
		}
		batch := max(hops.BatchValues/2/columns, 1) * columns
		for rows := a.memory.S[:a.rows*int64(columns)]; len(rows) > 0; {
			part := rows[:min(batch, len(rows))]
			if err := put(part); err != nil {
				return err
			}
			rows = rows[len(part):]
		}
	} else if err := a.columns(ctx, first, columns, put); err != nil {
		return err
	}
	a.done = nil
	if !a.on || first+a.step >= a.end {
		return nil
	}
	return a.begin(ctx, first+a.step, columns)
}

// begin starts to read a block in the background.
func (a *aheadColumns) begin(ctx context.Context, first, columns int) (err error) {
	if a.memory == nil {
		if a.memory, err = mem.Alloc[float32](a.budget, a.rows*int64(columns), "the next columns"); err != nil {
			return err
		}
	}
	ctx, a.stop = context.WithCancel(ctx)
	done := make(chan struct{})
	a.first, a.done = first, done
	go func() {
		defer close(done)
		at := 0
		a.err = a.columns(ctx, first, columns, func(rows []float32) error {
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

// wait waits until reading ahead has ended. read returns its error later.
func (a *aheadColumns) wait() {
	if a.done != nil {
		<-a.done
		a.stop()
	}
}

// free stops reading ahead and frees the memory.
func (a *aheadColumns) free() {
	if a.done != nil {
		a.stop()
		a.wait()
	}
	a.memory.Free()
}

// Input yields the columns to smooth.
type Input struct {
	Columns
	// Kinds names the kinds of files that decide what the columns hold.
	Kinds []string
	// Drops says that the tiles of a block are removed once it is smoothed.
	Drops bool
	ahead *aheadColumns // nil unless the columns are read ahead
}

// Ahead sets whether the next block may be read ahead, if these columns can be; [smooth.Smoother.Ahead] reports whether there is memory.
func (in Input) Ahead(on bool) {
	if in.ahead != nil {
		in.ahead.on = on
	}
}

// Wait waits until reading ahead has ended, so that the memory it uses beside the columns is free.
func (in Input) Wait() {
	if in.ahead != nil {
		in.ahead.wait()
	}
}
