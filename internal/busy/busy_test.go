package busy

import (
	"testing"
	"time"
)

func TestBusySum(t *testing.T) {
	type interval struct{ wall, computed time.Duration } // seconds
	for _, c := range []struct {
		threads   int
		intervals []interval
		want      Share
	}{
		{2, nil, Share{Threads: 2}},
		{2, []interval{{10, 20}}, Share{Threads: 2, Mean: 2}},
		{2, []interval{{10, 0}}, Share{Threads: 2, Fewer: 1}},
		{2, []interval{{10, 10}}, Share{Threads: 2, Mean: 1, Fewer: 1}},
		{2, []interval{{10, 15}}, Share{Threads: 2, Mean: 1.5, Fewer: 0.5}},
		{2, []interval{{10, 20}, {30, 30}}, Share{Threads: 2, Mean: 1.25, Fewer: 0.75}},
		{4, []interval{{10, 25}}, Share{Threads: 4, Mean: 2.5, Fewer: 1}},
		// The kernel may account for time later than it was taken.
		{1, []interval{{10, 0}, {10, 20}}, Share{Threads: 1, Mean: 1, Fewer: 0.5}},
	} {
		s := sum{threads: c.threads}
		for _, i := range c.intervals {
			s.add(i.wall*time.Second, i.computed*time.Second)
		}
		if got := s.busy(); got != c.want {
			t.Errorf("%d threads, %v: %+v, want %+v", c.threads, c.intervals, got, c.want)
		}
	}
}

// The watch counts the processor time that the process takes: one busy thread is never more
// than one of two, and a process that sleeps takes hardly any.
func TestBusyWatch(t *testing.T) {
	const span = 200 * time.Millisecond
	w := Start(2, ProcessTime)
	for x, start := 1.0, time.Now(); time.Since(start) < span; {
		for range 1000 {
			x = x*0.999 + 1
		}
	}
	b := w.Stop()
	if b == nil || b.Threads != 2 || b.Mean <= 0 || b.Fewer < 0.5 {
		t.Errorf("one thread of two computed: %+v", b)
	}

	w = Start(2, ProcessTime)
	time.Sleep(span)
	if idle := w.Stop(); idle != nil && (idle.Mean > 0.5 || idle.Fewer < 0.9) {
		t.Errorf("nobody computed: %+v", idle)
	}
}
