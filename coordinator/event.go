package coordinator

import (
	"errors"
	"fmt"
	"time"

	"ndls/internal/control"
	"ndls/internal/failure"
)

// fact names what an event says.
type fact string

const (
	// snapshot: all that was before, in one event.
	snapshot fact = "snapshot"
	// forgotten: nothing is known any more of the stage that was under way. Discards counts how often output of the
	// run was discarded until then.
	forgotten fact = "forgotten"
	// phase: the tasks of the next phase; leases of others are over.
	phase fact = "phase"
	// leased: a worker has a task.
	leased fact = "leased"
	// committed: a lease has changed the catalogue. It is written after that, so
	// that a coordinator that was replaced in between does not confirm the change. Catalog is the number of a
	// change that is durable by then, that one or a later one.
	committed fact = "committed"
	// ended: a worker is done with a task, or has failed, or has given it back. Its gang
	// ends with it, unless the worker is done.
	ended fact = "ended"
	// lost: a lease has run out.
	lost fact = "lost"
	// unable: no worker that is here has the memory or the disk for a task.
	unable fact = "unable"
)

// event is one fact of the journal. What it says beside Fact depends on that.
type event struct {
	Fact    fact             `json:"fact"`
	State   *state           `json:"state,omitempty"`
	Stage   control.Stage    `json:"stage,omitempty"`
	Workers int              `json:"workers,omitempty"`
	Tasks   []part           `json:"tasks,omitempty"`
	Task    string           `json:"task,omitempty"`
	Worker  string           `json:"worker,omitempty"`
	Fencing uint64           `json:"fencing,omitempty"`
	Blocks  string           `json:"blocks,omitempty"`
	Outcome *control.Outcome `json:"outcome,omitempty"`
	Loss    *Loss            `json:"loss,omitempty"`
	// At is when the task was given, or something of it saved: what is lost with
	// the lease is reckoned from then.
	At       time.Time `json:"at,omitzero"`
	Catalog  uint64    `json:"catalog,omitempty"`
	Discards int       `json:"discards,omitempty"`
}

// frees says whether workers that had nothing to do may have a task after the event. None
// may after another worker has begun, saved or finished one.
func (e event) frees() bool {
	switch e.Fact {
	case leased, committed, snapshot:
		return false
	case ended:
		return e.Outcome == nil || e.Outcome.Report == nil
	}
	return true
}

// part is a task of a phase, without what all tasks of a run have in common.
type part struct {
	Part  control.Part `json:"part"`
	First int          `json:"first"`
	Last  int          `json:"last"`
	Needs int64        `json:"needs,omitempty"`
	// FirstPanel and LastPanel are the task's.
	FirstPanel int `json:"first_panel,omitempty"`
	LastPanel  int `json:"last_panel,omitempty"`
}

func partOf(t control.Task) part {
	return part{t.Part, t.First, t.Last, t.Needs, t.FirstPanel, t.LastPanel}
}

func partsOf(tasks []control.Task) []part {
	var parts []part
	for _, t := range tasks {
		parts = append(parts, partOf(t))
	}
	return parts
}

func (p part) task(s control.Stage) control.Task {
	return control.Task{Stage: s, Part: p.Part, First: p.First, Last: p.Last, Needs: p.Needs, FirstPanel: p.FirstPanel, LastPanel: p.LastPanel}
}

// Loss is work that has to be done again: that of a worker that was lost, or
// failed, since the task's last checkpoint.
type Loss = control.Loss

// state is all that outlives a coordinator.
type state struct {
	// Fencing is the largest number that was given out.
	Fencing uint64        `json:"fencing"`
	Stage   control.Stage `json:"stage,omitempty"`
	// Catalog and Discards are the largest of all events.
	Catalog  uint64 `json:"catalog,omitempty"`
	Discards int    `json:"discards,omitempty"`
	// Workers is the number of workers for which the stage was cut.
	Workers int `json:"workers,omitempty"`
	// Tasks are those of the present phase, Earlier the reports of phases before.
	Tasks   []taskState           `json:"tasks,omitempty"`
	Earlier []control.StageReport `json:"earlier,omitempty"`
	Open    []openLease           `json:"open,omitempty"`
	Losses  []Loss                `json:"losses,omitempty"`
	Failed  *givenUp              `json:"failed,omitempty"`
	// Broken and Breaks are those of gangs, by their names, Unfit that of
	// all of them.
	Broken []int       `json:"broken_gangs,omitempty"`
	Breaks map[int]int `json:"breaks_of_gangs,omitempty"`
	Unfit  []string    `json:"unfit,omitempty"`
	// Strikes counts each worker's losses since it last finished a task.
	Strikes map[string]int `json:"strikes,omitempty"`
}

type taskState struct {
	part
	Report   *control.StageReport `json:"report,omitempty"`
	Losses   int                  `json:"losses,omitempty"`
	LostWith []string             `json:"lost_with,omitempty"`
	Failures int                  `json:"failures,omitempty"`
	Unable   []string             `json:"unable,omitempty"`
}

type openLease struct {
	Task    string `json:"task"`
	Worker  string `json:"worker"`
	Fencing uint64 `json:"fencing"`
	// Saved is the event's At of what was saved last.
	Saved  time.Time `json:"saved,omitzero"`
	Blocks string    `json:"blocks,omitempty"`
}

// givenUp is why a phase cannot end.
type givenUp struct {
	Task   string `json:"task"`
	Reason string `json:"reason"`
	// Kinds are the names of the kinds of the error.
	Kinds []string `json:"kinds,omitempty"`
	// Unable says that workers with more memory or disk might do the task, Final that the
	// reason is the error of one attempt, after which no other could do better.
	Unable bool `json:"unable,omitempty"`
	Final  bool `json:"final,omitempty"`
}

// error is what the run ends with. It does not name tasks where there are no workers.
func (f *givenUp) error(alone bool) error {
	what := f.Task
	if alone {
		what = "it"
	}
	text := f.Reason
	switch {
	case f.Unable:
		text = fmt.Sprintf("no worker has the memory or the disk for %s; %s", what, f.Reason)
	case !f.Final:
		text = what + " " + f.Reason
	}
	return failure.As(errors.Join(append(control.KindsNamed(f.Kinds), f.kind())...), errors.New(text))
}

// kind is ErrTask, and control.ErrUnable where it is that.
func (f *givenUp) kind() error {
	if f.Unable {
		return fmt.Errorf("%w: %w", ErrTask, control.ErrUnable)
	}
	return ErrTask
}
