package train

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"ndls/internal/ahead"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/shards"
	"ndls/train/dense"
)

const (
	// PredictRows is the largest number of rows that Predict passes on at a time: whole multiples
	// of threadRows for most widths.
	PredictRows = 16 * 252
	// predictAhead is the largest number of results that wait while emit uses the one before them:
	// as many rows as a caller may write at once. predictAheadBytes bounds their size, but there
	// are always at least two.
	predictAhead      = 8
	predictAheadBytes = 32 << 20
)

// Predict passes every row of src through every model, in stored order. It calls emit with up to
// 4032 rows at a time, once for each model: with the stored position of the first row, the input
// ids, the model's index in models, and rows × classes values: probabilities that sum to 1, of labels, or
// numbers, as the [Task] of the models says. emit must not
// keep the slices; its error ends the call. While emit uses rows, all threads compute those after
// them, and the next record batch is read.
func Predict(ctx context.Context, src Source, models []*Model, res Resources,
	emit func(first int64, ids []int64, run int, probability []float32) error,
) (err error) {
	p, err := newPredictor(src, models, res)
	if err != nil {
		return err
	}
	defer p.free()
	meter := progress.StartPart(ctx, "predict", src.NumRows(), "rows")
	defer meter.Done()
	chunk := 0
	in := ahead.New(len(p.chunks), p.chunks, func(c **chunkBuffer) error {
		if chunk == src.NumChunks() {
			return io.EOF
		}
		chunk++
		return (*c).read(src, chunk-1)
	})
	defer in.Close()
	var rows shards.RowBatch // rows of the present chunk without a prediction
	width, items := src.Width(), 0
	for i := range src.NumChunks() {
		_, n := src.Chunk(i)
		items += units(int(n), PredictRows) * len(models)
	}
	return ahead.Run(ctx, p.out, items,
		func(k int, r *predicted) error {
			r.run = k % len(models)
			for len(rows.ID) == 0 {
				c, err := in.Next()
				if err != nil {
					return err
				}
				rows = (*c).batch
			}
			n := min(len(rows.ID), PredictRows)
			r.first, r.ids = rows.First, append(r.ids[:0], rows.ID[:n]...)
			if err := p.rows(ctx, models[r.run], rows.Values[:n*width], r); err != nil {
				return err
			}
			if r.run == len(models)-1 {
				rows.First, rows.ID, rows.Values = rows.First+int64(n), rows.ID[n:], rows.Values[n*width:]
			}
			return nil
		},
		func(_ int, r *predicted) error {
			if r.run == len(models)-1 {
				meter.Add(int64(len(r.ids)))
			}
			return emit(r.first, r.ids, r.run, r.values())
		})
}

// predicted holds the predictions of a model for some rows.
type predicted struct {
	first       int64
	ids         []int64
	run         int
	classes     int
	probability *mem.Array[float32]
}

func (r *predicted) values() []float32 { return r.probability.S[:len(r.ids)*r.classes] }

// predictedBytes returns the memory of a result.
func predictedBytes(classes int) int64 { return 4*PredictRows*int64(classes) + 4096 }

// mostPredicted returns the largest number of results.
func mostPredicted(classes int) int64 {
	return max(min(predictAheadBytes/predictedBytes(classes), predictAhead), readAhead)
}

// predictor holds the memory of a prediction.
type predictor struct {
	chunks []*chunkBuffer // one is read while another is in use
	out    []*predicted   // some are computed while another is emitted
	net    *network
}

func newPredictor(src Source, models []*Model, res Resources) (_ *predictor, err error) {
	if len(models) == 0 {
		return nil, fmt.Errorf("train: no model to predict with: run ndls train first")
	}
	for i, m := range models {
		if m.Width() != src.Width() || !m.equal(models[0].form) {
			return nil, fmt.Errorf("train: model %d has layers %v, the first has %v and the smoothed rows have %d values: run ndls train again: %w",
				i, m.dims, models[0].dims, src.Width(), seal.ErrCorrupt)
		}
	}
	p := &predictor{}
	defer func() {
		if err != nil {
			p.free()
		}
	}()
	kernel, err := dense.Select(res.Kernel)
	if err != nil {
		return nil, err
	}
	threads := pool(max(res.Threads, 1))
	if p.net, err = newNetwork(res.Budget, models[0], threads, microbatchRows(threads, models[0].Width()), kernel, false); err != nil {
		return nil, err
	}
	p.net.pack()
	// After the needed memory, it allocates more as far as there is room.
	for range readAhead {
		if err := p.addResult(res.Budget); err != nil {
			return nil, err
		}
	}
	if p.chunks, err = upTo(readAhead, func() (*chunkBuffer, error) { return newChunkBuffer(res.Budget, src) }); err != nil {
		return nil, err
	}
	for int64(len(p.out)) < mostPredicted(models[0].Classes()) && p.addResult(res.Budget) == nil {
	}
	return p, nil
}

// addResult allocates one more result.
func (p *predictor) addResult(b *mem.Budget) error {
	classes := p.net.Classes()
	values, err := mem.Alloc[float32](b, PredictRows*int64(classes), "predictions")
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	p.out = append(p.out, &predicted{classes: classes, probability: values})
	return nil
}

func (p *predictor) free() {
	for _, r := range p.out {
		r.probability.Free()
	}
	for _, c := range p.chunks {
		c.free()
	}
	p.net.free()
}

// rows computes the probabilities of the rows x, which belong to r. A thread that has finished some
// rows takes the next.
func (p *predictor) rows(ctx context.Context, m *Model, x []float32, r *predicted) error {
	net, width, classes, out := p.net, m.Width(), m.Classes(), r.values()
	if net.Model != m {
		net.Model = m
		net.pack()
	}
	unit := threadRows(width)
	failed := make([]error, units(len(r.ids), unit))
	var next atomic.Int64
	net.pool.each(func(thread int) {
		mine := thread * unit // where this thread's rows lie in the network
		for u := int(next.Add(1)) - 1; u < len(failed); u = int(next.Add(1)) - 1 {
			if failed[u] = ctx.Err(); failed[u] != nil {
				return
			}
			lo, hi := u*unit, min((u+1)*unit, len(r.ids))
			net.forward(thread, net.enter(x[lo*width:hi*width], mine, mine+hi-lo), mine, mine+hi-lo, nil)
			for i := lo; i < hi && failed[u] == nil; i++ {
				failed[u] = m.task.predict(net.kernel, net.logits(mine+i-lo), net.p[thread], out[i*classes:(i+1)*classes], r.first+int64(i))
			}
		}
	})
	return cmp.Or(failed...)
}

// probabilities writes the probabilities of a row of logits to out.
func probabilities(k *dense.Kernel, logits []float32, p []float64, out []float32, row int64) error {
	norm, _ := softmax(k, logits, p)
	if math.IsNaN(norm) {
		return fmt.Errorf("train: row %d has a value that is not finite or too large: run ndls smooth again", row)
	}
	k.Scale(out, p, 1/norm)
	return nil
}
