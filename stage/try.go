package stage

import (
	"context"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
	"ndls/train"
)

// ErrDiverged reports a model whose training ended in numbers that are not finite.
var ErrDiverged = train.ErrDiverged

// Trial lists the stages that a trial executes once rows are smoothed: training and, if smoothed, label smoothing.
func Trial(p plan.Options, smoothed bool) []control.Stage {
	stages := []control.Stage{control.Train}
	if !smoothed {
		return stages
	}
	if p.Labels.Depth == plan.AutoDepth {
		stages = append(stages, control.LabelDepth)
	}
	return append(stages, control.SmoothLabels)
}

// Try executes the stages of trials whose plans differ only in the options of label smoothing. It calls found with the figures of each
// trial's models on the validation nodes: before label smoothing and, if smoothed, after it. The trials share the models, which equal those
// of a run with the same plan. Try commits to files, which nobody else reads; the caller removes them.
func Try(ctx context.Context, env Env, files storage.Store, smoothed bool, plans []plan.Options,
	found func(i int, r *control.AccuracyReport) error,
) error {
	below := env.Catalog
	env.Catalog = catalog.NewView(storage.NewOver(files, below.Store()), below.All(),
		func(ctx context.Context, _ []catalog.Entry, removed []string, del bool) error {
			for _, path := range removed {
				if del {
					if err := files.Remove(ctx, path); err != nil {
						return err
					}
				}
			}
			return nil
		})
	env.Blind = true
	defer env.Release()
	for i, opts := range plans {
		opts.Predictions = plan.OfModel // trials are compared by their models, without a mean
		env.Plan = opts
		env.Catalog.Bind(Binding(opts))
		stages := Trial(opts, smoothed)
		if i > 0 {
			stages = stages[1:] // the models exist
		}
		for _, s := range stages {
			env.Task = control.Task{Stage: s, Part: control.Whole, Plan: opts, Inputs: env.Inputs, Resources: env.Resources}
			if err := Execute(ctx, &env); err != nil {
				return failure.InStage(string(s), err)
			}
			env.Release()
		}
		r, err := evaluation{&env}.validated(ctx, smoothed)
		if err == nil {
			err = found(i, r)
		}
		if err == nil {
			err = env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
				return e.Stage == string(control.LabelDepth) || e.Stage == string(control.SmoothLabels)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TrainedWidth returns the number of values per row that models read.
func TrainedWidth(p plan.Options, s shards.Summary) int {
	return (&Env{Plan: p, Summary: s}).output().Trained()
}

// StoredRows returns the number of smoothed rows that a run has in files.
func StoredRows(cat *catalog.Catalog, p plan.Options, s shards.Summary) (rows int64) {
	for _, e := range cat.Entries(trainedKind((&Env{Plan: p, Summary: s}).output())) {
		rows += e.Rows
	}
	return rows
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

// validated returns the measures of the trained models on the validation nodes: accuracy, or the plan's measure in its place.
func (env evaluation) validated(ctx context.Context, smoothed bool) (*control.AccuracyReport, error) {
	index, err := readIndex(ctx, env.Catalog)
	if err != nil {
		return nil, err
	}
	after := figures{}
	if smoothed {
		if after, err = env.smoothed(ctx, written{Predictions: plan.OfModel, Model: index.Chosen}); err != nil {
			return nil, err
		}
	}
	measured := map[string]figure{
		plan.Accuracy: after.accuracy, plan.MacroF1: after.macroF1, plan.AUC: after.auc, plan.Precision: after.precision,
		plan.Determination: after.determination,
	}[env.Plan.Measure()]
	before := func(model int, split uint8) (float64, bool) { return index.Runs[model].Measured, split == train.Valid }
	afterwards := func(model int, split uint8) (float64, bool) {
		x, ok := measured(model, split)
		return x, ok && split == train.Valid
	}
	r := &control.AccuracyReport{
		Runs: env.Plan.NumRuns(), Splits: env.Plan.Partition.Splits, Base: env.spreads(before),
		Smoothed: env.spreads(afterwards),
	}
	for m, x := range index.Runs {
		r.Models = append(r.Models, control.ModelAccuracy{
			Split: splitOf(env.Plan, m), Run: m % r.Runs, Seed: env.Plan.Seed,
			Base: shares(m, before), Smoothed: shares(m, afterwards), Epochs: x.Epochs, BestEpoch: x.BestEpoch, ValidLoss: &x.Loss,
		})
	}
	return r, nil
}
