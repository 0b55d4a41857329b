package stage

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

// labelTally is how many labels of the nodes of an interval each run got right after label
// smoothing.
type labelTally struct {
	Runs []train.Tally `json:"runs"`
}

// labelTallyPath is where that of an interval is.
func labelTallyPath(interval int) string {
	return fmt.Sprintf("predictions/tally-%05d.json", interval)
}

// predictionRows commits, for the nodes of intervals [first, last), the predictions of the
// chosen run, and how many labels each run got right. Then it removes the tiles.
func (env labelsRun) predictionRows(ctx context.Context, s shards.Summary, first, last int) error {
	ids, err := env.targetIDs(ctx, s, smooth.AllTargets(s.Nodes))
	if err != nil {
		return err
	}
	if env.truth == nil {
		if env.truth, err = readLabelled(ctx, env.Catalog, env.Budget, s.Nodes); err != nil {
			return err
		}
	}
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	m := smoothedSoft(env.Env)
	p := predictions{labelsRun: env, ids: ids.S, truth: env.truth}
	if p.run, err = chosenRun(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	if p.depths, err = env.depths(ctx); err != nil {
		return err
	}
	for i := first; i < last; i++ {
		lo, hi := m.Bounds(i)
		env.Report.Rows += hi - lo
		if !intervalsOf(env.Catalog, catalog.KindLabelTally)[i] {
			if err := env.joinTiles(ctx, m, i, i+1); err != nil {
				return err
			}
			p.tiles = smoothedSoft(env.Env)
			if err := p.interval(ctx, i); err != nil {
				return err
			}
			env.Disk.Look()
		}
		if err := m.Drop(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// predictions turns smoothed soft labels into predictions.
type predictions struct {
	labelsRun
	ids    []uint32
	truth  *labelled
	tiles  *tiles.Matrix
	run    int // whose predictions are written
	depths []int
}

// interval commits what an interval still lacks, the tally last.
func (p predictions) interval(ctx context.Context, i int) error {
	rows := intervalsOf(p.Catalog, catalog.KindPredictions)[i]
	t := labelTally{Runs: make([]train.Tally, len(p.depths))}
	for run := range t.Runs {
		count := func(row int64, labels []int32, _ []float32) error {
			end := row + int64(len(labels))
			t.Runs[run].Count(labels, p.truth.label.S[row:end], p.truth.split.S[row:end])
			return nil
		}
		read := func(visit func(int64, []int32, []float32) error) error { return p.read(ctx, i, run, visit) }
		if run == p.run && !rows {
			read = func(visit func(int64, []int32, []float32) error) error { return p.write(ctx, i, visit) }
		}
		if err := read(count); err != nil {
			return err
		}
	}
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindLabelTally, labelTallyPath(i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := writeJSON(t)(f); err != nil {
		return err
	}
	f.Rows = 1
	return p.Catalog.Commit(ctx, f)
}

// width is the number of probabilities that are written for each node.
func (p predictions) width() int {
	if p.Plan.Probabilities == control.BestProbability {
		return 1
	}
	return len(p.Summary.Classes)
}

// write commits the predictions of the nodes of an interval, and shows them to visit.
func (p predictions) write(ctx context.Context, i int, visit func(row int64, labels []int32, values []float32) error) error {
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindPredictions, fmt.Sprintf("predictions/part-%05d.arrow", i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	names, closeNames, err := p.names(ctx, int64(i)*p.Summary.IntervalRows)
	if err != nil {
		return err
	}
	defer closeNames()
	w, err := shards.NewRowWriter(f, shards.RowSchema{Column: "probability", Width: p.width(), Label: true}, names)
	if err != nil {
		return err
	}
	ids, err := mem.Alloc[int64](p.Budget, int64(p.batch()), "ids of predictions")
	if err != nil {
		return err
	}
	defer ids.Free()
	if err := p.read(ctx, i, p.run, func(row int64, labels []int32, values []float32) error {
		for r := range labels {
			ids.S[r] = int64(p.ids[row+int64(r)])
		}
		if err := w.Write(ids.S[:len(labels)], labels, values); err != nil {
			return err
		}
		return visit(row, labels, values)
	}); err != nil {
		return err
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	return p.Catalog.Commit(ctx, f)
}

// bestRows is how many predictions without other probabilities are made at a time.
const bestRows = 1 << 18

// batch is how many predictions are made at a time.
func (p predictions) batch() int {
	return softBatch(p.Plan, len(p.Summary.Classes))
}

// predictionBytes is the memory for making predictions, beside reading tiles.
func predictionBytes(plan control.Plan, classes int) int64 {
	if plan.Probabilities == control.BestProbability {
		return bestRows*(8+4+4+8) + 4*4096 + tiles.PiecesBytes(packed.Panels(classes), bestRows, bestRow)
	}
	return int64(shards.BatchRows(classes))*(8+4) + 2*4096
}

// read gives the predictions of a run for the nodes of an interval, some at a time.
func (p predictions) read(ctx context.Context, i, run int, visit func(row int64, labels []int32, values []float32) error) error {
	labels, err := mem.Alloc[int32](p.Budget, int64(p.batch()), "labels of predictions")
	if err != nil {
		return err
	}
	defer labels.Free()
	classes := len(p.Summary.Classes)
	first := run * packed.Panels(classes)
	if p.Plan.Probabilities == control.BestProbability {
		return p.readBest(ctx, i, first, labels.S, run, visit)
	}
	return p.tiles.Read(ctx, i, first, classes, p.batch(), func(row int64, values []float32) error {
		n := len(values) / classes
		if err := share.Ranges(p.Resources.Threads, n, sharedRows, func(lo, hi int) error {
			for r := lo; r < hi; r++ {
				x := values[r*classes : (r+1)*classes]
				labels.S[r] = train.Argmax(x)
				if run == p.run {
					normalise(x, p.averagesLogs(run))
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return visit(row, labels.S[:n], values)
	})
}

// sharedRows is how many rows a thread takes at a time.
const sharedRows = 1 << 10

// averagesLogs says whether what was averaged are logarithms of probabilities.
func (p predictions) averagesLogs(run int) bool { return averagesLogs(p.Plan, p.depths[run]) }

// averagesLogs says whether smoothing to a depth averages logarithms of probabilities: the
// rule of the authors' code does, and at depth 0 nothing is averaged.
func averagesLogs(p control.Plan, depth int) bool {
	return p.Labels.Rule == "ndls-reference" && depth > 0
}

// normalise turns a row of smoothed soft labels into probabilities that sum to
// 1: averages of probabilities are divided by their sum, averages of
// logarithms go through softmax.
func normalise(row []float32, logs bool) {
	if logs {
		most := row[train.Argmax(row)]
		for c, x := range row {
			row[c] = float32(math.Exp(float64(x - most)))
		}
	}
	sum := 0.0
	for _, x := range row {
		sum += float64(x)
	}
	for c, x := range row {
		row[c] = float32(float64(x) / sum)
	}
}

// bestRow is the size of a panel's row where the best class alone is wanted: its value, and
// the sum of the values of the panel's classes, float32 both, and the number of the class in
// the panel, a byte. Of averages of logarithms, the sum is that of exp(value − best value).
const bestRow = 9

// encodeBest gives the form of such rows. depths is the depth of each run.
func (env labelsRun) encodeBest(depths []int) func(to []byte, panel int, row []float32) []byte {
	classes := len(env.Summary.Classes)
	per := packed.Panels(classes)
	return func(to []byte, panel int, row []float32) []byte {
		row = row[:min(packed.PanelColumns, classes-panel%per*packed.PanelColumns)]
		best := train.Argmax(row)
		logs, sum := averagesLogs(env.Plan, depths[panel/per]), 0.0
		for _, x := range row {
			if logs {
				sum += math.Exp(float64(x - row[best]))
			} else {
				sum += float64(x)
			}
		}
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(row[best]))
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(sum)))
		return append(to, byte(best))
	}
}

// readBest gives the best class of each node of an interval, of a run whose first panel is
// first, and its probability.
func (p predictions) readBest(ctx context.Context, i, first int, labels []int32, run int, visit func(row int64, labels []int32, values []float32) error) error {
	per := packed.Panels(len(p.Summary.Classes))
	in, err := p.tiles.Pieces(ctx, i, first, per, bestRows)
	if err != nil {
		return err
	}
	defer in.Close()
	value, err := mem.Alloc[float32](p.Budget, bestRows, "best values")
	if err != nil {
		return err
	}
	defer value.Free()
	sum, err := mem.Alloc[float64](p.Budget, bestRows, "sums of values")
	if err != nil {
		return err
	}
	defer sum.Free()
	logs := p.averagesLogs(run)
	lo, hi := p.tiles.Bounds(i)
	for row := lo; row < hi; row += bestRows {
		n := min(bestRows, hi-row)
		for end := row; end < row+n; {
			piece, err := in.Next()
			if err != nil {
				return err
			}
			at := int(piece.Row - row)
			if err := share.Ranges(p.Resources.Threads, piece.Rows, sharedRows, func(lo, hi int) error {
				for k := range piece.Panels {
					part := piece.Panel(k)[lo*bestRow : hi*bestRow]
					mergeBest(part, piece.First+k-first, logs, labels[at+lo:], value.S[at+lo:], sum.S[at+lo:])
				}
				if !piece.Last {
					return nil
				}
				for r := at + lo; r < at+hi; r++ {
					if logs {
						value.S[r] = float32(1 / sum.S[r])
					} else {
						value.S[r] = float32(float64(value.S[r]) / sum.S[r])
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if piece.Last {
				end = piece.Row + int64(piece.Rows)
			}
		}
		if err := visit(row, labels[:n], value.S[:n]); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// mergeBest takes the rows of panel k of a run after those of the panels before it.
func mergeBest(part []byte, k int, logs bool, labels []int32, value []float32, sum []float64) {
	for r := 0; len(part) > 0; r++ {
		best := math.Float32frombits(binary.LittleEndian.Uint32(part))
		s := float64(math.Float32frombits(binary.LittleEndian.Uint32(part[4:])))
		class := int32(k*packed.PanelColumns) + int32(part[8])
		part = part[bestRow:]
		switch {
		case k == 0:
			labels[r], value[r], sum[r] = class, best, s
		case !logs && best <= value[r]:
			sum[r] += s
		case !logs:
			labels[r], value[r], sum[r] = class, best, sum[r]+s
		case best <= value[r]:
			sum[r] += s * math.Exp(float64(best-value[r]))
		default:
			labels[r], value[r], sum[r] = class, best, sum[r]*math.Exp(float64(value[r]-best))+s
		}
	}
}
