package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/retry"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/tracing"
	"ndls/stage/registry"
)

const (
	// shutdownGrace bounds the time that a stopping worker waits for its coordinator to answer. The
	// lease runs out by itself.
	shutdownGrace = 10 * time.Second
	// lastHop bounds the time for which a stopping worker continues a hop before it saves its
	// state.
	lastHop = 90 * time.Second
	// remindEvery is the interval at which the log says that a call is still being repeated.
	remindEvery = 30 * time.Second
	// mostJoins is the number of times in a row that a worker joins and is then unknown.
	mostJoins = 5
)

// Options says who a worker is and what it may use.
type Options struct {
	// Hello describes the worker. Memory and Threads come from Resources.
	Hello     control.Hello
	Resources control.Resources
	// Saves says that the state of long tasks is saved as often as the coordinator asks, and when
	// the worker is told to stop.
	Saves bool
	// Blocks lets the worker share the rows of a graph with others; its address is Hello.Blocks. A
	// worker with nil does not share rows.
	Blocks *Blocks
	// Patience is the time for which failing calls are repeated; a restarted coordinator must be
	// back by then. With 0 they are not repeated.
	Patience time.Duration
	// Alone says that there is no other worker: if this worker has too little memory, the run ends.
	Alone bool
	// Log receives messages about tasks; nil drops them.
	Log *slog.Logger
}

// Serve joins a coordinator and runs tasks on the run directory behind store, one at a time, until
// no more come. It keeps the lease of the present task while it works on it, and gives the task up
// when the lease is lost.
//
// When ctx is cancelled the task stops at its next hop or commit and is reported as drained; the
// error is the cause. An error that no attempt at the task can avoid is reported and returned.
// Errors wrap [control.ErrRefused] if the coordinator refuses the worker, and [control.ErrDrained]
// if it has drained it.
func Serve(ctx context.Context, svc control.Service, store *storage.Counting, o Options) error {
	o.Hello.Memory, o.Hello.Threads = o.Resources.Memory, o.Resources.Threads
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{svc: svc, o: o}
	s.cat = catalog.NewView(store, nil, s.publish)
	s.worker = New(store, s.cat)
	s.worker.scratchOnly = !o.Alone
	if o.Saves {
		s.worker.saver = &saver{stop: func() bool { return ctx.Err() != nil }, saved: s.noteSaved, hopping: s.noteHops}
	}
	if o.Blocks != nil {
		s.worker.gangs = &gangs{Blocks: *o.Blocks, gather: s.gang, clients: map[string]*blocks.Client{}}
	}
	defer s.worker.Close()
	if o.Blocks != nil {
		s.o.Hello.Rates.Edges = s.edgeRate(ctx)
	}
	if err := s.join(ctx); err != nil {
		return err
	}
	if o.Blocks != nil {
		s.o.Hello.Rates.Store = s.storeRate(ctx)
		if s.welcome.Peer != "" {
			s.o.Hello.Rates.Network, s.o.Hello.Rates.Delay = s.networkRate(ctx, s.welcome.Peer)
		}
		if err := s.join(ctx); err != nil {
			return err
		}
	}
	for {
		l, err := s.next(ctx)
		if errors.Is(err, control.ErrEnded) {
			return nil
		}
		if errors.Is(err, control.ErrDrained) {
			s.o.Log.Info("ends: it shall have no further task")
			return control.ErrDrained
		}
		if err == nil {
			err = s.work(ctx, l)
		}
		if err != nil {
			return err
		}
	}
}

// errUnheard marks calls to which the coordinator did not react.
var errUnheard = errors.New("the coordinator did not react")

// server is a worker that serves.
type server struct {
	svc     control.Service
	o       Options
	welcome control.Welcome
	cat     *catalog.Catalog // a view
	seen    catalog.Version  // version of the view at its last refresh
	worker  *Worker
	fencing uint64 // of the present lease
	watch   *progress.Watch
	saved   atomic.Int64 // Progress.Saved
	hopping atomic.Int32 // blocks under way, which end by themselves at their next hop if the task is to stop
}

// noteHops notes that the hops of a block begin or end.
func (s *server) noteHops(begin bool) {
	if begin {
		s.hopping.Add(1)
	} else {
		s.hopping.Add(-1)
	}
}

// noteSaved notes that the present work was saved, or has ended.
func (s *server) noteSaved(yes bool) {
	done := int64(0)
	if yes {
		done = s.watch.Now().Done
	}
	s.saved.Store(done)
}

