package progress

import (
	"context"
	"sync/atomic"
	"time"
)

// Sink receives the meters of a run.
type Sink interface {
	// Start shows a new meter for what, counting to total in unit
	// ("edges", "rows", "bytes"); total 0 is unknown.
	Start(what string, total int64, unit string) *Meter
}

type sinkKey struct{}

// WithSink returns a context whose meters go to s.
func WithSink(ctx context.Context, s Sink) context.Context {
	return context.WithValue(ctx, sinkKey{}, s)
}

// Start starts a meter with the sink of ctx. It never returns nil; without a
// sink the meter is shown nowhere. Done must be called.
func Start(ctx context.Context, what string, total int64, unit string) *Meter {
	if s, ok := ctx.Value(sinkKey{}).(Sink); ok {
		return s.Start(what, total, unit)
	}
	return newMeter(what, total, unit, nil)
}

// StartPart is [Start] for a meter that counts all of the part of a stage that [Enter] says is under
// way: how much of the stage is done follows from it.
func StartPart(ctx context.Context, what string, total int64, unit string) *Meter {
	m := Start(ctx, what, total, unit)
	m.of.Store(spanOf(ctx))
	return m
}

// Meter counts one piece of work. Its methods are safe for concurrent use and
// for a nil meter.
type Meter struct {
	what, unit string
	total      int64
	started    time.Time
	count      atomic.Int64
	ended      atomic.Bool
	// within, once set, says where the work is, of which total is only a bound.
	within atomic.Pointer[string]
	// settled, once set, says which share of the nodes is done after which hop.
	settled atomic.Pointer[Settled]
	// of is the part of a stage that the meter counts, nil if it counts none.
	of atomic.Pointer[span]
	// told, once set, says more of the share of the work that is done than the count does.
	told   atomic.Pointer[told]
	onDone func(*Meter)
}

func newMeter(what string, total int64, unit string, onDone func(*Meter)) *Meter {
	return &Meter{what: what, total: total, unit: unit, started: time.Now(), onDone: onDone}
}

// Add counts n more units of work as done.
func (m *Meter) Add(n int64) {
	if m != nil {
		m.count.Add(n)
	}
}

// Within says in words where the work is, such as "hop 7 of at most 200". The total
// is from then on only the most that the work can take: nobody is told a share of it
// or a time left.
func (m *Meter) Within(text string) {
	if m != nil {
		m.within.Store(&text)
	}
}

// Settled says which share of the nodes has what is looked for after a hop: their K. Of a training it says which share of
// the validation nodes is classified right by the best weights after so many epochs.
type Settled struct {
	Hop   int
	Share float64
}

// Settle says how many nodes have what the work looks for.
func (m *Meter) Settle(s Settled) {
	if m != nil {
		m.settled.Store(&s)
	}
}

// told holds the first and the last value that [Meter.Tell] received.
type told struct{ first, last float64 }

// Tell says which share of the meter's work is done, from 0 to 1, where its count says less: that of tasks knows
// nothing of those under way. What the first call says was done before the meter began; a share of the stage is known
// once a later call says more, or once all is done. Calls come from one goroutine.
func (m *Meter) Tell(share float64) {
	if m == nil {
		return
	}
	x := told{share, share}
	if before := m.told.Load(); before != nil {
		x.first = before.first
	}
	m.told.Store(&x)
}

// Done ends the meter; further calls do nothing.
func (m *Meter) Done() {
	if m != nil && !m.ended.Swap(true) && m.onDone != nil {
		m.onDone(m)
	}
}

// Count is the number of units done so far.
func (m *Meter) Count() int64 {
	if m == nil {
		return 0
	}
	return m.count.Load()
}

// share returns the share of a stage that is done, as far as the meter tells. first is the share
// that was done when it began, or the same if the meter does not know.
func (m *Meter) share() (first, share float64, ok bool) {
	of := m.of.Load()
	if of == nil || m.total <= 0 || m.within.Load() != nil {
		return 0, 0, false
	}
	at := func(done float64) float64 { return of.from + (of.to-of.from)*min(done, 1) }
	if x := m.told.Load(); x != nil {
		return at(x.first), at(x.last), x.last > x.first || x.last >= 1
	}
	now := at(float64(m.Count()) / float64(m.total))
	return now, now, true
}
