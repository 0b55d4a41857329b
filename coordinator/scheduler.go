package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/stage/registry"
)

// drained reports whether a worker that asks for a task gets none because it drains, and notes that it was told so.
func (s *Scheduler) drained(m *member) bool {
	if !m.drain || s.leases.of(m.Worker) != nil {
		return false
	}
	m.left, m.told = true, true
	s.wake()
	return true
}

const (
	// DefaultLease is the time that a worker may be silent before another worker gets its task.
	DefaultLease = 30 * time.Second
	// DefaultCheckpoint is the interval at which workers commit the state of long tasks.
	DefaultCheckpoint = 5 * time.Minute
	// ticksPerLease is the number of times in a lease's time that deadlines are compared with the clock.
	ticksPerLease = 30
	// reminder is the interval of the message that workers are missing.
	reminder = time.Minute
)

// longestName bounds, in bytes, the name and the address of a worker, and its other short texts.
const longestName = 300

// longestReason bounds the reason of an outcome, in bytes.
const longestReason = 16 << 10

// errStopping is the error for workers while the coordinator stops: the run has not ended, and continues with the next coordinator.
var errStopping = errors.New("coordinator: it is stopping; ask the next one")

// Options holds the options of a [Scheduler].
type Options struct {
	// Version is the version and the commit of the program: workers must have the same.
	Version string
	// Lease and Checkpoint are DefaultLease and DefaultCheckpoint if they are 0.
	Lease, Checkpoint time.Duration
	// Workers is the number of workers that must be present before the first task is given out.
	Workers int
	// Alone says that the only worker is in the coordinator's process, so that neither outlives the other. Then nobody waits for tasks that
	// were under way before, and no lease runs out.
	Alone bool
	// Near says that all workers are processes on this host.
	Near bool
	// Log receives messages about workers and tasks.
	Log *slog.Logger
}

// Scheduler gives tasks to workers and makes sure that each is done once. It is safe for concurrent use.
type Scheduler struct {
	cat     *catalog.Catalog
	plan    plan.Options
	plans   map[string]string // the hash of what decides the files of each stage
	o       Options
	journal *Journal
	started time.Time
	// leading becomes false when this coordinator stops or is replaced. Reading it needs no lock.
	leading atomic.Bool

	mu       sync.Mutex
	leases   *leases
	members  members
	gathered bool          // Options.Workers have been present
	stuck    time.Time     // since when no present worker may get a task
	running  bool          // tasks may be given out
	stopping bool          // this coordinator gives out no more tasks
	draining bool          // only leased tasks go on, see Drain
	ended    bool          // no more tasks are given out
	short    time.Time     // since when a gang lacks workers, zero if it does not
	stages   []StageStatus // as the record has them
	recut    bool          // the phase that is under way was given up
	trace    string        // the span of the stage under way
	err      error         // of the journal: nobody may hear of anything any more
	changed  chan struct{} // closed, and replaced, whenever one of these changes
	offered  chan struct{} // the same, when an idle worker may get a task since
}

var _ control.Service = (*Scheduler)(nil)

