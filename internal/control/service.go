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
	"ndls/internal/seal"
	"ndls/plan"
)

var (
	// ErrLeaseLost reports that a task is no longer the caller's: its lease ran out,
	// or another attempt holds it. What the caller wrote for it is not listed.
	ErrLeaseLost = failure.Kind("the lease is lost")
	// ErrEnded is the answer to a worker that asks for work after the run has ended.
	ErrEnded = failure.Kind("the run has ended")
	// ErrDrained is the answer to a worker that asks for work but gets no more.
	ErrDrained = failure.Kind("the worker shall have no further task")
	// ErrRefused marks a worker that may not join: another plan, version or token.
	ErrRefused = failure.Kind("refused by the coordinator")
	// ErrUnable reports a task for which no worker has enough memory or disk.
	ErrUnable = failure.Kind("no worker has the memory or the disk for it")
	// ErrRejected reports a call that the coordinator refuses, however often it is repeated: an
	// impossible change of the catalogue, for example.
	ErrRejected = failure.Kind("the coordinator does not accept it")
)

// Final reports whether a call that failed so would fail in the same way again. All other errors
// concern the coordinator, its store or the network, and may pass.
func Final(err error) bool {
	for _, final := range []error{
		ErrLeaseLost, ErrEnded, ErrDrained, ErrRefused, ErrRejected, ErrUnable, failure.ErrOption, ErrPlanMismatch,
		seal.ErrCorrupt, seal.ErrVersion, mem.ErrBudget,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// MaxFiles bounds the files that one call may name.
const MaxFiles = 1 << 18

// Part names the part of its stage that a task does.
type Part string

// These are the parts of stages.
const (
	Whole   Part = "whole"   // all of it
	Columns Part = "columns" // panels [First, Last)
	Rows    Part = "rows"    // the finished rows of intervals [First, Last)
	// Strips covers some columns, or all, of the rows of strips [First, Last). The tasks with the
	// same columns cover all strips, and run at the same time: their workers are a [Gang]. In
	// training there are models in place of columns, and the strips of a worker are its share of
	// the rows of a step.
	Strips Part = "strips"
)

// Pick makes the choice of a stage after the rows of all intervals are counted.
const Pick Part = "pick"

// Choose makes the choice of a stage before all other parts.
const Choose Part = "choose"

// Count counts what the rows of an interval say. Other parts of a partition are named like the steps of package partition: pieces
// [First, Last) into which it cuts a step.
const Count Part = "count"

// Models covers models [First, Last) of those that are trained.
const Models Part = "models"

// ID returns the name of a task in journals, messages and reports: "smooth/columns/0-2", or
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

// Shares reports whether the task belongs to a gang, whose workers share the rows of the graph.
func (t Task) Shares() bool { return t.Part == Strips }

// Inputs names the files that a run reads outside of its directory. On a cluster every worker must
// find them under the same names.
type Inputs struct {
	// Dataset is the URI to import from, with its paths. Only the partition
	// stage reads it.
	Dataset string `json:"dataset,omitempty"`
	// SoftLabels is the file named by Plan.Labels.SoftLabels, Targets the file named by
	// Plan.Smooth.Targets.
	SoftLabels string `json:"soft_labels,omitempty"`
	Targets    string `json:"targets,omitempty"`
	// TrainRows and ValidRows are the run directories whose hash is Plan.Train.On: models are
	// trained on the rows of the training nodes of one, and of the validation nodes of the
	// other, which may be the same. If Plan.Partition.Columns is set, the partition takes how columns become features from the first.
	TrainRows string `json:"train_rows,omitempty"`
	ValidRows string `json:"valid_rows,omitempty"`
	// LabelEpsilons lists, separated by commas, distances for which K may be needed later. The LSI
	// stage also finds K for those above its own distance.
	LabelEpsilons string `json:"label_epsilons,omitempty"`
}

// Over returns the names that in has, and those of before where in has none.
func (in Inputs) Over(before Inputs) Inputs {
	return Inputs{
		Dataset: cmp.Or(in.Dataset, before.Dataset), SoftLabels: cmp.Or(in.SoftLabels, before.SoftLabels),
		Targets:   cmp.Or(in.Targets, before.Targets),
		TrainRows: cmp.Or(in.TrainRows, before.TrainRows), ValidRows: cmp.Or(in.ValidRows, before.ValidRows),
	}
}

// Flags returns the flags of `ndls run` that name the inputs.
func (in Inputs) Flags() map[string]string {
	trained := in.TrainRows
	if in.ValidRows != trained {
		trained += "," + in.ValidRows
	}
	flags := map[string]string{"dataset": in.Dataset, "soft-labels": in.SoftLabels, "targets": in.Targets, "train-on": trained}
	maps.DeleteFunc(flags, func(_, value string) bool { return value == "" })
	return flags
}

// Hello introduces a worker.
type Hello struct {
	// Worker is a name that no other process has had, not even an earlier one on the same machine.
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
	// Rates holds the rates that the worker has measured.
	Rates Rates `json:"rates,omitzero"`
}

// Resources returns the resources with which a stage is planned for the worker.
func (h Hello) Resources() Resources { return Resources{Memory: h.Memory, Threads: h.Threads} }

// Rates holds the work of a worker in a second, as measured when it joined; 0 if not measured.
type Rates struct {
	// Edges counts edges added to rows of a panel, on all threads.
	Edges float64 `json:"edges"`
	// Network counts bytes of rows received from another worker, Store bytes read from the run
	// directory.
	Network float64 `json:"network,omitempty"`
	Store   float64 `json:"store,omitempty"`
	// Delay is not a rate: it is the seconds in which something small goes to another worker.
	Delay float64 `json:"delay,omitempty"`
}

// Welcome is the coordinator's answer.
type Welcome struct {
	Plan plan.Options `json:"plan"`
	// Store is the URI of the run directory.
	Store string `json:"store"`
	// Heartbeat is the interval at which leases must be renewed.
	Heartbeat time.Duration `json:"heartbeat"`
	// Checkpoint is the interval at which the state of a task should be committed.
	Checkpoint time.Duration `json:"checkpoint"`
	// Peer is the address at which another worker serves rows, "" if there is none yet. The worker
	// measures the network with it.
	Peer string `json:"peer,omitempty"`
}

// Lease is the right to commit a task's output until a deadline.
type Lease struct {
	Task Task `json:"task"`
	// Fencing increases with every lease of a run and names the lease.
	Fencing uint64 `json:"fencing"`
	// TTL is the time until the lease runs out, from now and from each renewal.
	TTL time.Duration `json:"ttl"`
	// Trace is the span of the stage, to which the span of the task belongs, "" if nobody traces.
	Trace string `json:"trace,omitempty"`
}

// Progress is the report of a worker about its task as it renews its lease.
type Progress struct {
	What  string `json:"what"` // the present work: "hops"
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Unit  string `json:"unit"`
	// Where says in words where the work is, such as "hop 7 of at most 200", if its total is not known.
	Where string `json:"where,omitempty"`
	// Saved is the value of Done at the last checkpoint: a loss of the worker does not lose that
	// work.
	Saved int64 `json:"saved"`
	// Left is the estimated time that the task still needs, in seconds; 0 if unknown.
	Left float64 `json:"left_seconds,omitempty"`
	// Hop and Settled report, in the LSI stage, the share of the worker's nodes with a known K
	// after a hop. In stage train they are an epoch, and the best share so far of validation nodes
	// that a model under way classifies right.
	Hop     int     `json:"hop,omitempty"`
	Settled float64 `json:"settled,omitempty"`
	// Usage reports the resources of the worker's process.
	Usage Usage `json:"usage,omitzero"`
}

// Edges is the unit of Progress of passes over the edges.
const Edges = "edges"

// Usage holds the resources that a worker's process uses.
type Usage struct {
	// Memory is its resident size in bytes.
	Memory int64 `json:"memory"`
	// Disk is the size of its temporary files, and of the run directory too if there is no other
	// worker.
	Disk int64 `json:"disk"`
	// Read and Written count bytes of the run directory and of scratch files, since the process
	// began.
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
	// Edges counts directed edges that its passes have added since then, Rows the bytes of rows
	// that they read for that.
	Edges int64 `json:"edges"`
	Rows  int64 `json:"rows"`
}

// Change lists and unlists files, in one step. The coordinator deletes the files that it unlists
// for good; files in Added as well are about to be replaced.
type Change struct {
	Added []catalog.Entry `json:"added,omitempty"`
	// Removed lists paths.
	Removed []string `json:"removed,omitempty"`
	// Delete says that the removed files are deleted from the store.
	Delete bool `json:"delete,omitempty"`
}

// Kind says how to treat a failed task.
type Kind string

// These are the kinds of failures.
const (
	// Retry says that another attempt, perhaps elsewhere, may succeed.
	Retry Kind = "retry"
	// Unable says that this worker has too little memory or scratch disk; another may have enough.
	Unable Kind = "unable"
	// Fatal says that no attempt can succeed.
	Fatal Kind = "fatal"
	// Drained says that the worker was told to stop; the task continues elsewhere, and nothing is
	// wrong with it.
	Drained Kind = "drained"
	// Broken says that another worker of the gang failed, or cannot be reached.
	Broken Kind = "broken"
)

// Gang lists the workers that share the rows of one column block, in row order.
type Gang struct {
	// Number is unique among all gangs of the run and all attempts.
	Number uint64
	// Self is the place of the asking worker.
	Self int
	// Borders lists the strips where the workers' rows begin, and then the end.
	Borders []int
	// Peers lists the addresses at which they serve rows.
	Peers []string
}

// Outcome says how a task ended.
type Outcome struct {
	// Report is set if the task is done, Kind and Reason if it failed.
	Report *StageReport `json:"report,omitempty"`
	Kind   Kind         `json:"kind,omitempty"`
	// Reason is the text that a user reads. Kinds lists the names of the kinds of the error
	// ([KindNames]).
	Reason string   `json:"reason,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
}

// Failed returns the outcome of an attempt that failed with err.
func Failed(kind Kind, err error) Outcome {
	return Outcome{Kind: kind, Reason: failure.Text(err), Kinds: KindNames(err)}
}

// Service is the interface of a coordinator for its workers. A call whose error is not [Final] may
// be repeated.
type Service interface {
	// Join admits a worker, or fails with ErrRefused. A worker whose coordinator
	// was restarted joins again.
	Join(ctx context.Context, h Hello) (Welcome, error)
	// Next waits for a task for the worker. It fails with ErrEnded when no more tasks come, with
	// ErrDrained for a drained worker, and with ErrRefused for one that has not joined.
	Next(ctx context.Context, worker string) (Lease, error)
	// Gang waits until all tasks of Strips with the columns of the lease's task are leased, and
	// returns their workers. It fails with ErrLeaseLost. When one of these leases ends without a
	// report, all of them end.
	Gang(ctx context.Context, fencing uint64) (Gang, error)
	// Renew keeps a lease, or fails with ErrLeaseLost.
	Renew(ctx context.Context, fencing uint64, p Progress) error
	// Commit changes the catalogue on behalf of a lease, durably, or fails with
	// ErrLeaseLost.
	Commit(ctx context.Context, fencing uint64, c Change) error
	// Finish ends a lease. It fails with ErrLeaseLost if the lease had ended already.
	Finish(ctx context.Context, fencing uint64, o Outcome) error
	// Catalog returns the changes of the list of committed files since a version of the list. If
	// that version is unknown it returns the whole list.
	Catalog(ctx context.Context, since catalog.Version) (catalog.Listing, error)
}
