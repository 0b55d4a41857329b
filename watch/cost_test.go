package watch

import (
	"syscall"
	"testing"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
)

// cpu is the processor time that this process has taken, with that of the kernel for it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestCost: what the page costs a run, while somebody looks at it, is less than a hundredth of one core: the state is
// made, and encoded as an event, as often as events are sent.
func TestCost(t *testing.T) {
	if raced {
		t.Skip("the race detector takes more than what it looks at")
	}
	const most, rounds, times = 0.01, 5, 40
	many, renew := large(t)
	for _, c := range []struct {
		name   string
		of     *watcher
		change func(i int64)
	}{
		{"an ordinary run", &watcher{run: ordinary(), settled: settling(), o: Options{Watch: watching(t), Log: full(), Limits: limited, Versions: map[string]string{"ndls": "1"}}}, func(int64) {}},
		{"64 workers and 2,000 tasks", &watcher{run: many, o: Options{Watch: watching(t), Log: full(), Versions: map[string]string{"ndls": "1"}}}, renew},
	} {
		encode(c.of.state())        // the template is parsed once
		least, size := time.Hour, 0 // of rounds, since others disturb caches
		for round := range int64(rounds) {
			var spent time.Duration
			for i := range int64(times) {
				c.change(10 + round*times + i)
				before := cpu(t)
				size = len(encode(c.of.state()))
				spent += cpu(t) - before
			}
			least = min(least, spent/times)
		}
		share := least.Seconds() / interval.Seconds()
		t.Logf("%s: %.2f ms of processor time for an event of %d bytes, %.2f %% of one core", c.name, 1e3*least.Seconds(), size, 100*share)
		if share >= most {
			t.Errorf("%s: the page takes %.2f %% of one core", c.name, 100*share)
		}
	}
}

// ordinary is a run of one process after 200 hops of LSI.
func ordinary() *fake {
	f := running()
	s := *f.status.Load()
	s.Workers, s.Losses, s.SecondsLost = []coordinator.WorkerStatus{s.Workers[1]}, nil, 0
	s.Workers[0].Progress.Hop, s.Workers[0].Progress.Settled = 200, 0.99
	f.status.Store(&s)
	return f
}

// settling is how K has filled up to hop 199, as much of it as is kept.
func settling() (list []Settled) {
	for i := range control.MaxLines {
		list = append(list, Settled{Hop: 200 - control.MaxLines + i, Share: float64(i) / control.MaxLines})
	}
	return list
}
