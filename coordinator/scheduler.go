package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
)

const (
	// DefaultLease is how long a worker may be silent before its task is given to
	// another.
	DefaultLease = 30 * time.Second
	// DefaultCheckpoint is how often workers commit the state of long tasks.
	DefaultCheckpoint = 5 * time.Minute
	// ticksPerLease is how often in a lease's time deadlines are looked at.
	ticksPerLease = 30
	// reminder is how often it is said that workers are missing.
	reminder = time.Minute
)

// errStopping is what workers are told while the coordinator stops: the run has
// not ended, and goes on once a coordinator is there again.
var errStopping = errors.New("coordinator: it is stopping; ask the next one")

// Options are those of a [Scheduler].
type Options struct {
	// Version is that of the program: workers must have the same.
	Version string
	// Lease and Checkpoint are DefaultLease and DefaultCheckpoint if 0.
	Lease, Checkpoint time.Duration
	// Workers is how many workers must be there before the first task is given out.
	Workers int
	// Alone says that no worker outlives the coordinator, being in its process:
	// tasks that were under way need not be waited for.
	Alone bool
	// Log gets what happens to workers and tasks.
	Log *slog.Logger
}

// Scheduler gives tasks to workers, and sees to it that each is done once. It is
// safe for concurrent use.
type Scheduler struct {
	cat     *catalog.Catalog
	plan    control.Plan
	o       Options
	journal *Journal
	started time.Time

	mu       sync.Mutex
	leases   *leases
	members  map[string]*member
	gathered bool          // Options.Workers have been there
	stuck    time.Time     // since when no worker that is here may have a task
	running  bool          // tasks may be given out
	stopping bool          // none will be, by this coordinator
	ended    bool          // none will be
	short    time.Time     // since when a gang lacks workers, zero if it does not
	recut    bool          // the phase that is under way was given up
	err      error         // of the journal: nothing may be told any more
	changed  chan struct{} // closed, and replaced, whenever one of these changes
}

// member is a worker that has joined.
type member struct {
	control.Hello
	seen  time.Time
	polls int  // calls of Next that wait
	told  bool // that the run has ended
}

var _ control.Service = (*Scheduler)(nil)

// NewScheduler continues the run whose journal and catalogue these are, the latter
// opened after the former. Workers that held tasks may go on with them for the
// time of a lease.
func NewScheduler(ctx context.Context, j *Journal, cat *catalog.Catalog, plan control.Plan, o Options) (*Scheduler, error) {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Checkpoint == 0 {
		o.Checkpoint = DefaultCheckpoint
	}
	if o.Lease < 0 || o.Checkpoint < 0 || o.Workers < 0 {
		return nil, fmt.Errorf("coordinator: a lease of %v, checkpoints every %v, %d workers: none may be negative: %w",
			o.Lease, o.Checkpoint, o.Workers, control.ErrOption)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{
		cat: cat, plan: plan, o: o, journal: j, started: time.Now(),
		leases: newLeases(o.Lease), members: map[string]*member{}, changed: make(chan struct{}),
	}
	s.leases.memory = func(worker string) int64 {
		if m := s.members[worker]; m != nil {
			return m.Memory
		}
		return 0
	}
	for _, e := range j.read {
		if err := s.leases.apply(s.started, e); err != nil {
			return nil, damaged(journalPrefix, "%v", err)
		}
	}
	s.leases.replayed()
	if len(j.read) == 0 {
		return s, nil
	}
	j.read = nil
	var events []event
	if o.Alone {
		for _, x := range s.leases.byNumber() {
			events = append(events, event{Fact: ended, Task: x.task.ID(), Fencing: x.fencing, Outcome: &control.Outcome{Kind: control.Drained}})
		}
	}
	s.mu.Lock()
	s.record(events...)
	b := s.record(event{Fact: snapshot, State: s.leases.state()})
	s.mu.Unlock()
	if err := s.settle(ctx, b); err != nil {
		return nil, err
	}
	j.tidy(ctx)
	return s, nil
}

// record makes events true here, and hands them to the journal. No one may hear of
// them before settle.
func (s *Scheduler) record(events ...event) *batch {
	for _, e := range events {
		if e.Fact == snapshot {
			continue // it is what is
		}
		if err := s.leases.apply(time.Now(), e); err != nil && s.err == nil {
			s.err = fmt.Errorf("coordinator: %w", err)
		}
	}
	b := s.journal.add(events...)
	if s.journal.full() {
		s.journal.add(event{Fact: snapshot, State: s.leases.state()})
	}
	s.wake()
	return b
}

// settle waits until events are durable. If they cannot be, the scheduler is over.
func (s *Scheduler) settle(ctx context.Context, b *batch) error {
	return s.settled(s.journal.wait(ctx, b))
}

func (s *Scheduler) settled(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.err == nil {
		s.err = err
		s.wake()
	}
	return s.err
}

// wake lets those who wait look again.
func (s *Scheduler) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// seen notes a sign of life.
func (s *Scheduler) seen(worker string) *member {
	m := s.members[worker]
	if m != nil {
		m.seen = time.Now()
	}
	return m
}

// here says whether a worker has given a sign of life lately.
func (s *Scheduler) here(m *member) bool {
	return m.polls > 0 || time.Since(m.seen) <= s.o.Lease
}

// live is the number of workers that are here.
func (s *Scheduler) live() (n int) {
	for _, m := range s.members {
		if s.here(m) {
			n++
		}
	}
	return n
}

// Join implements [control.Service].
func (s *Scheduler) Join(_ context.Context, h control.Hello) (control.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return control.Welcome{}, s.err
	case h.Worker == "":
		return control.Welcome{}, fmt.Errorf("coordinator: a worker needs a name: %w", control.ErrRefused)
	case h.Version != s.o.Version:
		return control.Welcome{}, fmt.Errorf("coordinator: worker %s is ndls %s and the coordinator ndls %s; start both from the same program: %w",
			h.Worker, h.Version, s.o.Version, control.ErrRefused)
	}
	if s.members[h.Worker] == nil && !s.o.Alone {
		s.o.Log.Info("worker joined", "worker", h.Worker, "memory", h.Memory, "threads", h.Threads)
	}
	s.members[h.Worker] = &member{Hello: h, seen: time.Now()}
	s.held(h)
	s.muster()
	return control.Welcome{
		Plan: s.plan, Store: s.cat.Store().URI(), Heartbeat: heartbeat(s.o.Lease), Checkpoint: s.o.Checkpoint,
	}, nil
}

