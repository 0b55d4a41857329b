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

// Now describes the youngest meter that has not ended; it is all zero where there
// is none.
func (w *Watch) Now() (what string, done, total int64, unit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = slices.DeleteFunc(w.live, func(m *Meter) bool { return m.ended.Load() })
	if len(w.live) == 0 {
		return "", 0, 0, ""
	}
	m := w.live[len(w.live)-1]
	return m.what, m.Count(), m.total, m.unit
}
