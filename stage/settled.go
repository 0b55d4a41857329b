package stage

import (
	"context"
	"errors"
	"math"
	"slices"

	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/train"
)

// sampleRows is how many rows, at most, settled smoothing is checked on.
const sampleRows = 1 << 16

// checkSettled measures how far smoothed rows whose neighbours settled deviate
// from exact ones, on a sample of the target rows, evenly spaced. Smoothing is
// linear: 16 random combinations of all feature columns, smoothed with every row
// recomputed, are compared with the same combinations of the settled rows, and
// stand for whole rows within the error of such sketches.
func (env smoothRun) checkSettled(ctx context.Context, sum shards.Summary) (err error) {
	targets, err := env.targets(ctx, sum)
	if err != nil {
		return err
	}
	step := (targets.Len() + sampleRows - 1) / sampleRows
	sketch := func(c lsi.Columns) lsi.Columns { return lsi.Mixtures(c, env.Plan.Seed, packed.PanelColumns) }
	rows, err := train.OpenSmoothed(ctx, env.Catalog)
	if err != nil {
		return err
	}
	settled, err := env.sample(ctx, sketch(rowColumns{rows}), step)
	if err = errors.Join(err, rows.Close()); err != nil {
		return err
	}
	g, o, k, err := env.featureSmoothing(ctx, sum, targets)
	if err != nil {
		return err
	}
	state, err := g.state(ctx)
	if err != nil {
		return err
	}
	defer state.Free()
	o.K = func(i int64) int { return int(k[i]) }
	if o, err = g.smoothLayout(ctx, o, packed.PanelColumns); err != nil {
		return err
	}
	s, err := smooth.New(ctx, g.hops(state), o)
	if err != nil {
		return err
	}
	defer s.Free()
	x := func(put func([]float32) error) error {
		return sketch(env.featureTiles()).Rows(ctx, 0, packed.PanelColumns, put)
	}
	stats, err := s.Run(ctx, x)
	if err != nil {
		return err
	}
	var errs []float64
	row := int64(0)
	if err := s.Output(0, packed.PanelColumns, x, func(rows []float32) error {
		for ; len(rows) > 0; rows = rows[packed.PanelColumns:] {
			if row%step == 0 {
				at := row / step * packed.PanelColumns
				if e, ok := relativeError(settled[at:at+packed.PanelColumns], rows[:packed.PanelColumns]); ok {
					errs = append(errs, e)
				}
			}
			row++
		}
		return nil
	}); err != nil {
		return err
	}
	env.Report.Deviation = deviation(errs, stats.EdgesStreamed)
	return nil
}

// rowColumns shows smoothed rows as columns, all of them at a time.
type rowColumns struct{ rows *train.Smoothed }

// Width implements lsi.Columns.
func (r rowColumns) Width() int { return r.rows.Width() }

// Rows implements lsi.Columns.
func (r rowColumns) Rows(ctx context.Context, _, columns int, put func(rows []float32) error) error {
	width := r.Width()
	batch := int64(max(hops.BatchValues/columns, 1))
	space := make([]float32, batch*int64(width))
	wide := make([]float32, batch*int64(columns))
	for c := range r.rows.NumChunks() {
		_, rows := r.rows.Chunk(c)
		for at := int64(0); at < rows; at += batch {
			n := min(batch, rows-at)
			values, err := r.rows.ReadRows(c, at, n, space)
			if err != nil {
				return err
			}
			for i := range int(n) {
				copy(wide[i*columns:], values[i*width:(i+1)*width])
			}
			if err := put(wide[:n*int64(columns)]); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// sample reads every step-th row.
func (env smoothRun) sample(ctx context.Context, c lsi.Columns, step int64) (values []float32, err error) {
	row := int64(0)
	err = c.Rows(ctx, 0, packed.PanelColumns, func(rows []float32) error {
		for ; len(rows) > 0; rows = rows[packed.PanelColumns:] {
			if row%step == 0 {
				values = append(values, rows[:packed.PanelColumns]...)
			}
			row++
		}
		return nil
	})
	return values, err
}

// relativeError is ‖got − want‖ / ‖want‖, if want is not zero.
func relativeError(got, want []float32) (e float64, ok bool) {
	var d, w float64
	for c, x := range want {
		delta := float64(got[c]) - float64(x)
		d += float64(delta * delta)
		w += float64(float64(x) * float64(x))
	}
	return math.Sqrt(d / w), w > 0
}

func deviation(errs []float64, edges int64) *control.DeviationReport {
	r := &control.DeviationReport{Rows: int64(len(errs)), Edges: edges}
	if len(errs) == 0 {
		return r
	}
	slices.Sort(errs)
	for _, e := range errs {
		r.Mean += e / float64(len(errs))
	}
	r.P99, r.Max = errs[len(errs)*99/100], errs[len(errs)-1]
	return r
}