// NewScheduler continues the run of this journal and this catalogue; open the catalogue after the journal. Workers that hold tasks may
// continue them for the time of a lease.
func NewScheduler(ctx context.Context, j *Journal, cat *catalog.Catalog, opts plan.Options, o Options) (*Scheduler, error) {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Checkpoint == 0 {
		o.Checkpoint = DefaultCheckpoint
	}
	if o.Lease < 0 || o.Checkpoint < 0 || o.Workers < 0 {
		return nil, fmt.Errorf("coordinator: a lease of %v, checkpoints every %v, %d workers: none may be negative: %w",
			o.Lease, o.Checkpoint, o.Workers, failure.ErrOption)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{
		cat: cat, plan: opts, plans: registry.Hashes(opts), o: o, journal: j, started: time.Now(),
		leases: newLeases(o.Lease), members: members{map[string]*member{}, o.Lease}, changed: make(chan struct{}), offered: make(chan struct{}),
		stages: []StageStatus{},
	}
	s.leading.Store(true)
	s.leases.memory = func(worker string) int64 {
		if m := s.members.all[worker]; m != nil {
			return m.Memory
		}
		return 0
	}
	s.leases.members = func() (list []string) {
		for m := range s.members.present {
			if m.Blocks != "" {
				list = append(list, m.Worker)
			}
		}
		return list
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
	s.mu.Lock()
	if o.Alone {
		for _, x := range s.leases.byNumber() {
			if s.leases.open[x.fencing] != nil { // the end of another one of its gang has not ended it
				s.record(event{Fact: ended, Task: x.task.ID(), Fencing: x.fencing, Outcome: &control.Outcome{Kind: control.Drained}})
			}
		}
	}
	b := s.record(event{Fact: snapshot, State: s.leases.state()})
	s.mu.Unlock()
	if err := s.settle(ctx, b); err != nil {
		return nil, err
	}
	j.tidy(ctx)
	return s, nil
}

// record applies events and passes them to the journal. Nobody may hear of them before settle returns. An event that cannot follow those
// before it ends the scheduler, and is not written.
func (s *Scheduler) record(events ...event) *batch {
	for i, e := range events {
		if e.Fact == snapshot {
			continue // nothing would change
		}
		if err := s.leases.apply(time.Now(), e); err != nil {
			if s.err == nil {
				s.err = fmt.Errorf("coordinator: %w", err)
			}
			events = events[:i]
			break
		}
	}
	b := s.journal.add(events...)
	if s.journal.full() {
		s.journal.add(event{Fact: snapshot, State: s.leases.state()})
	}
	if slices.ContainsFunc(events, event.frees) {
		s.wake()
	} else {
		s.tell()
	}
	return b
}

// settle waits until events are durable. If that fails, the scheduler ends.
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

// wake wakes all waiting calls, those of idle workers too.
func (s *Scheduler) wake() {
	s.tell()
	close(s.offered)
	s.offered = make(chan struct{})
}

// tell wakes the waiting calls that do not wait for a task: a thousand idle workers gain nothing from each task that another worker begins
// or ends. Every change of the state calls tell or wake.
func (s *Scheduler) tell() {
	s.leading.Store(s.err == nil && (s.ended || !s.stopping))
	close(s.changed)
	s.changed = make(chan struct{})
}

// Join implements [control.Service].
func (s *Scheduler) Join(_ context.Context, h control.Hello) (control.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return control.Welcome{}, s.err
	case h.Worker == "":
		return control.Welcome{}, fmt.Errorf("a worker needs a name: %w", control.ErrRefused)
	case len(h.Worker) > longestName || !printable(h.Worker):
		return control.Welcome{}, fmt.Errorf("%q is no name for a worker: it may have %d bytes, without control characters: %w",
			h.Worker[:min(len(h.Worker), 80)], longestName, control.ErrRefused)
	case h.Memory < 0 || h.Threads < 0 || len(h.Blocks) > longestName || !printable(h.Blocks) || !printable(h.Version):
		return control.Welcome{}, fmt.Errorf("worker %s reports %d bytes of memory, %d threads and the address %q, which is impossible: %w",
			h.Worker, h.Memory, h.Threads, h.Blocks[:min(len(h.Blocks), 80)], control.ErrRefused)
	case !sound(h.Rates):
		return control.Welcome{}, fmt.Errorf("worker %s reports the rates %+v, which are impossible: %w", h.Worker, h.Rates, control.ErrRefused)
	case h.Version != s.o.Version:
		return control.Welcome{}, fmt.Errorf("coordinator: worker %s is ndls %s and the coordinator ndls %s; start both from the same program: %w",
			h.Worker, h.Version, s.o.Version, control.ErrRefused)
	}
	s.members.forget(s.leases)
	if s.members.all[h.Worker] == nil && len(s.members.all) >= maxMembers {
		return control.Welcome{}, fmt.Errorf("worker %s comes after %d others, and the coordinator takes no more: %w", h.Worker, maxMembers, control.ErrRefused)
	}
	if s.members.all[h.Worker] == nil && !s.o.Alone {
		s.o.Log.Info("worker joined", "worker", h.Worker, "memory", h.Memory, "threads", h.Threads,
			"edges_per_second", int64(h.Rates.Edges), "store_bytes_per_second", int64(h.Rates.Store))
	}
	if h.Rates.Network > 0 {
		s.o.Log.Info("worker has measured the network", "worker", h.Worker, "bytes_per_second", int64(h.Rates.Network), "delay_seconds",
			h.Rates.Delay)
	}
	s.held(h)
	h.Holds = nil
	s.members.all[h.Worker] = &member{Hello: h, seen: time.Now()}
	s.waitForWorkers()
	return control.Welcome{
		Plan: s.plan, Store: s.cat.Store().URI(), Heartbeat: s.heartbeat(), Checkpoint: s.o.Checkpoint, Peer: s.members.peerOf(h.Worker),
	}, nil
}

// sound reports whether rates are possible.
func sound(r control.Rates) bool {
	for _, x := range []float64{r.Edges, r.Network, r.Store, r.Delay} {
		if !(x >= 0 && x <= math.MaxFloat64) {
			return false
		}
	}
	return true
}

// heartbeat returns the interval at which workers renew their leases and report progress. Workers on this host do so every second, because
// a page may show progress that often.
func (s *Scheduler) heartbeat() time.Duration {
	if s.o.Alone || s.o.Near {
		return min(time.Second, heartbeat(s.o.Lease))
	}
	return heartbeat(s.o.Lease)
}

// held notes which panels and intervals a worker has files of.
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

// gather notes whether enough workers are present for the first task. After a restart it gives the earlier workers several leases to come
// back.
func (s *Scheduler) gather() {
	n := s.members.live()
	late := s.leases.fencing > 0 && n > 0 && time.Since(s.started) > shortLeases*s.o.Lease
	if !s.gathered && (n >= s.o.Workers || late) {
		s.gathered = true
		s.wake()
	}
}

// waitForWorkers finds out whether enough workers are present, and logs how many are missing.
func (s *Scheduler) waitForWorkers() {
	if s.gather(); !s.gathered {
		s.o.Log.Info("waiting for workers", "here", s.members.live(), "wanted", s.o.Workers)
	}
}

// Next implements [control.Service]. A worker has one task at a time. If it asks again before that task ends, Next returns the same lease,
// because the first answer may be lost.
func (s *Scheduler) Next(ctx context.Context, worker string) (control.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		m := s.members.seen(worker)
		switch {
		case s.err != nil:
			return control.Lease{}, s.err
		case m == nil:
			return control.Lease{}, fmt.Errorf("coordinator: worker %s has not joined this coordinator; it must join again: %w", worker, control.ErrRefused)
		}
		if s.drained(m) {
			return control.Lease{}, control.ErrDrained
		}
		m.left = false
		switch {
		case s.ended:
			m.told = true
			s.wake()
			return control.Lease{}, control.ErrEnded
		case s.stopping:
			return control.Lease{}, errStopping
		}
		if x, b := s.lend(m); x != nil {
			lease := control.Lease{Task: x.task.Task, Fencing: x.fencing, TTL: s.o.Lease, Trace: s.trace}
			s.mu.Unlock()
			err := s.settle(ctx, b)
			s.mu.Lock()
			return lease, err
		}
		offered := s.offered
		m.polls++
		s.mu.Unlock()
		select {
		case <-offered:
		case <-ctx.Done():
		}
		s.mu.Lock()
		m.polls--
		if ctx.Err() != nil {
			return control.Lease{}, ctx.Err()
		}
	}
}

