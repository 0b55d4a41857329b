package train

import (
	"context"
	"fmt"
	"math"

	"ndls/internal/mem"
)

// Columns of inputs are standardised by their means and deviations over the training rows, which are part of the model. So the model takes
// rows as they are, whoever has them, and nothing of other rows is in it.

// resolution is the least deviation of a column, as a share of its mean: half a digit of a float32. A column with less is constant but for
// rounding.
const resolution = 1.0 / (1 << 24)

// standardise writes the values of a row, less their means, divided by their deviations. A column whose deviation is 0 becomes 0. to
// may be x.
func (m *Model) standardise(to, x []float32) {
	for i, v := range x {
		to[i] = (v - m.mean[i]) * m.inverse[i]
	}
}

// value returns a value of a row as the first layer sees it.
func (m *Model) value(column int, x float32) float32 {
	if !m.standard {
		return x
	}
	return (x - m.mean[column]) * m.inverse[column]
}

// enter returns rows as the first layer sees them. They belong to rows [lo, hi) of the network.
func (w *network) enter(x []float32, lo, hi int) []float32 {
	if !w.standard {
		return x
	}
	width := w.dims[0]
	to := w.x[lo*width : hi*width]
	for at := 0; at < len(x); at += width {
		w.standardise(to[at:at+width], x[at:at+width])
	}
	return to
}

// statisticsBytes returns the memory of means and deviations while they are measured, without that of reading rows.
func (f *fitting) statisticsBytes() int64 {
	if !f.standard {
		return 0
	}
	return (2*4+2*8)*int64(f.dims[0]) + 2*4096
}

// columnsTogether is the number of columns that a thread measures at a time.
const columnsTogether = 64

// measureColumns measures means and deviations of the columns of the training rows. Each is a float64 sum in order of the rows. The threads
// share the columns.
func (f *fitting) measureColumns(ctx context.Context, threads *threadPool) (err error) {
	if !f.standard {
		return nil
	}
	width := f.dims[0]
	if f.statistics, err = mem.Alloc[float32](f.budget, 2*int64(width), "means and deviations of columns"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	sums, err := mem.Alloc[float64](f.budget, 2*int64(width), "sums of columns")
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer sums.Free()
	mean, squares, n := sums.S[:width], sums.S[width:], float64(f.train.count)
	if err := f.eachPart(ctx, threads, func(x []float32, first int) {
		for i, v := range x {
			mean[first+i] += float64(v)
		}
	}); err != nil {
		return err
	}
	for i := range mean {
		mean[i] /= n
	}
	if err := f.eachPart(ctx, threads, func(x []float32, first int) {
		for i, v := range x {
			d := float64(v) - mean[first+i]
			squares[first+i] += float64(d * d)
		}
	}); err != nil {
		return err
	}
	for i, m := range mean {
		f.statistics.S[i] = float32(m)
		deviation := math.Sqrt(squares[i] / n)
		if inverse := float32(1 / deviation); deviation > resolution*math.Abs(m) && !math.IsInf(float64(inverse), 0) {
			f.statistics.S[width+i] = inverse
		}
	}
	return nil
}

// eachPart calls visit with each training row, in parts of [columnsTogether] columns from the first one on. A part has its rows in order.
func (f *fitting) eachPart(ctx context.Context, threads *threadPool, visit func(x []float32, first int)) error {
	width := f.dims[0]
	s, err := newSampler(f.budget, width, f.train.count, false, f.train.values == nil)
	if err != nil {
		return err
	}
	defer s.free()
	return s.inOrder(ctx, f.train, func(p microbatch) error {
		threads.share(units(width, columnsTogether), func(i int) {
			first := i * columnsTogether
			for row := range p.len() {
				visit(p.row(row)[first:min(first+columnsTogether, width)], first)
			}
		})
		return ctx.Err()
	})
}

// take copies means and deviations into a model.
func (m *Model) take(statistics *mem.Array[float32]) {
	if m.standard {
		copy(m.mean, statistics.S)
		copy(m.inverse, statistics.S[len(m.mean):])
	}
}
