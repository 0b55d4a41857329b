package stage

import (
	"context"

	"ndls/catalog"
	"ndls/steps"
)

// Shape describes into which tasks the work of a stage can be divided. It is [Whole], [Steps] or [Matrix].
type Shape interface{ isShape() }

// Whole is the shape of a stage that is one task.
type Whole struct{}

// Steps is the shape of a stage that is done step by step. The pieces of a step are divided among workers; the task of the whole stage is
// the last step.
type Steps struct {
	// Next returns the next step.
	Next func(ctx context.Context, cat *catalog.Catalog) (steps.Left, error)
	// Once says that at most one step comes before the task of the whole stage.
	Once bool
	// Models counts the models that the stage trains, of which several workers may train each together.
	Models int
	// Panels counts the panels of the step Columns, in which groups of workers may share the rows of the graph; 1 stands for panels that
	// are not divided. Together is the number of panels that a worker alone makes at the same time.
	Panels, Together int
}

// Matrix is the shape of a stage of two phases. The first phase makes panels of columns for all rows, the second makes the rows of
// intervals for all columns.
type Matrix struct {
	Panels, Intervals int
	// Outputs counts the panels of tiles that each panel of columns yields. Output o of panel p is panel o·Panels + p of the tiles.
	Outputs int
	// Together is the number of panels that one task should hold.
	Together int
	// Tiles lists the kinds of the files that the first phase commits, Parts the kind of pieces of these. The second phase commits files of
	// kind Rows; then it removes the interval's tiles and pieces.
	Tiles       []string
	Parts, Rows string
	// Choice, if not nil, describes what a task of its own chooses before the columns.
	Choice *Choice
	// Tally, if not nil, describes what is counted between columns and rows.
	Tally *Tally
}

// Choice describes files that one task commits before all others. Together the files of the kind hold values of Nodes nodes.
type Choice struct {
	Kind  string
	Nodes int64
}

// Tally describes counts between two phases. A task for each interval commits a file of kind Counts. Then one task reads all counts, and
// commits a file of kind Pick.
type Tally struct{ Counts, Pick string }

// Advance returns the next step after it has removed the files that no step needs any more.
func (s Steps) Advance(ctx context.Context, cat *catalog.Catalog) (steps.Left, error) {
	left, err := s.Next(ctx, cat)
	if err == nil && left.Superseded != nil {
		err = cat.Remove(ctx, left.Superseded)
	}
	return left, err
}

func (Whole) isShape() {}

func (Steps) isShape() {}

func (Matrix) isShape() {}
