package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ndls/internal/control"
)

// gangState holds what leases know of the gangs of the present phase, if it has any. The tasks of the same columns form one gang, which has
// a name, the first panel of its columns.
//
// The members of a gang stop together. If a lease ends without a report, all other leases of the gang end, so that its members come back
// and form another gang; an idle worker takes the place of a lost one. A worker that reports the failure of another one does not know
// whether that worker is dead. The gang is then broken, and the next one begins after the leases of the others have ended as well. Other
// gangs of the phase go on.
type gangState struct {
	broken map[int]bool
	// breaks counts, since the last commit of a gang, how often it broke without a known reason.
	breaks map[int]int
	// unfit lists workers that reported, in a gang of the stage, too little memory or disk. No gang of the stage takes them again.
	unfit []string
	// memory returns the memory of a worker in bytes. If it is nil, memory is not compared.
	memory func(worker string) int64
	// members lists the present workers that can join gangs; nil stands for enough of them.
	members func() []string
}

// phaseTasks lists the tasks of a phase.
type phaseTasks []*task

// span describes a lease.
func (x *lease) span(end time.Time, how string) Span {
	return Span{Worker: x.worker, Stage: x.task.Stage, Task: x.task.ID(), Begin: x.since, End: end, How: how}
}

const (
	// failureBudget is the number of failures of a task, each of which a further attempt might have avoided, after which the run is given up.
	failureBudget = 3
	// maxLeases is the number of workers that may hold the same task at a time.
	maxLeases = 2
)

// leases knows which worker works on which task of the present phase. Only events change it, so that replaying them gives the same state.
// Deadlines and progress, which are lost with the coordinator, begin anew. It has no clock: callers pass the time. It is not safe for
// concurrent use.
type leases struct {
	ttl     time.Duration
	fencing uint64 // the largest number given out
	// catalog and discards are described at event.
	catalog  uint64
	discards int
	stage    control.Stage
	workers  int // for which the stage was cut
	tasks    phaseTasks
	byID     map[string]*task
	earlier  []control.StageReport // of phases before, of this stage
	open     map[uint64]*lease
	with     map[string]*lease // the open lease of each worker
	unables  map[string]int    // for each worker, the number of tasks that it reported unable
	losses   []Loss
	failed   *givenUp
	holds    map[string]map[piece]bool // what a worker has a copy of
	heard    time.Time                 // when the journal last recorded news of a worker
	live     bool                      // true after the replay of the journal: from now on leases end at the present time
	history  spans                     // the last tasks that have ended
	gangState
	quarantine
}

// task holds a task and its state.
type task struct {
	control.Task
	report   *control.StageReport // nil until it is done
	losses   int
	lostWith []string // the different workers that were lost with it
	failures int
	unable   []string // workers with too little memory or disk for it
	leases   []*lease
	// heard says that a worker told this coordinator that the task is done.
	heard bool
}

// lease is one attempt at a task.
type lease struct {
	task     *task
	worker   string
	blocks   string // where it serves rows
	fencing  uint64
	since    time.Time // when it was given
	renewed  time.Time // the last sign of life
	saved    time.Time // when something was committed last, or since
	deadline time.Time
	progress control.Progress
	rate     float64 // units a second between the last two renewals
	busy     int     // commits under way
	ending   int     // calls of Finish that wait for the commits of others
}

// piece names a panel or an interval of the graph.
type piece struct {
	part  control.Part
	index int
}

func newLeases(ttl time.Duration) *leases {
	return &leases{
		ttl: ttl, byID: map[string]*task{}, open: map[uint64]*lease{}, with: map[string]*lease{},
		unables: map[string]int{}, holds: map[string]map[piece]bool{}, quarantine: newQuarantine(),
		gangState: gangState{broken: map[int]bool{}, breaks: map[int]int{}},
	}
}

