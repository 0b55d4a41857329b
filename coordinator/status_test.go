package coordinator

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ndls/internal/control"
	"ndls/plan"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		s := c.start()
		rec := &Record{Format: RecordFormat, Plan: plan.Default(), Wanted: []control.Stage{control.Partition, control.LSI, control.Smooth}}
		rec.set(StageRecord{StageReport: control.StageReport{Stage: control.Partition, Seconds: 12}, State: Complete})
		rec.set(StageRecord{StageReport: control.StageReport{Stage: control.LSI}, State: Running})
		s.Announce(rec.Progress())
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		for _, name := range []string{"a", `b"<b>`} {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1", Memory: 1 << 30, Threads: 4}); err != nil {
				t.Fatal(err)
			}
		}
		lost, err := s.Next(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := s.Renew(ctx, lost.Fencing, control.Progress{What: "hops", Done: 4, Total: 200, Unit: "hops"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * testTTL)
		l, err := s.Next(ctx, `b"<b>`)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(ctx, l.Fencing, control.Progress{What: "hops", Total: 200, Unit: "hops"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := s.Renew(ctx, l.Fencing, control.Progress{What: "hops", Done: 20, Total: 200, Unit: "hops", Saved: 10, Usage: control.Usage{Memory: 7, Read: 8, Written: 9}}); err != nil {
			t.Fatal(err)
		}

		st := s.Status()
		if want := []StageStatus{{control.Partition, Complete, 12, "", false}, {control.LSI, Running, 0, "", false}, {control.Smooth, Waiting, 0, "", false}}; !slices.Equal(st.Stages, want) {
			t.Errorf("stages %+v, want %+v", st.Stages, want)
		}
		if st.Run != "mem:" || st.PlanHash != plan.Default().Hash() || st.State != "running" || st.Stage != control.Smooth || st.Phase != control.Columns || st.Tasks != (TaskCounts{Waiting: 2, Running: 1}) {
			t.Errorf("status %+v", st)
		}
		if len(st.Losses) != 1 || st.Losses[0].Worker != "a" || st.SecondsLost != 10 || st.Losses[0].UnitsLost != 4 {
			t.Errorf("losses %+v", st.Losses)
		}
		a, b := st.Workers[0], st.Workers[1]
		if a.Here || a.Task != "" || a.Losses != 1 || a.LastSeen != 70 {
			t.Errorf("worker a: %+v", a)
		}
		if !b.Here || b.Task != lost.Task.ID() || b.Progress.Done != 20 || b.Progress.Saved != 10 || b.Rate != 2 || b.Usage != (control.Usage{Memory: 7, Read: 8, Written: 9}) || b.Memory != 1<<30 || b.Threads != 4 || b.LastSeen != 0 {
			t.Errorf("worker b: %+v", b)
		}

		history := s.History()
		if len(history) != 2 || history[0].Worker != "a" || history[0].How != "lost" || history[1].Worker != `b"<b>` || history[1].How != "under way" ||
			history[0].Task != lost.Task.ID() || history[0].Stage != control.Smooth || history[1].End.Sub(history[1].Begin) != 10*time.Second || history[0].Begin.After(history[1].Begin) {
			t.Errorf("history %+v", history)
		}
		if !s.Leading() {
			t.Error("the coordinator leads, and says it does not")
		}
		cancel()
		running.Wait()
		if st := s.Status(); st.State != "stopping" {
			t.Errorf("state %s", st.State)
		}
		if s.Leading() {
			t.Error("a coordinator that stops says that it leads")
		}
	})
}

// TestHealthDoesNotWait: the question whether this coordinator leads is answered while
// the scheduler is busy.
func TestHealthDoesNotWait(t *testing.T) {
	s := newCluster(t, 1).start()
	s.mu.Lock()
	defer s.mu.Unlock()
	answered := make(chan bool)
	go func() { answered <- s.Leading() }()
	select {
	case leads := <-answered:
		if !leads {
			t.Error("it does not lead")
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer")
	}
}
