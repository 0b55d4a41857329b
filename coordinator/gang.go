package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ndls/internal/control"
	"ndls/internal/packed"
)

const (
	// breakBudget is how often in a row, without a commit, a gang may break although
	// none of its workers was lost or has failed.
	breakBudget = 5
	// shortLeases is for how many leases a gang waits for a worker.
	shortLeases = 2
)

// errShort is why a phase of gangs is cut anew.
var errShort = errors.New("coordinator: a gang has fewer workers than it was cut for")

// gangState is what leases know of the gangs of the present phase, if it has any. The tasks
// of the same columns are those of a gang, which has a name (gangName).
//
// A gang stands and falls together: with a lease that ends without a report all
// others of the gang end, so that its members come back and make another one, and a worker
// that has no task takes the place of one that is lost. One that says that another has failed does
// not know whether that one is dead: the gang is broken, and the next begins when the
// leases of the others have ended as well. Other gangs of the phase go on.
type gangState struct {
	broken map[int]bool
	// breaks counts, since the last commit of a gang, how often it broke for no known reason.
	breaks map[int]int
	// unfit are workers that have found, in a gang of the stage, that their memory or
	// disk does not do. They are in no more of them.
	unfit []string
	// memory is that of a worker; nil does not ask.
	memory func(worker string) int64
	// members lists the workers that are here and can be in gangs; nil stands for enough of them.
	members func() []string
}

// together says whether the tasks of the phase are those of gangs.
func (l *leases) together() bool { return len(l.tasks) > 0 && l.tasks[0].Shares() }

// gangName names the gang of a task: by the first panel of its columns, or by a number below zero where it takes one
// half of each panel.
func gangName(t *task) int {
	if side := t.Side(); side != packed.Both {
		return -int(side) - len(packed.Sides)*t.FirstPanel
	}
	return t.FirstPanel
}

// gangOf is the tasks of the gang that a task is of.
func (l *leases) gangOf(t *task) []*task {
	var gang []*task
	for _, x := range l.tasks {
		if gangName(x) == gangName(t) {
			gang = append(gang, x)
		}
	}
	return gang
}

// places counts the places of a gang that have a worker, and those that still need one.
func places(gang []*task) (taken, free int) {
	for _, t := range gang {
		switch {
		case t.report != nil:
		case len(t.leases) > 0:
			taken++
		default:
			free++
		}
	}
	return taken, free
}

// gangs gives the tasks of one gang after the other.
func (l *leases) gangs(yield func([]*task) bool) {
	seen := map[int]bool{}
	for _, t := range l.tasks {
		if !seen[gangName(t)] {
			seen[gangName(t)] = true
			if !yield(l.gangOf(t)) {
				return
			}
		}
	}
}

// atWork says whether a gang of the phase has all its workers.
func (l *leases) atWork() bool {
	for gang := range l.gangs {
		if taken, free := places(gang); taken > 0 && free == 0 {
			return true
		}
	}
	return false
}

// suits says whether a worker may have a task now.
func (l *leases) suits(now time.Time, worker string, t *task) bool {
	if !l.together() {
		return true
	}
	taken, _ := places(l.gangOf(t))
	waits := l.broken[gangName(t)] && taken > 0
	return !waits && l.fit(now, worker, t)
}

// fit says whether a worker can have a task of a gang.
func (l *leases) fit(now time.Time, worker string, t *task) bool {
	return !l.quarantine.keepsOut(now, worker) && !slices.Contains(l.unfit, worker) && (l.memory == nil || l.memory(worker) >= t.Needs)
}

// member chooses a place in a gang for a worker. A place of which it holds the rows comes first,
// then one of the gang that lacks fewest workers, then one that needs much memory. No gang begins
// unless there are workers for it beside those that the gangs which have begun need: workers that
// are left over have no task, and are there when one is lost.
func (l *leases) member(now time.Time, worker string) (best *task) {
	here := len(l.tasks)
	if l.members != nil {
		least := slices.MinFunc(l.tasks, func(a, b *task) int { return cmp.Compare(a.Needs, b.Needs) })
		here = 0
		for _, name := range l.members() {
			if l.fit(now, name, least) {
				here++
			}
		}
	}
	begun := false
	for gang := range l.gangs {
		if taken, free := places(gang); taken > 0 {
			begun, here = true, here-taken-free
		}
	}
	var order [3]int64
	for gang := range l.gangs {
		taken, free := places(gang)
		if taken == 0 && begun && here < free {
			continue
		}
		lacks := int64(free)
		if taken == 0 {
			lacks += int64(len(l.tasks)) // those that have begun come first
		}
		for _, t := range gang {
			if t.report != nil || len(t.leases) > 0 || !l.may(worker, t) || !l.suits(now, worker, t) {
				continue
			}
			this := [3]int64{-int64(l.covers(worker, t)), lacks, -t.Needs}
			if best == nil || slices.Compare(this[:], order[:]) < 0 {
				best, order = t, this
			}
		}
	}
	return best
}

// pieces are those of the graph that a task reads. Gangs have theirs whole.
func (t *task) pieces() (list []piece) {
	if t.Shares() {
		return []piece{{control.Strips, t.First}}
	}
	for i := t.First; i < t.Last; i++ {
		list = append(list, piece{t.Part, i})
	}
	return list
}

// endGang ends all leases of the gang that a task is of.
func (l *leases) endGang(t *task) {
	for _, x := range l.byNumber() {
		if gangName(x.task) == gangName(t) {
			l.drop(x, "stopped")
		}
	}
	delete(l.broken, gangName(t))
}

