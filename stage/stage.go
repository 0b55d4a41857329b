package stage

import (
	"context"
	"slices"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/partition"
	"ndls/shards"
)

// Stage is one step of a run: what it reads and writes, how it is cut into tasks, what
// it takes, and how it is executed.
type Stage interface {
	estimate.Stage
	// About says in a line what the stage is for.
	About() string
	// Always says whether a whole run takes the stage. The others are executed when
	// they are asked for by name.
	Always() bool
	// Needs lists the stages whose output the stage reads under plan p. All of them
	// stand before it in [All].
	Needs(p control.Plan) []control.Stage
	// Options are what decides the bytes of the stage's output beside what it reads:
	// the fields of the plan, by the names that [Diff] gives them.
	Options(p control.Plan) map[string]any
	// Writes lists the kinds of files that the stage commits.
	Writes() []Kind
	// Cut says how the stage is cut into tasks.
	Cut(p control.Plan, sum shards.Summary) Cut
	// Run executes the task of env. It returns when the task's output is committed;
	// after an error or a cancelled context the same task goes on where the catalogue
	// stands.
	Run(ctx context.Context, env *Env) error
}

// Cut says how a stage is cut into tasks. The zero Cut is that of a stage which one task
// executes.
type Cut struct {
	// Next, unless nil, finds the step that is next. The stage is then cut step by step,
	// and no other field counts but Once, which says that there is at most one step before the task
	// of the whole stage, and Panels and Together, where groups of workers can share the rows of the panels
	// of its step Columns.
	Next func(ctx context.Context, cat *catalog.Catalog) (partition.Left, error)
	Once bool
	// Panels and Intervals are the columns, in panels, and the rows, in intervals, of a
	// stage of two phases: the first makes columns of all rows, the second rows of all
	// columns.
	Panels, Intervals int
	// Outputs is how many panels of tiles each panel of columns leads to, 0 for one: output
	// o of panel p is panel o·Panels + p of the tiles.
	Outputs int
	// Halves says that workers which share rows may take one half of each panel.
	Halves bool
	// Together is how many panels belong in the same task.
	Together int
	// Tiles and Rows are the kinds of what the two phases commit, Parts that of pieces
	// of tiles, which the second phase removes. Merged is that of files which have several
	// panels of an interval in place of their tiles.
	Tiles, Rows, Parts, Merged string
	// Counted, unless empty, is the kind of what tasks of their own commit for each interval, once there are columns and before
	// there are rows, and Picks that of what one task then commits.
	Counted, Picks string
	// Drops says that the tiles of an interval are removed once it has rows, Check that
	// something is measured when all is done.
	Drops, Check bool
	// Chooses is the kind of what a task of its own commits before all others, for that many
	// nodes. It is empty where there is no such task.
	Chooses string
	Nodes   int64
	// Strips is the kind of the files, one for each interval, without which workers may
	// share the rows of the graph in a stage that has no columns.
	Strips string
	// Models is the number of models that the stage trains, each of which several workers may train
	// together.
	Models int
}

// divisible says whether a task may be a part of the stage.
func (c Cut) divisible() bool { return c.Next != nil || c.Tiles != "" || c.Strips != "" }

// Of finds stages by name. It leaves out names that stand for none.
func Of(names ...control.Stage) (list []Stage) {
	for _, name := range names {
		if i := Index(name); i < len(All) {
			list = append(list, All[i])
		}
	}
	return list
}

// Costs are stages as an estimate asks for them.
func Costs(names ...control.Stage) (list []estimate.Stage) {
	for _, s := range Of(names...) {
		list = append(list, s)
	}
	return list
}

// Index is the place of a stage in the order of a run, len(All) for a name that stands
// for none.
func Index(name control.Stage) int {
	for i, s := range All {
		if s.Name() == name {
			return i
		}
	}
	return len(All)
}

// Names lists every stage, in order.
func Names() []control.Stage { return names(func(Stage) bool { return true }) }

// Whole lists the stages of a whole run, in order.
func Whole() []control.Stage { return names(Stage.Always) }

// Possible lists the stages of a whole run that a graph of these counts has what they
// need for.
func Possible(p control.Plan, c estimate.Counts) []control.Stage {
	return names(func(s Stage) bool { return s.Always() && s.Lacks(p, c.Facts(p)) == "" })
}

func names(match func(Stage) bool) (list []control.Stage) {
	for _, s := range All {
		if match(s) {
			list = append(list, s.Name())
		}
	}
	return list
}

// Needs lists the stages whose output a stage reads under plan p.
func Needs(p control.Plan, name control.Stage) []control.Stage {
	for _, s := range Of(name) {
		return s.Needs(p)
	}
	return nil
}

// Readers lists stages and all that read their output, directly or not.
func Readers(p control.Plan, of ...control.Stage) []control.Stage {
	all := slices.Clone(of)
	for _, s := range All {
		reads := slices.ContainsFunc(s.Needs(p), func(n control.Stage) bool { return slices.Contains(all, n) })
		if reads && !slices.Contains(all, s.Name()) {
			all = append(all, s.Name())
		}
	}
	return all
}

// each are answers that many stages share.
type each struct{}

// Always says that a whole run takes the stage.
func (each) Always() bool { return true }
