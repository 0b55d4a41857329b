package graph

import (
	"context"
	"errors"
	"iter"

	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/smooth"
)

// Columns reads columns [first, first+columns) of a matrix and puts their rows, in ascending order and some at a time. The values are
// valid, and put may change them, until put returns. An error of put ends it.
type Columns func(ctx context.Context, first, columns int, put func(rows []float32) error) error

// Each calls visit with the columns of each row, which begin at first, before put gets them. visit may change them. target is the row's
// number among some rows, -1 for others; targets may be nil.
func (c Columns) Each(targets *smooth.Targets, visit func(first int, target int64, row []float32)) Columns {
	return func(ctx context.Context, first, columns int, put func(rows []float32) error) error {
		number, next := int64(0), int64(0)
		return c(ctx, first, columns, func(rows []float32) error {
			for at := 0; at < len(rows); at += columns {
				target := int64(-1)
				if targets != nil && targets.Has(number) {
					target, next = next, next+1
				}
				visit(first, target, rows[at:at+columns])
				number++
			}
			return put(rows)
		})
	}
}

// Wide returns the columns as package lsi takes them, of this number.
func (c Columns) Wide(width int) lsi.Columns { return wide{c, width} }

type wide struct {
	columns Columns
	width   int
}

// Width implements [lsi.Columns].
func (w wide) Width() int { return w.width }

// Rows implements [lsi.Columns].
func (w wide) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	return w.columns(ctx, first, columns, put)
}

// Block returns a function that reads columns [first, first+columns).
func (c Columns) Block(ctx context.Context, first, columns int) func(put func(rows []float32) error) error {
	return func(put func(rows []float32) error) error { return c(ctx, first, columns, put) }
}

// Shifted returns the columns with numbers that begin after some panels.
func (c Columns) Shifted(panels int) Columns {
	return func(ctx context.Context, first, columns int, put func(rows []float32) error) error {
		return c(ctx, first-panels*packed.PanelColumns, columns, put)
	}
}

var errStopped = errors.New("the rows are not wanted any more")

// Batches returns an iterator over the rows that read puts, as it puts them. An error is its last element.
func Batches(read func(put func(rows []float32) error) error) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		err := read(func(rows []float32) error {
			if !yield(rows, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// Rows returns an iterator over the rows of columns [first, first+columns). An error is its last element.
func (c Columns) Rows(ctx context.Context, first, columns int) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		for rows, err := range Batches(c.Block(ctx, first, columns)) {
			if err != nil {
				yield(nil, err)
				return
			}
			for ; len(rows) > 0; rows = rows[columns:] {
				if !yield(rows[:columns], nil) {
					return
				}
			}
		}
	}
}
