package worker

import (
	"testing"
	"time"

	"ndls/internal/control"
)

func TestBusySum(t *testing.T) {
	type interval struct{ wall, computed time.Duration } // seconds
	for _, c := range []struct {
		threads   int
		intervals []interval
		want      control.Busy
	}{
		{2, nil, control.Busy{Threads: 2}},
		{2, []interval{{10, 20}}, control.Busy{Threads: 2, Mean: 2}},
		{2, []interval{{10, 0}}, control.Busy{Threads: 2, Fewer: 1}},
		{2, []interval{{10, 10}}, control.Busy{Threads: 2, Mean: 1, Fewer: 1}},
		{2, []interval{{10, 15}}, control.Busy{Threads: 2, Mean: 1.5, Fewer: 0.5}},
		{2, []interval{{10, 20}, {30, 30}}, control.Busy{Threads: 2, Mean: 1.25, Fewer: 0.75}},
		{4, []interval{{10, 25}}, control.Busy{Threads: 4, Mean: 2.5, Fewer: 1}},
		// The kernel may account for time later than it was taken.
		{1, []interval{{10, 0}, {10, 20}}, control.Busy{Threads: 1, Mean: 1, Fewer: 0.5}},
	} {
		sum := busySum{threads: c.threads}
		for _, i := range c.intervals {
			sum.add(i.wall*time.Second, i.computed*time.Second)
		}
		if got := sum.busy(); got != c.want {
			t.Errorf("%d threads, %v: %+v, want %+v", c.threads, c.intervals, got, c.want)
		}
	}
}

// The watch counts the processor time that the process takes: one busy thread is never more
// than one of two, and a process that sleeps takes hardly any.
func TestBusyWatch(t *testing.T) {
	const span = 200 * time.Millisecond
	w := watchThreads(2)
	for x, start := 1.0, time.Now(); time.Since(start) < span; {
		for range 1000 {
			x = x*0.999 + 1
		}
	}
	b := w.stop()
	if b == nil || b.Threads != 2 || b.Mean <= 0 || b.Fewer < 0.5 {
		t.Errorf("one thread of two computed: %+v", b)
	}

	w = watchThreads(2)
	time.Sleep(span)
	if idle := w.stop(); idle != nil && (idle.Mean > 0.5 || idle.Fewer < 0.9) {
		t.Errorf("nobody computed: %+v", idle)
	}
}
