package stage

import (
	"context"
	"errors"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/shards"
	"ndls/train"
)

// trainStage fits a plain MLP to the smoothed features.
type trainStage struct{ each }

func (trainStage) Name() control.Stage { return control.Train }

func (trainStage) About() string { return "an MLP on the smoothed features, several runs of it" }

func (trainStage) Needs(control.Plan) []control.Stage {
	return []control.Stage{control.Partition, control.Smooth}
}

func (trainStage) Lacks(p control.Plan, f estimate.Facts) string {
	if !ownModel(p) {
		return otherModel
	}
	return lacksModel(f)
}

func (trainStage) Options(p control.Plan) map[string]any {
	return map[string]any{"train": p.Train, "seed": p.Seed}
}

func (trainStage) Writes() []Kind { return []Kind{{Name: catalog.KindModel, Lasting: true}} }

func (trainStage) Cut(control.Plan, shards.Summary) Cut { return Cut{} }

func (trainStage) Shares(control.Plan) bool { return false }

// Cost implements estimate.Stage.
func (trainStage) Cost(s *estimate.Sheet) {
	s.Records()
	o, shape := trainOptions(s.Plan), trainShape(s)
	labels := 5*shape.Rows + 2*4096
	peak, least, streamed := train.PlanFit(shape, o, s.Threads, s.Budget()-labels)
	s.Takes(labels+peak, labels+least)
	weights := train.NumWeights(shape, o)
	s.DiskBytes = 4 * weights * int64(o.Runs)
	s.BytesWritten = s.DiskBytes
	s.ReadNodes(1)
	s.BytesRead += 8*shape.Rows + s.RowBytes()
	if streamed {
		s.BytesRead += int64(o.Runs*o.Epochs) * s.RowBytes()
	}
	steps := float64(shape.Train) * float64(o.Epochs*o.Runs)
	s.Computes(steps * 6 * float64(weights) / estimate.TrainFlops / float64(s.Threads))
}

// trainOptions are those of package train.
func trainOptions(p control.Plan) train.Options {
	o := p.Train
	return train.Options{
		Hidden: o.Hidden, Layers: o.Layers, Dropout: o.Dropout, InputDropout: o.InputDropout, LR: o.LR,
		WeightDecay: o.WeightDecay, Schedule: o.Schedule, Epochs: o.Epochs, Patience: o.Patience,
		BatchSize: o.BatchSize, Runs: o.Runs, Seed: p.Seed,
	}
}

func trainShape(s *estimate.Sheet) train.Shape {
	return train.Shape{Rows: s.Stored(), Train: s.Training, Valid: s.Validation, Width: s.Features, Classes: s.Classes}
}

// Run implements Stage: it fits one model a run on the smoothed rows. It commits each
// model when that is trained, and last the index. It does not train models again that
// are committed.
func (trainStage) Run(ctx context.Context, env *Env) error { return trainRun{env}.run(ctx) }

// trainRun is the stage being executed.
type trainRun struct{ *Env }

func (env trainRun) run(ctx context.Context) error {
	s := env.Summary
	if s.Splits["train"] == 0 {
		return errors.New("no node is in the split train: give splits, or partition with --split random:20,30")
	}
	env.Report.Rows = int64(env.Plan.Train.Runs)
	if _, ok := env.Catalog.Lookup(modelIndex); !ok {
		if err := env.fit(ctx, s, env.untrained()); err != nil {
			return err
		}
		if err := env.commitIndex(ctx, s); err != nil {
			return err
		}
	}
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindModel && e.Path == trainedPath(int(e.Run))
	})
}

// untrained lists the runs whose models are not committed.
func (env trainRun) untrained() (runs []int) {
	for run := range env.Plan.Train.Runs {
		if _, ok := env.Catalog.Lookup(trainedPath(run)); !ok {
			runs = append(runs, run)
		}
	}
	return runs
}

// fit trains the models of some runs and commits each when it is trained.
func (env trainRun) fit(ctx context.Context, s shards.Summary, runs []int) (err error) {
	if len(runs) == 0 {
		return nil
	}
	src, err := train.OpenSmoothed(ctx, env.Catalog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l, err := env.labelledRows(ctx, src, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	return train.FitEach(ctx,
		train.Problem{Source: src, Labels: l.label.S, Splits: l.split.S, Classes: len(s.Classes)},
		trainOptions(env.Plan), runs, train.Resources{Budget: env.Budget, Threads: env.Resources.Threads, Kernel: env.Resources.Kernel},
		func(m *train.Model, h train.History) error { return env.commitModel(ctx, m, h) })
}

// commitModel commits the weights of a run, together with what the index says of it.
func (env trainRun) commitModel(ctx context.Context, m *train.Model, h train.History) error {
	weights, err := writeFile(ctx, env.Catalog, catalog.KindModel, modelPath(h.Run), h.Run, m.Save)
	if err != nil {
		return err
	}
	defer weights.Abort()
	line := trainedRun{h.Run, modelPath(h.Run), len(h.Epochs), h.Best + 1, h.ValidAccuracy()}
	about, err := writeFile(ctx, env.Catalog, catalog.KindModel, trainedPath(h.Run), h.Run, writeJSON(line))
	if err != nil {
		return err
	}
	defer about.Abort()
	return env.Catalog.Commit(ctx, weights, about)
}

// commitIndex commits the index of the models, all of which are committed.
func (env trainRun) commitIndex(ctx context.Context, s shards.Summary) error {
	index := trained{Classes: s.Classes, Options: env.Plan.Train}
	for run := range env.Plan.Train.Runs {
		var line trainedRun
		if err := readJSON(ctx, env.Catalog, trainedPath(run), &line); err != nil {
			return err
		}
		index.Runs = append(index.Runs, line)
		if line.Valid > index.Runs[index.Chosen].Valid {
			index.Chosen = run
		}
	}
	return commitJSON(ctx, env.Catalog, catalog.KindModel, modelIndex, catalog.NotApplicable, index)
}
