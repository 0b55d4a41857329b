package models

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/features"
	"ndls/stage/measures"
	"ndls/steps"
	"ndls/train"
)

// Train fits a plain MLP, or a ridge regression, to the smoothed features.
type Train struct {
	stage.InWhole
	// Rows, if not nil, are in memory, in place of those in files.
	Rows *RowsWithLabels
}

func (Train) Name() control.Stage { return control.Train }

func (Train) About() string {
	return "an MLP on the smoothed features, several runs of it, or a ridge regression"
}

func (Train) Needs(plan.Options) []control.Stage {
	return []control.Stage{control.Partition, control.Smooth}
}

func (Train) Lacks(p plan.Options, f estimate.Facts) string {
	if !stage.OwnModel(p) {
		return stage.OtherModel
	}
	return stage.LacksModel(p, f)
}

func (Train) Options(p plan.Options) map[string]any {
	return map[string]any{"train": p.Train, "seed": p.Seed, "measure": p.Measure()}
}

func (Train) Writes() []stage.Kind { return []stage.Kind{{Name: catalog.KindModel, Lasting: true}} }

func (Train) Shape(p plan.Options, sum shards.Summary) stage.Shape {
	models := stage.LabelRuns(p)
	if p.Ridge() {
		models = 0 // one worker solves a regression faster than several
	}
	return stage.Steps{Once: true, Models: models, Next: func(_ context.Context, cat *catalog.Catalog) (steps.Left, error) {
		return leftOfTraining(p, sum, cat), nil
	}}
}

// leftOfTraining returns the models that the catalogue lacks. The task of the whole stage trains a single one.
func leftOfTraining(p plan.Options, sum shards.Summary, cat *catalog.Catalog) steps.Left {
	if _, there := cat.Lookup(IndexPath); there {
		return steps.Left{}
	}
	left := stage.LeftOf(control.Models, stage.LabelRuns(p), func(model int) bool {
		_, there := cat.Lookup(trainedPath(model))
		return there
	})
	if ModelsAtATime(p, sum.Splits["train"], features.TrainedWidth(p, sum), usualThreads) > 1 {
		left.Count = steps.Each
	}
	return left
}

// usualThreads is the assumed number of threads of a worker. If the steps of a model have enough rows for them, a task trains one model.
// Otherwise a worker trains its share of the models at the same time.
const usualThreads = 16

// Shares implements estimate.Stage. Workers share the rows of each step of a perceptron. A ridge regression is made by one worker.
func (Train) Shares(p plan.Options) bool { return !p.Ridge() }

// Cost implements estimate.Stage.
func (Train) Cost(s *estimate.Sheet) {
	o, shape := Options(s.Plan), ShapeOf(s)
	labels := measures.LabelledBytes(s.Plan, s.Classes, shape.Rows) + measures.LabelledPages(s.Plan)
	if on := s.TrainOn; s.Plan.Train.On != "" && on.Rows > 0 {
		shape.Rows, shape.Train, shape.Valid = on.Rows, on.Training, on.Validation
		// The labels of each run directory, then of all together.
		labels = 2*measures.LabelledBytes(s.Plan, s.Classes, shape.Rows) + 3*measures.LabelledPages(s.Plan)
		s.ReadOtherNodes(on)
	} else {
		s.ReadNodes(1)
	}
	rowBytes := s.BytesOfRows(shape.Rows, shape.Width)
	shape.Workers = s.Members()
	peak, least, streamed := train.PlanFit(shape, o, s.Threads, s.Budget()-labels)
	s.Takes(labels+peak, labels+least)
	models := stage.LabelRuns(s.Plan)
	s.DiskBytes = int64(models) * Bytes(s)
	s.BytesWritten = s.DiskBytes
	s.BytesRead += 8*shape.Rows + rowBytes
	if s.Plan.Ridge() {
		ridgeCost(s, shape, streamed, rowBytes)
		return
	}
	epochs := float64(models * TrainedEpochs(s.Plan, shape.Valid))
	if streamed {
		s.BytesRead += int64(epochs) * rowBytes
	}
	s.Multiplies(epochs * train.EpochFlops(shape, o))
	if steps, bytes := train.Swapped(shape, o); s.Members() > 1 {
		s.Swaps(epochs*float64(steps), bytes, train.NumWeights(shape, o))
	}
	s.Pieces(models)
}

