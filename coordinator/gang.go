package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"ndls/internal/control"
)

const (
	// breakBudget is the number of times in a row, without a commit, that a gang may break although none of its workers was lost or has
	// failed.
	breakBudget = 5
	// shortLeases is the time, in leases, that a gang waits for a missing worker.
	shortLeases = 2
)

// errShort says why a phase of gangs is cut anew.
var errShort = errors.New("coordinator: a gang has fewer workers than it was cut for")

// together reports whether the tasks belong to gangs.
func (p phaseTasks) together() bool { return len(p) > 0 && p[0].Shares() }

// gangOf returns all tasks of the gang of a task.
func (p phaseTasks) gangOf(t *task) []*task {
	var gang []*task
	for _, x := range p {
		if x.FirstPanel == t.FirstPanel {
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

// gangs yields the tasks of one gang after the other.
func (p phaseTasks) gangs(yield func([]*task) bool) {
	seen := map[int]bool{}
	for _, t := range p {
		if !seen[t.FirstPanel] {
			seen[t.FirstPanel] = true
			if !yield(p.gangOf(t)) {
				return
			}
		}
	}
}

// atWork reports whether some gang of the phase has all its workers.
func (p phaseTasks) atWork() bool {
	for gang := range p.gangs {
		if taken, free := places(gang); taken > 0 && free == 0 {
			return true
		}
	}
	return false
}

// suits reports whether a worker may get a task now.
func (l *leases) suits(now time.Time, worker string, t *task) bool {
	if !l.tasks.together() {
		return true
	}
	taken, _ := places(l.tasks.gangOf(t))
	waits := l.broken[t.FirstPanel] && taken > 0
	return !waits && l.fit(now, worker, t)
}

// fit reports whether a worker can get a task of a gang.
func (l *leases) fit(now time.Time, worker string, t *task) bool {
	return !l.quarantine.keepsOut(now, worker) && !slices.Contains(l.unfit, worker) && (l.memory == nil || l.memory(worker) >= t.Needs)
}

// member chooses a place in a gang for a worker. It prefers a place whose rows the worker holds, then a place in the gang that lacks fewest
// workers, then a place that needs much memory. A gang begins only if enough workers are left for it after all begun gangs are full.
// Workers without a place have no task; they replace lost ones.
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
	for gang := range l.tasks.gangs {
		if taken, free := places(gang); taken > 0 {
			begun, here = true, here-taken-free
		}
	}
	var order [3]int64
	for gang := range l.tasks.gangs {
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

// pieces returns the pieces of the graph that a task reads. The strips of a gang's task are one piece.
func (t *task) pieces() (list []piece) {
	if t.Shares() {
		return []piece{{control.Strips, t.First}}
	}
	for i := t.First; i < t.Last; i++ {
		list = append(list, piece{t.Part, i})
	}
	return list
}

// endGang ends all leases of the gang of a task.
func (l *leases) endGang(t *task) {
	for _, x := range l.byNumber() {
		if x.task.FirstPanel == t.FirstPanel {
			l.drop(x, "stopped")
		}
	}
	delete(l.broken, t.FirstPanel)
}

// leave ends or keeps the leases of the other members when the lease of a member ends without a report.
func (l *leases) leave(t *task, worker string, o control.Outcome) {
	if o.Kind == control.Unable {
		l.unfit = append(l.unfit, worker)
	}
	if o.Kind != control.Broken {
		l.endGang(t)
		return
	}
	if taken, _ := places(l.tasks.gangOf(t)); taken > 0 {
		l.broken[t.FirstPanel] = true
		return
	}
	delete(l.broken, t.FirstPanel)
	if l.breaks[t.FirstPanel]++; l.breaks[t.FirstPanel] >= breakBudget {
		l.failed = &givenUp{Task: t.ID(), Reason: fmt.Sprintf("failed: its workers could not reach each other %d times, last: %s", breakBudget, o.Reason)}
	}
}

// resetLosses forgets the losses and failures of a gang's tasks after one of its workers has committed something. These tasks are as long
// as their stage, and a commit between two losses is progress.
func (l *leases) resetLosses(of *task) {
	if !l.tasks.together() {
		return
	}
	delete(l.breaks, of.FirstPanel)
	for _, t := range l.tasks.gangOf(of) {
		t.losses, t.lostWith, t.failures = 0, nil, 0
	}
}

// gang returns the gang of a lease. whole reports whether all its tasks have a worker.
func (l *leases) gang(of *lease) (g control.Gang, whole bool) {
	if !l.tasks.together() {
		return g, false
	}
	tasks := l.tasks.gangOf(of.task)
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
