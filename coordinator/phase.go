package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/internal/tracing"
)

// glance is the interval at which the progress of the tasks under way is read.
const glance = time.Second

// Run runs the tasks of one phase of a stage, and returns the reports of the stage so far, including those of earlier phases and of earlier
// coordinators. A phase on which workers still work from before a restart continues as it was cut then.
//
// After ctx is cancelled no more tasks are given out. Run returns the cause when the tasks under way have ended, at the latest after the
// time of a lease. Errors wrap [ErrTask] if a task used up its budget of losses or failures or can never be done; they name the task and
// the last reason. They wrap [ErrSuperseded] if another coordinator has taken over. They wrap errShort if a gang has lacked workers for two
// leases: it is then cut anew.
func (s *Scheduler) Run(ctx context.Context, tasks []control.Task) ([]control.StageReport, error) {
	return phaseLoop{s}.run(ctx, tasks)
}

// phaseLoop watches the tasks of a phase until the phase is over.
type phaseLoop struct{ *Scheduler }

func (s phaseLoop) run(ctx context.Context, tasks []control.Task) ([]control.StageReport, error) {
	if err := s.begin(ctx, tasks); err != nil {
		return nil, err
	}
	defer s.pause()
	tick := time.NewTicker(s.o.Lease / ticksPerLease)
	defer tick.Stop()
	looks := time.NewTicker(heartbeat(s.o.Lease))
	defer looks.Stop()
	reminders := time.NewTicker(reminder)
	defer reminders.Stop()
	var meter *progress.Meter // of a worker in this process there is more to show
	var glances <-chan time.Time
	if !s.o.Alone {
		meter = progress.StartPart(ctx, "tasks", int64(len(tasks)), "tasks")
		defer meter.Done()
		ticker := time.NewTicker(glance)
		defer ticker.Stop()
		glances = ticker.C
	}
	sweep, swept := s.sweeper(ctx)
	defer swept()
	last := time.Now()
	stop, grace := ctx.Done(), (<-chan time.Time)(nil)
	for {
		changed, reports, over, err := s.look(ctx)
		if over || err != nil {
			if err == nil {
				meter.Tell(1)
			}
			return reports, err
		}
		if meter != nil {
			done, share := s.finished()
			meter.Add(int64(done) - meter.Count())
			meter.Tell(share)
		}
		select {
		case <-changed:
		case <-glances: // tasks under way are further
		case <-tick.C:
			now := time.Now() // later than the tick, if this process stood still
			if err := s.tick(ctx, now.Sub(last)); err != nil {
				return nil, err
			}
			last = now
			if s.understaffed(now) {
				return nil, errShort
			}
		case <-looks.C:
			if err := s.settled(s.journal.look(ctx)); err != nil {
				return nil, err
			}
			sweep()
		case <-reminders.C:
			s.remind()
		case <-stop:
			s.stop()
			stop, grace = nil, time.After(s.o.Lease)
		case <-grace:
			return nil, stopped(ctx)
		}
	}
}

// sweeper removes old records of the journal in the background. sweep starts the removal unless it is under way; stop ends it.
func (s phaseLoop) sweeper(ctx context.Context) (sweep, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	idle := make(chan struct{}, 1)
	idle <- struct{}{}
	sweep = func() {
		select {
		case <-idle:
			go func() {
				s.journal.tidy(ctx)
				idle <- struct{}{}
			}()
		default:
		}
	}
	return sweep, func() { cancel(); <-idle }
}

// finished returns the number of finished tasks of the phase, and the share of its work that is done, including the tasks under way.
func (s phaseLoop) finished() (tasks int, share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases.counts().Done, s.leases.share(time.Now())
}

func stopped(ctx context.Context) error { return fmt.Errorf("coordinator: %w", context.Cause(ctx)) }

