package stage

import (
	"context"
	"fmt"
	"slices"

	"ndls/estimate"
	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
)

// Execute executes the task of env: stage s or a part of it.
func Execute(ctx context.Context, s Stage, env *Env) (err error) {
	if env.Disk == nil {
		env.Disk = unwatched{}
	}
	if env.States == nil {
		env.States = unsaved{}
	}
	env.Group = group.Solo(0)
	if len(s.Needs(env.Plan)) > 0 {
		if env.Summary.Nodes == 0 {
			if env.Summary, err = shards.ReadSummary(ctx, env.Catalog); err != nil {
				return err
			}
		}
		if lack := s.Lacks(env.Plan, FactsOf(env.Summary)); lack != "" {
			return fmt.Errorf("%s cannot run: %s", s.Name(), lack)
		}
	}
	if _, whole := s.Shape(env.Plan, env.Summary).(Whole); whole && !env.Whole() {
		return env.NoPart()
	}
	return s.Run(progress.Shared(ctx), env) // meters of the context report the task's progress
}

// Kind describes one kind of catalogued file.
type Kind struct {
	Name string
	// Lasting says that the files stay once the stage is complete, and that no later stage changes them.
	Lasting bool
	// Until, if not empty, is the last stage that reads the files. They are removed when it is complete, so that the files left by a run do
	// not depend on whether they were made.
	Until control.Stage
	// Rows reads a file to its end and returns its number of rows. It is nil for files without rows.
	Rows func(r storage.Reader, name string) (int64, error)
	// Stage is the stage that writes the kind; the registry sets it. It is empty if entries name their stage themselves.
	Stage control.Stage
}

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

// InWhole holds answers that many stages share.
type InWhole struct{}

// Always says that a whole run executes the stage.
func (InWhole) Always() bool { return true }
