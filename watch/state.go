package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/progress"
)

// Run is the watched run.
type Run interface {
	Status() coordinator.Status
	// Leading says that the run goes on in this process.
	Leading() bool
	// History tells which worker had which task when.
	History() []coordinator.Span
}

// State is how a run goes. Its JSON field names are stable; state.schema.json describes them.
type State struct {
	coordinator.Status
	// Course is nil between stages.
	Course *progress.Course `json:"course,omitempty"`
	// Settled describes how K fills, hop by hop, in the LSI stage under way, for the worker that is
	// behind most.
	Settled []Settled `json:"settled,omitempty"`
	// Learned says how the training under way learns, epoch by epoch: of one model where there are several.
	Learned []Learned `json:"learned,omitempty"`
	// Elapsed is the time in seconds since this process began to work on the run.
	Elapsed float64 `json:"elapsed_seconds"`
	// Graph says what is worked on.
	Graph string `json:"graph,omitempty"`
	// History tells which worker had which task when, since this process began to work on the run.
	History []coordinator.Span `json:"history,omitempty"`
	// Limits holds the limits of this host, nil as long as they are not measured.
	Limits *control.Limits `json:"limits,omitempty"`
	// LimitsOfWorkers holds the limits of all present workers, if each is a process of its own; nil
	// if Limits are known, or no worker has measured its rates.
	LimitsOfWorkers *WorkerLimits `json:"limits_of_workers,omitempty"`
	// Log has the last lines of the log of the process that answers, and of worker processes that it has started.
	Log []Line `json:"log,omitempty"`
	// Versions holds the versions of the process that answers.
	Versions map[string]string `json:"versions,omitempty"`
}

// Settled says which share of the nodes has its K after a hop.
type Settled struct {
	Hop   int     `json:"hop"`
	Share float64 `json:"share"`
}

// Learned says which share of the validation nodes the best weights classify right after an epoch.
type Learned struct {
	Epoch int     `json:"epoch"`
	Valid float64 `json:"valid"`
}

// watcher looks at a run.
type watcher struct {
	run   Run
	o     Options
	began time.Time

	mu      sync.Mutex
	settled []Settled
	learned []Settled
	graph   string
	known   int // how many stages were complete when the graph was asked for, and one more
}

func newWatcher(run Run, o Options) *watcher { return &watcher{run: run, o: o, began: time.Now()} }

// state is how the run goes now.
func (w *watcher) state() State {
	s := State{Status: w.run.Status(), Log: w.o.Log.Lines(), Versions: w.o.Versions}
	if w.o.Limits != nil {
		s.Limits = w.o.Limits()
	}
	if w.o.Watch != nil {
		if c, ok := w.o.Watch.Course(time.Now()); ok {
			s.Course = &c
		}
	}
	s.Elapsed = time.Since(w.began).Seconds()
	s.History = w.run.History()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Graph = w.describe(s.Status)
	s.Settled = follow(&w.settled, s.Status, control.LSI, false)
	for _, x := range follow(&w.learned, s.Status, control.Train, true) {
		s.Learned = append(s.Learned, Learned{x.Hop, x.Share})
	}
	if s.Limits == nil {
		s.LimitsOfWorkers = limitsOf(s.Workers)
	}
	return s
}

// describe says what is worked on. It asks again once another stage is complete, since the import tells more. The caller
// holds the lock.
func (w *watcher) describe(s coordinator.Status) string {
	known := 1
	for _, x := range s.Stages {
		if x.State == coordinator.Complete {
			known++
		}
	}
	if w.o.Graph != nil && known != w.known {
		w.graph, w.known = w.o.Graph(context.Background()), known
	}
	return w.graph
}

// follow adds to a curve what a worker says in a stage: the one that is ahead of the others, or behind them. It forgets
// the curve in other stages.
func follow(curve *[]Settled, s coordinator.Status, stage control.Stage, ahead bool) []Settled {
	if s.Stage != stage {
		*curve = nil
		return nil
	}
	now, some := Settled{}, false
	for _, x := range s.Workers {
		p := x.Progress
		if behind := p.Hop < now.Hop || p.Hop == now.Hop && p.Settled < now.Share; p.Hop > 0 && (!some || behind != ahead) {
			now, some = Settled{p.Hop, p.Settled}, true
		}
	}
	list := *curve
	if some {
		for len(list) > 0 && list[len(list)-1].Hop >= now.Hop {
			list = list[:len(list)-1] // another block, another model, or a state that was resumed
		}
		if len(list) == control.MaxLines {
			list = list[1:]
		}
		list = append(list, now)
	}
	*curve = list
	return slices.Clone(list)
}
