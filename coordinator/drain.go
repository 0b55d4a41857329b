package coordinator

import (
	"context"
	"fmt"

	"ndls/internal/control"
)

// Drain gives out no more tasks. It returns after the tasks under way have ended and the run asks for others. It fails with
// [control.ErrEnded] if the run has ended, and with the cause of ctx. A successor of this coordinator does not know of the drain.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		s.o.Log.Info("draining: no task is given out any more", "tasks under way", len(s.leases.open))
		s.wake()
	}
	for !s.ended && s.err == nil && !(s.running && len(s.leases.open) == 0 && !s.leases.done()) {
		if s.awaitChange(ctx) != nil {
			return context.Cause(ctx)
		}
	}
	if s.ended {
		return control.ErrEnded
	}
	return s.err
}

// DrainWorker gives a worker no further task: the worker ends after its present one. Errors wrap [control.ErrRejected] if there is no such
// worker or if it is the last one.
func (s *Scheduler) DrainWorker(worker string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members.all[worker]
	switch {
	case m == nil || !s.members.here(m):
		return fmt.Errorf("no worker %q is here: %w", worker, control.ErrRejected)
	case m.drain:
		return nil
	}
	others := 0
	for other := range s.members.present {
		if other != m && !other.drain {
			others++
		}
	}
	if others == 0 {
		return fmt.Errorf("%s is the last worker; drain the whole run, which then stops after the tasks under way: %w", worker, control.ErrRejected)
	}
	m.drain = true
	s.o.Log.Info("worker gets no further task", "worker", worker)
	s.wake()
	return nil
}
