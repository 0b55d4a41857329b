package progress

import (
	"context"
	"sync"
	"time"
)

// Stage is a step of a job, as its owner announces it.
type Stage struct {
	Name string
	// Planned is the expected time of the stage in seconds, 0 if unknown.
	Planned float64
	// After is the expected time of the stages behind it in seconds, negative if unknown.
	After float64
}

// stager is a sink that shows stages, too.
type stager interface {
	stage(s Stage) (end func())
}

// Begin tells the sink of ctx that a stage begins. The caller calls end when it is over.
func Begin(ctx context.Context, s Stage) (end func()) {
	if to, ok := ctx.Value(sinkKey{}).(stager); ok {
		return to.stage(s)
	}
	return func() {}
}

type spansKey struct{}

// spans are the nested parts of a stage's work that are under way, each as shares of the
// whole work.
type spans struct {
	mu   sync.Mutex
	list []span
}

// span is the work between two shares of the whole, from 0 to 1.
type span struct{ from, to float64 }

// Shared returns a context in which [Enter] says which part of a stage is under way.
func Shared(ctx context.Context) context.Context {
	return context.WithValue(ctx, spansKey{}, &spans{})
}

// Aside returns a context in which no part of a stage is under way: meters that are started with
// [StartPart] are about work beside it.
func Aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, spansKey{}, (*spans)(nil))
}

// Enter says that part number part, of so many equal parts of the work under way, begins: meters that
// [StartPart] starts until leave is called count that part of the stage. The work is done by one
// goroutine at a time, which calls leave before it enters the next part. Without [Shared] it
// does nothing.
func Enter(ctx context.Context, part, of int) (leave func()) {
	return EnterRange(ctx, float64(part)/float64(of), float64(part+1)/float64(of))
}

// EnterRange is [Enter] for the part between two shares of the work under way.
func EnterRange(ctx context.Context, from, to float64) (leave func()) {
	s, _ := ctx.Value(spansKey{}).(*spans)
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	outer := span{0, 1}
	if n := len(s.list); n > 0 {
		outer = s.list[n-1]
	}
	width := outer.to - outer.from
	s.list = append(s.list, span{outer.from + from*width, outer.from + to*width})
	depth := len(s.list)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = s.list[:depth-1]
	}
}

// spanOf is the innermost part under way, nil where no part was entered.
func spanOf(ctx context.Context) *span {
	s, _ := ctx.Value(spansKey{}).(*spans)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return nil
	}
	last := s.list[len(s.list)-1]
	return &last
}

const (
	// trusted is the share of a stage after which what was measured alone says how long the rest
	// takes. Before, the plan has a part in it that shrinks.
	trusted = 0.2
	// leastShare and leastSeconds are the least measurements that count.
	leastShare   = 0.01
	leastSeconds = 1
)

// course is a stage under way, and what was seen of it.
type course struct {
	Stage
	started time.Time
	// seen says that a meter has told a share of the work; first is the first such share, and share
	// the largest. What an earlier attempt has done took no time of this one.
	seen         bool
	first, share float64
}

// look takes note of what a meter says of the stage.
func (c *course) look(m *Meter) {
	first, share, ok := m.share()
	if !ok {
		return
	}
	if !c.seen {
		c.seen, c.first = true, first
	}
	c.share = max(c.share, share)
}

// left returns the seconds that the stage still needs. planned says that this rests more on the
// plan than on measurements. ok is false if neither tells: no part of the work was measured, and
// the stage takes longer than planned, or nothing was planned.
func (c *course) left(now time.Time) (seconds float64, planned, ok bool) {
	spent := now.Sub(c.started).Seconds()
	plan := c.Planned - spent
	done := c.share - c.first
	if !c.seen || done < leastShare || spent < leastSeconds {
		return plan, true, plan > 0
	}
	measured := spent * (1 - c.share) / done
	if plan <= 0 {
		return measured, false, true
	}
	trust := min(done/trusted, 1)
	return trust*measured + (1-trust)*plan, trust < 0.5, true
}