// apply makes an event take effect. It fails for an event that cannot follow the events before it; a journal never holds one.
func (l *leases) apply(now time.Time, e event) error {
	impossible := fmt.Errorf("event %q of task %q, lease %d, cannot follow the events before it", e.Fact, e.Task, e.Fencing)
	switch e.Fact {
	case snapshot:
		return l.restore(now, *e.State)
	case forgotten:
		l.begin("", 0, nil)
		l.discards = max(l.discards, e.Discards)
	case phase:
		l.begin(e.Stage, e.Workers, e.Tasks)
	case leased:
		t := l.byID[e.Task]
		if t == nil || t.report != nil || e.Fencing <= l.fencing {
			return impossible
		}
		l.fencing = e.Fencing
		x := l.lend(now, t, e.Worker, e.Fencing)
		x.saved, x.blocks = l.note(now, e.At), e.Blocks
	case committed:
		l.catalog = max(l.catalog, e.Catalog)
		if x := l.open[e.Fencing]; x != nil && !e.At.IsZero() {
			x.saved = l.note(now, e.At)
			l.resetLosses(x.task)
		}
	case ended:
		lease := l.open[e.Fencing]
		if lease == nil || e.Outcome == nil {
			return impossible
		}
		l.drop(lease, howEnded(*e.Outcome))
		l.end(lease.task, lease.worker, *e.Outcome, e.Loss)
		if e.Outcome.Report == nil && l.tasks.together() {
			l.leave(lease.task, lease.worker, *e.Outcome)
		}
	case lost:
		lease, t := l.open[e.Fencing], l.byID[e.Task]
		if t == nil || e.Loss == nil || lease == nil && !l.tasks.together() {
			return impossible
		}
		if lease != nil {
			l.drop(lease, "lost")
		}
		if l.tasks.together() {
			l.endGang(t) // also those that run out at the same time
		}
		l.lose(now, t, *e.Loss)
	case unable:
		t := l.byID[e.Task]
		if t == nil || t.report != nil || e.Loss == nil {
			return impossible
		}
		l.failed = &givenUp{Task: e.Task, Reason: fmt.Sprintf("last with worker %s: %s", e.Loss.Worker, e.Loss.Reason), Unable: true}
	default:
		return impossible
	}
	return nil
}

// note returns the time at which a worker was heard, and keeps the latest one. A time ahead of this clock counts as now, and so does the
// zero time of an older journal.
func (l *leases) note(now, at time.Time) time.Time {
	if at.IsZero() || at.After(now) {
		at = now
	}
	if at.After(l.heard) {
		l.heard = at
	}
	return at
}

// replayed sets the last sign of life of the leases that a journal leaves open to the latest event of any worker, because the journal has
// no renewals.
func (l *leases) replayed() {
	l.live = true
	for _, x := range l.open {
		x.renewed = l.heard
	}
}

// begin makes parts the present phase. It ends leases of the phase before. The losses and failures of a task still count, unless the run
// was given up for that task.
func (l *leases) begin(stage control.Stage, workers int, parts []part) {
	before := l.byID
	if l.failed != nil {
		before = nil
	}
	if l.stage == stage {
		l.earlier = l.reports()
	} else {
		l.earlier, l.unfit = nil, nil
	}
	l.stage, l.workers, l.tasks, l.byID, l.failed = stage, workers, nil, map[string]*task{}, nil
	l.broken, l.breaks = map[int]bool{}, map[int]int{}
	clear(l.open)
	clear(l.with)
	clear(l.unables)
	for _, p := range parts {
		t := l.put(p.task(stage))
		if b := before[t.ID()]; b != nil {
			t.losses, t.lostWith, t.failures = b.losses, b.lostWith, b.failures
		}
	}
}

func (l *leases) put(of control.Task) *task {
	t := &task{Task: of}
	l.tasks, l.byID[t.ID()] = append(l.tasks, t), t
	return t
}

