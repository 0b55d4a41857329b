package stage

import (
	"context"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/plan"
	"ndls/shards"
	"ndls/tiles"
	"ndls/train"
)

// Predictions are the smoothed soft labels of one model, or the mean of those of all models of the first split. To pick, the smoothed soft
// labels of each model and their mean are counted in all intervals. The set that is best on the validation nodes of the first split is
// picked, and the predictions of each interval are written. Ties go to the lowest mean negative log-likelihood on these nodes, if all
// probabilities exist, then to the lowest number of a model; the mean comes last. Losses are added by interval in order of node, the mean
// in order of model, so the bytes do not depend on who counts.

// writtenPath is the path of the file that says which predictions are written.
const writtenPath = "predictions/written.json"

// written is the content of predictions/written.json.
type written struct {
	// Predictions is plan.OfModel or plan.MeanOfModels; Model is the number of the model.
	Predictions string `json:"predictions"`
	Model       int    `json:"model,omitempty"`
	// Measure decided the choice. Candidates holds its values on the validation nodes, by number of the model; the mean comes last.
	Measure    string      `json:"measure"`
	Candidates []candidate `json:"candidates,omitempty"`
}

// candidate holds the measures, on the validation nodes, of a set that may be written.
type candidate struct {
	Valid float64 `json:"valid"`
	// Loss is the mean negative log-likelihood, or 0 if only best classes are stored.
	Loss float64 `json:"loss"`
}

// better reports whether a is preferred to b, which comes before it.
func (a candidate) better(b candidate) bool {
	return a.Valid > b.Valid || a.Valid == b.Valid && a.Loss < b.Loss
}

// groupPanels bounds the number of panels that are read side by side, and so the models of a mean: each panel is a file per interval.
const groupPanels = 1024

// modelsOfSplit returns the number of sets of soft labels of each split.
func modelsOfSplit(p plan.Options) int { return labelRuns(p) / splitsOfLabels(p) }

// splitsOfLabels returns the number of splits with soft labels of their own.
func splitsOfLabels(p plan.Options) int {
	if !ownModel(p) {
		return 1
	}
	return p.NumSplits()
}

// countsMean reports whether the mean of all models of the first split is counted.
func countsMean(p plan.Options, classes int) bool {
	return p.Predictions != plan.OfModel && p.Probabilities != plan.BestProbability && fitsMean(p, classes) && modelsOfSplit(p) > 1
}

// fitsMean reports whether the models of a split are few enough for a mean.
func fitsMean(p plan.Options, classes int) bool {
	return modelsOfSplit(p)*packed.Panels(classes) <= groupPanels
}

// counted returns the number of sets of smoothed soft labels that are counted: one per model, and the mean.
func counted(p plan.Options, classes int) int {
	if countsMean(p, classes) {
		return labelRuns(p) + 1
	}
	return labelRuns(p)
}

// splitCounted returns the split whose nodes count for a set of smoothed soft labels. The mean belongs to the first split.
func splitCounted(p plan.Options, set int) int {
	if set == labelRuns(p) {
		return 0
	}
	return splitOf(p, set)
}

// set returns the picked set among those that are counted.
func (w written) set(p plan.Options) int {
	if w.Predictions == plan.MeanOfModels {
		return labelRuns(p)
	}
	return w.Model
}

// models returns the models whose soft labels, or whose mean, are written.
func (w written) models(p plan.Options) (list []int) {
	if w.Predictions != plan.MeanOfModels {
		return []int{w.Model}
	}
	for m := range modelsOfSplit(p) {
		list = append(list, m)
	}
	return list
}

// readWritten reads the choice. Without one the predictions come from the model that was best before label smoothing.
func readWritten(ctx context.Context, p plan.Options, cat *catalog.Catalog) (w written, err error) {
	if _, ok := cat.Lookup(writtenPath); !ok {
		w.Predictions, w.Measure = plan.OfModel, plan.Accuracy
		w.Model, err = chosenRun(ctx, p, cat)
		return w, err
	}
	if err = readJSON(ctx, cat, writtenPath, &w); err != nil {
		return w, err
	}
	known := w.Predictions == plan.OfModel && 0 <= w.Model && w.Model < modelsOfSplit(p) || w.Predictions == plan.MeanOfModels
	if !known {
		return w, seal.Corrupt(writtenPath, "it names %q of model %d", w.Predictions, w.Model)
	}
	return w, nil
}

