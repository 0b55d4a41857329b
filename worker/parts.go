package worker

import (
	"context"
	"fmt"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/tiles"
)

// How a stage may be cut into tasks; the coordinator does it, and what is
// committed does not depend on it. A part may be executed once all of the parts
// before it are done:
//
//	partition      Split, Merge, Order, Relabel, Rows, Columns, then Whole, as package
//	               partition says
//	lsi            Whole; or Strips, then Whole
//	smooth         Columns of ⌈features/16⌉ granules, then Rows, then, with
//	               --active settled, Whole: it finds columns and rows done, and
//	               measures the deviation of settled rows
//	smooth-labels  Columns of runs·⌈classes/16⌉ granules (1 run with --soft-labels),
//	               then Rows; with --label-rule ndls-reference a task should have all
//	               granules of a run, since it finds their K
//	               Strips may come in place of Columns in both: the
//	               tasks of such a phase are done at the same time, by a gang
//	the others     Whole
//
// Whole is always all that is not done yet, so that Whole alone is a stage. The
// Rows of a report are those of the task's intervals; of tasks that follow each
// other in a stage the later ones count the same rows again, or none.

// isWhole says whether a part is all of its stage.
func isWhole(p control.Part) bool { return p == control.Whole || p == "" }

// inParts executes the task's part of a stage that can be cut: columns smooths
// granules, rows writes the rows of intervals.
func (j *job) inParts(ctx context.Context, s shards.Summary, out *tiles.Matrix, columns, rows func(ctx context.Context, first, last int) error) error {
	t, granules, intervals := j.task, out.Panels(), intervals(s)
	switch {
	case isWhole(t.Part):
		if err := columns(ctx, 0, granules); err != nil {
			return err
		}
		j.release()
		err := rows(ctx, 0, intervals)
		j.release()
		return err
	case t.Part == control.Columns && 0 <= t.First && t.First < t.Last && t.Last <= granules:
		return columns(ctx, t.First, t.Last)
	case j.isShare(s):
		if out.FirstMissing(0, granules) == granules {
			return nil
		}
		return j.inGang(ctx, s.Nodes, func(ctx context.Context) error { return columns(ctx, 0, granules) })
	case t.Part == control.Rows && 0 <= t.First && t.First < t.Last && t.Last <= intervals:
		return rows(ctx, t.First, t.Last)
	}
	return j.noPart()
}

// isShare says whether the task is some rows of a graph, of all columns.
func (j *job) isShare(s shards.Summary) bool {
	t := j.task
	return t.Part == control.Strips && 0 <= t.First && t.First < t.Last && t.Last <= packed.Strips(s.Nodes)
}

// firstMissing is the first granule from first on that is not committed, for any
// member of a gang; last if all below are.
func (j *job) firstMissing(ctx context.Context, out *tiles.Matrix, first, last int) (int, error) {
	return group.Min(ctx, j.group, out.FirstMissing(first, last))
}

// wholeOnly is a stage that cannot be cut.
func wholeOnly(run func(*job, context.Context) error) func(*job, context.Context) error {
	return func(j *job, ctx context.Context) error {
		if !isWhole(j.task.Part) {
			return j.noPart()
		}
		return run(j, ctx)
	}
}

func (j *job) noPart() error {
	return fmt.Errorf("worker: there is no task %s; coordinator and workers must be the same version of ndls", j.task.ID())
}