// held notes which granules and intervals a worker has files of.
func (s *Scheduler) held(h control.Hello) {
	for _, path := range h.Holds {
		e, ok := s.cat.Lookup(path)
		if !ok {
			continue
		}
		if e.Interval != catalog.NotApplicable {
			s.leases.hold(h.Worker, piece{control.Rows, int(e.Interval)})
		}
		if e.Block != catalog.NotApplicable {
			s.leases.hold(h.Worker, piece{control.Columns, int(e.Block)})
		}
	}
}

// gather sees whether enough workers are here for the first task. After a restart
// those that were there before have some leases to come back.
func (s *Scheduler) gather() {
	n := s.live()
	late := s.leases.fencing > 0 && n > 0 && time.Since(s.started) > shortLeases*s.o.Lease
	if !s.gathered && (n >= s.o.Workers || late) {
		s.gathered = true
		s.wake()
	}
}

// muster gathers, and says whom it waits for.
func (s *Scheduler) muster() {
	if s.gather(); !s.gathered {
		s.o.Log.Info("waiting for workers", "here", s.live(), "wanted", s.o.Workers)
	}
}

// Next implements [control.Service]. A worker has one task at a time: asked again
// before that ended, Next tells of it again, since the answer may have been lost.
func (s *Scheduler) Next(ctx context.Context, worker string) (control.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		m := s.seen(worker)
		switch {
		case s.err != nil:
			return control.Lease{}, s.err
		case m == nil:
			return control.Lease{}, fmt.Errorf("coordinator: worker %s has not joined this coordinator; it must join again: %w", worker, control.ErrRefused)
		case s.ended:
			m.told = true
			s.wake()
			return control.Lease{}, control.ErrEnded
		case s.stopping:
			return control.Lease{}, errStopping
		}
		if x, b := s.lend(m); x != nil {
			lease := control.Lease{Task: x.task.Task, Fencing: x.fencing, TTL: s.o.Lease}
			s.mu.Unlock()
			err := s.settle(ctx, b)
			s.mu.Lock()
			return lease, err
		}
		changed := s.changed
		m.polls++
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		m.polls--
		if ctx.Err() != nil {
			return control.Lease{}, ctx.Err()
		}
	}
}

// lend gives a worker the lease that it has or one that it may have now, nil if
// there is none.
func (s *Scheduler) lend(m *member) (*lease, *batch) {
	if !s.running || !s.gathered || s.leases.failed != nil {
		return nil, nil
	}
	if x := s.leases.of(m.Worker); x != nil {
		x.touch(time.Now(), s.o.Lease)
		return x, s.journal.add()
	}
	e, ok := s.leases.grant(time.Now(), m.Worker)
	if !ok || s.leases.together() && m.Blocks == "" {
		return nil, nil
	}
	if s.leases.together() {
		e.Blocks = m.Blocks
	}
	if first := s.leases.byID[e.Task].leases; len(first) > 0 {
		s.o.Log.Info("overdue: another worker tries too", "task", e.Task, "worker", m.Worker, "first", first[0].worker)
	}
	b := s.record(e)
	return s.leases.open[e.Fencing], b
}

