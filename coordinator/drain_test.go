package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ndls/internal/control"
)

// joined has workers join, and gives each its first task.
func joined(t *testing.T, s *Scheduler, names ...string) (leases []control.Lease) {
	t.Helper()
	for _, name := range names {
		if _, err := s.Join(t.Context(), control.Hello{Worker: name, Version: "1", Memory: 1 << 30, Threads: 1}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Next(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	return leases
}

// done ends a lease with a report.
func done(t *testing.T, s *Scheduler, l control.Lease) {
	t.Helper()
	if err := s.Finish(t.Context(), l.Fencing, control.Outcome{Report: &control.StageReport{Stage: l.Task.Stage}}); err != nil {
		t.Fatal(err)
	}
}

// TestDrainWorker: a worker that is drained ends after its task, and the others do the rest.
func TestDrainWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		s := c.start()
		ended := make(chan error, 1)
		go func() {
			_, err := s.Run(t.Context(), c.tasks)
			ended <- err
		}()
		leases := joined(t, s, "a", "b")
		if err := s.DrainWorker("c"); !errors.Is(err, control.ErrRejected) {
			t.Errorf("a worker that is not here is drained: %v", err)
		}
		if err := s.DrainWorker("a"); err != nil {
			t.Fatal(err)
		}
		if err := s.DrainWorker("b"); !errors.Is(err, control.ErrRejected) {
			t.Errorf("the last worker is drained: %v", err)
		}
		if st := s.Status(); !st.Workers[0].Draining || st.Workers[1].Draining || st.State != "running" {
			t.Errorf("status %+v", st)
		}
		if again, err := s.Next(t.Context(), "a"); err != nil || again.Fencing != leases[0].Fencing {
			t.Errorf("the task that it has: %v, %v", again, err)
		}
		done(t, s, leases[0])
		if l, err := s.Next(t.Context(), "a"); !errors.Is(err, control.ErrDrained) {
			t.Errorf("a drained worker gets %v, %v", l, err)
		}
		if st := s.Status(); st.Workers[0].Here {
			t.Error("a worker that has left counts as here")
		}
		done(t, s, leases[1])
		last, err := s.Next(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		done(t, s, last)
		if err := <-ended; err != nil {
			t.Errorf("the phase ends with %v", err)
		}
	})
}

// TestDrain: a run that is drained gives out no task, and is drained once those under way have ended.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		s := c.start()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, c.tasks)
			ended <- err
		}()
		leases := joined(t, s, "a", "b")
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(ctx) }()
		synctest.Wait()
		if st := s.Status(); st.State != "draining" || !s.Leading() {
			t.Errorf("the run is %s", st.State)
		}
		done(t, s, leases[0])
		asked := make(chan error, 1)
		go func() {
			_, err := s.Next(ctx, "a")
			asked <- err
		}()
		synctest.Wait()
		select {
		case err := <-asked:
			t.Errorf("a worker is told %v", err)
		case err := <-drained:
			t.Errorf("drained with a task under way: %v", err)
		default:
		}
		done(t, s, leases[1])
		if err := <-drained; err != nil {
			t.Errorf("drained: %v", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the phase ends with %v", err)
		}
		<-asked
		if st := s.Status(); st.Tasks != (TaskCounts{Waiting: 1, Done: 2}) {
			t.Errorf("tasks %+v", st.Tasks)
		}
		over := c.start()
		over.End(t.Context())
		if err := over.Drain(t.Context()); !errors.Is(err, control.ErrEnded) {
			t.Errorf("a run that has ended is drained: %v", err)
		}
	})
}

// TestSpeed compares the speed with a worker's usage between its last two reports.
func TestSpeed(t *testing.T) {
	var s speed
	at := time.Unix(0, 0)
	s.note(at, control.Usage{Read: 100})
	if s.rates != (Speed{}) {
		t.Errorf("a speed before anything was measured: %+v", s.rates)
	}
	s.note(at.Add(2*time.Second), control.Usage{Read: 300, Written: 10, Edges: 40, Rows: 640})
	if s.rates != (Speed{Read: 100, Written: 5, Edges: 20, Rows: 320}) {
		t.Errorf("the speed is %+v", s.rates)
	}
	s.note(at.Add(3*time.Second), control.Usage{}) // the worker was started again
	if s.rates != (Speed{}) {
		t.Errorf("a speed below zero: %+v", s.rates)
	}
}