// leave is what the end of a member's lease, without a report, does to the others.
func (l *leases) leave(t *task, worker string, o control.Outcome) {
	if o.Kind == control.Unable {
		l.unfit = append(l.unfit, worker)
	}
	if o.Kind != control.Broken {
		l.endGang(t)
		return
	}
	if taken, _ := places(l.gangOf(t)); taken > 0 {
		l.broken[gangName(t)] = true
		return
	}
	delete(l.broken, gangName(t))
	if l.breaks[gangName(t)]++; l.breaks[gangName(t)] >= breakBudget {
		l.failed = &givenUp{Task: t.ID(), Reason: fmt.Sprintf("failed: its workers could not reach each other %d times, last: %s", breakBudget, o.Reason)}
	}
}

// resetLosses forgets the losses and failures of a gang's tasks once one of its
// workers has committed something: these tasks are as long as their stage, and a commit
// between two losses brings them nearer to their end.
func (l *leases) resetLosses(of *task) {
	if !l.together() {
		return
	}
	delete(l.breaks, gangName(of))
	for _, t := range l.gangOf(of) {
		t.losses, t.lostWith, t.failures = 0, nil, 0
	}
}

// gang is that of a lease, if all its tasks have a worker.
func (l *leases) gang(of *lease) (g control.Gang, whole bool) {
	if !l.together() {
		return g, false
	}
	tasks := l.gangOf(of.task)
	for i, t := range tasks {
		if len(t.leases) == 0 {
			return g, false
		}
		x := t.leases[0]
		if x == of {
			g.Self = i
		}
		g.Number = max(g.Number, x.fencing)
		g.Borders = append(g.Borders, t.First)
		g.Peers = append(g.Peers, x.blocks)
	}
	g.Borders = append(g.Borders, tasks[len(tasks)-1].Last)
	return g, true
}

// Gang implements [control.Service].
func (s *Scheduler) Gang(ctx context.Context, fencing uint64) (control.Gang, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		x, err := s.leases.held(fencing)
		if s.ended || s.recut {
			err = fmt.Errorf("coordinator: there will be no gang: %w", control.ErrLeaseLost)
		}
		if err = errors.Join(s.err, err); err != nil {
			return control.Gang{}, err
		}
		if g, whole := s.leases.gang(x); whole {
			b := s.journal.add() // the leases of all are to be durable
			s.mu.Unlock()
			err := s.settle(ctx, b)
			s.mu.Lock()
			return g, err
		}
		if err := s.awaitChange(ctx); err != nil {
			return control.Gang{}, err
		}
	}
}

// understaffed says whether no gang has had all its workers for so long that the phase has to do
// with those that are left.
func (s *Scheduler) understaffed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leases.together() || !s.gathered || s.stopping || s.leases.failed != nil || s.leases.counts().Waiting == 0 || s.leases.atWork() {
		s.short = time.Time{}
		return false
	}
	if s.short.IsZero() {
		s.short = now
	}
	s.recut = now.Sub(s.short) > shortLeases*s.o.Lease
	return s.recut
}

// Sharers are the workers that may share the rows of a graph.
type Sharers struct {
	// Fit are those that are to.
	Fit []control.Hello
	// Held are those that are kept out of gangs for a while, since they were lost again
	// and again. They are to take part only where the others cannot do without them.
	Held []control.Hello
}

// Sharers waits for the workers that are to share the rows of a graph, and lists them:
// those that are here once tasks may be given out, or where all are wanted as many as
// Options.Workers, for which it waits no longer than a lease.
func (s *Scheduler) Sharers(ctx context.Context, all bool) (Sharers, error) {
	tick := time.NewTicker(s.o.Lease / ticksPerLease)
	defer tick.Stop()
	looks := time.NewTicker(heartbeat(s.o.Lease))
	defer looks.Stop()
	reminders := time.NewTicker(reminder)
	defer reminders.Stop()
	for since := time.Now(); ; {
		s.mu.Lock()
		s.gather()
		err, changed, here := s.err, s.changed, s.live()
		list := s.sharers(time.Now())
		ready := s.gathered && here > 0 && (!all || here >= s.o.Workers || time.Since(since) > s.o.Lease)
		s.mu.Unlock()
		switch {
		case err != nil:
			return Sharers{}, err
		case ready:
			return list, nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-looks.C:
			if err := s.settled(s.journal.look(ctx)); err != nil {
				return Sharers{}, err
			}
		case <-reminders.C:
			s.remind()
		case <-ctx.Done():
			return Sharers{}, stopped(ctx)
		}
	}
}

// sharers lists the workers that are here, serve rows, and have not found that their
// memory or disk is insufficient for a gang of the stage.
func (s *Scheduler) sharers(now time.Time) (list Sharers) {
	for _, m := range s.members {
		switch {
		case !s.here(m) || m.Blocks == "" || slices.Contains(s.leases.unfit, m.Hello.Worker):
		case s.leases.quarantine.keepsOut(now, m.Hello.Worker):
			list.Held = append(list.Held, m.Hello)
		default:
			list.Fit = append(list.Fit, m.Hello)
		}
	}
	return list
}

// UnderWay are the tasks of the present phase if workers are at work on them, from
// before the coordinator was started as well.
func (s *Scheduler) UnderWay() (tasks []control.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leases.open) == 0 || s.leases.failed != nil || s.recut {
		return nil
	}
	for _, t := range s.leases.tasks {
		tasks = append(tasks, t.Task)
	}
	return tasks
}