// pick commits the choice of predictions, once all intervals are counted.
func (env labelsRun) pick(ctx context.Context) error {
	if _, done := env.Catalog.Lookup(writtenPath); done {
		return nil
	}
	w := written{Predictions: plan.OfModel, Measure: env.Plan.Measure()}
	var err error
	if w.Model, err = chosenRun(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	classes := len(env.Summary.Classes)
	switch {
	case env.Plan.Predictions == plan.MeanOfModels && !fitsMean(env.Plan, classes):
		return fmt.Errorf("--predictions mean of %d models with %d classes: there are at most %d panels of 16 classes, and these have %d; use fewer --runs, or --predictions model",
			modelsOfSplit(env.Plan), classes, groupPanels, modelsOfSplit(env.Plan)*packed.Panels(classes))
	default:
		if err := env.compare(ctx, &w); err != nil {
			return err
		}
	}
	return commitJSON(ctx, env.Catalog, catalog.KindWritten, writtenPath, catalog.NotApplicable, w)
}

// compare measures the candidates and picks the best.
func (env labelsRun) compare(ctx context.Context, w *written) error {
	sums, err := env.sumTallies(ctx, catalog.KindLabelTally, counted(env.Plan, len(env.Summary.Classes)))
	if err != nil {
		return err
	}
	defer sums.free()
	var a areas
	if w.Measure == plan.AUC || w.Measure == plan.Precision {
		if a, err = env.scoreFiles().storedAreas(ctx, catalog.KindSmoothedScores); err != nil {
			return err
		}
	}
	sets := make([]int, modelsOfSplit(env.Plan), modelsOfSplit(env.Plan)+1) // of the first split
	for m := range sets {
		sets[m] = m
	}
	if countsMean(env.Plan, len(env.Summary.Classes)) {
		sets = append(sets, labelRuns(env.Plan))
	}
	best := 0
	for i, set := range sets {
		t := &sums.Of[set]
		accuracy, rows := t.Accuracy(train.Valid)
		if rows == 0 {
			w.Candidates = nil // nothing decides
			break
		}
		c := candidate{accuracy, sums.losses[set] / float64(rows)}
		switch w.Measure {
		case plan.MacroF1:
			c.Valid = t.MacroF1(train.Valid)
		case plan.AUC:
			c.Valid, _ = a.of(set, train.Valid)
		case plan.Precision:
			c.Valid, _ = a.precision(set, train.Valid)
		case plan.Determination:
			c.Valid, _ = t.Determination(train.Valid)
		}
		if w.Candidates = append(w.Candidates, c); c.better(w.Candidates[best]) {
			best = i
		}
	}
	if len(w.Candidates) > 0 {
		w.Model = best
	}
	if env.Plan.Predictions == plan.MeanOfModels && len(sets) > modelsOfSplit(env.Plan) || best == modelsOfSplit(env.Plan) {
		w.Predictions, w.Model = plan.MeanOfModels, 0
	}
	return nil
}

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

// read visits the predictions of an interval, some rows at a time: model by model and then, if mean is set, their mean, as set [labelRuns].
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
			split := s.truth.split(splitOf(s.Plan, run))[row:]
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
		return visit(labelRuns(s.Plan), row, labels, sums)
	})
}

// sideBySideValues returns the memory of the values of a batch as they are read.
func sideBySideValues(p plan.Options, classes int, rows int64) int64 {
	models := mostSideBySide(p, classes)
	return 4 * int64(models*packed.Panels(classes)*packed.PanelColumns) * int64(sideBySideRows(models, classes, rows))
}

