package stage

import (
	"context"
	"slices"

	"ndls/estimate"
	"ndls/plan"

	"ndls/internal/control"
	"ndls/shards"
)

// Stage is one step of a run: what it reads and writes, into which tasks it can be divided, what it costs, and how it is executed.
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
	// Shape returns into which tasks the stage can be divided.
	Shape(p plan.Options, sum shards.Summary) Shape
	// Run executes the task of env and returns when its output is committed. After an error or a cancelled context, the same task continues
	// from what the catalogue holds.
	Run(ctx context.Context, env *Env) error
}

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

// Always lists the stages of a whole run, in order.
func Always() []control.Stage { return names(Stage.Always) }

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

// Learn adds to the counts of a graph what a complete stage has found: the hops of the K table, or depths of label smoothing.
func Learn(c *estimate.Counts, r control.StageReport) {
	if x := r.LSI; x != nil {
		c.Hops, c.LabelledHops, c.ValidationHops = x.Max, x.LabelledMax, x.ValidationMax
		if p := r.Polynomials; p != nil && p.Share < 1 {
			c.MovingShare = p.Share
		}
	}
	if x := r.LabelDepth; x != nil {
		c.LabelDepth = slices.Max(x.Depths) + 1
	}
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