// ridgeCost adds the cost of ridge regressions: of two visits of the training rows, and of two of the validation rows for each penalty.
func ridgeCost(s *estimate.Sheet, shape train.Shape, streamed bool, rowBytes int64) {
	models := stage.LabelRuns(s.Plan)
	if streamed {
		s.BytesRead += int64(models) * 2 * (1 + train.Penalties) * rowBytes
	}
	s.Multiplies(float64(models) * train.RidgeFlops(shape, Options(s.Plan)))
	s.Pieces(models)
}

// TrainedEpochs returns the expected number of epochs of a model with this number of validation nodes.
func TrainedEpochs(p plan.Options, validation int64) int {
	o := p.Train
	if o.Patience == 0 || validation == 0 || p.Ridge() {
		return o.Epochs
	}
	return min(o.Epochs, bestEpoch+o.Patience)
}

// bestEpoch is the expected best epoch of a model, after which patience counts. Fitted to the times of ten models of Cora.
const bestEpoch = 100

// Options returns the options of package train.
func Options(p plan.Options) train.Options {
	o := p.Train
	return train.Options{
		Hidden: o.Hidden, Layers: o.Layers, Dropout: o.Dropout, InputDropout: o.InputDropout, LR: o.LR,
		WeightDecay: o.WeightDecay, Schedule: o.Schedule, Epochs: o.Epochs, Patience: o.Patience,
		BatchSize: o.BatchSize, Runs: p.NumRuns(), Seed: p.Seed, Measure: p.Measure(), Choose: o.Choose,
		LayerNorm: o.HiddenNorm == plan.LayerNorm, Standardize: o.InputNorm == plan.Standard, Ridge: p.Ridge(), Task: measures.TaskOf(p),
	}
}

// Bytes estimates the size of the file of a model: the weights, as float32.
func Bytes(s *estimate.Sheet) int64 {
	return 4 * train.NumWeights(ShapeOf(s), Options(s.Plan))
}

func ShapeOf(s *estimate.Sheet) train.Shape {
	return train.Shape{Rows: s.Stored(), Train: s.Training, Valid: s.Validation, Width: s.Output().Trained(), Classes: s.Classes}
}

// Run implements Stage: it fits one model per run and split on the smoothed rows. It commits each model when it is trained, and the index
// last. It skips models that are committed. A task of some models commits these only.
func (x Train) Run(ctx context.Context, env *stage.Env) error { return trainRun{env, x.Rows}.run(ctx) }

func (env trainRun) run(ctx context.Context) error {
	s := env.Summary
	if s.Splits["train"] == 0 {
		return errors.New("no node is in the split train: give splits, or partition with --split random:20,30 or share:0.6,0.2")
	}
	_, there := env.Catalog.Lookup(IndexPath)
	if env.IsShare() {
		return env.together(ctx, s)
	}
	if t := env.Task; !env.Whole() {
		if !env.IsPart(control.Models, stage.LabelRuns(env.Plan)) {
			return env.NoPart()
		}
		if there {
			return nil
		}
		return env.fit(ctx, s, t.First, t.Last)
	}
	env.Report.Rows = int64(stage.LabelRuns(env.Plan))
	if !there {
		if err := env.fit(ctx, s, 0, stage.LabelRuns(env.Plan)); err != nil {
			return err
		}
		if err := env.commitIndex(ctx, s); err != nil {
			return err
		}
	}
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindModel && e.Path == trainedPath(int(e.Model))
	})
}

// together trains models with the other workers of a gang, unless they are trained.
func (env trainRun) together(ctx context.Context, s shards.Summary) error {
	first, last := 0, stage.LabelRuns(env.Plan)
	if t := env.Task; t.LastPanel > 0 {
		first, last = t.FirstPanel, t.LastPanel
	}
	if first < 0 || first >= last || last > stage.LabelRuns(env.Plan) {
		return env.NoPart()
	}
	if _, some := env.untrained(first, last); !some {
		return nil
	}
	return env.Peers.Work(ctx, s.Nodes, func(ctx context.Context) error { return env.fit(ctx, s, first, last) })
}

// untrained lists, by split, the runs whose models are among [first, last) and not committed.
func (env trainRun) untrained(first, last int) (runs [][]int, some bool) {
	runs = make([][]int, env.Plan.NumSplits())
	for model := first; model < last; model++ {
		if _, ok := env.Catalog.Lookup(trainedPath(model)); !ok {
			split := stage.SplitOf(env.Plan, model)
			runs[split], some = append(runs[split], model%env.Plan.NumRuns()), true
		}
	}
	return runs, some
}

