package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/control/member"
	"ndls/internal/control/rpc"
	"ndls/internal/storage"
)

// coordinatorFlags are those of a coordinator beside the plan.
type coordinatorFlags struct {
	clusterFlags
	listen, gossip, http string
	parallel             string
	options              coordinator.Options
}

func (a *app) coordinatorCommand() *cobra.Command {
	f := &coordinatorFlags{}
	v := &stageVerb{app: a, stages: control.Stages, whole: true, creates: true}
	v.do = func(ctx context.Context) error { return v.coordinate(ctx, f) }
	cmd := v.command("coordinator --dataset URI --run DIR", "the whole job, with workers on other machines",
		`coordinator does what ndls run does, but computes nothing: it gives the work to
ndls worker processes, and takes it from those that are lost. The run directory
must be one that all of them see, a shared folder or s3://bucket/prefix, and so
must the files that the dataset and other flags name. Started again with the same
flags it goes on where it stood; workers wait for it meanwhile.

Workers prove with --keys or a token that they belong to the job. It listens on
this host alone unless --listen and --gossip-listen say otherwise. With --http it
serves a page, /status as JSON and /metrics for Prometheus, to whoever asks.`)
	v.datasetFlag(cmd)
	v.softLabelsFlag(cmd)
	v.plan.precision().partition().lsi().smooth().train().labels()
	f.securityFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", loopback, "HOST:PORT for workers; port 0 picks a free one")
	flags.StringVar(&f.gossip, "gossip-listen", loopback, "HOST:PORT for news of workers that died")
	flags.StringVar(&f.http, "http", "", "HOST:PORT for the status page (default none)")
	flags.DurationVar(&f.options.Lease, "lease", coordinator.DefaultLease, "how long a worker may be silent before its task is given to another")
	flags.DurationVar(&f.options.Checkpoint, "checkpoint", coordinator.DefaultCheckpoint, "how often workers save the state of long tasks")
	flags.IntVar(&f.options.Workers, "workers", 1, "workers to wait for before the first task")
	parallelFlag(cmd, &f.parallel)
	return cmd
}

// coordinate runs the stages with workers elsewhere, and prints what came of them.
func (v *stageVerb) coordinate(ctx context.Context, f *coordinatorFlags) error {
	security, err := f.security(rpc.Coordinator)
	if err != nil {
		return err
	}
	f.options.Log = v.log
	r, err := v.begin(ctx, f.options)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.share(f.parallel, f.options.Workers); err != nil {
		return err
	}
	rec, err := r.serve(ctx, f, security, nil)
	if err != nil {
		return err
	}
	return v.print(ctx, rec, r.job.Catalog)
}

// parallelFlag says how workers share stages.
func parallelFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "parallel", string(coordinator.Auto),
		"how workers share lsi, smooth and smooth-labels: columns of all rows, intervals of rows, or auto: intervals where 16 columns do not fit one worker")
}

// share sets how workers share stages.
func (r *session) share(parallel string, workers int) (err error) {
	if r.job.Parallel, err = coordinator.ParseParallel(parallel); err != nil {
		return asUsage(err)
	}
	r.job.Crew = workers
	if err := coordinator.CheckParallel(r.job.Parallel, r.job.Plan); err != nil {
		return asUsage(err)
	}
	return nil
}

// serve runs the stages with the workers that come. beside, unless nil, is told
// the coordinator's address and goes on until its context is cancelled at the end;
// an error of it ends the run.
func (r *session) serve(ctx context.Context, f *coordinatorFlags, security *rpc.Security, beside func(ctx context.Context, address string) error) (rec *coordinator.Record, err error) {
	hooked, err := withHooks(r.scheduler)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	where, err := reachable(listener.Addr())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--listen: %w", err), listener.Close())
	}
	group, err := r.gossip(ctx, f, security)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	defer group.Leave()

	// The run is cancelled if what it needs fails. Workers are served until the run
	// has stopped, not until it is told to.
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var services errgroup.Group
	defer func() {
		stop()
		err = errors.Join(err, services.Wait())
	}()
	start := func(serve func() error) {
		services.Go(func() error {
			err := serve()
			if err != nil {
				cancel(err)
			}
			return err
		})
	}
	service := &served{hooked, r.scheduler}
	start(func() error { return rpc.Serve(serving, listener, service, security) })
	if f.http != "" {
		start(func() error { return serveHTTP(serving, f.http, r.scheduler.Handler()) })
	}
	r.job.Tasks = &announced{Scheduler: r.scheduler, store: r.store, at: address{RPC: where, Gossip: group.Address(), Started: time.Now().UTC()}}
	defer func() { _ = r.store.Remove(context.WithoutCancel(ctx), addressName) }()
	r.verb.log.Info("waiting for workers", "at", where)
	if beside != nil {
		start(func() error { return beside(serving, where) })
	}
	rec, err = r.job.Run(running, r.verb.stages...)
	// A coordinator that was told to stop will be started again: its workers wait.
	if ctx.Err() == nil {
		r.scheduler.End(running)
	}
	if err == nil {
		group.Close() // all end now; a goodbye would take seconds
	}
	return rec, err
}

// announced is a scheduler that says where it is once there is work: by then the
// run directory is known to be one.
type announced struct {
	*coordinator.Scheduler
	store storage.Store
	at    address
	done  bool
}

// Run implements coordinator.Tasks.
func (t *announced) Run(ctx context.Context, tasks []control.Task) ([]control.StageReport, error) {
	if err := t.announce(ctx); err != nil {
		return nil, err
	}
	return t.Scheduler.Run(ctx, tasks)
}

// Crew implements coordinator.Tasks.
func (t *announced) Crew(ctx context.Context, all bool) ([]control.Hello, error) {
	if err := t.announce(ctx); err != nil {
		return nil, err
	}
	return t.Scheduler.Crew(ctx, all)
}

func (t *announced) announce(ctx context.Context) error {
	if t.done {
		return nil
	}
	err := t.at.write(ctx, t.store)
	t.done = err == nil
	return err
}

// gossip joins the group that sees workers die.
func (r *session) gossip(ctx context.Context, f *coordinatorFlags, security *rpc.Security) (*member.Group, error) {
	group, err := member.Join(ctx, member.Options{
		Bind: f.gossip, Key: security.GossipKey(), Meta: member.Meta{Role: member.Coordinator}, Log: r.verb.inner(slog.LevelError),
		Notify: func(e member.Event) {
			if e.Kind == member.Dead {
				r.scheduler.Dead(e.Member.Name)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--gossip-listen: %w", err)
	}
	return group, nil
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, address string, h http.Handler) error {
	s := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	after := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = s.Close()
	})
	err := s.ListenAndServe()
	if !after() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("--http: %w", err)
}