// begin makes tasks the present phase.
func (s phaseLoop) begin(ctx context.Context, tasks []control.Task) error {
	s.mu.Lock()
	workers := max(s.members.live(), s.o.Workers, 1)
	b := s.journal.add()
	if s.leases.resumes(tasks) && !s.recut {
		s.leases.extend(time.Since(s.started)) // no worker could be heard before
	} else {
		b = s.record(event{Fact: phase, Stage: tasks[0].Stage, Workers: workers, Tasks: partsOf(tasks)})
	}
	for _, t := range s.leases.tasks {
		t.Plan, t.Inputs, t.Lean, t.Spare = tasks[0].Plan, tasks[0].Inputs, tasks[0].Lean, tasks[0].Spare
	}
	s.mu.Unlock()
	if err := s.settle(ctx, b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.recut, s.short = true, false, time.Time{}
	s.trace = tracing.Carried(ctx)
	s.waitForWorkers()
	s.wake()
	return nil
}

// pause stops giving out tasks between phases.
func (s phaseLoop) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// stop stops giving out tasks for good.
func (s phaseLoop) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	s.wake()
	s.o.Log.Info("stopping", "tasks under way", len(s.leases.open))
}

// look reports whether the phase is over, and returns a channel that is closed at the next change.
func (s phaseLoop) look(ctx context.Context) (changed chan struct{}, reports []control.StageReport, over bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.leases.failed
	switch {
	case s.err != nil:
		return nil, nil, true, s.err
	case f == nil && !s.leases.done() && !(s.stopping && len(s.leases.open) == 0):
		return s.changed, nil, false, nil
	}
	// What ended the phase must be durable before it is told.
	b := s.journal.add()
	s.mu.Unlock()
	err = s.settle(ctx, b)
	s.mu.Lock()
	switch {
	case err != nil:
	case f != nil:
		err = f.error(s.o.Alone)
	case !s.leases.done():
		err = stopped(ctx)
	}
	return nil, s.leases.reports(), true, err
}

// tick ends leases that have run out. If the coordinator itself stood still, it adds that time to all leases, because it could not hear the
// workers.
func (s phaseLoop) tick(ctx context.Context, passed time.Duration) error {
	s.mu.Lock()
	s.gather()
	if late := passed - 2*s.o.Lease/ticksPerLease; late > 0 {
		s.leases.extend(late)
	}
	var events []event
	if !s.o.Alone { // a worker in this process is there as long as this process is
		events = s.leases.expire(time.Now())
	}
	for _, e := range events {
		s.o.Log.Warn("lease lost", "task", e.Loss.Task, "worker", e.Loss.Worker, "because", e.Loss.Reason, "seconds lost", e.Loss.SecondsLost)
	}
	if len(events) == 0 {
		events = s.giveUp(time.Now())
	}
	if len(events) == 0 {
		if now := time.Now(); s.leases.tasks.together() || s.leases.counts().Waiting == 0 && s.leases.straggler(now, "") != nil {
			s.wake() // a worker may be in gangs again, or something may take too long
		}
		s.members.forget(s.leases)
		s.mu.Unlock()
		return nil
	}
	b := s.record(events...)
	s.tellQuarantine(events)
	s.mu.Unlock()
	return s.settle(ctx, b)
}

// tellQuarantine logs which workers these events keep out of gangs.
func (s phaseLoop) tellQuarantine(events []event) {
	for _, e := range events {
		if e.Fact != lost || !s.leases.quarantine.keepsOut(time.Now(), e.Loss.Worker) {
			continue
		}
		s.o.Log.Warn("worker is kept out of gangs", "worker", e.Loss.Worker, "lost", s.leases.strikes[e.Loss.Worker],
			"for", time.Until(s.leases.until[e.Loss.Worker]).Round(time.Second))
	}
}

// giveUp ends the phase if it has a task for which no present worker has enough memory or disk. It waits the time of a lease for missing
// workers, which may be starting again.
func (s phaseLoop) giveUp(now time.Time) []event {
	var here []string
	for m := range s.members.present {
		here = append(here, m.Worker)
	}
	e, stuck := s.leases.stuck(here)
	switch {
	case !stuck:
		s.stuck = time.Time{}
		return nil
	case s.stuck.IsZero():
		s.stuck = now
	}
	if len(here) < s.o.Workers && now.Sub(s.stuck) < s.o.Lease {
		return nil
	}
	return []event{e}
}

