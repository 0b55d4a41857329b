package features

import (
	"context"

	"ndls/estimate"
	"ndls/fastrp"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/stage/graph"
)

// random yields the random columns from which features are made if the graph has none.
type random struct {
	graph.Engine
	fastrp.Projection
	rows fastrp.Random
	id   *mem.Array[uint32]
}

func newRandom(ctx context.Context, g graph.Engine) (*random, error) {
	ids, err := g.Nodes().IDs(ctx)
	if err != nil {
		return nil, err
	}
	p := estimate.Projection(g.Plan)
	return &random{g, p, p.Random(), ids}, nil
}

func (r *random) free() { r.id.Free() }

// columns reads columns of the random rows.
func (r *random) columns(ctx context.Context, first, columns int, put func([]float32) error) error {
	n := len(r.id.S)
	batch := min(max(hops.BatchValues/columns, 1), n)
	values, err := mem.Alloc[float32](r.Budget, int64(batch*columns), "random rows")
	if err != nil {
		return err
	}
	defer values.Free()
	for lo := 0; lo < n; lo += batch {
		rows := min(batch, n-lo)
		_ = share.Ranges(r.Resources.Threads, rows, randomRows, func(from, to int) error {
			for i := from; i < to; i++ {
				r.rows.Row(values.S[i*columns:(i+1)*columns], r.id.S[lo+i], r.Degree.S[lo+i], first)
			}
			return nil
		})
		if err := put(values.S[:rows*columns]); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// randomRows is the number of random rows that a thread makes at a time.
const randomRows = 256

// embedding returns how hops become rows of features under the rule fastrp.
func (env smoothRun) embedding(m *smoothedTiles, a assembly, half bool) assembly {
	a = a.joining(m, half)
	a.picker = func() pick {
		e := estimate.Projection(env.Plan).Embedder()
		return func(values []float32, _ int64, columns []float32) { e.Embed(values, columns) }
	}
	return a
}
