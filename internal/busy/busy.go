// Package busy measures how many threads of the process compute.
package busy

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause is the time between two looks at what the process has computed.
const pause = 10 * time.Millisecond

// Share says of a span of time how many threads there were to compute, how many computed in
// the mean, and for which share of the time fewer than all did.
type Share struct {
	Threads     int
	Mean, Fewer float64
}

// A Watch measures how many threads of the process compute. It looks at a clock of the
// process at fixed intervals.
type Watch struct {
	end  chan struct{}
	done chan Share
}

// Start begins to watch. The caller must call Stop. The clock tells for how long threads of
// the process have computed, all together; [ProcessTime] is one.
func Start(threads int, clock func() time.Duration) *Watch {
	w := &Watch{end: make(chan struct{}), done: make(chan Share, 1)}
	go w.watch(max(threads, 1), clock)
	return w
}

// Stop ends the watch. It returns nil if the clock stands still.
func (w *Watch) Stop() *Share {
	close(w.end)
	b := <-w.done
	if b.Mean == 0 {
		return nil
	}
	return &b
}

func (w *Watch) watch(threads int, clock func() time.Duration) {
	s := sum{threads: threads}
	last, lastComputed := time.Now(), clock()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-w.end:
			ended = true
		}
		now, nowComputed := time.Now(), clock()
		s.add(now.Sub(last), nowComputed-lastComputed)
		last, lastComputed = now, nowComputed
	}
	w.done <- s.busy()
}

// A sum adds up the intervals of a watch.
type sum struct {
	threads               int
	wall, computed, fewer time.Duration
}

// add adds an interval of the given wall time, in which the process took the given processor
// time. Their quotient b is the mean number of threads that computed. If b lies between
// threads-1 and threads, then fewer than all computed for the share threads-b of the
// interval. If b is smaller, they did so for the whole interval.
func (s *sum) add(wall, computed time.Duration) {
	s.wall += wall
	s.computed += computed
	s.fewer += min(max(time.Duration(s.threads)*wall-computed, 0), wall)
}

func (s *sum) busy() Share {
	b := Share{Threads: s.threads}
	if s.wall > 0 {
		b.Mean, b.Fewer = s.computed.Seconds()/s.wall.Seconds(), s.fewer.Seconds()/s.wall.Seconds()
	}
	return b
}

// ProcessTime is the processor time that the process has taken, 0 if that is not known. It
// includes other work of the process, such as the collection of garbage. Time in which other
// processes hold the cores does not count.
func ProcessTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