// patiently repeats a call while it fails with an error that may pass. The log says so from the
// second failure on.
func (s *server) patiently(ctx context.Context, what string, call func() error) error {
	var told time.Time
	failed := func(attempts int, err error) {
		if attempts > 1 && time.Since(told) > remindEvery {
			told = time.Now()
			s.o.Log.Warn("the coordinator could not do it; the call is repeated", "call", what, "attempts", attempts, "because", err)
		}
	}
	err := retry.Do(ctx, s.o.Patience, failed, func() error {
		err := call()
		if control.Final(err) {
			return retry.Permanent(err)
		}
		return err
	})
	switch {
	case err == nil || control.Final(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if s.o.Alone {
		return failure.As(errUnheard, err)
	}
	return fmt.Errorf("%s: %w: %w", what, errUnheard, err)
}

func (s *server) join(ctx context.Context) error {
	return s.patiently(ctx, "joining", func() (err error) {
		s.welcome, err = s.svc.Join(ctx, s.o.Hello)
		return err
	})
}

// next waits for a lease. A restarted coordinator does not know the worker, which then joins again.
func (s *server) next(ctx context.Context) (l control.Lease, err error) {
	for range mostJoins {
		err = s.patiently(ctx, "asking for a task", func() (err error) {
			l, err = s.svc.Next(ctx, s.o.Hello.Worker)
			return err
		})
		if !errors.Is(err, control.ErrRefused) {
			return l, err
		}
		if err := s.join(ctx); err != nil {
			return l, err
		}
	}
	return l, err
}

// gang waits for the gang of the present lease.
func (s *server) gang(ctx context.Context) (g control.Gang, err error) {
	err = s.patiently(ctx, "waiting for the gang", func() (err error) {
		g, err = s.svc.Gang(ctx, s.fencing)
		return err
	})
	return g, err
}

// publish asks the coordinator to change the catalogue under the present lease.
func (s *server) publish(ctx context.Context, added []catalog.Entry, removed []string, del bool) error {
	c := control.Change{Added: added, Removed: removed, Delete: del}
	return s.patiently(ctx, "committing", func() error { return s.svc.Commit(ctx, s.fencing, c) })
}

// refresh updates the view of the catalogue.
func (s *server) refresh(ctx context.Context) error {
	return s.patiently(ctx, "reading the catalogue", func() error {
		l, err := s.svc.Catalog(ctx, s.seen)
		if err == nil {
			s.cat.Update(l)
			s.seen = l.Version
		}
		return err
	})
}

// work runs the task of a lease and reports how it ended.
func (s *server) work(ctx context.Context, l control.Lease) error {
	log := s.o.Log.With("task", l.Task.ID(), "lease", l.Fencing)
	log.Info("begin")
	report, err := s.execute(ctx, l)
	err = registry.Explain(err, s.cat)
	if errors.Is(err, control.ErrLeaseLost) {
		log.Warn("given up", "because", err)
		return nil
	}
	out := s.outcome(ctx, report, err)
	switch {
	case err == nil:
		log.Info("done", "seconds", report.Seconds)
	case out.Kind == control.Retry || out.Kind == control.Unable || out.Kind == control.Broken:
		log.Warn("failed", "because", err)
	default:
		log.Info("stopped", "because", err)
	}
	heard := s.finish(ctx, l, out)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(heard, control.ErrLeaseLost):
		log.Info("another attempt was first")
		return nil
	case heard != nil:
		return heard
	case out.Kind == control.Fatal:
		return failure.InStage(string(l.Task.Stage), err)
	}
	return nil
}

// finish ends a lease, also if the worker is told to stop.
func (s *server) finish(ctx context.Context, l control.Lease, out control.Outcome) error {
	if ctx.Err() != nil {
		var cancel func()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
	}
	return s.patiently(ctx, "finishing "+l.Task.ID(), func() error { return s.svc.Finish(ctx, l.Fencing, out) })
}

// execute runs the task of a lease and renews the lease meanwhile.
func (s *server) execute(ctx context.Context, l control.Lease) (r control.StageReport, err error) {
	s.fencing = l.Fencing
	if err := s.refresh(ctx); err != nil {
		return r, err
	}
	s.saved.Store(0)
	if s.worker.saver != nil {
		s.worker.saver.every = s.welcome.Checkpoint
	}
	told := ctx
	ctx, s.watch = progress.WithWatch(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancelCause(ctx)
	// Hops run to their end, so that they can be saved; all else stops at once.
	defer s.watch.Follow(l.Task.ID())()
	defer context.AfterFunc(told, func() {
		if s.hopping.Load() > 0 {
			select {
			case <-time.After(lastHop):
			case <-ctx.Done():
			}
		}
		cancel(context.Cause(told))
	})()
	var renewals sync.WaitGroup
	renewals.Go(func() { s.renew(ctx, cancel, l) })
	t := l.Task
	t.Resources = s.o.Resources
	t.Resources.Lean, t.Resources.Spare = t.Lean, t.Spare
	r, err = s.worker.Execute(tracing.Within(ctx, l.Trace), t)
	if err != nil && errors.Is(context.Cause(ctx), control.ErrLeaseLost) {
		err = context.Cause(ctx)
	}
	cancel(nil)
	renewals.Wait()
	return r, err
}

// renew keeps a lease until ctx ends, or cancels it when the lease is lost.
func (s *server) renew(ctx context.Context, cancel context.CancelCauseFunc, l control.Lease) {
	tick := time.NewTicker(s.welcome.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.watch.Now()
		p := control.Progress{
			What: now.What, Done: now.Done, Total: now.Total, Unit: now.Unit, Hop: now.Settled.Hop, Settled: now.Settled.Share,
			Where: now.Where, Usage: s.worker.usage(),
		}
		p.Saved = min(s.saved.Load(), p.Done)
		if course, ok := s.watch.Course(time.Now()); ok {
			p.Left = course.Remaining()
		}
		err := s.svc.Renew(ctx, l.Fencing, p)
		switch {
		case errors.Is(err, control.ErrLeaseLost):
			cancel(err)
			return
		case err != nil && ctx.Err() == nil:
			s.o.Log.Warn("lease not renewed", "lease", l.Fencing, "because", err)
		}
	}
}

// outcome returns the outcome for the end of a task.
func (s *server) outcome(ctx context.Context, r control.StageReport, err error) control.Outcome {
	switch {
	case err == nil:
		return control.Outcome{Report: &r}
	case ctx.Err() != nil:
		return control.Failed(control.Drained, context.Cause(ctx))
	case !s.o.Alone && s.isOwn(err):
		return control.Failed(control.Unable, err)
	case errors.Is(err, errBroken):
		return control.Failed(control.Broken, err)
	case s.o.Alone && isHopeless(err):
		return control.Failed(control.Fatal, err)
	case isPassing(err) || errors.Is(err, seal.ErrCorrupt) && s.outdated(ctx):
		return control.Failed(control.Retry, err)
	}
	return control.Failed(control.Fatal, err)
}

// isOwn reports whether an error concerns resources of which other workers may have more: memory,
// and the disk of the scratch folder.
func (s *server) isOwn(err error) bool {
	if errors.Is(err, mem.ErrBudget) {
		return true
	}
	var file *fs.PathError
	scratch := s.o.Resources.Scratch
	return errors.As(err, &file) && scratch != "" && (within(file.Path, scratch) || within(scratch, file.Path))
}

// within reports whether a file lies in a folder, or is the folder.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// isPassing reports whether an error concerns disks, networks or the state of this machine. All
// other errors come back in every attempt, because data and options do not change.
func isPassing(err error) bool {
	var (
		errno   syscall.Errno
		network net.Error
	)
	return errors.Is(err, errUnheard) || errors.Is(err, storage.ErrDisk) || errors.As(err, &errno) || errors.As(err, &network)
}

// isHopeless reports whether an error of the operating system would come back at once: a missing or
// forbidden file, an impossible name, a full disk. Processes on other hosts may succeed; this
// process does not.
func isHopeless(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{
		syscall.EACCES, syscall.EDQUOT, syscall.EEXIST, syscall.EFBIG, syscall.EINVAL, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
		syscall.ENOENT, syscall.ENOSPC, syscall.ENOTDIR, syscall.EPERM, syscall.EROFS,
	}, errno)
}

// outdated reports whether files that were listed when the task began are no longer listed: another
// attempt at the task has replaced or removed what this one was reading.
func (s *server) outdated(ctx context.Context) bool {
	before := s.cat.Entries("")
	if err := s.refresh(ctx); err != nil {
		return true
	}
	for _, e := range before {
		if now, ok := s.cat.Lookup(e.Path); !ok || now != e {
			return true
		}
	}
	return false
}
