package watch

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
)

// large is a scheduler that has given 64 of 2,000 tasks to as many workers; renew has each tell how far its task is.
func large(t *testing.T) (s *coordinator.Scheduler, renew func(done int64)) {
	t.Helper()
	const taskCount, workerCount = 2000, 64
	ctx, cancel := context.WithCancel(t.Context())
	store := storagetest.NewMem()
	journal, err := coordinator.OpenJournal(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = coordinator.NewScheduler(ctx, journal, cat, plan.Default(), coordinator.Options{Version: "1", Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	var list []control.Task
	for i := range taskCount {
		list = append(list, control.Task{Stage: control.Smooth, Part: control.Columns, First: i, Last: i + 1})
	}
	phase := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, list)
		phase <- err
	}()
	var leases []control.Lease
	t.Cleanup(func() {
		cancel()
		for _, l := range leases {
			_ = s.Finish(context.Background(), l.Fencing, control.Failed(control.Drained, context.Canceled)) // so that the phase need not wait for it
		}
		<-phase
	})
	for i := range workerCount {
		name := fmt.Sprintf("host-%d", i)
		if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1", Memory: 1 << 30, Threads: 4}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Next(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	return s, func(done int64) {
		t.Helper()
		for _, l := range leases {
			p := control.Progress{What: "hops", Done: done, Total: 1000, Unit: "hops", Usage: control.Usage{Memory: 1 << 29, Read: done << 20, Edges: done << 20, Rows: done << 26}}
			if err := s.Renew(ctx, l.Fencing, p); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// full is a log that is full.
func full() *Log {
	l := &Log{}
	for i := range MostLines {
		l.Add(Line{Time: time.Now(), Level: "INFO", Text: fmt.Sprint("worker joined worker=host-", i, " memory=1073741824 threads=4")})
	}
	return l
}

// TestLargeCluster shows 2,000 tasks and 64 workers, of a scheduler that gives them out: what has changed is on the
// page, and in the JSON and the metrics, in less than a tenth of a second.
func TestLargeCluster(t *testing.T) {
	s, renew := large(t)
	log := full()
	renew(1)
	h := New(s, Options{Log: log})
	server := httptest.NewServer(h)
	defer server.Close()
	answer, err := http.Get(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if lines := bufio.NewScanner(answer.Body); !lines.Scan() {
		t.Fatal("no event comes")
	}
	for _, x := range []struct {
		what string
		make func() string
	}{
		{"an event", func() string { return string(encode((&watcher{run: s, o: Options{Log: log}}).state())) }},
		{"the page", func() string { return get(h, "/").Body.String() }},
		{"the JSON", func() string { return get(h, "/status").Body.String() }},
		{"the metrics", func() string { return get(h, "/metrics").Body.String() }},
	} {
		best := time.Hour
		for i := range 5 {
			renew(int64(10 * (i + 2)))
			begun := time.Now()
			text := x.make()
			best = min(best, time.Since(begun))
			if !strings.Contains(text, "host-63") || len(text) > 300_000 {
				t.Fatalf("%s has %d bytes, or lacks a worker", x.what, len(text))
			}
		}
		t.Logf("%s takes %v", x.what, best)
		if best > 100*time.Millisecond {
			t.Errorf("%s takes %v", x.what, best)
		}
	}
}

// TestManyLosses keeps the page small, however much was lost.
func TestManyLosses(t *testing.T) {
	f := running()
	s := *f.status.Load()
	for range 5000 {
		s.Losses = append(s.Losses, s.Losses[0])
	}
	f.status.Store(&s)
	if event := encode((&watcher{run: f}).state()); len(event) > 100_000 {
		t.Errorf("an event of %d bytes", len(event))
	}
}
