package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/train/dense"
)

// predictRows is the number of rows that Predict hands out at a time.
const predictRows = 4096

// Predict passes every row of src through every model, in stored order, and
// calls emit with up to 4096 rows at a time, once for each model: the stored
// position of the first row, the input ids, the model's index in models, and
// rows × classes probabilities that sum to 1. emit may not keep the slices; its
// error ends the call.
func Predict(ctx context.Context, src Source, models []*Model, res Resources,
	emit func(first int64, ids []int64, run int, probability []float32) error,
) (err error) {
	p, err := newPredictor(src, models, res)
	if err != nil {
		return err
	}
	defer p.free()
	meter := progress.Start(ctx, "predict", src.NumRows(), "rows")
	defer meter.Done()
	chunks := make([]int, src.NumChunks())
	for i := range chunks {
		chunks[i] = i
	}
	return scan(ctx, res.Budget, src, chunks, func(c *chunkBuffer) error {
		ids, width, classes := c.batch.ID, src.Width(), models[0].Classes()
		pieces := (len(ids) + predictRows - 1) / predictRows
		bounds := func(k int) (run, lo, hi int) {
			lo = k / len(models) * predictRows
			return k % len(models), lo, min(lo+predictRows, len(ids))
		}
		return ahead(ctx, p.out, pieces*len(models),
			func(k int, out *mem.Array[float32]) error {
				run, lo, hi := bounds(k)
				return p.rows(ctx, models[run], c.batch.Values[lo*width:hi*width], c.batch.First+int64(lo), out.S[:(hi-lo)*classes])
			},
			func(k int, out *mem.Array[float32]) error {
				run, lo, hi := bounds(k)
				if run == len(models)-1 {
					meter.Add(int64(hi - lo))
				}
				return emit(c.batch.First+int64(lo), ids[lo:hi], run, out.S[:(hi-lo)*classes])
			})
	})
}

// predictor holds the memory of a prediction.
type predictor struct {
	out []*mem.Array[float32] // one is computed while the other is emitted
	net *network
}

func newPredictor(src Source, models []*Model, res Resources) (_ *predictor, err error) {
	if len(models) == 0 {
		return nil, fmt.Errorf("train: no model to predict with: run ndls train first")
	}
	dims := models[0].dims
	for i, m := range models {
		if m.Width() != src.Width() || !slices.Equal(m.dims, dims) {
			return nil, fmt.Errorf("train: model %d has layers %v, the first has %v and the smoothed rows have %d values: run ndls train again: %w",
				i, m.dims, dims, src.Width(), seal.ErrCorrupt)
		}
	}
	p := &predictor{}
	defer func() {
		if err != nil {
			p.free()
		}
	}()
	for range 2 {
		out, err := mem.Alloc[float32](res.Budget, predictRows*int64(models[0].Classes()), "predictions")
		if err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		p.out = append(p.out, out)
	}
	kernel, err := dense.Select(res.Kernel)
	if err != nil {
		return nil, err
	}
	if p.net, err = newNetwork(res.Budget, models[0], pool(max(res.Threads, 1)), kernel, false); err != nil {
		return nil, err
	}
	p.net.pack()
	return p, nil
}

func (p *predictor) free() {
	for _, out := range p.out {
		out.Free()
	}
	p.net.free()
}

// rows writes the probabilities of the rows x to out. The first row is row first of the
// source.
func (p *predictor) rows(ctx context.Context, m *Model, x []float32, first int64, out []float32) error {
	net, width, classes := p.net, m.Width(), m.Classes()
	if net.Model != m {
		net.Model = m
		net.pack()
	}
	failed := make([]error, net.threads)
	for n := len(out) / classes; n > 0; n = len(out) / classes {
		if err := ctx.Err(); err != nil {
			return err
		}
		n = min(n, net.rows)
		net.threads.each(func(thread int) {
			lo, hi := net.threads.split(n, net.kernel.Rows(), thread)
			net.forward(thread, x, lo, hi, nil)
			for i := lo; i < hi && failed[thread] == nil; i++ {
				failed[thread] = probabilities(net.kernel, net.logits(i), net.p[thread], out[i*classes:(i+1)*classes], first+int64(i))
			}
		})
		if err := cmp.Or(failed...); err != nil {
			return err
		}
		x, out, first = x[n*width:], out[n*classes:], first+int64(n)
	}
	return nil
}

// probabilities writes those of the logits of a row of the source to out.
func probabilities(k *dense.Kernel, logits []float32, p []float64, out []float32, row int64) error {
	norm, logNorm := softmax(k, logits, p)
	if math.IsNaN(logNorm) {
		return fmt.Errorf("train: row %d has a value that is not finite or too large: run ndls smooth again", row)
	}
	k.Scale(out, p, 1/norm)
	return nil
}
