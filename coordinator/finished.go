package coordinator

import (
	"context"
	"slices"

	"ndls/internal/control"
	"ndls/stage/registry"
)

// Finished reports whether all stages of the job are complete in rec, or would be left out, under the same plan and inputs. It writes
// nothing. The catalogue must be bound to the plan of the job.
func (j *Job) Finished(ctx context.Context, rec *Record, stages []control.Stage) (bool, error) {
	if len(rec.Discarding) > 0 || len(registry.Diff(j.Plan, rec.Plan, rec.begun()...)) > 0 {
		return false, nil
	}
	left := *rec
	left.Wanted = slices.Clone(rec.Wanted)
	if err := j.compareInputs(ctx, &left); err != nil {
		return false, err
	}
	if err := rec.Check(j.Catalog); err != nil {
		return false, err
	}
	for _, s := range stages {
		if rec.Done(s) {
			continue
		}
		if skip, err := j.check(ctx, &left, s); err != nil || !skip {
			return false, err
		}
	}
	return true, nil
}
