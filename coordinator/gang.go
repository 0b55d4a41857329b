package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ndls/internal/control"
)

const (
	// breakBudget is how often in a row, without a commit, a gang may break although
	// none of its workers was lost or has failed.
	breakBudget = 5
	// shortLeases is for how many leases a gang waits for a worker.
	shortLeases = 2
)

// errShort is why a gang's phase is cut anew.
var errShort = errors.New("coordinator: a gang has fewer workers than it was cut for")

// gangState is what leases know of the gang of the present phase, if it has one.
//
// A gang stands and falls together: with a lease that ends without a report all
// others end, so that its members come back and make another gang. One that says
// that another has failed does not know whether that one is dead: the gang is broken,
// and the next begins when the leases of the others have ended as well.
type gangState struct {
	broken bool
	// breaks counts, since the last commit, gangs that broke for no known reason.
	breaks int
	// unfit are workers that have found, in a gang of the stage, that their memory or
	// disk does not do. They are in no more of them.
	unfit []string
	// memory is that of a worker; nil does not ask.
	memory func(worker string) int64
}

// together says whether the tasks of the phase are a gang's.
func (l *leases) together() bool { return len(l.tasks) > 0 && l.tasks[0].Part == control.Strips }

// suits says whether a worker may have a task now.
func (l *leases) suits(now time.Time, worker string, t *task) bool {
	if !l.together() {
		return true
	}
	waits := l.broken && len(l.open) > 0
	return !waits && !l.quarantine.keepsOut(now, worker) && !slices.Contains(l.unfit, worker) && (l.memory == nil || l.memory(worker) >= t.Needs)
}

// pieces are those of the graph that a task reads. Gangs have theirs whole.
func (t *task) pieces() (list []piece) {
	last := t.Last
	if t.Part == control.Strips {
		last = t.First + 1
	}
	for i := t.First; i < last; i++ {
		list = append(list, piece{t.Part, i})
	}
	return list
}

// endAll ends all leases.
func (l *leases) endAll() {
	for _, x := range l.byNumber() {
		l.drop(x)
	}
	l.broken = false
}

// leave is what the end of a member's lease, without a report, does to the others.
func (l *leases) leave(t *task, worker string, o control.Outcome) {
	if o.Kind == control.Unable {
		l.unfit = append(l.unfit, worker)
	}
	if o.Kind != control.Broken {
		l.endAll()
		return
	}
	if l.broken = len(l.open) > 0; l.broken {
		return
	}
	if l.breaks++; l.breaks >= breakBudget {
		l.failed = &givenUp{Task: t.ID(), Reason: fmt.Sprintf("failed: its workers could not reach each other %d times, last: %s", breakBudget, o.Reason)}
	}
}

// resetLosses forgets the losses and failures of a gang's tasks once one of its
// workers has committed something: these tasks are as long as their stage, and a commit
// between two losses brings them nearer to their end.
func (l *leases) resetLosses() {
	if !l.together() {
		return
	}
	l.breaks = 0
	for _, t := range l.tasks {
		t.losses, t.lostWith, t.failures = 0, nil, 0
	}
}

// gang is that of a lease, if all tasks have a worker.
func (l *leases) gang(of *lease) (g control.Gang, whole bool) {
	for i, t := range l.tasks {
		if len(t.leases) == 0 || !l.together() {
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
	g.Borders = append(g.Borders, l.tasks[len(l.tasks)-1].Last)
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
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return control.Gang{}, ctx.Err()
		}
	}
}

// understaffed says whether a gang has lacked workers for so long that it has to do
// without them.
func (s *Scheduler) understaffed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leases.together() || !s.gathered || s.stopping || s.leases.failed != nil || s.leases.counts().Waiting == 0 {
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
