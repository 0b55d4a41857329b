package watch

import (
	"slices"
	"sync"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/progress"
)

// Run is what is watched.
type Run interface {
	Status() coordinator.Status
	// Leading says that the run goes on in this process.
	Leading() bool
}

// State is how a run goes. Its JSON field names are stable; state.schema.json describes them.
type State struct {
	coordinator.Status
	// Course is nil between stages.
	Course *progress.Course `json:"course,omitempty"`
	// Settled says how K fills, hop by hop, in the LSI stage under way; it is that of the worker that is
	// behind most.
	Settled []Settled `json:"settled,omitempty"`
	// Limits are those of this host, nil as long as they are not measured.
	Limits *control.Limits `json:"limits,omitempty"`
	// LimitsOfWorkers are those of all workers that are here, where each is a process of its own; nil where Limits are
	// known, or no worker has measured what it can do.
	LimitsOfWorkers *WorkerLimits `json:"limits_of_workers,omitempty"`
	// Log has the last lines of the log of the process that answers, and of worker processes that it has started.
	Log []Line `json:"log,omitempty"`
	// Versions are those of the process that answers.
	Versions map[string]string `json:"versions,omitempty"`
}

// Settled says which share of the nodes has its K after a hop.
type Settled struct {
	Hop   int     `json:"hop"`
	Share float64 `json:"share"`
}

// watcher looks at a run.
type watcher struct {
	run Run
	o   Options

	mu      sync.Mutex
	settled []Settled
}

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
	s.Settled = w.fill(s.Status)
	if s.Limits == nil {
		s.LimitsOfWorkers = limitsOf(s.Workers)
	}
	return s
}

// fill takes note of how many nodes have settled.
func (w *watcher) fill(s coordinator.Status) []Settled {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Stage != control.LSI {
		w.settled = nil
		return nil
	}
	now, any := Settled{}, false
	for _, x := range s.Workers {
		if p := x.Progress; p.Hop > 0 && (!any || p.Hop < now.Hop || p.Hop == now.Hop && p.Settled < now.Share) {
			now, any = Settled{p.Hop, p.Settled}, true
		}
	}
	if !any {
		return slices.Clone(w.settled)
	}
	for len(w.settled) > 0 && w.settled[len(w.settled)-1].Hop >= now.Hop {
		w.settled = w.settled[:len(w.settled)-1] // another block, or a state that was resumed
	}
	if len(w.settled) == control.MaxLines {
		w.settled = w.settled[1:]
	}
	w.settled = append(w.settled, now)
	return slices.Clone(w.settled)
}
