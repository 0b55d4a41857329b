package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ndls/coordinator"
	"ndls/group/remote"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/control/member"
	"ndls/internal/control/rank"
	"ndls/internal/control/rpc"
	"ndls/internal/hook"
	"ndls/internal/storage"
	"ndls/worker"
)

// workerFlags are those of a worker.
type workerFlags struct {
	clusterFlags
	listen   string
	blocks   string
	patience time.Duration
	columns  int
}

func (a *app) workerCommand() *cobra.Command {
	f := &workerFlags{}
	cmd := a.command("worker --run DIR", "compute for a coordinator",
		`worker joins the coordinator of a run, and computes what that gives it, within
its own --memory, until the run has ended: with status 0 if the run is complete. It
may be started before the coordinator, and while the run goes on. When it is told to
stop it saves what it has, gives its work back and ends with status 75; if it is
lost, another worker goes on from what it has saved.

A worker waits --wait for a coordinator that does not answer. Where the
coordinator is it reads in the run directory, unless --coordinator says so.`,
		func(ctx context.Context, _ *cobra.Command) error { return a.work(ctx, f) })
	a.runFlag(cmd)
	a.cacheFlags(cmd)
	f.securityFlags(cmd)
	f.coordinatorFlag(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", loopback, "HOST:PORT for gossip; port 0 picks a free one")
	cmd.Flags().StringVar(&f.blocks, "blocks-listen", "", "HOST:PORT for rows that workers share (default the host of --listen, and a free port)")
	cmd.Flags().IntVar(&f.columns, "block-columns", 0, "columns of a column block (default as many as --memory holds)")
	cmd.Flags().DurationVar(&f.patience, "wait", 5*time.Minute, "how long to wait for a coordinator that does not answer")
	return cmd
}

// work serves a coordinator until the run has ended.
func (a *app) work(ctx context.Context, f *workerFlags) error {
	memory, err := a.memoryBytes()
	if err != nil {
		return err
	}
	security, err := f.security(rpc.Worker)
	if err != nil {
		return err
	}
	hooks, err := hook.FromEnvironment()
	if err != nil {
		return asUsage(err)
	}
	place, err := rank.FromEnv(os.Getenv)
	if err != nil {
		return asUsage(err)
	}
	name := member.NewName()
	a.log = a.log.With("worker", name)
	a.log.Info("started", "rank", place.Index, "of", place.Size, "from", place.From)

	store, err := a.awaitStore(ctx, f.patience)
	if err != nil {
		return err
	}
	scratch, remove, err := a.ownScratch(name)
	if err != nil {
		return err
	}
	defer remove()
	copies, closeCache, err := a.cached(store, scratch)
	if err != nil {
		return err
	}
	defer closeCache()
	group, err := member.Join(ctx, member.Options{
		Name: name, Bind: f.listen, Seeds: seeds(store), Key: security.GossipKey(),
		Meta: member.Meta{Role: member.Worker}, Log: a.inner(slog.LevelError),
	})
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer group.Leave()
	defer context.AfterFunc(ctx, group.Drain)()
	serving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shared, at, stop, err := f.serveBlocks(security, cancel)
	if err != nil {
		return err
	}
	defer stop()
	// The coordinator may be gone for good before this worker hears of the end.
	locate := f.locate(store)
	watched := func(ctx context.Context) (string, error) {
		if _, err := readAddress(ctx, store); errors.Is(err, storage.ErrNotExist) && ended(ctx, store, nil) == nil {
			cancel(errComplete)
		}
		return locate(ctx)
	}
	client, err := rpc.Dial(context.WithoutCancel(ctx), watched, security, rpc.Options{Patience: f.patience})
	if err != nil {
		return err
	}
	defer client.Close()
	err = worker.Serve(serving, &hooked{client, hooks}, storage.NewCounting(copies), worker.Options{
		Hello:  control.Hello{Worker: name, Version: version, Blocks: at, Holds: holds(copies)},
		Blocks: shared,
		Resources: control.Resources{
			Memory: memory, Threads: a.threads, Scratch: scratch, Kernel: a.kernel, BlockColumns: f.columns,
		},
		Saves: true, Patience: f.patience, Log: a.log,
	})
	if err == nil {
		group.Close() // all end now; a goodbye would take seconds
	}
	if errors.Is(context.Cause(serving), errComplete) {
		return nil // and a coordinator that comes again finds nothing to do
	}
	return ended(ctx, store, err)
}

var errComplete = errors.New("the run is complete")

// serveBlocks serves the rows that this worker shares with others, until stop is called.
// A server that fails ends the worker.
func (f *workerFlags) serveBlocks(security *rpc.Security, fail context.CancelCauseFunc) (shared *worker.Blocks, at string, stop func(), err error) {
	where := f.blocks
	if where == "" {
		host, _, err := net.SplitHostPort(f.listen)
		if err != nil {
			return nil, "", nil, asUsage(fmt.Errorf("--listen: %w", err))
		}
		where = net.JoinHostPort(host, "0")
	}
	listener, err := net.Listen("tcp", where)
	if err != nil {
		return nil, "", nil, fmt.Errorf("--blocks-listen: %w", err)
	}
	at, err = reachable(listener.Addr())
	if err == nil {
		err = security.CheckAddress(listener.Addr())
	}
	if err != nil {
		return nil, "", nil, errors.Join(fmt.Errorf("--blocks-listen: %w", err), listener.Close())
	}
	shared = &worker.Blocks{
		Registry: &remote.Registry{}, Wire: &blocks.Wire{Listener: listener},
		Dial: func(address string) (*blocks.Client, error) {
			return blocks.Dial(address, security.DialOptions(rpc.Worker)...)
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := blocks.Serve(ctx, shared.Wire, shared.Registry, security.ServerOptions()...); err != nil {
			fail(err)
		}
	}()
	return shared, at, func() { cancel(); <-served }, nil
}

// awaitStore opens the run directory, which a coordinator may be about to make.
func (a *app) awaitStore(ctx context.Context, patience time.Duration) (storage.Store, error) {
	if a.remote() {
		store, _, err := a.openStore(ctx, true)
		return store, err
	}
	for since := time.Now(); ; {
		err := a.checkFolder(false)
		if err == nil {
			return storage.OpenURI(ctx, a.runDir)
		}
		if time.Since(since) > patience {
			return nil, err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ownScratch is a folder for temporary files that no other worker has.
func (a *app) ownScratch(name string) (dir string, remove func(), err error) {
	dir = a.scratchDir()
	if dir == "" {
		return a.place("")
	}
	dir = filepath.Join(dir, name)
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// holds lists the files of which a store keeps copies.
func holds(store storage.Store) []string {
	if c, ok := store.(*storage.Cached); ok {
		return c.Holds()
	}
	return nil
}

// ended is what a worker ends with that found no more to do, or failed. A worker
// that comes when the run is complete finds no coordinator.
func ended(ctx context.Context, store storage.Store, failed error) error {
	if ctx.Err() != nil || errors.Is(failed, control.ErrRefused) {
		return failed
	}
	rec, err := coordinator.ReadRecord(ctx, store)
	switch {
	case err == nil && rec != nil && rec.State == coordinator.Complete:
		return nil
	case failed != nil || err != nil:
		return errors.Join(failed, err)
	case rec == nil:
		return errors.New("the run has ended and left no record")
	}
	return fmt.Errorf("the run has ended %s: %s", rec.State, rec.Reason)
}