// lend opens a lease.
func (l *leases) lend(now time.Time, t *task, worker string, fencing uint64) *lease {
	lease := &lease{task: t, worker: worker, fencing: fencing, since: now, renewed: now, saved: now, deadline: now.Add(l.ttl)}
	if taken, _ := places(l.tasks.gangOf(t)); taken == 0 {
		delete(l.broken, t.FirstPanel)
	}
	t.leases = append(t.leases, lease)
	l.open[fencing], l.with[worker] = lease, lease
	for _, p := range t.pieces() {
		l.hold(worker, p)
	}
	return lease
}

// hold notes that a worker has a copy of something.
func (l *leases) hold(worker string, p piece) {
	if l.holds[worker] == nil {
		l.holds[worker] = map[piece]bool{}
	}
	l.holds[worker][p] = true
}

// drop ends a lease; how is the word for the reason.
func (l *leases) drop(x *lease, how string) {
	if l.live { // events replayed from an older journal carry no time
		l.history.add(x, how)
	}
	delete(l.open, x.fencing)
	if l.with[x.worker] == x {
		delete(l.with, x.worker)
	}
	x.task.leases = slices.DeleteFunc(x.task.leases, func(y *lease) bool { return y == x })
}

// end gives a task the outcome that a worker reports. The first report counts: other leases of the task end with it.
func (l *leases) end(t *task, worker string, o control.Outcome, loss *Loss) {
	if loss != nil {
		l.losses = append(l.losses, *loss)
	}
	switch {
	case o.Report != nil:
		t.report = o.Report
		l.release(worker)
		for _, other := range slices.Clone(t.leases) {
			l.drop(other, "late")
		}
	case o.Kind == control.Drained || o.Kind == control.Broken:
	case o.Kind == control.Unable && l.tasks.together(): // its gang goes on without it
	case o.Kind == control.Unable:
		l.isUnable(worker, t)
	case o.Kind == control.Retry && t.failures+1 < failureBudget:
		t.failures++
	case o.Kind == control.Retry:
		l.failed = &givenUp{Task: t.ID(), Reason: fmt.Sprintf("failed %d times, last: %s", failureBudget, o.Reason), Kinds: o.Kinds}
	default:
		l.failed = &givenUp{Task: t.ID(), Reason: o.Reason, Kinds: o.Kinds, Final: true}
	}
}

// isUnable notes that a worker has too little memory or disk for a task.
func (l *leases) isUnable(worker string, t *task) {
	t.unable = append(t.unable, worker)
	l.unables[worker]++
}

// state returns the content of a snapshot.
func (l *leases) state() *state {
	s := &state{
		Fencing: l.fencing, Catalog: l.catalog, Discards: l.discards, Stage: l.stage, Workers: l.workers, Earlier: l.earlier,
		Losses: l.losses, Failed: l.failed, Unfit: l.unfit,
	}
	s.Broken = slices.Sorted(maps.Keys(l.broken))
	if len(l.breaks) > 0 {
		s.Breaks = maps.Clone(l.breaks)
	}
	if len(l.strikes) > 0 {
		s.Strikes = maps.Clone(l.strikes)
	}
	for _, t := range l.tasks {
		s.Tasks = append(s.Tasks, taskState{partOf(t.Task), t.report, t.losses, t.lostWith, t.failures, t.unable})
	}
	for _, x := range l.byNumber() {
		s.Open = append(s.Open, openLease{x.task.ID(), x.worker, x.fencing, x.saved, x.blocks})
	}
	return s
}

