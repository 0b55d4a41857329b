package worker

import (
	"time"

	"golang.org/x/sys/unix"

	"ndls/internal/control"
)

// busyPause is the time between two looks at what the process has computed.
const busyPause = 10 * time.Millisecond

// A busyWatch measures how many threads of the process compute. It looks at the processor
// time of the process at fixed intervals. That time includes other work of the process, such
// as the collection of garbage. Time in which other processes hold the cores counts as
// waiting.
type busyWatch struct {
	end  chan struct{}
	done chan control.Busy
}

// watchThreads begins to watch; the caller must call stop.
func watchThreads(threads int) *busyWatch {
	w := &busyWatch{end: make(chan struct{}), done: make(chan control.Busy, 1)}
	go w.watch(max(threads, 1))
	return w
}

// stop ends the watch. It returns nil if the kernel does not tell the time of the process.
func (w *busyWatch) stop() *control.Busy {
	close(w.end)
	b := <-w.done
	if b.Mean == 0 {
		return nil
	}
	return &b
}

func (w *busyWatch) watch(threads int) {
	sum := busySum{threads: threads}
	last, lastComputed := time.Now(), processTime()
	tick := time.NewTicker(busyPause)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-w.end:
			ended = true
		}
		now, nowComputed := time.Now(), processTime()
		sum.add(now.Sub(last), nowComputed-lastComputed)
		last, lastComputed = now, nowComputed
	}
	w.done <- sum.busy()
}

// A busySum adds up the intervals of a watch.
type busySum struct {
	threads               int
	wall, computed, fewer time.Duration
}

// add adds an interval of the given wall time, in which the process took the given processor
// time. Their quotient b is the mean number of threads that computed. If b lies between
// threads-1 and threads, then fewer than all computed for the share threads-b of the
// interval. If b is smaller, they did so for the whole interval.
func (s *busySum) add(wall, computed time.Duration) {
	s.wall += wall
	s.computed += computed
	s.fewer += min(max(time.Duration(s.threads)*wall-computed, 0), wall)
}

func (s *busySum) busy() control.Busy {
	b := control.Busy{Threads: s.threads}
	if s.wall > 0 {
		b.Mean, b.Fewer = s.computed.Seconds()/s.wall.Seconds(), s.fewer.Seconds()/s.wall.Seconds()
	}
	return b
}

// processTime is the processor time that the process has taken, 0 if that is not known.
func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
