package stage

import (
	"context"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/partition"
	"ndls/shards"
)

// How a stage may be cut into tasks; the coordinator does it, and what is
// committed does not depend on it. A part may be executed once all of the parts
// before it are done:
//
//	partition      Split, Merge, Count, Gather, Order, Relabel, Rows, Deal and Tiles, or
//	               Columns, then Whole, as package partition says
//	lsi            Whole; or Strips, then Whole; or, as long as K of some nodes is not known,
//	               Columns, which make some hops of panels of the probe, and Rows, which find
//	               K of pieces of the nodes in them, then Whole
//	smooth         Columns of ⌈features/16⌉ panels, then Rows, then, with
//	               --active settled, Whole: it finds columns and rows done, and
//	               measures the deviation of settled rows
//	label-depth    Columns as smooth-labels, then one Rows, which puts together what they
//	               found
//	smooth-labels  Columns of runs·⌈classes/16⌉ panels (1 run with --soft-labels),
//	               then Count, by interval, Pick, which is one task, and Rows; with --label-rule ndls-reference a task should have all
//	               panels of a run, since it finds their K
//	               Strips may come in place of Columns in all of these: the tasks of
//	               the same panels are done at the same time, by a gang, and each has
//	               some rows of them. In smooth, LeftStrips and RightStrips may come in place
//	               of Strips: each half of a panel has a gang
//	train          Models, or Strips where several workers train a model together, then Whole,
//	               which commits their index
//	predict        Rows, then Whole, which finds them done
//	the others     Whole
//
// Whole is always all that is not done yet, so that Whole alone is a stage. The
// Rows of a report are those of the task's intervals; of tasks that follow each
// other in a stage the later ones count the same rows again, or none.

// panelled is output in panels: a matrix in tiles, say.
type panelled interface {
	// Panels is how many there are, FirstMissing the first from first on that is not
	// committed, last if all below last are.
	Panels() int
	FirstMissing(first, last int) int
}

// ColumnShare is the share of the time of such a stage that columns are taken to need, for who asks
// how far the stage is.
const ColumnShare = 0.95

// panelShare is the share of panels [begin, end) that lies before panel at.
func panelShare(at, begin, end int) float64 { return float64(at-begin) / float64(end-begin) }

// inParts executes the task's part of a stage that can be cut: columns smooths
// panels, rows writes the rows of intervals.
func (env *Env) inParts(ctx context.Context, s shards.Summary, out panelled, columns, rows func(ctx context.Context, first, last int) error) error {
	t, panels, intervals := env.Task, out.Panels(), intervals(s)
	switch {
	case env.Whole():
		leave := progress.EnterRange(ctx, 0, ColumnShare)
		err := columns(ctx, 0, panels)
		if leave(); err != nil {
			return err
		}
		env.Release()
		err = rows(ctx, 0, intervals)
		env.Release()
		return err
	case env.isPart(control.Columns, panels):
		return columns(ctx, t.First, t.Last)
	case env.isShare():
		first, last := 0, panels
		if t.LastPanel > 0 {
			first, last = t.FirstPanel, t.LastPanel
		}
		if first < 0 || first >= last || last > panels {
			return env.NoPart()
		}
		if out.FirstMissing(first, last) == last {
			return nil
		}
		return env.Peers.Work(ctx, s.Nodes, func(ctx context.Context) error { return columns(ctx, first, last) })
	case env.isPart(control.Rows, intervals):
		return rows(ctx, t.First, t.Last)
	}
	return env.NoPart()
}

// leftOf is those of n pieces of a part that are not done, each a task. It is nothing where there is
// one piece alone: the task of the whole stage does that.
func leftOf(part control.Part, n int, done func(i int) bool) partition.Left {
	left := partition.Left{Step: string(part), Count: func(int) int { return n }}
	for i := range n {
		if !done(i) {
			left.Pieces = append(left.Pieces, partition.Piece{First: i, Last: i + 1})
		}
	}
	if n == 1 || len(left.Pieces) == 0 {
		return partition.Left{}
	}
	return left
}

// isPart says whether the task is a part of such a name, of one that has n pieces.
func (env *Env) isPart(part control.Part, n int) bool {
	t := env.Task
	return t.Part == part && 0 <= t.First && t.First < t.Last && t.Last <= n
}

// isShare says whether the task is some rows of a graph.
func (env *Env) isShare() bool {
	t := env.Task
	return t.Shares() && 0 <= t.First && t.First < t.Last && t.Last <= packed.Strips(env.Summary.Nodes)
}

// firstMissing is the first panel from first on that is not committed, for any
// member of a gang; last if all below are.
func (env *Env) firstMissing(ctx context.Context, out panelled, first, last int) (int, error) {
	return group.Min(ctx, env.Group, out.FirstMissing(first, last))
}