// restore sets the state to the content of a snapshot. Open leases begin anew, because their workers may still be at work.
func (l *leases) restore(now time.Time, s state) error {
	memory, members := l.memory, l.members
	*l = *newLeases(l.ttl)
	l.memory, l.members = memory, members
	l.catalog, l.discards = s.Catalog, s.Discards
	l.fencing, l.stage, l.workers, l.earlier, l.losses, l.failed = s.Fencing, s.Stage, s.Workers, s.Earlier, s.Losses, s.Failed
	for _, t := range s.Tasks {
		put := l.put(t.task(s.Stage))
		put.report, put.losses, put.lostWith, put.failures = t.Report, t.Losses, t.LostWith, t.Failures
		for _, worker := range t.Unable {
			l.isUnable(worker, put)
		}
	}
	for _, x := range s.Open {
		t := l.byID[x.Task]
		if t == nil || t.report != nil || x.Fencing == 0 || x.Fencing > s.Fencing || l.open[x.Fencing] != nil {
			return fmt.Errorf("lease %d of task %q cannot be open", x.Fencing, x.Task)
		}
		given := l.lend(now, t, x.Worker, x.Fencing)
		given.saved, given.blocks = l.note(now, x.Saved), x.Blocks
	}
	for _, gang := range s.Broken {
		l.broken[gang] = true
	}
	maps.Copy(l.breaks, s.Breaks)
	l.unfit = s.Unfit
	maps.Copy(l.strikes, s.Strikes)
	return nil
}

// byNumber lists the open leases, the oldest first.
func (l *leases) byNumber() []*lease {
	return slices.SortedFunc(maps.Values(l.open), func(a, b *lease) int { return cmp.Compare(a.fencing, b.fencing) })
}

// of returns the open lease of a worker, nil if it has none.
func (l *leases) of(worker string) *lease { return l.with[worker] }

// held returns the lease with this number, or an error if the lease may change nothing any more.
func (l *leases) held(fencing uint64) (*lease, error) {
	x := l.open[fencing]
	switch {
	case x == nil:
		return nil, fmt.Errorf("coordinator: lease %d is over: %w", fencing, control.ErrLeaseLost)
	case l.failed != nil:
		return nil, fmt.Errorf("coordinator: the run is given up for task %s: %w", l.failed.Task, control.ErrLeaseLost)
	}
	return x, nil
}

// resumes reports whether tasks are the phase that is under way: either workers are on it, or it was cut before a worker told this
// coordinator that one of the tasks is done.
func (l *leases) resumes(tasks []control.Task) bool {
	if l.failed != nil || l.stage != tasks[0].Stage || len(l.tasks) == 0 || l.tasks[0].Part != tasks[0].Part {
		return false
	}
	return len(l.open) > 0 || slices.ContainsFunc(tasks, func(t control.Task) bool {
		known := l.byID[t.ID()]
		return known != nil && known.heard
	})
}

// grant chooses a task for a worker, if there is one. Of the waiting tasks it takes the one for which the worker holds most data, then the
// first. If none waits, it takes one that is overdue at another worker.
func (l *leases) grant(now time.Time, worker string) (event, bool) {
	var best *task
	if l.tasks.together() {
		best = l.member(now, worker)
	} else if best = l.waiting(worker); best == nil {
		best = l.straggler(now, worker)
	}
	if best == nil || l.failed != nil {
		return event{}, false
	}
	return event{Fact: leased, Task: best.ID(), Worker: worker, Fencing: l.fencing + 1, At: now}, true
}

// waiting returns the waiting task for which a worker holds most data.
func (l *leases) waiting(worker string) (best *task) {
	most := -1
	for _, t := range l.tasks {
		if t.report != nil || len(t.leases) > 0 || !l.may(worker, t) {
			continue
		}
		if has := l.covers(worker, t); best == nil || has > most {
			best, most = t, has
		}
	}
	return best
}

// may reports whether a worker may get a task. It may not after it reported too little memory or disk for this task, or for several tasks
// of the phase.
func (l *leases) may(worker string, t *task) bool {
	return l.unables[worker] < failureBudget && !slices.Contains(t.unable, worker)
}

// stuck finds a task that no worker may get.
func (l *leases) stuck(workers []string) (event, bool) {
	for _, t := range l.tasks {
		if t.report != nil || len(t.leases) > 0 || len(workers) == 0 {
			continue
		}
		if slices.ContainsFunc(workers, func(w string) bool { return l.may(w, t) }) {
			continue
		}
		for _, x := range slices.Backward(l.losses) {
			if l.byID[x.Task] != nil && slices.Contains(l.byID[x.Task].unable, x.Worker) {
				return event{Fact: unable, Task: t.ID(), Loss: &x}, true
			}
		}
	}
	return event{}, false
}

