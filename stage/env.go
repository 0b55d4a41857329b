package stage

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/shards"
)

// Env is what the execution of a task has to work with.
type Env struct {
	// Session holds what stays open from one task to the next.
	*Session
	Task control.Task
	// Summary describes the graph; it is empty for the partition, which makes it. Where it has no nodes, Execute
	// reads it.
	Summary   shards.Summary
	Plan      control.Plan
	Inputs    control.Inputs
	Resources control.Resources
	Catalog   *catalog.Catalog
	// Disk, unless nil, is told when the files of the run directory take most.
	Disk Disk
	// Traffic, unless nil, is how many bytes of the run directory and of scratch files the worker has read and written so far.
	Traffic func() (read, written int64)
	// States, unless nil, saves the state of long work.
	States States
	// Peers are the workers with which this one may share the rows of the graph: only a
	// task that is a part of such a group needs them. Group is those with which it shares
	// them now; [Execute] begins with this worker alone.
	Peers Peers
	Group group.Group
	// Report is what the stage has found and taken so far.
	Report control.StageReport
	// Held, unless nil, are the smoothed rows in memory. They stand for those in files.
	Held *HeldRows
	// Blind says that nobody looks at test nodes: in each split they are nodes of no split, and
	// labels of nodes that neither train nor validate in any split are not known.
	Blind bool
}

// Disk measures what files take.
type Disk interface {
	// Look takes the disk's present use into account. Who removes much calls it before:
	// the moment between writing and removing is short.
	Look()
}

// States saves the state of long work, and finds what was saved.
type States interface {
	// Open prepares for saving the state of panels [first, last) of rows [lo, hi). It
	// depends on files of some kinds, and on the graph. The State must be closed.
	Open(ctx context.Context, lo, hi int64, first, last int, kinds ...string) (State, hops.Checkpoints, error)
	// Drop removes all that was saved of the task's stage.
	Drop(ctx context.Context) error
}

// State is that of one run of an engine.
type State interface {
	Close()
	// Done removes what was saved, once all workers of the group have committed what
	// that led to.
	Done(ctx context.Context) error
}

// Peers are workers that share the rows of a graph.
type Peers interface {
	// Work takes the place of the task among those that share n rows, and works there.
	// All of them have committed what they made when it returns without an error.
	Work(ctx context.Context, n int64, work func(context.Context) error) error
}

// Whole says whether the task is all of its stage.
func (env *Env) Whole() bool { return env.Task.Part == control.Whole || env.Task.Part == "" }

// Execute executes the task of env, a stage or a part of one.
func Execute(ctx context.Context, env *Env) (err error) {
	list := Of(env.Task.Stage)
	if len(list) == 0 {
		return fmt.Errorf("%q is no stage of this version of ndls; coordinator and workers must be the same version", env.Task.Stage)
	}
	if env.Disk == nil {
		env.Disk = unwatched{}
	}
	if env.States == nil {
		env.States = unsaved{}
	}
	env.Group = group.Solo(0)
	s := list[0]
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
	if !env.Whole() && !s.Cut(env.Plan, env.Summary).divisible() {
		return env.NoPart()
	}
	return s.Run(progress.Shared(ctx), env) // its meters tell how far the task is
}

// NoPart refuses a part that the stage does not have.
func (env *Env) NoPart() error {
	return fmt.Errorf("there is no task %s; coordinator and workers must be the same version of ndls", env.Task.ID())
}

// Span is the rows of a graph of n that the task is about.
func (env *Env) Span(n int64) (lo, hi int64) {
	if !env.Task.Shares() {
		return 0, n
	}
	return min(int64(env.Task.First)*packed.StripRows, n), min(int64(env.Task.Last)*packed.StripRows, n)
}

// Kept is a task without what makes no difference to what stays open from one task to the next.
func Kept(t control.Task) control.Task {
	if t.Part != control.Strips {
		t.First, t.Last = 0, 0
	}
	if t.Stage == control.LSI && t.Part == control.Rows {
		t.Part = control.Columns // the same graph
	}
	return t
}

// Session is what stays open from one task to the next of the same part of a stage, so
// that small tasks do not pay for opening a large graph. Everything in it was the same
// for each of them.
type Session struct {
	Budget *mem.Budget
	session
}

// unwatched measures no disk.
type unwatched struct{}

// Look implements Disk.
func (unwatched) Look() {}

// unsaved saves no state: what is interrupted begins again.
type unsaved struct{}

// Open implements States.
func (unsaved) Open(context.Context, int64, int64, int, int, ...string) (State, hops.Checkpoints, error) {
	return unsavedState{}, hops.Checkpoints{}, nil
}

// Drop implements States.
func (unsaved) Drop(context.Context) error { return nil }

type unsavedState struct{}

func (unsavedState) Close() {}

func (unsavedState) Done(context.Context) error { return nil }
