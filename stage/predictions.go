package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

// countRows commits the counts of the smoothed soft labels for the nodes of intervals [first, last).
func (env labelsRun) countRows(ctx context.Context, first, last int) (err error) {
	if err := env.readPredictionTruth(ctx); err != nil {
		return err
	}
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	p := predictions{labelsRun: env, truth: env.truth}
	if p.depths, err = env.depths(ctx); err != nil {
		return err
	}
	done := intervalsOf(env.Catalog, catalog.KindLabelTally)
	m := smoothedSoft(env.Env)
	for i := first; i < last; i++ {
		if done[i] {
			continue
		}
		if err := env.outputs().joinTiles(ctx, m, i, i+1); err != nil {
			return err
		}
		p.tiles = smoothedSoft(env.Env)
		if err := p.count(ctx, i); err != nil {
			return err
		}
		env.Disk.Look()
	}
	return nil
}

// readPredictionTruth reads the labels and splits of all nodes. The tasks of a worker read them once.
func (env labelsRun) readPredictionTruth(ctx context.Context) (err error) {
	if env.truth == nil {
		env.truth, err = env.readLabelled(ctx, env.Summary.Nodes)
	}
	return err
}

// predictionRows commits the picked predictions for the nodes of intervals [first, last), then removes the tiles.
func (env labelsRun) predictionRows(ctx context.Context, s shards.Summary, first, last int) error {
	ids, err := env.targetIDs(ctx, s, smooth.AllTargets(s.Nodes))
	if err != nil {
		return err
	}
	if err := env.readPredictionTruth(ctx); err != nil {
		return err
	}
	m := smoothedSoft(env.Env)
	p := predictions{labelsRun: env, ids: ids.S, truth: env.truth}
	if p.written, err = readWritten(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	if p.depths, err = env.depths(ctx); err != nil {
		return err
	}
	if !env.Plan.Answers() {
		if p.counter, err = env.newCounter(ctx, env.truth, nil); err != nil {
			return err
		}
		defer p.counter.free(env.Budget)
	}
	for i := first; i < last; i++ {
		lo, hi := m.Bounds(i)
		env.Report.Rows += hi - lo
		if !intervalsOf(env.Catalog, catalog.KindPredictions)[i] {
			if err := env.outputs().joinTiles(ctx, m, i, i+1); err != nil {
				return err
			}
			p.tiles = smoothedSoft(env.Env)
			if err := p.write(ctx, i); err != nil {
				return err
			}
			env.Disk.Look()
		}
		if err := env.dropTiles(ctx, m, i); err != nil {
			return err
		}
	}
	return nil
}

// dropTiles removes the smoothed soft labels of an interval.
func (env labelsRun) dropTiles(ctx context.Context, m *tiles.Matrix, interval int) error {
	if err := m.Drop(ctx, interval); err != nil {
		return err
	}
	if err := env.dropCorrected(ctx, interval); err != nil {
		return err
	}
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindBestClasses && int(e.Interval) == interval
	})
}

// predictions turns smoothed soft labels into predictions.
type predictions struct {
	labelsRun
	ids     []uint32
	truth   *labelled
	tiles   *tiles.Matrix
	written written
	depths  []int
	// counter breaks down the written predictions.
	counter *counter
}

