package coordinator

import (
	"errors"
	"fmt"
	"time"

	"ndls/internal/control"
	"ndls/internal/failure"
)

// fact names the kind of an event.
type fact string

const (
	// snapshot holds everything that was before, in one event.
	snapshot fact = "snapshot"
	// forgotten drops everything known of the stage under way. Discards counts how often output of the run was discarded until then.
	forgotten fact = "forgotten"
	// phase lists the tasks of the next phase; leases of earlier phases are over.
	phase fact = "phase"
	// leased says that a worker got a task.
	leased fact = "leased"
	// committed says that a lease has changed the catalogue. It is written after the change: a coordinator that was replaced in between does
	// not confirm the change. Catalog is the number of a change that is durable by then: this change or a later one.
	committed fact = "committed"
	// ended says that a worker has finished a task, has failed, or has given it back. Unless the worker has finished it, its gang ends as
	// well.
	ended fact = "ended"
	// lost says that a lease has run out.
	lost fact = "lost"
	// unable says that no present worker has enough memory or disk for a task.
	unable fact = "unable"
)

// event is one fact of the journal. Which fields have a value depends on Fact.
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
	// At is the time when the task was leased, or when its last checkpoint was saved. If the lease is lost, the work since At is lost.
	At       time.Time `json:"at,omitzero"`
	Catalog  uint64    `json:"catalog,omitempty"`
	Discards int       `json:"discards,omitempty"`
}

// frees reports whether workers that had nothing to do may get a task after the event. None may after another worker has begun, saved or
// finished one.
func (e event) frees() bool {
	switch e.Fact {
	case leased, committed, snapshot:
		return false
	case ended:
		return e.Outcome == nil || e.Outcome.Report == nil
	}
	return true
}

// part describes one task of a phase, without what all tasks of a run have in common.
type part struct {
	Part  control.Part `json:"part"`
	First int          `json:"first"`
	Last  int          `json:"last"`
	Needs int64        `json:"needs,omitempty"`
	// FirstPanel and LastPanel delimit the panels of the task.
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

// Loss describes work that has to be done again: the work of a worker that was lost or failed, since the last checkpoint of the task.
type Loss = control.Loss

// state holds everything that must outlive a coordinator.
type state struct {
	// Fencing is the largest fencing number that was given out.
	Fencing uint64        `json:"fencing"`
	Stage   control.Stage `json:"stage,omitempty"`
	// Catalog and Discards are the largest of these numbers in all events.
	Catalog  uint64 `json:"catalog,omitempty"`
	Discards int    `json:"discards,omitempty"`
	// Workers is the number of workers for which the stage was cut.
	Workers int `json:"workers,omitempty"`
	// Tasks lists the tasks of the present phase. Earlier lists the reports of the phases before.
	Tasks   []taskState           `json:"tasks,omitempty"`
	Earlier []control.StageReport `json:"earlier,omitempty"`
	Open    []openLease           `json:"open,omitempty"`
	Losses  []Loss                `json:"losses,omitempty"`
	Failed  *givenUp              `json:"failed,omitempty"`
	// Broken lists the gangs that are broken and Breaks counts how often each gang broke, both by the name of the gang. Unfit lists the
	// workers that no gang takes.
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
	// Saved is the field At of the last event that saved something.
	Saved  time.Time `json:"saved,omitzero"`
	Blocks string    `json:"blocks,omitempty"`
}

// givenUp says why a phase cannot end.
type givenUp struct {
	Task   string `json:"task"`
	Reason string `json:"reason"`
	// Kinds lists the names of the kinds of the error.
	Kinds []string `json:"kinds,omitempty"`
	// Unable says that workers with more memory or disk might do the task. Final says that the reason is the error of one attempt, and that no
	// other attempt could do better.
	Unable bool `json:"unable,omitempty"`
	Final  bool `json:"final,omitempty"`
}

// error returns the error with which the run ends. It names no task if there are no other workers.
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

// kind returns ErrTask, together with control.ErrUnable if all present workers are unable.
func (f *givenUp) kind() error {
	if f.Unable {
		return fmt.Errorf("%w: %w", ErrTask, control.ErrUnable)
	}
	return ErrTask
}

// ErrTask reports a task that could not be done.
var ErrTask = errors.New("the task cannot be done")
