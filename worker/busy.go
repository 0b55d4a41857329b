package worker

import (
	"time"

	"golang.org/x/sys/unix"

	"ndls/internal/control"
)

// busyPause is the time between two looks at what the process has computed.
const busyPause = 10 * time.Millisecond

// busyWatch follows how many threads of the process compute.
//
// In each interval between two looks the processor time that the process took, over the
// wall time, is the mean number b of threads that computed. Of t threads, at least t-1
// computing, all computed for the share b-(t-1) of the interval; else for none of it.
// Other work in the same process, such as the collection of garbage, counts too, and time
// that other processes took from this one counts as waiting.
type busyWatch struct {
	threads int
	end     chan struct{}
	done    chan control.Busy
}

// watchThreads begins to watch; stop must be called.
func watchThreads(threads int) *busyWatch {
	w := &busyWatch{threads: max(threads, 1), end: make(chan struct{}), done: make(chan control.Busy, 1)}
	go w.watch()
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

func (w *busyWatch) watch() {
	var wall, computed, fewer time.Duration
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
		d, c := now.Sub(last), nowComputed-lastComputed
		last, lastComputed = now, nowComputed
		wall += d
		computed += c
		fewer += min(max(time.Duration(w.threads)*d-c, 0), d)
	}
	b := control.Busy{Threads: w.threads}
	if wall > 0 {
		b.Mean, b.Fewer = computed.Seconds()/wall.Seconds(), fewer.Seconds()/wall.Seconds()
	}
	w.done <- b
}

// processTime is the processor time that the process has taken, 0 if that is not known.
func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
