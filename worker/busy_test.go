package worker

import (
	"testing"
	"time"
)

// compute takes processor time until a moment.
func compute(until time.Time) {
	for x := 1.0; time.Now().Before(until); {
		for range 1000 {
			x = x*0.999 + 1
		}
	}
}

// A thread that computes alone leaves the other idle; one that sleeps leaves both. The
// processor time is measured too, so that a loaded machine does not matter.
func TestBusy(t *testing.T) {
	const span = 200 * time.Millisecond
	before := processTime()
	start := time.Now()
	w := watchThreads(2)
	compute(start.Add(span))
	b := w.stop()
	took, computed := time.Since(start), processTime()-before
	if b == nil || b.Threads != 2 {
		t.Fatalf("%+v", b)
	}
	if want := computed.Seconds() / took.Seconds(); b.Mean > want*1.1+0.05 || b.Mean < want*0.9-0.05 {
		t.Errorf("%.2f threads computed, the process took %.2f", b.Mean, want)
	}
	if b.Fewer < 0.8 {
		t.Errorf("one thread of two computes, and fewer than two for a share of %.2f", b.Fewer)
	}

	w = watchThreads(1)
	compute(time.Now().Add(span))
	if all := w.stop(); all.Fewer > 1.05-min(all.Mean, 1) || all.Fewer < 0.95-all.Mean {
		t.Errorf("one thread of one: %+v", all)
	}

	w = watchThreads(2)
	time.Sleep(span)
	if idle := w.stop(); idle != nil && (idle.Mean > 0.5 || idle.Fewer < 0.9) {
		t.Errorf("nobody computes: %+v", idle)
	}
}
