package labels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/measures"
	"ndls/stage/models"
	"ndls/tiles"
	"ndls/train"
)

// readBest visits the best class of each node of an interval, for one run, with its probability.
func (p predictions) readBest(ctx context.Context, i, run int, visit func(row int64, labels []int32, values []float32) error) error {
	logs := p.averagesLogs(run)
	all := packed.Panels(len(p.Summary.Classes))
	return p.eachBest(ctx, p.tiles, i, run, all, models.BestRows, logs, func(row int64, b bestClasses) error {
		for r, sum := range b.sum {
			switch {
			case logs:
				b.value[r] = float32(1 / sum)
			case sum == 0 && signed(p.Plan, p.depths[run]): // no value is above 0
				b.value[r] = 1
			default:
				b.value[r] = float32(float64(b.value[r]) / sum)
			}
		}
		return visit(row, b.class, b.value)
	})
}

// countRows commits the counts of the smoothed soft labels for the nodes of intervals [first, last).
func (env labelsRun) countRows(ctx context.Context, first, last int) (err error) {
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	p := predictions{labelsRun: env}
	if p.truth, err = env.readTruth(ctx); err != nil {
		return err
	}
	if p.depths, err = Depths(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	done := stage.Committed(env.Catalog, catalog.KindLabelTally)
	m := smoothedSoft(env.Env)
	for i := first; i < last; i++ {
		if done[i] {
			continue
		}
		if err := env.JoinTiles(ctx, m, i); err != nil {
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

// readTruth reads the labels and splits of all nodes. The tasks of a worker read them once.
func (env labelsRun) readTruth(ctx context.Context) (*measures.Labelled, error) {
	return stage.Keep(env.Session, "labels", nil, func() (*measures.Labelled, error) { return measures.ReadLabelled(ctx, env.Env) })
}

// predictionRows commits the picked predictions for the nodes of intervals [first, last), then removes the tiles.
func (env labelsRun) predictionRows(ctx context.Context, first, last int) error {
	ids, err := env.Nodes().KeptIDs(ctx)
	if err != nil {
		return err
	}
	m := smoothedSoft(env.Env)
	p := predictions{labelsRun: env, ids: ids.S}
	if p.truth, err = env.readTruth(ctx); err != nil {
		return err
	}
	if p.written, err = ReadWritten(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	if p.depths, err = Depths(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	if !env.Plan.Answers() {
		if p.counter, err = measures.NewCounter(ctx, env.Env, p.truth, nil); err != nil {
			return err
		}
		defer p.counter.Free()
	}
	for i := first; i < last; i++ {
		lo, hi := m.Bounds(i)
		env.Report.Rows += hi - lo
		if !stage.Committed(env.Catalog, catalog.KindPredictions)[i] {
			if err := env.JoinTiles(ctx, m, i); err != nil {
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
	truth   *measures.Labelled
	tiles   *tiles.Matrix
	written Written
	depths  []int
	// counter breaks down the written predictions.
	counter *measures.Counter
}

// count commits the tally of each set of smoothed soft labels in an interval.
func (p predictions) count(ctx context.Context, i int) error {
	files := p.Catalog.Batch()
	defer files.Abort()
	e := catalog.Describe(catalog.KindSmoothedScores, measures.SmoothedScoresPath(i)).In(i)
	scores, err := measures.ScoresOf(p.Env).NewScoreFile(ctx, files, e)
	if err != nil {
		return err
	}
	defer scores.Free()
	classes := len(p.Summary.Classes)
	sets := Counted(p.Plan, classes)
	tally, err := train.NewTallies(p.Budget, sets, classes)
	if err != nil {
		return err
	}
	defer tally.Free()
	losses := make([]float64, sets)
	all := p.Plan.Probabilities != plan.BestProbability
	task := measures.TaskOf(p.Plan)
	visit := func(set int, row int64, labels []int32, values []float32) error {
		end := row + int64(len(labels))
		split := p.truth.Split(splitCounted(p.Plan, set))[row:end]
		if task == train.Classify {
			tally.Of[set].Count(labels, p.truth.Label.S[row:end], split)
		} else {
			p.truth.AddTo(&tally.Of[set], task, row, values, len(labels), split)
		}
		if all {
			losses[set] = p.truth.LossOf(losses[set], task, values, row, split)
		}
		return scores.Add(set, values, p.truth, row, split)
	}
	if err := p.readAll(ctx, i, visit); err != nil {
		return err
	}
	if err := scores.Flush(); err != nil {
		return err
	}
	e = catalog.Describe(catalog.KindLabelTally, measures.LabelTallyPath(i)).In(i)
	loss := func(set int) (*measures.Breakdown, float64) { return nil, losses[set] }
	if err := measures.WriteTallies(ctx, files, e, tally.Of, loss); err != nil {
		return err
	}
	return files.Commit(ctx)
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
	ids, err := mem.Alloc[int64](p.Budget, int64(p.batch()), "ids of predictions")
	if err != nil {
		return err
	}
	defer ids.Free()
	if p.counter == nil { // of labels and numbers
		p.counter = &measures.Counter{}
	}
	p.counter.Breakdown = measures.Breakdown{}
	files := p.Catalog.Batch()
	defer files.Abort()
	e := catalog.Describe(catalog.KindPredictions, fmt.Sprintf("predictions/part-%05d.arrow", i)).In(i)
	if err := p.Nodes().WriteRows(ctx, files.Write, e, PredictionSchema(p.Plan, p.width()), func(put stage.PutRows) error {
		return p.read(ctx, i, func(row int64, labels []int32, values []float32) error {
			n := len(labels)
			for r := range n {
				ids.S[r] = int64(p.ids[row+int64(r)])
			}
			if p.Plan.Answers() {
				labels = nil
			} else {
				p.counter.Add(row, labels)
			}
			return put(ids.S[:n], labels, values)
		})
	}); err != nil {
		return err
	}
	if err := files.Write(ctx, catalog.Describe(catalog.KindBreakdown, breakdownPath(i)).In(i).Counting(1), func(f *catalog.File) error {
		return json.NewEncoder(f).Encode(p.counter.Breakdown)
	}); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// PredictionSchema returns the schema of predictions in Arrow rows with so many values: probabilities of classes beside the class,
// probabilities of labels, or numbers.
func PredictionSchema(p plan.Options, width int) shards.RowSchema {
	return shards.RowSchema{Column: models.PredictedColumn(p), Width: width, Label: !p.Answers()}
}

// batch returns the number of predictions that are written at a time.
func (p predictions) batch() int {
	return models.SoftBatch(p.Plan, len(p.Summary.Classes))
}

// writingBytes returns the memory for reading tiles and writing predictions of an interval with this number of rows.
func writingBytes(opts plan.Options, classes int, rows int64) int64 {
	if opts.Probabilities == plan.BestProbability {
		return models.BestRows*8 + 4096 + bestBytes(packed.Panels(classes), models.BestRows)
	}
	batch := int64(shards.BatchRows(classes))
	held := batch*(8+4) + 2*4096
	one := held + tiles.ReadBytes(classes, int(min(batch, max(rows, 1))), int64(shards.TileRowBytes(false)))
	if !countsMean(opts, classes) {
		return one
	}
	models := stage.ModelsOfSplit(opts)
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
	s, err := p.newModelsReader(0, stage.ModelsOfSplit(p.Plan))
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
		if set != stage.LabelRuns(p.Plan) {
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

// averagesLogs reports whether a run's depth averages logarithms of probabilities.
func (p predictions) averagesLogs(run int) bool { return averagesLogs(p.Plan, p.depths[run]) }

// modelsReader reads the smoothed soft labels of models [first, last) of a split, with all probabilities.
type modelsReader struct {
	predictions
	first, last int
	soft, mean  *mem.Array[float32]
	labels      *mem.Array[int32]
	batch       int
}

// sideBySideRows returns the number of rows of this number of models that are read at a time, at most rows.
func sideBySideRows(models, classes int, rows int64) int {
	return int(min(int64(shards.BatchRows(models*packed.Panels(classes)*packed.PanelColumns)), max(rows, 1)))
}

// sideBySideBytes returns the memory for these rows, beside reading tiles.
func sideBySideBytes(models, classes int, rows int64) int64 {
	return int64(sideBySideRows(models, classes, rows))*(8*int64(classes)+4) + 3*4096
}

func (p predictions) newModelsReader(first, last int) (s *modelsReader, err error) {
	classes := len(p.Summary.Classes)
	s = &modelsReader{
		predictions: p, first: first, last: last,
		batch: sideBySideRows(last-first, classes, min(p.Summary.Nodes, p.Summary.IntervalRows)),
	}
	n := int64(s.batch) * int64(classes)
	var e1, e2, e3 error
	s.soft, e1 = mem.Alloc[float32](p.Budget, n, "probabilities of a model")
	s.mean, e2 = mem.Alloc[float32](p.Budget, n, "the mean of probabilities")
	s.labels, e3 = mem.Alloc[int32](p.Budget, int64(s.batch), "labels of predictions")
	if err := errors.Join(e1, e2, e3); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

func (s *modelsReader) free() {
	s.soft.Free()
	s.mean.Free()
	s.labels.Free()
}

// read visits the predictions of an interval, some rows at a time: model by model and then, if mean is set, their mean, as set [LabelRuns].
// Probabilities are divided by their sum; without mean and probabilities, only on validation nodes.
func (s *modelsReader) read(ctx context.Context, interval int, mean, probabilities bool,
	visit func(set int, row int64, labels []int32, soft []float32) error,
) error {
	classes := len(s.Summary.Classes)
	per := packed.Panels(classes)
	models := s.last - s.first
	width := models * per * packed.PanelColumns
	return s.tiles.Read(ctx, interval, s.first*per, width, s.batch, func(row int64, values []float32) error {
		n := len(values) / width
		labels, soft, sums := s.labels.S[:n], s.soft.S[:n*classes], s.mean.S[:n*classes]
		for k := range models {
			run := s.first + k
			split := s.truth.Split(stage.SplitOf(s.Plan, run))[row:]
			if err := share.Ranges(s.Resources.Threads, n, sharedRows, func(lo, hi int) error {
				for r := lo; r < hi; r++ {
					x := soft[r*classes:][:classes]
					copy(x, values[r*width+k*per*packed.PanelColumns:])
					labels[r] = train.Argmax(x)
					if !mean && !probabilities && split[r] != train.Valid {
						continue
					}
					if signed(s.Plan, s.depths[run]) {
						sumsOfSigned(x)
					}
					if !s.Plan.Answers() {
						normalise(x, s.averagesLogs(run))
					}
					if to := sums[r*classes:][:classes]; mean && k == 0 {
						copy(to, x)
					} else if mean {
						for c, y := range x {
							to[c] += y
						}
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if err := visit(run, row, labels, soft); err != nil {
				return err
			}
		}
		if !mean {
			return nil
		}
		if err := share.Ranges(s.Resources.Threads, n, sharedRows, func(lo, hi int) error {
			for r := lo; r < hi; r++ {
				x := sums[r*classes:][:classes]
				labels[r] = train.Argmax(x)
				if !s.Plan.Answers() {
					normalise(x, false)
					continue
				}
				for c, sum := range x {
					x[c] = float32(float64(sum) / float64(models))
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return visit(stage.LabelRuns(s.Plan), row, labels, sums)
	})
}

// sideBySideValues returns the memory of the values of a batch as they are read.
func sideBySideValues(p plan.Options, classes int, rows int64) int64 {
	models := mostSideBySide(p, classes)
	return 4 * int64(models*packed.Panels(classes)*packed.PanelColumns) * int64(sideBySideRows(models, classes, rows))
}

// groups returns the ranges of models whose soft labels are read side by side: all of a split, or as many as fit.
func groups(p plan.Options, classes int) (list [][2]int) {
	each := stage.ModelsOfSplit(p)
	most := max(groupPanels/packed.Panels(classes), 1)
	for first := 0; first < stage.LabelRuns(p); first += each {
		for from := first; from < first+each; from += most {
			list = append(list, [2]int{from, min(from+most, first+each)})
		}
	}
	return list
}

// mostSideBySide returns the largest number of models that are read side by side.
func mostSideBySide(p plan.Options, classes int) int {
	return min(stage.ModelsOfSplit(p), max(groupPanels/packed.Panels(classes), 1))
}

// breakdownPath returns the path of the counts of an interval's predictions by degree, K and class.
func breakdownPath(interval int) string {
	return fmt.Sprintf("predictions/breakdown-%05d.json", interval)
}

// countingBytes returns the memory for reading and counting the smoothed soft labels of all models in an interval with this number of rows.
func countingBytes(p plan.Options, classes int, rows int64) int64 {
	held := measures.ScoredBytes(p) + train.TalliesBytes(1, classes)
	if p.Probabilities == plan.BestProbability {
		return held + bestBytes(packed.Panels(classes), models.BestRows)
	}
	models := mostSideBySide(p, classes)
	width := models * packed.Panels(classes) * packed.PanelColumns
	return held + sideBySideBytes(models, classes, rows) + tiles.ReadBytes(width, sideBySideRows(models, classes, rows),
		int64(shards.TileRowBytes(false)))
}