// Renew implements [control.Service].
func (s *Scheduler) Renew(_ context.Context, fencing uint64, p control.Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if x := s.leases.open[fencing]; x != nil {
		s.seen(x.worker)
	}
	return s.leases.renew(time.Now(), fencing, p)
}

// Commit implements [control.Service]. The lease does not run out meanwhile, and
// no other attempt at its task ends.
func (s *Scheduler) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	if err := check(c); err != nil {
		return err
	}
	s.mu.Lock()
	x, err := s.leases.held(fencing)
	if err = errors.Join(s.err, err); err != nil {
		s.mu.Unlock()
		return err
	}
	s.seen(x.worker)
	x.busy++
	s.mu.Unlock()

	// A caller that goes away does not leave half a change.
	err = s.cat.Apply(context.WithoutCancel(ctx), c.Added, c.Removed, c.Delete)

	s.mu.Lock()
	now := time.Now()
	x.busy--
	x.touch(now, s.o.Lease)
	if err != nil {
		s.wake()
		s.mu.Unlock()
		return fmt.Errorf("coordinator: changing the catalogue: %w", err)
	}
	e := event{Fact: committed, Fencing: fencing}
	if len(c.Added) > 0 {
		e.At = now
	}
	b := s.record(e)
	s.mu.Unlock()
	return s.settle(ctx, b)
}

// check refuses changes to files that the catalogue does not list.
func check(c control.Change) error {
	paths := c.Removed
	for _, e := range c.Added {
		paths = append(paths[:len(paths):len(paths)], e.Path)
	}
	for _, p := range paths {
		if p == "" || p == catalog.Name || p == RecordName || strings.HasPrefix(p, "report.") ||
			strings.HasPrefix(p, journalPrefix) || strings.HasPrefix(p, "cluster/") {
			return fmt.Errorf("coordinator: %q is no file of the catalogue", p)
		}
	}
	return nil
}

// Finish implements [control.Service].
func (s *Scheduler) Finish(ctx context.Context, fencing uint64, o control.Outcome) error {
	s.mu.Lock()
	for {
		if s.err != nil {
			defer s.mu.Unlock()
			return s.err
		}
		x := s.leases.open[fencing]
		if x == nil || o.Report == nil || !x.rivalCommits() {
			break
		}
		changed := s.changed
		x.ending++
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		x.ending--
		x.touch(time.Now(), s.o.Lease)
		if ctx.Err() != nil {
			defer s.mu.Unlock()
			return ctx.Err()
		}
	}
	e, err := s.leases.finish(time.Now(), fencing, o)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	worker := s.leases.open[fencing].worker
	s.seen(worker)
	b := s.record(e)
	s.mu.Unlock()
	if o.Report == nil {
		s.o.Log.Warn("task not done", "task", e.Task, "worker", worker, "kind", o.Kind, "because", o.Reason)
	}
	return s.settle(ctx, b)
}

// Catalog implements [control.Service].
func (s *Scheduler) Catalog(context.Context) ([]catalog.Entry, error) {
	return s.cat.All(), nil
}

// Dead brings the end of a worker's lease nearer: someone has seen it die. If that
// was wrong the worker renews its lease in time.
func (s *Scheduler) Dead(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases.shorten(time.Now(), worker)
}

// Workers is for how many workers a stage is to be cut: those that are here, or
// those for which it was cut if some are still at work on it.
func (s *Scheduler) Workers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leases.open) > 0 {
		return s.leases.workers
	}
	return max(s.live(), s.o.Workers, 1)
}

// Losses lists the work of the run that had to be done again.
func (s *Scheduler) Losses() []Loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Loss(nil), s.leases.losses...)
}

// Forget drops what is known of earlier attempts at a stage. The next Run begins
// it anew, and no worker can commit for it any more.
func (s *Scheduler) Forget(ctx context.Context) error {
	s.mu.Lock()
	if s.leases.stage == "" {
		defer s.mu.Unlock()
		return s.err
	}
	b := s.record(event{Fact: forgotten})
	s.mu.Unlock()
	return s.settle(ctx, b)
}

// End tells the workers that there will be no more tasks. It returns when all that
// are here have been told, or ctx is done.
func (s *Scheduler) End(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake()
	tick := time.NewTicker(s.o.Lease / ticksPerLease)
	defer tick.Stop()
	for s.untold() && ctx.Err() == nil {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
}

func (s *Scheduler) untold() bool {
	for _, m := range s.members {
		if s.here(m) && !m.told {
			return true
		}
	}
	return false
}
