package coordinator

import (
	"cmp"
	"slices"
	"time"

	"ndls/internal/control"
)

// History returns which worker held which task and when, ordered by the beginning: the last [MostSpans] that have ended since this
// coordinator began, and those under way.
func (s *Scheduler) History() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	list := slices.Clone(s.leases.history)
	for _, x := range s.leases.open {
		list = append(list, x.span(now, "under way"))
	}
	slices.SortFunc(list, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	return list
}

// Status describes the present state of a run. Its JSON field names are stable.
type Status struct {
	// Run is the URI of the run directory.
	Run      string `json:"run"`
	PlanHash string `json:"plan_hash"`
	// State is "waiting" for workers or for the next phase, "running", "draining", "stopping" or "ended".
	State string        `json:"state"`
	Stage control.Stage `json:"stage,omitempty"`
	Phase control.Part  `json:"phase,omitempty"`
	Tasks TaskCounts    `json:"tasks"`
	// Stages lists the stages of the run as its record has them.
	Stages []StageStatus `json:"stages"`
	// WantedWorkers is the number of workers that must be present before the first task.
	WantedWorkers int            `json:"wanted_workers"`
	Workers       []WorkerStatus `json:"workers"`
	// Losses lists the work of the run that had to be done again; SecondsLost is the sum.
	Losses      []Loss  `json:"losses"`
	SecondsLost float64 `json:"seconds_lost"`
}

// WorkerStatus describes a worker that has joined.
type WorkerStatus struct {
	Name string `json:"name"`
	// Here is false after the worker was silent for the time of a lease.
	Here bool `json:"here"`
	// LastSeen is the time since the last sign of life, in seconds.
	LastSeen float64 `json:"last_seen_seconds"`
	Memory   int64   `json:"memory"`
	Threads  int     `json:"threads"`
	// Rates holds the rates that the worker measured when it joined.
	Rates control.Rates `json:"rates,omitzero"`
	// Usage is the usage of its process in the last report with a task. Speed is the present rate of that.
	Usage control.Usage `json:"usage,omitzero"`
	Speed Speed         `json:"speed,omitzero"`
	// Draining says that the worker gets no further task.
	Draining bool `json:"draining,omitempty"`
	// Losses counts the losses of the run with this worker.
	Losses int `json:"losses"`
	// Task is "" and Progress is empty for a worker without a task.
	Task     string           `json:"task,omitempty"`
	Progress control.Progress `json:"progress,omitzero"`
	// Rate is in units of Progress a second.
	Rate float64 `json:"rate,omitempty"`
	// Lease is the number of the lease of the task. LeaseLeft is the time until it runs out, in seconds. The lease of a worker in the
	// coordinator's process does not run out.
	Lease     uint64  `json:"lease,omitempty"`
	LeaseLeft float64 `json:"lease_left_seconds,omitempty"`
}

// Status returns the present state of the run.
func (s *Scheduler) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases
	st := Status{
		Run: s.cat.Store().URI(), PlanHash: s.plan.Hash(), State: s.state(), Stage: l.stage, Tasks: l.counts(), Stages: s.stages,
		WantedWorkers: s.o.Workers, Workers: []WorkerStatus{}, Losses: append([]Loss{}, l.losses...),
	}
	if len(l.tasks) > 0 {
		st.Phase = l.tasks[0].Part
	}
	lost := map[string]int{}
	for _, x := range l.losses {
		st.SecondsLost += x.SecondsLost
		lost[x.Worker]++
	}
	for _, m := range s.members.all {
		w := WorkerStatus{
			Name: m.Worker, Here: s.members.here(m), LastSeen: time.Since(m.seen).Seconds(), Memory: m.Memory, Threads: m.Threads, Rates: m.Rates,
			Usage: m.speed.usage, Losses: lost[m.Worker],
			Draining: m.drain,
		}
		if m.polls > 0 {
			w.LastSeen = 0
		}
		if x := l.of(m.Worker); x != nil {
			w.Task, w.Progress, w.Rate, w.Lease, w.Speed = x.task.ID(), x.progress, x.rate, x.fencing, m.speed.rates
			if !s.o.Alone {
				w.LeaseLeft = max(time.Until(x.deadline).Seconds(), 0)
			}
		}
		st.Workers = append(st.Workers, w)
	}
	slices.SortFunc(st.Workers, func(a, b WorkerStatus) int { return cmp.Compare(a.Name, b.Name) })
	return st
}

// Announce publishes how far the stages of the run are. Calls of Status do not wait for the store.
func (s *Scheduler) Announce(stages []StageStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stages = stages
}

func (s *Scheduler) state() string {
	switch {
	case s.ended:
		return "ended"
	case s.stopping || s.err != nil:
		return "stopping"
	case s.draining:
		return "draining"
	case s.running && s.gathered:
		return "running"
	}
	return "waiting"
}

// Leading reports whether this coordinator leads the run. It is false after the coordinator stops or another has taken over. It needs no
// lock.
func (s *Scheduler) Leading() bool { return s.leading.Load() }
