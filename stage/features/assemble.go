package features

import (
	"context"
	"fmt"
	"sync"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/stage"
	"ndls/tiles"
)

// assembly describes how tiles become Arrow row files, one per interval.
type assembly struct {
	tiles  *tiles.Matrix
	first  int // panel
	kind   string
	folder string
	ids    []uint32 // input id of each stored row
	schema shards.RowSchema
	// joined, if not 0, is the number of columns from which a row is made. Record batches are as small as if rows had that many values.
	joined int
	// panels is the number of panels that make each list of a row; lists follow each other. picker returns, for one thread, the function
	// that makes the values of a list from its columns. If rows have one list and picker is nil, the columns are the values.
	panels int
	picker func() pick
}

// pick makes the values of a list of a stored row from its columns.
type pick func(values []float32, row int64, columns []float32)

// pickColumns copies the first columns unchanged.
func pickColumns() pick {
	return func(values []float32, _ int64, columns []float32) { copy(values, columns) }
}

// sideBySide returns the assembly of rows of several parts of width values each, which follow each other in the tiles.
func (a assembly) sideBySide(parts, width int) assembly {
	if parts == 1 {
		return a
	}
	columns, picker := a.panels*packed.PanelColumns, a.picker
	if picker == nil {
		picker = pickColumns
	}
	a.panels *= parts
	a.picker = func() pick {
		one := picker()
		return func(values []float32, row int64, all []float32) {
			for i := range parts {
				one(values[i*width:(i+1)*width], row, all[i*columns:(i+1)*columns])
			}
		}
	}
	return a
}

// commit commits the rows of an interval, unless they are committed already.
func (a assembly) commit(ctx context.Context, env *stage.Env, interval int) error {
	if stage.Committed(env.Catalog, a.kind)[interval] {
		return nil
	}
	e := catalog.Describe(a.kind, fmt.Sprintf("%s/part-%05d.arrow", a.folder, interval)).In(interval)
	return env.Nodes().WriteRows(ctx, env.Catalog.Write, e, a.schema, func(put stage.PutRows) error {
		return a.rows(ctx, env, interval, put)
	})
}

// rows reads the rows of an interval, one record batch at a time.
func (a assembly) rows(ctx context.Context, env *stage.Env, interval int, put func(ids []int64, _ []int32, values []float32) error) error {
	ids := make([]int64, shards.BatchRows(max(a.schema.Values(), a.joined)))
	width, lists := a.schema.Width, len(a.schema.Lists())
	idsOf := func(row int64, n int) []int64 {
		for r := range n {
			ids[r] = int64(a.ids[row+int64(r)])
		}
		return ids[:n]
	}
	if lists == 1 && a.picker == nil {
		return a.tiles.Read(ctx, interval, a.first, width, len(ids), func(row int64, values []float32) error {
			return put(idsOf(row, len(values)/width), nil, values)
		})
	}
	lo, hi := a.tiles.Bounds(interval)
	batch := int(min(int64(len(ids)), hi-lo))
	lines, err := mem.Alloc[float32](env.Budget, int64(batch)*int64(a.schema.Values()), "lists of a record batch")
	if err != nil {
		return err
	}
	defer lines.Free()
	picker := a.picker
	if picker == nil {
		picker = pickColumns
	}
	picks := sync.Pool{New: func() any { return picker() }}
	list := a.panels * packed.PanelColumns // columns
	return a.tiles.Read(ctx, interval, a.first, lists*list, batch, func(row int64, columns []float32) error {
		n := len(columns) / (lists * list)
		_ = share.Ranges(env.Resources.Threads, n, pickedRows, func(lo, hi int) error {
			one := picks.Get().(pick)
			defer picks.Put(one)
			for r := lo; r < hi; r++ {
				for k := range lists {
					one(lines.S[(k*n+r)*width:][:width], row+int64(r), columns[(r*lists+k)*list:][:list])
				}
			}
			return nil
		})
		return put(idsOf(row, n), nil, lines.S[:n*lists*width])
	})
}

// pickedRows is the number of rows that a thread makes at a time.
const pickedRows = 1 << 6
