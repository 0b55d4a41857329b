package coordinator

import (
	"fmt"
	"slices"
	"time"
)

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
