package stage

import (
	"context"
	"slices"

	"ndls/estimate"
	"ndls/plan"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/partition"
	"ndls/shards"
)

// Stage is one step of a run: what it reads and writes, how it is cut into tasks, what it costs, and how it is executed.
type Stage interface {
	estimate.Stage
	// About describes the stage in one line.
	About() string
	// Always reports whether a whole run executes the stage. Other stages run only when they are asked for by name.
	Always() bool
	// Needs lists the stages whose output the stage reads under plan p. All of them stand before it in [All].
	Needs(p plan.Options) []control.Stage
	// Options returns the fields of the plan that decide the bytes of the stage's output, by the names that [Diff] gives them.
	Options(p plan.Options) map[string]any
	// Writes lists the kinds of files that the stage commits.
	Writes() []Kind
	// Cut returns how the stage is cut into tasks.
	Cut(p plan.Options, sum shards.Summary) Cut
	// Run executes the task of env and returns when its output is committed. After an error or a cancelled context, the same task continues
	// from what the catalogue holds.
	Run(ctx context.Context, env *Env) error
}

// Cut describes how a stage is cut into tasks. The zero Cut means that one task executes the whole stage.
type Cut struct {
	// Next, if not nil, returns the next step; the stage is then cut step by step. Of the other fields only three count: Once, which says
	// that at most one step comes before the task of the whole stage, and Panels and Together, by which groups of workers can share the
	// rows of the step Columns.
	Next func(ctx context.Context, cat *catalog.Catalog) (partition.Left, error)
	Once bool
	// Panels and Intervals count the panels of columns and the intervals of rows of a stage of two phases. The first phase makes columns of
	// all rows, the second makes rows of all columns.
	Panels, Intervals int
	// Outputs counts the panels of tiles that each panel of columns yields; 0 means 1. Output o of panel p is panel o·Panels + p of the
	// tiles.
	Outputs int
	// Halves says that workers which share rows may take one half of each panel.
	Halves bool
	// Together is the number of panels that one task should hold.
	Together int
	// Tiles and Rows are the kinds of the files that the two phases commit. Parts is the kind of pieces of tiles, which the second phase
	// removes. Merged is the kind of files that replace the tiles of several panels of an interval.
	Tiles, Rows, Parts, Merged string
	// Counted, if not empty, is the kind of the files that separate tasks commit for each interval after the columns and before the rows.
	// One task then commits a file of kind Picks.
	Counted, Picks string
	// Drops says that the tiles of an interval are removed once its rows are committed.
	Drops bool
	// Chooses is the kind of the file that a separate task commits before all others, for Nodes nodes. It is empty if there is no such
	// task.
	Chooses string
	Nodes   int64
	// Strips is the kind of the files, one per interval, of a stage without columns. While they are missing, workers may share the rows of
	// the graph.
	Strips string
	// Models counts the models that the stage trains. Several workers may train each of them together.
	Models int
}

// divisible reports whether a task may be a part of the stage.
func (c Cut) divisible() bool { return c.Next != nil || c.Tiles != "" || c.Strips != "" }

// Of returns the stages with these names; unknown names are skipped.
func Of(names ...control.Stage) (list []Stage) {
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
func Names() []control.Stage { return names(func(Stage) bool { return true }) }

// Whole lists the stages of a whole run, in order.
func Whole() []control.Stage { return names(Stage.Always) }

// Possible lists the stages of a whole run whose needs a graph with these counts meets.
func Possible(p plan.Options, c estimate.Counts) []control.Stage {
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

// each holds answers that many stages share.
type each struct{}

// Always says that a whole run executes the stage.
func (each) Always() bool { return true }
