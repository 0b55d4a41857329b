package coordinator

import (
	"slices"
	"time"
)

const (
	// overdueFactor is the multiple of the median time of its phase after which a second worker gets a task whose worker cannot tell the time
	// left.
	overdueFactor = 2
	// gainFactor is the multiple of the time of a new attempt that a task must still need before a second worker gets it.
	gainFactor = 1.2
)

// straggler returns the task that gains most from a second attempt: one that still needs longer, by its worker's report, than a new
// attempt. It returns nil if none gains. If a worker is given, that worker must be allowed to have the task and must not have it yet. A
// gain shorter than a lease is not worth it.
func (l *leases) straggler(now time.Time, worker string) (found *task) {
	piece := l.pieceSeconds(now)
	if piece == 0 {
		return nil
	}
	half := 2*l.counts().Done >= len(l.tasks)
	most := 0.0
	for _, t := range l.tasks {
		if t.report != nil || len(t.leases) != maxLeases-1 || t.leases[0].worker == worker || !l.may(worker, t) {
			continue
		}
		x, again := t.leases[0], piece*t.size()
		left, known := x.left(now)
		spent := now.Sub(x.since).Seconds()
		switch {
		case known && (left < gainFactor*again || left < l.ttl.Seconds()):
			continue
		case !known && (!half || spent < max(overdueFactor*again, l.ttl.Seconds())):
			continue
		case !known:
			left = spent
		}
		if gain := left - again; found == nil || gain > most {
			found, most = t, gain
		}
	}
	return found
}

// pieceSeconds returns the median time of a piece of the phase: of tasks that are done, and of tasks under way whose workers report the
// time left. It returns 0 while nothing is known.
func (l *leases) pieceSeconds(now time.Time) float64 {
	var all []float64
	for _, t := range l.tasks {
		if t.report != nil {
			all = append(all, t.report.Seconds/t.size())
			continue
		}
		for _, x := range t.leases {
			if left, known := x.left(now); known {
				all = append(all, (now.Sub(x.since).Seconds()+left)/t.size())
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// mostGuessed is the largest share of a task that counts as done by the times of other tasks.
const mostGuessed = 0.9

// share returns the share of the phase's work that is done, from 0 to 1. It adds the tasks that are done, and for tasks under way the share
// by the time left that their workers report, or by the times of other tasks if a worker cannot tell.
func (l *leases) share(now time.Time) float64 {
	piece := l.pieceSeconds(now)
	done, all := 0.0, 0.0
	for _, t := range l.tasks {
		all += t.size()
		if t.report != nil {
			done += t.size()
			continue
		}
		most := 0.0
		for _, x := range t.leases {
			spent := now.Sub(x.since).Seconds()
			if left, known := x.left(now); known {
				most = max(most, spent/max(spent+left, 1e-9))
			} else if piece > 0 {
				most = max(most, min(spent/(piece*t.size()), mostGuessed))
			}
		}
		done += most * t.size()
	}
	if all == 0 {
		return 0
	}
	return done / all
}

// size returns the number of pieces of a task, as far as that tells its time.
func (t *task) size() float64 { return float64(max(t.Last-t.First, 1)) }

// left returns the seconds that a worker still needs for its task, by its last renewal.
func (x *lease) left(now time.Time) (seconds float64, known bool) {
	if x.progress.Left <= 0 {
		return 0, false
	}
	return max(x.progress.Left-now.Sub(x.renewed).Seconds(), 0), true
}