// lend returns the lease that a worker has or a new one, nil if there is no task for it.
func (s *Scheduler) lend(m *member) (*lease, *batch) {
	if !s.running || !s.gathered || s.leases.failed != nil {
		return nil, nil
	}
	if x := s.leases.of(m.Worker); x != nil {
		x.touch(time.Now(), s.o.Lease)
		return x, s.journal.add()
	}
	if s.draining {
		return nil, nil
	}
	e, ok := s.leases.grant(time.Now(), m.Worker)
	if !ok || s.leases.tasks.together() && m.Blocks == "" {
		return nil, nil
	}
	if s.leases.tasks.together() {
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
		if m := s.members.seen(x.worker); m != nil {
			m.speed.note(time.Now(), p.Usage)
		}
	}
	p.What, p.Where, p.Unit = shortened(p.What, longestName), shortened(p.Where, longestName), shortened(p.Unit, longestName)
	return s.leases.renew(time.Now(), fencing, p)
}

// Commit implements [control.Service]. During a commit the lease does not run out, and no other attempt at its task ends it.
//
// The loss of another member of its gang does end a lease during a commit. The change is confirmed all the same. That is harmless: every
// attempt writes the same bytes, and checkpoints of different gangs have different names.
func (s *Scheduler) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	if err := s.check(c); err != nil {
		return err
	}
	s.mu.Lock()
	x, err := s.leases.held(fencing)
	if err = errors.Join(s.err, err); err != nil {
		s.mu.Unlock()
		return err
	}
	s.members.seen(x.worker)
	x.busy++
	s.mu.Unlock()

	// A caller that goes away must not leave half a change.
	err = s.cat.Apply(context.WithoutCancel(ctx), c.Added, c.Removed, c.Delete)
	number := s.cat.Number()

	s.mu.Lock()
	now := time.Now()
	x.busy--
	x.touch(now, s.o.Lease)
	if err != nil {
		s.wake()
		s.mu.Unlock()
		return fmt.Errorf("coordinator: changing the catalogue: %w", err)
	}
	e := event{Fact: committed, Fencing: fencing, Catalog: number}
	if len(c.Added) > 0 {
		e.At = now
	}
	b := s.record(e)
	s.mu.Unlock()
	return s.settle(ctx, b)
}

