package stage

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/shards"
)

// Env holds what the execution of a task works with.
type Env struct {
	// Session holds what stays open from one task to the next.
	*Session
	Task control.Task
	// Summary describes the graph. It is empty for the partition, which makes it. If it has no nodes, Execute reads it.
	Summary   shards.Summary
	Plan      plan.Options
	Inputs    control.Inputs
	Resources control.Resources
	Catalog   *catalog.Catalog
	// Disk, if not nil, is told when the files of the run directory take the most space.
	Disk Disk
	// Traffic, if not nil, returns the bytes of the run directory and of scratch files that the worker has read and written so far.
	Traffic func() (read, written int64)
	// States, if not nil, saves the state of long work.
	States States
	// Peers are the workers with which this one may share the rows of the graph; only a task of such a group needs them. It shares
	// the rows now with Group; [Execute] begins with this worker alone.
	Peers Peers
	Group group.Group
	// Report holds what the stage has found and used so far.
	Report control.StageReport
	// Blind hides test nodes: in each split they belong to no split, and the label of a node that neither trains nor validates in any split
	// is unknown.
	Blind bool
}

// Disk measures the space that files take.
type Disk interface {
	// Look measures the disk's present use. Callers that are about to remove much call it first.
	Look()
}

// States saves the state of long work, and finds what was saved.
type States interface {
	// Open prepares for saving the state of panels [first, last) of rows [lo, hi), which depends on files of these kinds and on the graph.
	// The caller closes the State.
	Open(ctx context.Context, lo, hi int64, first, last int, kinds ...string) (State, hops.Checkpoints, error)
	// Drop removes all that was saved of the task's stage.
	Drop(ctx context.Context) error
}

// State is the saved state of one run of an engine.
type State interface {
	Close()
	// Done removes the saved state once all workers of the group have committed the results.
	Done(ctx context.Context) error
}

// Peers are workers that share the rows of a graph.
type Peers interface {
	// Work takes the task's place among the workers that share n rows, and calls work. If it returns no error, all of them have committed
	// what they made.
	Work(ctx context.Context, n int64, work func(context.Context) error) error
}

// Whole reports whether the task is the whole of its stage.
func (env *Env) Whole() bool { return env.Task.Part == control.Whole || env.Task.Part == "" }

// NoPart returns the error for a part that the stage does not have.
func (env *Env) NoPart() error {
	return fmt.Errorf("there is no task %s; coordinator and workers must be the same version of ndls", env.Task.ID())
}

// Span returns the rows of the task, in a graph of n rows.
func (env *Env) Span(n int64) (lo, hi int64) {
	if !env.Task.Shares() {
		return 0, n
	}
	return min(int64(env.Task.First)*packed.StripRows, n), min(int64(env.Task.Last)*packed.StripRows, n)
}

// Sharing returns a task without the fields that do not affect what its session keeps open for the next.
func Sharing(t control.Task) control.Task {
	if t.Part != control.Strips {
		t.First, t.Last = 0, 0
	}
	if t.Stage == control.LSI && t.Part == control.Rows {
		t.Part = control.Columns // the same graph
	}
	return t
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