// remind logs that the phase makes no progress, if so.
func (s *Scheduler) remind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitForWorkers()
	if c := s.leases.counts(); s.gathered && c.Waiting > 0 && c.Running == 0 {
		s.o.Log.Warn("tasks wait and no worker takes them", "tasks", c.Waiting, "workers", s.members.live())
	}
}

// understaffed reports whether no gang has had all its workers for so long that the phase must be cut for the remaining workers.
func (s phaseLoop) understaffed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases
	if !l.tasks.together() || !s.gathered || s.stopping || l.failed != nil || l.counts().Waiting == 0 || l.tasks.atWork() {
		s.short = time.Time{}
		return false
	}
	if s.short.IsZero() {
		s.short = now
	}
	s.recut = now.Sub(s.short) > shortLeases*s.o.Lease
	return s.recut
}

// Gang implements [control.Service].
func (s *Scheduler) Gang(ctx context.Context, fencing uint64) (control.Gang, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		x, err := s.leases.held(fencing)
		if s.ended || s.recut {
			err = fmt.Errorf("coordinator: there will be no gang: %w", control.ErrLeaseLost)
		}
		if err = errors.Join(s.err, err); err != nil {
			return control.Gang{}, err
		}
		if g, whole := s.leases.gang(x); whole {
			b := s.journal.add() // the leases of all are to be durable
			s.mu.Unlock()
			err := s.settle(ctx, b)
			s.mu.Lock()
			return g, err
		}
		if err := s.awaitChange(ctx); err != nil {
			return control.Gang{}, err
		}
	}
}

// Sharers waits for the workers that are to share the rows of a graph and lists them. It lists the workers that are present once tasks may
// be given out. With all it waits for Options.Workers of them, but no longer than a lease.
func (s *Scheduler) Sharers(ctx context.Context, all bool) (Sharers, error) {
	tick := time.NewTicker(s.o.Lease / ticksPerLease)
	defer tick.Stop()
	looks := time.NewTicker(heartbeat(s.o.Lease))
	defer looks.Stop()
	reminders := time.NewTicker(reminder)
	defer reminders.Stop()
	for since := time.Now(); ; {
		s.mu.Lock()
		s.gather()
		err, changed, here := s.err, s.changed, s.members.live()
		list := s.sharers(time.Now())
		ready := s.gathered && here > 0 && (!all || here >= s.o.Workers || time.Since(since) > s.o.Lease)
		s.mu.Unlock()
		switch {
		case err != nil:
			return Sharers{}, err
		case ready:
			return list, nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-looks.C:
			if err := s.settled(s.journal.look(ctx)); err != nil {
				return Sharers{}, err
			}
		case <-reminders.C:
			s.remind()
		case <-ctx.Done():
			return Sharers{}, stopped(ctx)
		}
	}
}

// sharers lists the workers that are present, serve rows, and have not reported too little memory or disk for a gang of the stage.
func (s *Scheduler) sharers(now time.Time) (list Sharers) {
	for m := range s.members.present {
		switch {
		case m.Blocks == "" || slices.Contains(s.leases.unfit, m.Hello.Worker):
		case s.leases.quarantine.keepsOut(now, m.Hello.Worker):
			list.Held = append(list.Held, m.Hello)
		default:
			list.Fit = append(list.Fit, m.Hello)
		}
	}
	return list
}

// UnderWay returns the tasks of the present phase if workers work on them. They may have begun before the coordinator was restarted.
func (s *Scheduler) UnderWay() (tasks []control.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leases.open) == 0 || s.leases.failed != nil || s.recut {
		return nil
	}
	for _, t := range s.leases.tasks {
		tasks = append(tasks, t.Task)
	}
	return tasks
}