// These bounds, in bytes, hold for names of files. File systems allow 4096 for a path with all its folders, and 255 for each part, to which
// an unfinished file adds a suffix.
const (
	longestPath = 1024
	longestPart = 200
)

// check refuses a change that the catalogue must not have: kinds of files that it never lists, names that no store has, impossible sizes,
// and files made under another plan than that of the run. Errors wrap [control.ErrRejected].
func (s *Scheduler) check(c control.Change) error {
	if n := len(c.Added) + len(c.Removed); n > control.MaxFiles {
		return fmt.Errorf("a change lists %d files; it may list at most %d: %w", n, control.MaxFiles, control.ErrRejected)
	}
	for _, path := range c.Removed {
		if err := checkPath(path); err != nil {
			return err
		}
	}
	for _, e := range c.Added {
		if err := checkPath(e.Path); err != nil {
			return err
		}
		if e.Kind == "" || min(e.Rows, e.Bytes, e.Lo, e.Hi-e.Lo, e.Unknown) < 0 ||
			min(e.First, e.Last-e.First, e.FirstPiece, e.LastPiece-e.FirstPiece, e.Until) < 0 ||
			min(e.Interval, e.Block, e.Hop, e.Model) < catalog.NotApplicable {
			return fmt.Errorf("the entry of %s describes no file of a run: %+v: %w", e.Path, e, control.ErrRejected)
		}
		for _, text := range []string{e.Kind, e.Checksum, e.Stage, e.Plan, e.Step} {
			if len(text) > longestName || !printable(text) {
				return fmt.Errorf("%s is described with the text %q: %w", e.Path, text[:min(len(text), 80)], control.ErrRejected)
			}
		}
		if opts, known := s.plans[e.Stage]; !known || e.Plan != opts {
			return fmt.Errorf("%s was made by stage %q under plan %q, but the run has plan %q for that stage: %w", e.Path, e.Stage, e.Plan, opts, control.ErrRejected)
		}
	}
	return nil
}

