package stage

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/shards"
	"ndls/tiles"
)

// assembly says how tiles become Arrow row files, one for each interval.
type assembly struct {
	tiles  *tiles.Matrix
	first  int // panel
	kind   string
	folder string
	ids    []uint32 // input id of each stored row
	schema shards.RowSchema
	// after, unless nil, is called for each interval whose rows are committed.
	after func(interval int) error
}

// commit commits the rows of intervals [first, last), those that are not yet.
func (a assembly) commit(ctx context.Context, env *Env, first, last int) error {
	done := intervalsOf(env.Catalog, a.kind)
	for i := first; i < last; i++ {
		lo, hi := a.tiles.Bounds(i)
		env.Report.Rows += hi - lo
		if !done[i] {
			if err := a.interval(ctx, env, i); err != nil {
				return err
			}
		}
		if a.after == nil {
			continue
		}
		if err := a.after(i); err != nil {
			return err
		}
	}
	return nil
}

func (a assembly) interval(ctx context.Context, env *Env, i int) error {
	f, err := env.Catalog.Create(ctx, catalog.Describe(a.kind, fmt.Sprintf("%s/part-%05d.arrow", a.folder, i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	names, closeNames, err := env.names(ctx, int64(i)*env.Summary.IntervalRows)
	if err != nil {
		return err
	}
	defer closeNames()
	w, err := shards.NewRowWriter(f, a.schema, names)
	if err != nil {
		return err
	}
	ids := make([]int64, shards.BatchRows(a.schema.Width))
	err = a.tiles.Read(ctx, i, a.first, a.schema.Width, len(ids), func(row int64, values []float32) error {
		n := len(values) / a.schema.Width
		for r := range n {
			ids[r] = int64(a.ids[row+int64(r)])
		}
		return w.Write(ids[:n], nil, values)
	})
	if err != nil {
		return err
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	return env.Catalog.Commit(ctx, f)
}

// intervalsOf are the intervals that have a file of a kind.
func intervalsOf(cat *catalog.Catalog, kind string) map[int]bool {
	have := map[int]bool{}
	for _, e := range cat.Entries(kind) {
		have[int(e.Interval)] = true
	}
	return have
}

// intervals is the number of intervals of a graph.
func intervals(s shards.Summary) int {
	return int((s.Nodes + s.IntervalRows - 1) / max(s.IntervalRows, 1))
}
