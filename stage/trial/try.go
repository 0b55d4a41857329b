package trial

import (
	"context"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/evaluate"
	"ndls/stage/registry"
	"ndls/train"
)

// ErrDiverged reports a model whose training ended in numbers that are not finite.
var ErrDiverged = train.ErrDiverged

// Stages lists the stages that a trial executes once rows are smoothed: training and, if smoothed, label smoothing.
func Stages(p plan.Options, smoothed bool) []control.Stage {
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
func Try(ctx context.Context, env stage.Env, held *Held, files storage.Store, smoothed bool, plans []plan.Options,
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
		env.Catalog.Bind(registry.Binding(opts))
		stages := Stages(opts, smoothed)
		if i > 0 {
			stages = stages[1:] // the models exist
		}
		for _, s := range stages {
			env.Task = control.Task{Stage: s, Part: control.Whole, Plan: opts, Inputs: env.Inputs, Resources: env.Resources}
			if err := stage.Execute(ctx, held.stage(s), &env); err != nil {
				return failure.InStage(string(s), err)
			}
			env.Release()
		}
		r, err := evaluate.Validated(ctx, &env, smoothed)
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
