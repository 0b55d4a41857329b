package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
)

var (
	// ErrLeaseLost reports that a task is no longer the caller's: its lease ran out,
	// or another attempt holds it. What the caller wrote for it is not listed.
	ErrLeaseLost = failure.Kind("the lease is lost")
	// ErrEnded is what a worker is told that asks for work after the run has ended.
	ErrEnded = failure.Kind("the run has ended")
	// ErrDrained is what a worker is told that asks for work and shall have no more of it.
	ErrDrained = failure.Kind("the worker shall have no further task")
	// ErrRefused marks a worker that may not join: another plan, version or token.
	ErrRefused = failure.Kind("refused by the coordinator")
	// ErrUnable reports a task for which no worker has the memory or the disk.
	ErrUnable = failure.Kind("no worker has the memory or the disk for it")
	// ErrRejected reports a call that the coordinator does not accept, however often it
	// is repeated: a change of the catalogue that cannot be, for example.
	ErrRejected = failure.Kind("the coordinator does not accept it")
)

// Final says whether a call that failed so would fail in the same way if it were
// repeated. All other errors have to do with the coordinator, its store or the network,
// and may pass.
func Final(err error) bool {
	for _, final := range []error{ErrLeaseLost, ErrEnded, ErrDrained, ErrRefused, ErrRejected, ErrUnable, ErrOption, ErrPlanMismatch, seal.ErrCorrupt, seal.ErrVersion, mem.ErrBudget} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// MaxFiles bounds the files that one call may name.
const MaxFiles = 1 << 18

// Part says what a task takes of its stage.
type Part string

// The parts of stages.
const (
	Whole   Part = "whole"   // all of it
	Columns Part = "columns" // panels [First, Last)
	Rows    Part = "rows"    // the finished rows of intervals [First, Last)
	// Strips is some columns, or all, of the rows of strips [First, Last). The tasks with the
	// same columns have all strips, and are done at the same time: their workers are a [Gang]. In
	// training there are models in place of columns, and the strips of a worker are its share of the rows of a step.
	Strips Part = "strips"
	// LeftStrips and RightStrips are Strips of the left and of the right half of each panel alone. Each half has a gang
	// of its own.
	LeftStrips  Part = "strips-left"
	RightStrips Part = "strips-right"
)

// Pick is what a stage finds out once the rows of all intervals are counted.
const Pick Part = "pick"

// Choose is what a stage finds out before all other parts. Where First is below Last a gang does it,
// of which each worker has the rows of these strips.
const Choose Part = "choose"

// The other parts of a partition, with the names that package partition has for
// its steps: pieces [First, Last) of what it cuts a step into.
const (
	Split   Part = "split"
	Merge   Part = "merge"
	Count   Part = "count"
	Gather  Part = "gather"
	Order   Part = "order"
	Relabel Part = "relabel"
	Deal    Part = "deal"
	Tiles   Part = "tiles"
)

// Models is models [First, Last) of those that are trained.
const Models Part = "models"

// ID names a task in journals, messages and reports: "smooth/columns/0-2", or
// "smooth/strips/0-4/panels/0-2".
func (t Task) ID() string {
	if t.Part == Whole || t.Part == "" {
		return string(t.Stage)
	}
	id := fmt.Sprintf("%s/%s/%d-%d", t.Stage, t.Part, t.First, t.Last)
	if t.LastPanel > 0 {
		id += fmt.Sprintf("/panels/%d-%d", t.FirstPanel, t.LastPanel)
	}
	return id
}

// Shares says whether the task is one of a gang, whose workers share the rows of the graph.
func (t Task) Shares() bool {
	return t.Part == Strips || t.Side() != packed.Both || t.Part == Choose && t.First < t.Last
}

// Side says which columns of each panel the task takes.
func (t Task) Side() packed.Side {
	switch t.Part {
	case LeftStrips:
		return packed.Left
	case RightStrips:
		return packed.Right
	}
	return packed.Both
}

// Inputs are the files that a run reads and that are not in its directory. On
// a cluster every worker must find them under the same names.
type Inputs struct {
	// Dataset is the URI to import from, with its paths. Only the partition
	// stage reads it.
	Dataset string `json:"dataset,omitempty"`
	// SoftLabels is the file named by Plan.Labels.SoftLabels, Targets that named
	// by Plan.Smooth.Targets.
	SoftLabels string `json:"soft_labels,omitempty"`
	Targets    string `json:"targets,omitempty"`
	// TrainRows and ValidRows are the run directories whose hash is Plan.Train.On: models are
	// trained on the rows of the training nodes of one, and of the validation nodes of the
	// other, which may be the same.
	TrainRows string `json:"train_rows,omitempty"`
	ValidRows string `json:"valid_rows,omitempty"`
	// LabelEpsilons lists, with commas, distances for which K may be asked later. The LSI
	// stage finds K for those above its own on the way.
	LabelEpsilons string `json:"label_epsilons,omitempty"`
}

// Over returns what in names, and what was named before for all that in does not name.
func (in Inputs) Over(before Inputs) Inputs {
	return Inputs{
		Dataset: cmp.Or(in.Dataset, before.Dataset), SoftLabels: cmp.Or(in.SoftLabels, before.SoftLabels), Targets: cmp.Or(in.Targets, before.Targets),
		TrainRows: cmp.Or(in.TrainRows, before.TrainRows), ValidRows: cmp.Or(in.ValidRows, before.ValidRows),
	}
}

// Flags are the flags of `ndls run` that name it.
func (in Inputs) Flags() map[string]string {
	trained := in.TrainRows
	if in.ValidRows != trained {
		trained += "," + in.ValidRows
	}
	flags := map[string]string{"dataset": in.Dataset, "soft-labels": in.SoftLabels, "targets": in.Targets, "train-on": trained}
	maps.DeleteFunc(flags, func(_, value string) bool { return value == "" })
	return flags
}

// Hello is how a worker introduces itself.
type Hello struct {
	// Worker is a name that no other process has had, also not one before on the
	// same machine.
	Worker string `json:"worker"`
	// Version is the version and the commit of the program. Both sides must have the same.
	Version string `json:"version"`
	Memory  int64  `json:"memory"`
	Threads int    `json:"threads"`
	// Blocks is the address at which the worker serves rows to others, "" if
	// it does not.
	Blocks string `json:"blocks,omitempty"`
	// Holds lists the paths of catalogued files of which the worker has a copy.
	Holds []string `json:"holds,omitempty"`
	// Rates are what the worker has measured.
	Rates Rates `json:"rates,omitzero"`
}

// Rates are what a worker can do in a second, as it has measured when it joined; 0 where it has not.
type Rates struct {
	// Edges are added to rows of a panel, on all threads.
	Edges float64 `json:"edges"`
	// Network is bytes of rows from another worker, Store bytes of the run directory that are read.
	Network float64 `json:"network,omitempty"`
	Store   float64 `json:"store,omitempty"`
	// Delay is not a rate: the seconds until something small has gone to another worker.
	Delay float64 `json:"delay,omitempty"`
}

// Welcome is the coordinator's answer.
type Welcome struct {
	Plan Plan `json:"plan"`
	// Store is the URI of the run directory.
	Store string `json:"store"`
	// Heartbeat is how often leases are to be renewed.
	Heartbeat time.Duration `json:"heartbeat"`
	// Checkpoint is how often the state of a task is to be committed.
	Checkpoint time.Duration `json:"checkpoint"`
	// Peer is where another worker serves rows, "" if there is none yet: how fast they come can be
	// measured there.
	Peer string `json:"peer,omitempty"`
}

// Lease is the right to commit a task's output until a deadline.
type Lease struct {
	Task Task `json:"task"`
	// Fencing increases with every lease of a run; it is the lease's name.
	Fencing uint64 `json:"fencing"`
	// TTL is how long the lease lasts from now, and from each renewal.
	TTL time.Duration `json:"ttl"`
	// Trace is the span of the stage, of which that of the task is a part, "" where nobody traces.
	Trace string `json:"trace,omitempty"`
}

// Progress is what a worker tells of a task as it renews its lease.
type Progress struct {
	What  string `json:"what"` // of the present work: "hops"
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Unit  string `json:"unit"`
	// Where says in words where the work is, such as "hop 7 of at most 200", if its total is not known.
	Where string `json:"where,omitempty"`
	// Saved is Done as of the last checkpoint: what a loss of the worker would
	// not take away.
	Saved int64 `json:"saved"`
	// Left is how many seconds the task still takes, as far as its worker can tell; 0 where
	// that is not known.
	Left float64 `json:"left_seconds,omitempty"`
	// Hop and Settled say, in the LSI stage, which share of the worker's nodes has its K after a hop. In stage train they are
	// an epoch, and the best share of validation nodes so far that a model under way classifies right.
	Hop     int     `json:"hop,omitempty"`
	Settled float64 `json:"settled,omitempty"`
	// Usage is what the worker's process takes.
	Usage Usage `json:"usage,omitzero"`
}

// Edges is the unit of Progress of passes over the edges.
const Edges = "edges"

// Usage is what a worker's process takes.
type Usage struct {
	// Memory is its resident size.
	Memory int64 `json:"memory"`
	// Disk is what its temporary files take, and, where no other worker is there, those of the run directory.
	Disk int64 `json:"disk"`
	// Read and Written are bytes of the run directory and of scratch files, since the process began.
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
	// Edges are directed edges that its passes have added since then, Rows the bytes of rows that they read for that.
	Edges int64 `json:"edges"`
	Rows  int64 `json:"rows"`
}

// Change lists and unlists files, in one step. The coordinator deletes the files
// that it unlists for good; those that are in Added too are about to be replaced.
type Change struct {
	Added []catalog.Entry `json:"added,omitempty"`
	// Removed are paths.
	Removed []string `json:"removed,omitempty"`
	// Delete says that the removed files are to be deleted from the store.
	Delete bool `json:"delete,omitempty"`
}

// Kind says what is to be done about a task that failed.
type Kind string

// The kinds of failures.
const (
	// Retry: another attempt, perhaps elsewhere, may succeed.
	Retry Kind = "retry"
	// Unable: this worker's memory or scratch disk does not do; another's may.
	Unable Kind = "unable"
	// Fatal: no attempt will.
	Fatal Kind = "fatal"
	// Drained: the worker was told to stop; the task continues elsewhere and
	// nothing was wrong with it.
	Drained Kind = "drained"
	// Broken: another worker of the gang failed, or cannot be reached.
	Broken Kind = "broken"
)

// Gang is workers that have the tasks of the same columns of a phase of Strips, in order of
// their rows.
type Gang struct {
	// Number is that of no other gang of the run, nor of another attempt of this one.
	Number uint64
	// Self is which of them asks.
	Self int
	// Borders are the strips where they begin, and then the end.
	Borders []int
	// Peers are the addresses at which they serve rows.
	Peers []string
}

// Outcome is how a task ended.
type Outcome struct {
	// Report is set where the task is done, Kind and Reason where it failed.
	Report *StageReport `json:"report,omitempty"`
	Kind   Kind         `json:"kind,omitempty"`
	// Reason is the text that a user reads, Kinds are the names of the kinds of the error
	// ([KindNames]).
	Reason string   `json:"reason,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
}

// Failed is the outcome of an attempt that failed with err.
func Failed(kind Kind, err error) Outcome {
	return Outcome{Kind: kind, Reason: failure.Text(err), Kinds: KindNames(err)}
}

// Service is what a coordinator does for its workers. A call whose error is not
// [Final] may be repeated.
type Service interface {
	// Join admits a worker, or fails with ErrRefused. A worker whose coordinator
	// was restarted joins again.
	Join(ctx context.Context, h Hello) (Welcome, error)
	// Next waits for a task for the worker. It fails with ErrEnded once there
	// will be none, with ErrDrained for a worker that shall have none, and with ErrRefused for one
	// that has not joined.
	Next(ctx context.Context, worker string) (Lease, error)
	// Gang waits until all tasks of Strips with the columns of the lease's task are leased, and
	// says to whom. It fails with ErrLeaseLost. When one of these leases ends without a
	// report, so do all.
	Gang(ctx context.Context, fencing uint64) (Gang, error)
	// Renew keeps a lease, or fails with ErrLeaseLost.
	Renew(ctx context.Context, fencing uint64, p Progress) error
	// Commit changes the catalogue on behalf of a lease, durably, or fails with
	// ErrLeaseLost.
	Commit(ctx context.Context, fencing uint64, c Change) error
	// Finish ends a lease. It fails with ErrLeaseLost where it had ended already.
	Finish(ctx context.Context, fencing uint64, o Outcome) error
	// Catalog says what has changed in the list of committed files since a version of the list.
	// Where that is not known it lists all files.
	Catalog(ctx context.Context, since catalog.Version) (catalog.Listing, error)
}
