package coordinator

import (
	"slices"
	"time"
)

const (
	// overdueFactor is how many times the median of its phase a task takes, of which its worker
	// cannot say how long it still takes, before it is given to another worker too.
	overdueFactor = 2
	// gainFactor is how many times as long as a new attempt should take a task must still take,
	// before it is given to another worker too.
	gainFactor = 1.2
)

// straggler is the task to which a second attempt brings most, nil if none would gain: one
// that still takes longer, by what its worker says of it, than a new attempt. With a worker
// it must be one that this worker may have and does not have. Times of less than a lease do
// not pay.
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

// pieceSeconds is the median of what a piece of the phase's tasks takes: of those that are
// done, and of those under way whose workers say how long they still take. It is 0 while
// nothing is known.
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

// mostGuessed is the largest share of a task that is taken to be done by what others took.
const mostGuessed = 0.9

// share is how much of the work of the phase is done, from 0 to 1: the tasks that are done, and of those under way what
// their workers say of the time left; where a worker cannot tell, what the time of other tasks says.
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

// size is the number of pieces of a task, as far as that says how long it takes.
func (t *task) size() float64 { return float64(max(t.Last-t.First, 1)) }

// left is how many seconds a worker still needs for its task, by its last renewal.
func (x *lease) left(now time.Time) (seconds float64, known bool) {
	if x.progress.Left <= 0 {
		return 0, false
	}
	return max(x.progress.Left-now.Sub(x.renewed).Seconds(), 0), true
}
