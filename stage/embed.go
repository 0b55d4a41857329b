package stage

import (
	"cmp"
	"context"

	"ndls/estimate"
	"ndls/fastrp"
	"ndls/hops"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/plan"
)

// validateEmbedding checks the options of fastrp, which no other rule has.
func validateEmbedding(p plan.Options) error {
	if !p.Embeds() {
		return nil
	}
	o := p.Smooth
	if o.KeepHops != "" || o.LabelColumns != 0 {
		return failure.Of(failure.ErrOption, "--rule %s makes rows of the edges alone: leave --keep-hops and --label-columns out", plan.FastRP)
	}
	if o.Sparsity != 0 && o.Sparsity < 1 {
		return failure.Of(failure.ErrOption, "--sparsity %g is below 1, with which no entry of a random row is zero", o.Sparsity)
	}
	if _, err := fastrp.ParseWeights(cmp.Or(o.HopWeights, plan.DefaultHopWeights)); err != nil {
		return failure.Of(failure.ErrOption, "--hop-weights %s: %w", o.HopWeights, err)
	}
	return nil
}

// random yields the random columns from which features are made if the graph has none.
type random struct {
	engine
	fastrp.Projection
	rows fastrp.Random
	id   *mem.Array[uint32]
}

func (g engine) random(ctx context.Context) (*random, error) {
	ids, err := g.nodeTable().ids(ctx, g.summary.Nodes)
	if err != nil {
		return nil, err
	}
	p := estimate.Projection(g.Plan)
	return &random{g, p, p.Random(), ids}, nil
}

func (r *random) free() { r.id.Free() }

// Width implements lsi.Columns.
func (r *random) Width() int { return r.Dimensions }

// Rows implements lsi.Columns.
func (r *random) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
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
				r.rows.Row(values.S[i*columns:(i+1)*columns], r.id.S[lo+i], r.degree.S[lo+i], first)
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
