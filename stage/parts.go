package stage

import (
	"context"

	"ndls/catalog"
	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/steps"
	"ndls/tiles"
)

// Committed returns the intervals that have a file of a kind.
func Committed(cat *catalog.Catalog, kind string) map[int]bool {
	have := map[int]bool{}
	for _, e := range cat.Entries(kind) {
		have[int(e.Interval)] = true
	}
	return have
}

// Intervals returns the number of intervals of a graph.
func Intervals(s shards.Summary) int {
	return int((s.Nodes + s.IntervalRows - 1) / max(s.IntervalRows, 1))
}

// Matrix returns a matrix in column tiles with a row per node, restricted to the task's rows.
func (env *Env) Matrix(l tiles.Layout) *tiles.Matrix {
	s := env.Summary
	l.Starts = tiles.Starts(s.Nodes, s.IntervalRows)
	lo, hi := env.Span(s.Nodes)
	return tiles.Open(env.Catalog, env.Budget, l).Share(lo, hi).On(env.Resources.Threads)
}

// FeatureTiles returns the tiles of the input features.
func (env *Env) FeatureTiles() *tiles.Matrix {
	return env.Matrix(tiles.Features(env.Summary))
}

// JoinTiles joins the parts of tiles of an interval and commits the tiles.
func (env *Env) JoinTiles(ctx context.Context, m *tiles.Matrix, interval int) error {
	defer env.Disk.Look()
	return m.Join(ctx, interval)
}

// A stage may be divided into these tasks. Package placement divides; committed bytes do not depend on it. A task may be executed once all
// tasks of the parts before it are done:
//
//	partition      Split, Merge, Count, Gather, Order, Relabel, Rows, Deal and Tiles, or
//	               Columns, then Whole, as package partition says; with neighbours that
//	               fill features Summary, Neighbours and Fill before Whole
//	lsi            Whole; or Strips, then Whole; or, while K of some nodes is unknown,
//	               Columns, which make some hops of panels of the probe, and Rows, which find
//	               K of pieces of the nodes from them, then Whole
//	smooth         Columns of ⌈features/16⌉ panels, then Rows
//	label-depth    Columns like smooth-labels, then one Rows, which merges their results
//	smooth-labels  Columns of runs·⌈classes/16⌉ panels (1 run with --soft-labels),
//	               then Count by interval, one task Pick, and Rows; with --label-rule
//	               ndls-reference a task should have all panels of a run, since it finds their K
//	train          Models, or Strips if several workers train a model together, then Whole,
//	               which commits their index
//	predict        Rows, then Whole, which finds them done
//	the others     Whole
//
// In the stages with Columns, Strips may replace them: a gang executes the tasks of the same panels at the same time, each for some of the
// rows.
//
// Whole does all that is not done yet, so Whole alone executes a stage. The Rows of a report count the task's intervals; later tasks of the
// stage count the same rows again, or none.

// panelled is output in panels, such as a matrix in tiles.
type panelled interface {
	// Panels returns the number of panels. FirstMissing returns the first panel, from first on, that is not committed, or last if all below
	// last are.
	Panels() int
	FirstMissing(first, last int) int
}

// ColumnShare is the assumed share of columns in the time of such a stage, for reports of its progress.
const ColumnShare = 0.95

// PanelShare returns the share of panels [begin, end) that lies before panel at.
func PanelShare(at, begin, end int) float64 { return float64(at-begin) / float64(end-begin) }

// InParts executes the task's part of a stage that can be cut. columns smooths panels; rows writes the rows of intervals.
func (env *Env) InParts(ctx context.Context, out panelled, columns,
	rows func(ctx context.Context, first, last int) error,
) error {
	t, panels, intervals := env.Task, out.Panels(), Intervals(env.Summary)
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
	case env.IsPart(control.Columns, panels):
		return columns(ctx, t.First, t.Last)
	case env.IsShare():
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
		return env.Peers.Work(ctx, env.Summary.Nodes, func(ctx context.Context) error { return columns(ctx, first, last) })
	case env.IsPart(control.Rows, intervals):
		return rows(ctx, t.First, t.Last)
	}
	return env.NoPart()
}

// LeftOf returns the pieces of a part, of n, that are not done; each is a task. It returns nothing if n is 1, because the task of the whole
// stage does a single piece.
func LeftOf(part control.Part, n int, done func(i int) bool) steps.Left {
	left := steps.Left{Step: string(part), Count: func(int) int { return n }}
	for i := range n {
		if !done(i) {
			left.Pieces = append(left.Pieces, steps.Unit(i))
		}
	}
	if n == 1 || len(left.Pieces) == 0 {
		return steps.Left{}
	}
	return left
}

// IsPart reports whether the task is this part, with pieces within n.
func (env *Env) IsPart(part control.Part, n int) bool {
	t := env.Task
	return t.Part == part && 0 <= t.First && t.First < t.Last && t.Last <= n
}

// IsShare reports whether the task is a share of the graph's rows.
func (env *Env) IsShare() bool {
	t := env.Task
	return t.Shares() && 0 <= t.First && t.First < t.Last && t.Last <= packed.Strips(env.Summary.Nodes)
}

// FirstMissing returns the first panel, from first on, that some member of the gang finds uncommitted, or last if all below last are
// committed.
func (env *Env) FirstMissing(ctx context.Context, out panelled, first, last int) (int, error) {
	return group.Min(ctx, env.Group, out.FirstMissing(first, last))
}