// fit trains the uncommitted models among [first, last), split by split, and commits each when it is trained. A run has the same random
// numbers in every split.
func (env trainRun) fit(ctx context.Context, s shards.Summary, first, last int) (err error) {
	untrained, some := env.untrained(first, last)
	if !some {
		return nil
	}
	if list := slices.Concat(untrained...); env.Group.Size() > 1 {
		// All workers that began after the last commit see the same catalogue.
		if same, err := group.Same(ctx, env.Group, list); err != nil || !same {
			return errors.Join(err, fmt.Errorf("workers of the gang disagree on the models left to train; this worker lacks models %v", list))
		}
	}
	rows, err := env.trainingRows(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	for split, runs := range untrained {
		if len(runs) == 0 {
			continue
		}
		leave := progress.Enter(ctx, split, env.Plan.NumSplits())
		err := train.FitEach(ctx,
			train.Problem{
				Source: features.RowsOfSplit(env.Env, rows.source, split), Labels: rows.Label.S, Splits: rows.Split(split), Classes: len(s.Classes),
				Answers: rows.AnswersOf(0, int64(len(rows.Label.S))),
			},
			Options(env.Plan), runs, train.Resources{
				Budget: env.Budget, Threads: env.Resources.Threads, Kernel: env.Resources.Kernel,
				Group: env.Group,
			},
			func(m *train.Model, h train.History) error { return env.commitModel(ctx, split, m, h) })
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// commitModel commits the weights of a run in a split, with its line of the index. Of several workers that trained it, the first commits.
func (env trainRun) commitModel(ctx context.Context, split int, m *train.Model, h train.History) error {
	if first, _, _ := env.Group.Range(); first > 0 {
		return nil
	}
	model := split*env.Plan.NumRuns() + h.Run
	files := env.Catalog.Batch()
	defer files.Abort()
	file := func(path string) catalog.Entry {
		return catalog.Describe(catalog.KindModel, path).OfModel(model).Counting(1)
	}
	if err := files.Write(ctx, file(modelPath(model)), func(f *catalog.File) error { return m.Save(f) }); err != nil {
		return err
	}
	line := Trained{
		Run: model, Path: modelPath(model), Valid: h.ValidAccuracy(), Measured: h.Epochs[h.Best].ValidMeasure, Loss: h.Epochs[h.Best].ValidLoss,
		Penalty: h.Penalty, Scale: h.Scale,
	}
	if !env.Plan.Ridge() {
		line.Epochs, line.BestEpoch = len(h.Epochs), h.Best+1
		if model < drawnModels {
			line.Curve = curve(h, measures.TaskOf(env.Plan))
		}
	}
	if err := files.Write(ctx, file(trainedPath(model)), stage.WriteJSON(line)); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// The report has the curves of the first drawnModels models, with at most drawnEpochs epochs each.
const (
	drawnModels = 10
	drawnEpochs = 100
)

// curve returns the course of training at some epochs, including the last.
func curve(h train.History, task train.Task) (list []control.LearningPoint) {
	step := (len(h.Epochs) + drawnEpochs - 1) / drawnEpochs
	best := 0.0
	for i, e := range h.Epochs {
		if task == train.Regress {
			e.ValidAccuracy = e.ValidMeasure // R², which numbers have in its place
		}
		best = max(best, e.ValidAccuracy)
		if number := i + 1; number%step == 0 || number == len(h.Epochs) {
			list = append(list, control.LearningPoint{Epoch: number, Loss: e.TrainLoss, Valid: best})
		}
	}
	return list
}

// commitIndex commits the index of the models, all of which are committed.
func (env trainRun) commitIndex(ctx context.Context, s shards.Summary) error {
	index := Index{Classes: s.Classes, Options: env.Plan.Train}
	for run := range stage.LabelRuns(env.Plan) {
		var line Trained
		if err := stage.ReadJSON(ctx, env.Catalog, trainedPath(run), &line); err != nil {
			return err
		}
		index.Runs = append(index.Runs, line)
		if best := index.Runs[index.Chosen]; stage.SplitOf(env.Plan, run) == 0 &&
			(measures.Candidate{Valid: line.Measured, Loss: line.Loss}).Better(measures.Candidate{Valid: best.Measured, Loss: best.Loss}) {
			index.Chosen = run
		}
	}
	return env.Catalog.Write(ctx, catalog.Describe(catalog.KindModel, IndexPath).Counting(1), stage.WriteJSON(index))
}

// ModelsAtATime returns the number of models that threads train at the same time under a plan, with this number of training rows of width
// values.
func ModelsAtATime(p plan.Options, training int64, width, threads int) int {
	if p.Ridge() {
		return 1
	}
	if n := int64(p.Train.BatchSize); n > 0 {
		training = min(training, n)
	}
	return train.SideBySide(training, width, threads)
}
