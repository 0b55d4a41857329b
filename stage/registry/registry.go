package registry

import (
	"context"
	"fmt"
	"slices"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/plan"
	"ndls/stage"
	"ndls/stage/depth"
	"ndls/stage/evaluate"
	"ndls/stage/features"
	"ndls/stage/imports"
	"ndls/stage/labels"
	"ndls/stage/models"
)

// All lists the stages in the order of a run; a new stage is one line.
var All = []stage.Stage{
	imports.Partition{},
	imports.DegreesStage{},
	depth.Stage{},
	depth.SpectrumStage{},
	features.Stage{},
	models.Train{},
	models.Predict{},
	labels.Depth{},
	labels.Smooth{},
	evaluate.Stage{},
}

// Execute executes the task of env: a stage or a part of one.
func Execute(ctx context.Context, env *stage.Env) error {
	for _, s := range Of(env.Task.Stage) {
		return stage.Execute(ctx, s, env)
	}
	return fmt.Errorf("%q is no stage of this version of ndls; coordinator and workers must be the same version", env.Task.Stage)
}

// Of returns the stages with these names; unknown names are skipped.
func Of(names ...control.Stage) (list []stage.Stage) {
	for _, name := range names {
		if i := Index(name); i < len(All) {
			list = append(list, All[i])
		}
	}
	return list
}

// Costs returns the stages with these names as an estimate takes them.
func Costs(names ...control.Stage) (list []estimate.Stage) {
	for _, s := range Of(names...) {
		list = append(list, s)
	}
	return list
}

// Index returns the position of a stage in the order of a run, or len(All) for an unknown name.
func Index(name control.Stage) int {
	for i, s := range All {
		if s.Name() == name {
			return i
		}
	}
	return len(All)
}

// Names lists every stage, in order.
func Names() []control.Stage { return names(func(stage.Stage) bool { return true }) }

// Always lists the stages of a whole run, in order.
func Always() []control.Stage { return names(stage.Stage.Always) }

// Possible lists the stages of a whole run whose needs a graph with these counts meets.
func Possible(p plan.Options, c estimate.Counts) []control.Stage {
	return names(func(s stage.Stage) bool { return s.Always() && s.Lacks(p, c.Facts(p)) == "" })
}

func names(match func(stage.Stage) bool) (list []control.Stage) {
	for _, s := range All {
		if match(s) {
			list = append(list, s.Name())
		}
	}
	return list
}

// Needs lists the stages whose output a stage reads under plan p.
func Needs(p plan.Options, name control.Stage) []control.Stage {
	for _, s := range Of(name) {
		return s.Needs(p)
	}
	return nil
}

// Readers lists the given stages and all stages that read their output, directly or indirectly.
func Readers(p plan.Options, of ...control.Stage) []control.Stage {
	all := slices.Clone(of)
	for _, s := range All {
		reads := slices.ContainsFunc(s.Needs(p), func(n control.Stage) bool { return slices.Contains(all, n) })
		if reads && !slices.Contains(all, s.Name()) {
			all = append(all, s.Name())
		}
	}
	return all
}