// covers counts the pieces of a task of which the worker has a copy.
func (l *leases) covers(worker string, t *task) (n int) {
	for _, p := range t.pieces() {
		if l.holds[worker][p] {
			n++
		}
	}
	return n
}

// renew keeps a lease for another TTL.
func (l *leases) renew(now time.Time, fencing uint64, p control.Progress) error {
	x, err := l.held(fencing)
	if err != nil {
		return err
	}
	if passed := now.Sub(x.renewed).Seconds(); passed > 0 && p.What == x.progress.What {
		x.rate = max(float64(p.Done-x.progress.Done)/passed, 0)
	}
	x.progress = p
	x.touch(now, l.ttl)
	return nil
}

func (x *lease) touch(now time.Time, ttl time.Duration) { x.renewed, x.deadline = now, now.Add(ttl) }

// expire returns the events of leases that have run out. A lease that waits for the coordinator itself has not.
func (l *leases) expire(now time.Time) (events []event) {
	for _, x := range l.byNumber() {
		if x.busy == 0 && x.ending == 0 && now.After(x.deadline) {
			loss := x.loss(fmt.Sprintf("no sign of life for %.0f s", now.Sub(x.renewed).Seconds()))
			events = append(events, event{Fact: lost, Task: x.task.ID(), Fencing: x.fencing, Loss: &loss})
		}
	}
	return events
}

// loss returns the work that is lost if the lease ends now.
func (x *lease) loss(reason string) Loss {
	return Loss{
		Task: x.task.ID(), Worker: x.worker, Reason: reason,
		SecondsLost: max(x.renewed.Sub(x.saved).Seconds(), 0),
		UnitsLost:   max(x.progress.Done-x.progress.Saved, 0), Unit: x.progress.Unit,
	}
}

// extend moves the deadlines of all leases by a time in which nobody could renew them.
func (l *leases) extend(by time.Duration) {
	for _, x := range l.open {
		x.deadline = x.deadline.Add(by)
	}
}

// shorten brings the deadline of a worker that seems dead nearer: to a few seconds from now, or to a few seconds after its next renewal is
// due.
func (l *leases) shorten(now time.Time, worker string) {
	for _, x := range l.open {
		if x.worker != worker {
			continue
		}
		due := x.renewed.Add(heartbeat(l.ttl))
		if due.Before(now) {
			due = now
		}
		if due = due.Add(l.ttl / 6); due.Before(x.deadline) {
			x.deadline = due
		}
	}
}

// heartbeat returns the interval at which leases are renewed.
func heartbeat(ttl time.Duration) time.Duration { return ttl / 3 }

var errOutcome = fmt.Errorf("an outcome needs a report, or a kind and a reason: %w", control.ErrRejected)

// finish returns the event of an outcome.
func (l *leases) finish(now time.Time, fencing uint64, o control.Outcome) (event, error) {
	x, err := l.held(fencing)
	if err != nil {
		return event{}, err
	}
	x.task.heard = o.Report != nil
	e := event{Fact: ended, Task: x.task.ID(), Fencing: fencing, Outcome: &o}
	switch {
	case o.Report != nil || o.Kind == control.Drained || o.Kind == control.Broken && l.tasks.together():
	case o.Kind == control.Retry || o.Kind == control.Unable || o.Kind == control.Fatal:
		x.renewed = now
		loss := x.loss(o.Reason)
		e.Loss = &loss
	default:
		return event{}, fmt.Errorf("coordinator: task %s ended with kind %q: %w", x.task.ID(), o.Kind, errOutcome)
	}
	return e, nil
}

// rivalCommits reports whether another lease of the same task is changing the catalogue.
func (x *lease) rivalCommits() bool {
	return slices.ContainsFunc(x.task.leases, func(y *lease) bool { return y != x && y.busy > 0 })
}

