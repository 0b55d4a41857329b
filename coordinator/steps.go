package coordinator

import (
	"context"
	"fmt"
	"slices"

	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/partition"
	"ndls/placement"
	"ndls/shards"
	"ndls/stage"
)

// runSteps runs a stage step by step, or as one task if there is one worker and no others have
// begun. After each step it finds out which step comes next, and removes the files that no step
// needs any more. Unless g is nil, the workers of a group share the rows of columns.
func (j *Job) runSteps(ctx context.Context, s control.Stage, steps stage.Steps, g *placement.Sharing) (
	reports []control.StageReport, err error,
) {
	var before partition.Left
	from := 0.0
	for ended := false; ; {
		left, err := steps.Next(ctx, j.Catalog)
		if err == nil && left.Superseded != nil {
			err = j.Catalog.Remove(ctx, left.Superseded)
		}
		if err != nil {
			return reports, err
		}
		if ended && s == control.Partition {
			err = j.warn(ctx)
		}
		if ended {
			return reports, err
		}
		if left.Step != "" && left.Step == before.Step && slices.Equal(left.Pieces, before.Pieces) {
			return reports, fmt.Errorf("step %s of %s ended without files; start all workers from the same version", left.Step, s)
		}
		before = left
		tasks := placement.Step(s, left, j.Tasks.Workers(), g)
		ended = tasks[0].Part == control.Whole
		leave := func() {}
		if steps.Once { // else the number of steps is unknown
			to := stage.ColumnShare
			if ended {
				to = 1
			}
			leave = progress.EnterRange(ctx, from, to)
			from = to
		}
		reports, err = j.phase(ctx, tasks)
		if leave(); err != nil {
			return reports, err
		}
	}
}

// warn logs what a user should know about the graph.
func (j *Job) warn(ctx context.Context) error {
	sum, err := shards.ReadSummary(ctx, j.Catalog)
	if sum.Normalization != "" {
		j.Log.Info("--normalize " + sum.Normalization)
	}
	for _, w := range sum.Warnings {
		j.Log.Warn(w)
	}
	return err
}