// lossOf adds to sum the negative log-likelihood of the labels of validation rows, from row at on; for numbers, their squared errors.
func (l *labelled) lossOf(sum float64, task train.Task, soft []float32, at int64, splits []uint8) float64 {
	if len(splits) == 0 {
		return sum
	}
	classes := len(soft) / len(splits)
	for i, split := range splits {
		label := l.label.S[at+int64(i)]
		if label < 0 || split != train.Valid {
			continue
		}
		if task == train.Classify {
			sum -= elementary.Log(max(float64(soft[i*classes+int(label)]), referenceFloor))
			continue
		}
		for c, y := range l.answersOf(at+int64(i), 1) {
			switch z := float64(soft[i*classes+c]); {
			case y != y: // not known
			case task == train.Regress:
				sum += float64((float64(y) - z) * (float64(y) - z))
			case y > 0:
				sum -= elementary.Log(max(z, referenceFloor))
			default:
				sum -= elementary.Log(max(1-z, referenceFloor))
			}
		}
	}
	return sum
}

// groups returns the ranges of models whose soft labels are read side by side: all of a split, or as many as fit.
func groups(p plan.Options, classes int) (list [][2]int) {
	each := modelsOfSplit(p)
	most := max(groupPanels/packed.Panels(classes), 1)
	for first := 0; first < labelRuns(p); first += each {
		for from := first; from < first+each; from += most {
			list = append(list, [2]int{from, min(from+most, first+each)})
		}
	}
	return list
}

// mostSideBySide returns the largest number of models that are read side by side.
func mostSideBySide(p plan.Options, classes int) int {
	return min(modelsOfSplit(p), max(groupPanels/packed.Panels(classes), 1))
}

// tallySums holds the sums of the tallies of all intervals, and of the losses of validation nodes.
type tallySums struct {
	*train.Tallies
	losses []float64
	// sets is the number of sets in the files.
	sets      int
	breakdown breakdown
}

func (t *tallySums) free() { t.Tallies.Free() }

// sumTallies adds up the tallies of all intervals. Each file has this number of sets, or one fewer. Losses are added in order of interval.
func (env *Env) sumTallies(ctx context.Context, kind string, sets int) (t *tallySums, err error) {
	t = &tallySums{losses: make([]float64, sets), sets: sets}
	if t.Tallies, err = train.NewTallies(env.Budget, sets, len(env.Summary.Classes)); err != nil {
		return nil, err
	}
	one, err := train.NewTallies(env.Budget, 1, len(env.Summary.Classes))
	if err != nil {
		t.free()
		return nil, err
	}
	defer one.Free()
	for _, e := range env.Catalog.Entries(kind) {
		if e.Interval == catalog.NotApplicable {
			t.free()
			return nil, fmt.Errorf("%s counts all rows at once, as earlier versions did; run `ndls predict --resume=false` first: %w", e.Path, seal.ErrVersion)
		}
		n, err := env.readTallies(ctx, e.Path, sets, &one.Of[0], &t.breakdown, func(set int, loss float64) {
			t.Of[set].Merge(one.Of[0])
			t.losses[set] += loss
		})
		if err == nil && n != sets && n != labelRuns(env.Plan) {
			err = seal.Corrupt(e.Path, "it has %d models of %d", n, sets)
		}
		if err != nil {
			t.free()
			return nil, err
		}
		t.sets = min(t.sets, n)
	}
	return t, nil
}

// breakdownPath returns the path of the counts of an interval's predictions by degree, K and class.
func breakdownPath(interval int) string {
	return fmt.Sprintf("predictions/breakdown-%05d.json", interval)
}

// countingBytes returns the memory for reading and counting the smoothed soft labels of all models in an interval with this number of rows.
func countingBytes(p plan.Options, classes int, rows int64) int64 {
	held := scoredBytes(p) + train.TalliesBytes(1, classes)
	if p.Probabilities == plan.BestProbability {
		return held + bestBytes(packed.Panels(classes), bestRows)
	}
	models := mostSideBySide(p, classes)
	width := models * packed.Panels(classes) * packed.PanelColumns
	return held + sideBySideBytes(models, classes, rows) + tiles.ReadBytes(width, sideBySideRows(models, classes, rows),
		int64(shards.TileRowBytes(false)))
}