// done reports whether every task of the phase is done.
func (l *leases) done() bool {
	return !slices.ContainsFunc(l.tasks, func(t *task) bool { return t.report == nil })
}

// reports returns the reports of the stage so far, in the order of its tasks.
func (l *leases) reports() []control.StageReport {
	all := slices.Clone(l.earlier)
	for _, t := range l.tasks {
		if t.report != nil {
			all = append(all, *t.report)
		}
	}
	return all
}

// counts returns the number of tasks of the phase in each state.
func (l *leases) counts() (c TaskCounts) {
	for _, t := range l.tasks {
		switch {
		case t.report != nil:
			c.Done++
		case len(t.leases) > 0:
			c.Running++
		default:
			c.Waiting++
		}
	}
	return c
}

// lose counts a lost lease against its worker. It also counts it against the task, as far as the task may be the cause: losses with only
// one worker say nothing about the task.
func (l *leases) lose(now time.Time, t *task, loss Loss) {
	l.losses = append(l.losses, loss)
	l.strike(now, loss.Worker, l.ttl)
	t.losses++
	if !slices.Contains(t.lostWith, loss.Worker) {
		t.lostWith = append(t.lostWith, loss.Worker)
	}
	switch {
	case len(t.lostWith) >= lossBudget:
		l.failed = &givenUp{Task: t.ID(), Reason: fmt.Sprintf("was lost with %d different workers, last with worker %s: %s", lossBudget, loss.Worker, loss.Reason)}
	case t.losses >= lossLimit:
		l.failed = &givenUp{Task: t.ID(), Reason: fmt.Sprintf("was lost %d times, last with worker %s: %s", lossLimit, loss.Worker, loss.Reason)}
	}
}

// TaskCounts counts the tasks of a phase by state.
type TaskCounts struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Done    int `json:"done"`
}

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

const (
	// lossBudget is the number of different workers that may be lost with a task before the run is given up. A restarted worker counts as a
	// different one.
	lossBudget = 5
	// lossLimit is the total number of times that a task may lose its worker, which may be the same one each time.
	lossLimit = 20
	// freeLosses is the number of losses in a row, without a finished task between them, that a worker may have before gangs leave it out.
	freeLosses = 1
	// longestQuarantine bounds, in leases, how long one loss keeps a worker out.
	longestQuarantine = 64
)

// quarantine keeps workers that are lost again and again out of gangs. A worker that stands still ends the lease of every member of its
// gang; the others must be able to go on without it. Each further loss keeps the worker out for twice as long. A task that it finishes ends
// its quarantine.
type quarantine struct {
	// strikes counts, for each worker, its losses since it last finished a task.
	strikes map[string]int
	// until is the time from which a worker may be in a gang again. A coordinator that was restarted knows the strikes alone.
	until map[string]time.Time
}

func newQuarantine() quarantine {
	return quarantine{strikes: map[string]int{}, until: map[string]time.Time{}}
}

// strike counts a loss of a worker.
func (q quarantine) strike(now time.Time, worker string, ttl time.Duration) {
	q.strikes[worker]++
	if n := q.strikes[worker] - freeLosses; n > 0 {
		q.until[worker] = now.Add(quarantineTime(n, ttl))
	}
}

// quarantineTime returns the time for which the nth loss in excess of freeLosses keeps a worker out.
func quarantineTime(n int, ttl time.Duration) time.Duration {
	leases := longestQuarantine
	if n <= 6 {
		leases = min(1<<(n-1), longestQuarantine)
	}
	return time.Duration(leases) * ttl
}

// release forgets the losses of a worker that has finished a task.
func (q quarantine) release(worker string) {
	delete(q.strikes, worker)
	delete(q.until, worker)
}

// keepsOut reports whether gangs leave a worker out now.
func (q quarantine) keepsOut(now time.Time, worker string) bool { return now.Before(q.until[worker]) }