// count commits the tally of each set of smoothed soft labels in an interval.
func (p predictions) count(ctx context.Context, i int) error {
	scores, err := p.scoreFiles().newScoreFile(ctx, catalog.Describe(catalog.KindSmoothedScores, smoothedScoresPath(i)).In(i))
	if err != nil {
		return err
	}
	defer scores.close()
	classes := len(p.Summary.Classes)
	sets := counted(p.Plan, classes)
	tally, err := train.NewTallies(p.Budget, sets, classes)
	if err != nil {
		return err
	}
	defer tally.Free()
	losses := make([]float64, sets)
	all := p.Plan.Probabilities != plan.BestProbability
	task := taskOf(p.Plan)
	visit := func(set int, row int64, labels []int32, values []float32) error {
		end := row + int64(len(labels))
		split := p.truth.split(splitCounted(p.Plan, set))[row:end]
		if task == train.Classify {
			tally.Of[set].Count(labels, p.truth.label.S[row:end], split)
		} else {
			p.truth.addTo(&tally.Of[set], task, row, values, len(labels), split)
		}
		if all {
			losses[set] = p.truth.lossOf(losses[set], task, values, row, split)
		}
		return scores.add(set, values, p.truth, row, split)
	}
	if err := p.readAll(ctx, i, visit); err != nil {
		return err
	}
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindLabelTally, labelTallyPath(i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	tallies := tallyList{w: f}
	for set := range tally.Of {
		if err := tallies.add(&tally.Of[set], nil, losses[set]); err != nil {
			return err
		}
	}
	if err := errors.Join(scores.flush(), tallies.end()); err != nil {
		return err
	}
	f.Rows = 1
	return p.Catalog.Commit(ctx, scores.with(f)...)
}

// readAll visits all sets of smoothed soft labels of an interval.
func (p predictions) readAll(ctx context.Context, i int, visit func(set int, row int64, labels []int32, soft []float32) error) error {
	if p.Plan.Probabilities == plan.BestProbability {
		for run := range p.depths {
			if err := p.readBest(ctx, i, run, func(row int64, labels []int32,
				values []float32,
			) error {
				return visit(run, row, labels, values)
			}); err != nil {
				return err
			}
		}
		return nil
	}
	classes := len(p.Summary.Classes)
	for _, g := range groups(p.Plan, classes) {
		s, err := p.newModelsReader(g[0], g[1])
		if err != nil {
			return err
		}
		mean := g[0] == 0 && countsMean(p.Plan, classes)
		err = s.read(ctx, i, mean, p.Plan.WantsAUC(), visit)
		s.free()
		if err != nil {
			return err
		}
	}
	return nil
}

// width returns the number of probabilities written per node.
func (p predictions) width() int {
	if p.Plan.Probabilities == plan.BestProbability {
		return 1
	}
	return len(p.Summary.Classes)
}

// write commits the predictions of the nodes of an interval, and their breakdown.
func (p predictions) write(ctx context.Context, i int) error {
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindPredictions, fmt.Sprintf("predictions/part-%05d.arrow", i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	names, closeNames, err := p.nodeTable().names(ctx, int64(i)*p.Summary.IntervalRows)
	if err != nil {
		return err
	}
	defer closeNames()
	w, err := shards.NewRowWriter(f, PredictionSchema(p.Plan, p.width()), names)
	if err != nil {
		return err
	}
	ids, err := mem.Alloc[int64](p.Budget, int64(p.batch()), "ids of predictions")
	if err != nil {
		return err
	}
	defer ids.Free()
	if p.counter == nil { // of labels and numbers
		p.counter = &counter{}
	}
	p.counter.breakdown = breakdown{}
	if err := p.read(ctx, i, func(row int64, labels []int32, values []float32) error {
		for r := range labels {
			ids.S[r] = int64(p.ids[row+int64(r)])
		}
		n := len(labels)
		if p.Plan.Answers() {
			labels = nil
		} else {
			p.counter.add(row, labels)
		}
		return w.Write(ids.S[:n], labels, values)
	}); err != nil {
		return err
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	b, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindBreakdown, breakdownPath(i)).In(i))
	if err != nil {
		return err
	}
	defer b.Abort()
	if err := json.NewEncoder(b).Encode(p.counter.breakdown); err != nil {
		return err
	}
	b.Rows = 1
	return p.Catalog.Commit(ctx, b, f)
}

// PredictionSchema returns the schema of predictions in Arrow rows with so many values: probabilities of classes beside the class,
// probabilities of labels, or numbers.
func PredictionSchema(p plan.Options, width int) shards.RowSchema {
	return shards.RowSchema{Column: predictedColumn(p), Width: width, Label: !p.Answers()}
}

// predictedColumn names the values of soft labels and predictions.
func predictedColumn(p plan.Options) string {
	if taskOf(p) == train.Regress {
		return "value"
	}
	return "probability"
}

// batch returns the number of predictions that are written at a time.
func (p predictions) batch() int {
	return softBatch(p.Plan, len(p.Summary.Classes))
}

// writingBytes returns the memory for reading tiles and writing predictions of an interval with this number of rows.
func writingBytes(opts plan.Options, classes int, rows int64) int64 {
	if opts.Probabilities == plan.BestProbability {
		return bestRows*8 + 4096 + bestBytes(packed.Panels(classes), bestRows)
	}
	batch := int64(shards.BatchRows(classes))
	held := batch*(8+4) + 2*4096
	one := held + tiles.ReadBytes(classes, int(min(batch, max(rows, 1))), int64(shards.TileRowBytes(false)))
	if !countsMean(opts, classes) {
		return one
	}
	models := modelsOfSplit(opts)
	width := models * packed.Panels(classes) * packed.PanelColumns
	mean := held + min(batch, rows)*4*int64(classes) + 4096 + sideBySideBytes(models, classes, rows) + tiles.ReadBytes(width,
		sideBySideRows(models, classes, rows), int64(shards.TileRowBytes(false)))
	return max(one, mean)
}

// read visits the predictions to write for the nodes of an interval, one record batch at a time.
func (p predictions) read(ctx context.Context, i int, visit func(row int64, labels []int32, values []float32) error) error {
	switch {
	case p.Plan.Probabilities == plan.BestProbability:
		return p.readBest(ctx, i, p.written.Model, visit)
	case p.written.Predictions == plan.MeanOfModels:
		return p.readMean(ctx, i, visit)
	}
	run := p.written.Model
	labels, err := mem.Alloc[int32](p.Budget, int64(p.batch()), "labels of predictions")
	if err != nil {
		return err
	}
	defer labels.Free()
	classes := len(p.Summary.Classes)
	first := run * packed.Panels(classes)
	return p.tiles.Read(ctx, i, first, classes, p.batch(), func(row int64, values []float32) error {
		n := len(values) / classes
		if err := share.Ranges(p.Resources.Threads, n, sharedRows, func(lo, hi int) error {
			for r := lo; r < hi; r++ {
				x := values[r*classes : (r+1)*classes]
				labels.S[r] = train.Argmax(x)
				if signed(p.Plan, p.depths[run]) {
					sumsOfSigned(x)
				}
				if !p.Plan.Answers() {
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

// readMean visits the mean of all models of the first split. It reads fewer rows at a time than a record batch has, and fills record
// batches with them.
func (p predictions) readMean(ctx context.Context, i int, visit func(row int64, labels []int32, values []float32) error) error {
	s, err := p.newModelsReader(0, modelsOfSplit(p.Plan))
	if err != nil {
		return err
	}
	defer s.free()
	classes := len(p.Summary.Classes)
	lo, hi := p.tiles.Bounds(i)
	batch := min(int64(p.batch()), hi-lo)
	values, err := mem.Alloc[float32](p.Budget, batch*int64(classes), "a record batch of predictions")
	if err != nil {
		return err
	}
	defer values.Free()
	all, err := mem.Alloc[int32](p.Budget, batch, "labels of predictions")
	if err != nil {
		return err
	}
	defer all.Free()
	first, filled := lo, 0
	return s.read(ctx, i, true, true, func(set int, row int64, labels []int32, soft []float32) error {
		if set != labelRuns(p.Plan) {
			return nil
		}
		for len(labels) > 0 {
			n := copy(all.S[filled:], labels)
			copy(values.S[filled*classes:], soft[:n*classes])
			labels, soft, row, filled = labels[n:], soft[n*classes:], row+int64(n), filled+n
			if filled < len(all.S) && row < hi {
				continue
			}
			if err := visit(first, all.S[:filled], values.S[:filled*classes]); err != nil {
				return err
			}
			first, filled = row, 0
		}
		return nil
	})
}

// sharedRows is the number of rows that a thread takes at a time.
const sharedRows = 1 << 10

// averagesLogs reports whether a run's depth averages logarithms of probabilities.
func (p predictions) averagesLogs(run int) bool { return averagesLogs(p.Plan, p.depths[run]) }

// averagesLogs reports whether smoothing to a depth averages logarithms of probabilities. The rule of the authors' code does; depth 0
// averages nothing.
func averagesLogs(p plan.Options, depth int) bool {
	return p.Labels.Rule == "ndls-reference" && depth > 0
}

// signed reports whether smoothing to a depth may yield negative values, as corrected soft labels do.
func signed(p plan.Options, depth int) bool { return corrects(p) && depth > 0 }

// normalise turns a row of smoothed soft labels into probabilities that sum to 1: it divides averages of probabilities by their sum, and
// applies softmax to averages of logarithms.
func normalise(row []float32, logs bool) {
	if logs {
		most := row[train.Argmax(row)]
		for c, x := range row {
			row[c] = float32(elementary.Exp(float64(x - most)))
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
