package progress

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Watch is a sink that can say how far the present work is. It passes meters on.
type Watch struct {
	next   Sink // may be nil
	mu     sync.Mutex
	live   []*Meter
	stages []*course
}

// WithWatch returns a context whose meters go to the watch too.
func WithWatch(ctx context.Context) (context.Context, *Watch) {
	next, _ := ctx.Value(sinkKey{}).(Sink)
	w := &Watch{next: next}
	return WithSink(ctx, w), w
}

// Start implements Sink.
func (w *Watch) Start(what string, total int64, unit string) *Meter {
	m := newMeter(what, total, unit, nil)
	if w.next != nil {
		m = w.next.Start(what, total, unit)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	w.live = append(w.live, m)
	return m
}

// look takes note of what meters say of the stage under way, and forgets those that have ended: they say nothing of
// the next stage.
func (w *Watch) look() {
	if n := len(w.stages); n > 0 {
		for _, m := range w.live {
			w.stages[n-1].look(m)
		}
	}
	w.live = slices.DeleteFunc(w.live, func(m *Meter) bool { return m.ended.Load() })
}

// stage implements stager.
func (w *Watch) stage(s Stage) (end func()) {
	endNext := func() {}
	if to, ok := w.next.(stager); ok {
		endNext = to.stage(s)
	}
	over := w.follow(s)
	return func() {
		over()
		endNext()
	}
}

// Follow has [Watch.Course] tell of a piece of work that nobody has planned, until end is
// called. Sinks behind the watch do not hear of it.
func (w *Watch) Follow(name string) (end func()) { return w.follow(Stage{Name: name, After: -1}) }

func (w *Watch) follow(s Stage) (end func()) {
	c := &course{Stage: s, started: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	w.stages = append(w.stages, c)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stages = slices.DeleteFunc(w.stages, func(x *course) bool { return x == c })
	}
}

// Course is how the stage under way goes. What is not known is nil.
type Course struct {
	Stage string `json:"stage"`
	// Seconds is the time since it began, Share the share of it that is done, from 0 to 1.
	Seconds float64  `json:"seconds"`
	Share   *float64 `json:"share,omitempty"`
	// Left is the time that it still needs in seconds, JobLeft the time of all stages.
	Left    *float64 `json:"left_seconds,omitempty"`
	JobLeft *float64 `json:"job_left_seconds,omitempty"`
	// Planned says that both rest more on the plan than on what was measured.
	Planned bool `json:"planned,omitempty"`
}

// Course says how the stage that began last goes; ok is false between stages.
func (w *Watch) Course(now time.Time) (x Course, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.stages) == 0 {
		return Course{}, false
	}
	w.look()
	c := w.stages[len(w.stages)-1]
	x = Course{Stage: c.Name, Seconds: now.Sub(c.started).Seconds()}
	if c.seen {
		share := c.share
		x.Share = &share
	}
	if left, planned, known := c.left(now); known {
		x.Left, x.Planned = &left, planned
		if c.After >= 0 {
			all := left + c.After
			x.JobLeft = &all
		}
	}
	return x, true
}

// Done is the share that is done, 0 where it is not known; Remaining and JobRemaining are the times left in the same
// way.
func (x Course) Done() float64 { return value(x.Share) }

// Remaining is described at Done.
func (x Course) Remaining() float64 { return value(x.Left) }

// JobRemaining is described at Done.
func (x Course) JobRemaining() float64 { return value(x.JobLeft) }

func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// Work says how far a piece of work is.
type Work struct {
	What, Unit string
	// Total is 0 where it is not known.
	Done, Total int64
	// Where says in words where the work is, where its total is only a bound.
	Where string
	// Settled is zero where the work looks for nothing of each node.
	Settled Settled
}

// Now describes the youngest meter that has not ended; it is all zero where there
// is none.
func (w *Watch) Now() Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	if len(w.live) == 0 {
		return Work{}
	}
	m := w.live[len(w.live)-1]
	now := Work{What: m.what, Unit: m.unit, Done: m.Count(), Total: m.total}
	if within := m.within.Load(); within != nil {
		now.Total, now.Where = 0, *within
	}
	if settled := m.settled.Load(); settled != nil {
		now.Settled = *settled
	}
	return now
}
