package ndls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"ndls/coordinator"
	"ndls/group/remote"
	"ndls/internal/control"
	"ndls/internal/control/address"
	"ndls/internal/control/blocks"
	"ndls/internal/control/member"
	"ndls/internal/control/rpc"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/ownfolder"
	"ndls/internal/retry"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/internal/vfs"
	"ndls/worker"
)

// DefaultWait is the time that a worker waits for a coordinator that does not answer.
const DefaultWait = 5 * time.Minute

// WorkConfig says for which run a worker works, and with what.
type WorkConfig struct {
	// Run is the run directory, which the coordinator may be about to make.
	Run   string
	Trust Trust
	// Coordinator is HOST:PORT of the coordinator, "" for what that has written to the
	// run directory.
	Coordinator string
	// Listen is HOST:PORT for gossip, "" for a free port that only this host reaches.
	// Blocks is HOST:PORT for rows that workers share, "" for the host of Listen and a
	// free port.
	Listen, Blocks string
	Resources      Resources
	// Wait is the time to wait for a coordinator that does not answer, 0 for [DefaultWait].
	Wait time.Duration
	// Log gets what happens; nil drops it.
	Log *slog.Logger
}

// Work joins the coordinator of a run and computes what that gives it, within its own
// resources, until the run has ended: it returns nil if the run is complete. When ctx
// is cancelled it saves what it has, gives its work back and returns an error that
// wraps [ErrInterrupted].
func Work(ctx context.Context, c WorkConfig) (err error) {
	defer func() { err = interruption(ctx, err) }()
	if err := rundirName(c.Run); err != nil {
		return err
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	c.Listen = orLoopback(c.Listen)
	resources, err := c.Resources.control(c.Run)
	if err != nil {
		return err
	}
	if err := mem.CheckTotal(resources.Memory); err != nil {
		return err
	}
	log := logger(c.Log)
	security, err := c.Trust.security(rpc.Worker, log)
	if err != nil {
		return err
	}
	name := member.NewName()
	log = log.With("worker", name)
	log.Info("started")

	store, err := awaitStore(ctx, c.Run, c.Wait, log)
	if err != nil {
		return err
	}
	scratch, remove, err := ownScratch(resources.Scratch, name)
	if err != nil {
		return err
	}
	defer remove()
	resources.Scratch = scratch
	if err := rundir.Prepare(c.Run, scratch, log.Warn); err != nil {
		return err
	}
	copies, closeCache, err := c.Resources.cached(c.Run, store, scratch)
	if err != nil {
		return err
	}
	defer closeCache()
	members, err := member.Join(ctx, member.Options{
		Name: name, Bind: c.Listen, Seeds: address.Seeds(store), Key: security.GossipKey(), Log: inner(log, slog.LevelError),
	})
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer members.Leave()
	defer context.AfterFunc(ctx, members.Drain)()
	serving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shared, at, stop, err := c.serveBlocks(security, cancel)
	if err != nil {
		return err
	}
	defer stop()
	// The coordinator may be gone for good before this worker hears of the end, or about
	// to go on with a run of which what was asked for so far is complete.
	find, ends := locate(c.Coordinator, store), time.Now().Add(min(c.Wait, completeWait))
	var met atomic.Bool
	watched := func(ctx context.Context) (string, error) {
		switch _, err := address.Read(ctx, store); {
		case err == nil:
			met.Store(true)
		case errors.Is(err, storage.ErrNotExist) && (met.Load() || time.Now().After(ends)) && outcome(ctx, store, nil) == nil:
			cancel(errComplete)
		}
		return find(ctx)
	}
	client, err := rpc.Dial(context.WithoutCancel(ctx), watched, security, rpc.Options{Patience: c.Wait, Log: log})
	if err != nil {
		return err
	}
	defer client.Close()
	err = worker.Serve(serving, client, storage.NewCounting(copies), worker.Options{
		Hello:     control.Hello{Worker: name, Version: build(), Blocks: at, Holds: holds(copies)},
		Blocks:    shared,
		Resources: resources,
		Saves:     true, Patience: c.Wait, Log: log,
	})
	if err == nil {
		members.Close() // all end now; leaving the group one by one would take seconds
	}
	if errors.Is(err, control.ErrDrained) {
		return nil
	}
	if errors.Is(context.Cause(serving), errComplete) {
		return nil // and a coordinator that comes again finds nothing to do
	}
	return outcome(ctx, store, err)
}

var errComplete = errors.New("the run is complete")

// serveBlocks serves the rows that this worker shares with others, until stop is called.
// A server that fails ends the worker.
func (c WorkConfig) serveBlocks(security *rpc.Security, fail context.CancelCauseFunc) (shared *worker.Blocks, at string,
	stop func(), err error,
) {
	where := c.Blocks
	if where == "" {
		host, _, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return nil, "", nil, failure.Of(ErrOption, "--listen: %w", err)
		}
		where = net.JoinHostPort(host, "0")
	}
	listener, err := net.Listen("tcp", where)
	if err != nil {
		return nil, "", nil, fmt.Errorf("--blocks-listen: %w", err)
	}
	at, err = reachable(listener.Addr())
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
func awaitStore(ctx context.Context, dir string, wait time.Duration, log *slog.Logger) (storage.Store, error) {
	waiting := func(attempts int, err error) {
		if attempts == 1 {
			log.Info("waiting for the run directory", "for", wait, "because", err)
		}
	}
	if err := retry.Do(ctx, wait, waiting, func() error { return rundir.Check(dir, false) }); err != nil {
		return nil, err
	}
	return rundir.Open(ctx, dir, false)
}

// ownScratch is a folder for temporary files that no other worker has. Those of workers
// of this host that were killed are removed.
func ownScratch(base, name string) (dir string, remove func(), err error) {
	if base == "" {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("ndls-scratch-%d", os.Getuid()))
		if _, err := vfs.MkdirAll(base, 0o700); err != nil { // others may use the folder for temporary files
			return "", nil, fmt.Errorf("%w; give --scratch", err)
		}
	}
	if dir, remove, err = ownfolder.Make(base, name, member.NamedHere); err != nil {
		return "", nil, fmt.Errorf("--scratch: %w", err)
	}
	return dir, remove, nil
}

// holds lists the files of which a store keeps copies.
func holds(store storage.Store) []string {
	if c, ok := store.(*storage.Cached); ok {
		return c.Holds()
	}
	return nil
}

// completeWait is the time that a worker that has met no coordinator waits for one of a complete
// run.
const completeWait = 10 * time.Second

// outcome returns the error with which a worker ends that found no more to do, or failed. A worker
// that comes when the run is complete finds no coordinator.
func outcome(ctx context.Context, store storage.Store, failed error) error {
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
	return fmt.Errorf("the run has ended %s: %s", rec.Word(), rec.Reason)
}
