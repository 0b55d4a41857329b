package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/internal/seal"

	"golang.org/x/sync/errgroup"

	"ndls/internal/mem"
	"ndls/internal/progress"
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
	out  []*mem.Array[float32] // one is computed while the other is emitted
	work []*workspace          // of each thread
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
	for range max(res.Threads, 1) {
		w, err := newWorkspace(res.Budget, dims, false)
		if err != nil {
			return nil, err
		}
		p.work = append(p.work, w)
	}
	return p, nil
}

func (p *predictor) free() {
	for _, out := range p.out {
		out.Free()
	}
	for _, w := range p.work {
		w.free()
	}
}

// rows writes the probabilities of the rows x to out, each thread a share of
// them. The first row is row first of the source.
func (p *predictor) rows(ctx context.Context, m *Model, x []float32, first int64, out []float32) error {
	width, classes := m.Width(), m.Classes()
	n := len(out) / classes
	step := microRows(width)
	share := (n + len(p.work) - 1) / len(p.work)
	group, ctx := errgroup.WithContext(ctx)
	for k, w := range p.work {
		lo, hi := min(k*share, n), min((k+1)*share, n)
		group.Go(func() error {
			for ; lo < hi; lo += step {
				if err := ctx.Err(); err != nil {
					return err
				}
				end := min(lo+step, hi)
				if err := m.probabilities(x[lo*width:end*width], w, first+int64(lo), out[lo*classes:end*classes]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// probabilities writes those of up to microRows rows to out.
func (m *Model) probabilities(x []float32, w *workspace, first int64, out []float32) error {
	p := make([]float64, m.Classes())
	logits := m.forward(x, len(out)/len(p), w, nil)
	for lo := 0; lo < len(out); lo += len(p) {
		if math.IsNaN(softmax(logits[lo:lo+len(p)], p)) {
			return fmt.Errorf("train: row %d has a value that is not finite or too large: run ndls smooth again", first+int64(lo/len(p)))
		}
		for j, v := range p {
			out[lo+j] = float32(v)
		}
	}
	return nil
}
