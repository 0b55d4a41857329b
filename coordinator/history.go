package coordinator

import (
	"slices"
	"time"

	"ndls/internal/control"
)

// Span is the time in which a worker held a task.
type Span struct {
	Worker string        `json:"worker"`
	Stage  control.Stage `json:"stage"`
	Task   string        `json:"task"`
	Begin  time.Time     `json:"begin"`
	// End is the present time for a task under way.
	End time.Time `json:"end"`
	// How says how the span ended: "done", "lost", "failed", "stopped", or "late" if another worker was first. Before the end it is "under
	// way".
	How string `json:"how"`
}

// MostSpans is the number of ended tasks that [Scheduler.History] remembers. It forgets older ones.
const MostSpans = 256

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

// span describes a lease.
func (x *lease) span(end time.Time, how string) Span {
	return Span{Worker: x.worker, Stage: x.task.Stage, Task: x.task.ID(), Begin: x.since, End: end, How: how}
}

// spans lists tasks that have ended, MostSpans at most.
type spans []Span

// add notes how a lease ended.
func (h *spans) add(x *lease, how string) {
	if len(*h) == MostSpans {
		*h = slices.Delete(*h, 0, 1)
	}
	*h = append(*h, x.span(time.Now(), how))
}

// howEnded returns the word for the outcome by which a worker ends a task.
func howEnded(o control.Outcome) string {
	switch {
	case o.Report != nil:
		return "done"
	case o.Kind == control.Drained:
		return "stopped"
	}
	return "failed"
}
