package progress

import (
	"context"
	"slices"
	"sync"
)

// Watch is a sink that can say how far the present work is. It passes meters on.
type Watch struct {
	next Sink // may be nil
	mu   sync.Mutex
	live []*Meter
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
	w.live = append(w.live, m)
	return m
}

// stage implements stager.
func (w *Watch) stage(s Stage) (end func()) {
	if to, ok := w.next.(stager); ok {
		return to.stage(s)
	}
	return func() {}
}

// Work says how far a piece of work is.
type Work struct {
	What, Unit string
	// Total is 0 where it is not known.
	Done, Total int64
	// Where says in words where the work is, where its total is only a bound.
	Where string
}

// Now describes the youngest meter that has not ended; it is all zero where there
// is none.
func (w *Watch) Now() Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = slices.DeleteFunc(w.live, func(m *Meter) bool { return m.ended.Load() })
	if len(w.live) == 0 {
		return Work{}
	}
	m := w.live[len(w.live)-1]
	now := Work{What: m.what, Unit: m.unit, Done: m.Count(), Total: m.total}
	if within := m.within.Load(); within != nil {
		now.Total, now.Where = 0, *within
	}
	return now
}