// checkPath refuses names that no file of the catalogue can have.
func checkPath(path string) error {
	switch {
	case len(path) > longestPath || slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return len(part) > longestPart }):
		return fmt.Errorf("a file name of %d bytes is too long, %q...: %w", len(path), path[:min(len(path), 80)], control.ErrRejected)
	case !printable(path):
		return fmt.Errorf("%q has characters that no file of a run has: %w", path, control.ErrRejected)
	case storage.CheckName(path) != nil:
		return fmt.Errorf("%w: %w", storage.CheckName(path), control.ErrRejected)
	case !catalog.Made(path) || !catalog.IsOutput(path):
		return fmt.Errorf("%q cannot be the name of a catalogued file: %w", path, control.ErrRejected)
	}
	return nil
}

// printable reports whether a text has no control characters and is UTF-8.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// shortened cuts a text to at most `most` bytes.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Finish implements [control.Service].
func (s *Scheduler) Finish(ctx context.Context, fencing uint64, o control.Outcome) error {
	o.Reason = shortened(o.Reason, longestReason)
	o.Kinds = control.KindNames(errors.Join(control.KindsNamed(o.Kinds)...)) // the known kinds, each once
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
		x.ending++
		err := s.awaitChange(ctx)
		x.ending--
		x.touch(time.Now(), s.o.Lease)
		if err != nil {
			defer s.mu.Unlock()
			return err
		}
	}
	e, err := s.leases.finish(time.Now(), fencing, o)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	worker := s.leases.open[fencing].worker
	if m := s.members.seen(worker); m != nil {
		m.left = o.Kind == control.Drained || o.Kind == control.Fatal
	}
	b := s.record(e)
	s.mu.Unlock()
	if o.Report == nil {
		s.o.Log.Warn("task not done", "task", e.Task, "worker", worker, "kind", o.Kind, "because", o.Reason)
	}
	return s.settle(ctx, b)
}

// Catalog implements [control.Service].
func (s *Scheduler) Catalog(_ context.Context, since catalog.Version) (catalog.Listing, error) {
	return s.cat.Since(since), nil
}

// Dead brings the end of a worker's lease nearer, because someone has seen it die. If that was wrong, the worker renews its lease in time.
func (s *Scheduler) Dead(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases.shorten(time.Now(), worker)
}

// Workers returns the number of workers for which a stage is cut: the present ones, or those for which it was cut before if some still work
// on it.
func (s *Scheduler) Workers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leases.open) > 0 {
		return s.leases.workers
	}
	return max(s.members.live(), s.o.Workers, 1)
}

// Here lists the present workers.
func (s *Scheduler) Here() (list []control.Hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.members.present {
		list = append(list, m.Hello)
	}
	return list
}

// Losses lists the work of the run that had to be done again.
func (s *Scheduler) Losses() []Loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Loss(nil), s.leases.losses...)
}

// Forget implements [Tasks].
func (s *Scheduler) Forget(ctx context.Context, discards int) error {
	s.mu.Lock()
	if s.leases.stage == "" && s.leases.discards >= discards {
		defer s.mu.Unlock()
		return s.err
	}
	b := s.record(event{Fact: forgotten, Discards: discards})
	s.mu.Unlock()
	return s.settle(ctx, b)
}

// Recorded implements [Tasks].
func (s *Scheduler) Recorded() uint64 { return s.journal.last() }

// End tells the workers that there are no more tasks. It returns when all present workers have heard so, or when ctx is done.
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

// awaitChange unlocks s.mu, waits until something has changed or ctx ends, and locks it again. It returns the error of ctx.
func (s *Scheduler) awaitChange(ctx context.Context) error {
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (s *Scheduler) untold() bool {
	for m := range s.members.present {
		if !m.told {
			return true
		}
	}
	return false
}
