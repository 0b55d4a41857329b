package ndls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls/coordinator"
	"ndls/internal/control/address"
	"ndls/internal/control/member"
	"ndls/internal/control/rpc"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/storage"
)

// loopback is an address to which only this host can connect, at a free port.
const loopback = "127.0.0.1:0"

// Trust says how the processes of a job prove to each other that they belong to it.
type Trust struct {
	// Keys is a folder made by [MakeKeys].
	Keys string
	// TokenFile is the file of the job's token, "" for the environment variable
	// NDLS_TOKEN.
	TokenFile string
}

// TokenVariable is the environment variable that holds the token of a job where no
// file does.
const TokenVariable = rpc.TokenVariable

// MakeKeys makes in the folder dir an authority for one job, certificates of it for
// the coordinator and the workers, which hold the names hosts too, and the key of
// their gossip.
func MakeKeys(dir string, hosts []string, valid time.Duration) error {
	return rpc.MakeKeys(dir, hosts, valid)
}

func (t Trust) security(role rpc.Role, log *slog.Logger) (*rpc.Security, error) {
	s, err := rpc.LoadSecurity(t.Keys, role, t.TokenFile)
	if err != nil {
		return nil, err
	}
	for _, file := range s.Exposed {
		log.Warn("other users of this host can read a secret of the job", "file", file, "mend with", "chmod 600 "+file)
	}
	return s, nil
}

// ServeConfig says how a coordinator is reached and how it deals with workers.
type ServeConfig struct {
	Trust Trust
	// Listen is HOST:PORT for workers, Gossip for news of workers that died; "" is a
	// free port of this host, which other hosts do not reach.
	Listen, Gossip string
	// Lease is the time that a worker may be silent before another gets its task, Checkpoint the
	// interval at which workers save the state of long tasks; 0 is the default.
	Lease, Checkpoint time.Duration
	// Workers is the number of workers that must be present before the first task.
	Workers int
}

// Defaults of [ServeConfig].
const (
	DefaultLease      = coordinator.DefaultLease
	DefaultCheckpoint = coordinator.DefaultCheckpoint
)

// Serve does what [Run] does for the whole job, but computes nothing: it gives the
// work to processes that call [Work], on any hosts, and takes it from those that are
// lost. Called again with the same arguments it goes on where it stood; workers wait
// for it meanwhile. Of c.Resources only Scratch counts.
func Serve(ctx context.Context, c Config, s ServeConfig) (_ *Directory, err error) {
	defer func() { err = interruption(ctx, err) }()
	ctx, stop := reporting(ctx, c.Progress)
	defer stop()
	kept := c.logged()
	j, err := newJob(c, nil)
	if err != nil {
		return nil, err
	}
	security, err := s.Trust.security(rpc.Coordinator, j.Log)
	if err != nil {
		return nil, err
	}
	watched, onlooker, err := c.Watching.followed(ctx, security.Token(), c.Log)
	if err != nil {
		return nil, err
	}
	onlooker.log = kept
	defer onlooker.close() // ends watched
	defer func() { err = interruption(watched, err) }()
	return j.lead(watched, onlooker, s, security)
}

// lead does the work of Serve.
func (j job) lead(ctx context.Context, onlooker onlooker, s ServeConfig, security *rpc.Security) (*Directory, error) {
	s.Workers = max(s.Workers, 1)
	r, err := j.begin(ctx, coordinator.Options{Lease: s.Lease, Checkpoint: s.Checkpoint, Workers: s.Workers, Log: j.Log})
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.onlooker = onlooker
	rec, err := r.serve(ctx, s, security, nil)
	if err != nil {
		return nil, err
	}
	return r.directory(rec), nil
}

// serve runs the stages with the workers that come. beside, unless nil, is told
// the coordinator's address and goes on until its context is cancelled, when no work is
// left; an error of it ends the run.
func (r *session) serve(ctx context.Context, s ServeConfig, security *rpc.Security,
	beside func(ctx context.Context, address string) error,
) (rec *coordinator.Record, err error) {
	listener, err := net.Listen("tcp", orLoopback(s.Listen))
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	where, err := reachable(listener.Addr())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--listen: %w", err), listener.Close())
	}
	group, err := r.gossip(ctx, orLoopback(s.Gossip), security)
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
		// What ended the run says more than what ended after it.
		if failed := services.Wait(); err == nil {
			err = failed
		}
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
	start(func() error { return rpc.Serve(serving, listener, &served{r.scheduler}, security) })
	defer r.watched(serving)()
	at, begun := address.Address{RPC: where, Gossip: group.Address(), Started: time.Now().UTC()}, false
	r.work.Begin = func(ctx context.Context) (err error) {
		if !begun {
			err = at.Write(ctx, r.store)
			begun = err == nil
		}
		return err
	}
	defer func() { _ = r.store.Remove(context.WithoutCancel(ctx), address.Name) }()
	r.Log.Info("waiting for workers", "at", where)
	helping, over := context.WithCancel(serving)
	defer over()
	if beside != nil {
		start(func() error { return beside(helping, where) })
	}
	r.work.Stopped = causeOf(ctx)
	rec, err = r.work.Run(running, r.stages...)
	over()
	// A coordinator that was told to stop will be started again: its workers wait.
	if ctx.Err() == nil {
		r.scheduler.End(running)
	}
	if err == nil {
		group.Close() // all end now; leaving the group one by one would take seconds
	}
	return rec, err
}

// served is a scheduler as workers and ndls status see it from elsewhere.
type served struct{ *coordinator.Scheduler }

// Status implements rpc.Service.
func (s *served) Status(context.Context) ([]byte, error) { return json.Marshal(s.Scheduler.Status()) }

// gossip joins the group that sees workers die.
func (r *session) gossip(ctx context.Context, at string, security *rpc.Security) (*member.Group, error) {
	group, err := member.Join(ctx, member.Options{
		Bind: at, Key: security.GossipKey(), Log: inner(r.Log, slog.LevelError), Dead: r.scheduler.Dead,
	})
	if err != nil {
		return nil, fmt.Errorf("--gossip-listen: %w", err)
	}
	return group, nil
}

// orLoopback returns the address on which a process listens that was not told one.
func orLoopback(at string) string {
	if at == "" {
		return loopback
	}
	return at
}

// reachable is an address that is listened on as others see it: where that is
// every interface, the host's name.
func reachable(l net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(l.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// StatusConfig says which coordinator to ask.
type StatusConfig struct {
	Trust Trust
	// Run is the run directory in which the coordinator has written its address;
	// Coordinator is the address HOST:PORT itself. Give one of them.
	Run, Coordinator string
	// Log gets warnings; nil drops them.
	Log *slog.Logger
}

// GetStatus asks the coordinator of a run how that goes. Where a run directory has no
// coordinator, or one that was killed, or one on this host for which c.Trust has nothing, the status is nil
// and the directory says how the run stood last.
func GetStatus(ctx context.Context, c StatusConfig) (st *Status, last *Directory, err error) {
	defer func() { err = interruption(ctx, err) }()
	if (c.Run == "") == (c.Coordinator == "") {
		return nil, nil, failure.Of(ErrOption, "give either --run or --coordinator")
	}
	var store storage.Store
	var stood *Directory
	if c.Run != "" {
		if stood, err = Open(ctx, c.Run); err != nil {
			return nil, nil, err
		}
		opened := stood.cat.Store()
		switch _, err := address.Read(ctx, opened); {
		case errors.Is(err, storage.ErrNotExist):
			return nil, stood, nil
		case err != nil:
			return nil, nil, err
		}
		store = opened
	}
	if stood != nil && c.Trust == (Trust{}) && os.Getenv(TokenVariable) == "" && !rundir.Remote(c.Run) && stood.Working(ctx) {
		return nil, stood, nil // the token of ndls run --workers is for its own processes alone
	}
	security, err := c.Trust.security(rpc.Worker, logger(c.Log))
	if err != nil {
		return nil, nil, err
	}
	client, err := rpc.Dial(ctx, locate(c.Coordinator, store), security, rpc.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	text, err := client.Status(ctx)
	switch {
	case errors.Is(err, rpc.ErrNoCoordinator) && stood != nil: // it was killed
		logger(c.Log).Warn("the coordinator that the run directory names does not answer", "because", err)
		return nil, stood, nil
	case err != nil:
		return nil, nil, err
	}
	st = new(Status)
	if err := json.Unmarshal(text, st); err != nil {
		return nil, nil, fmt.Errorf("the coordinator's answer makes no sense; use the same version of ndls: %w", err)
	}
	return st, nil, nil
}

// locate finds the coordinator at an address, or, where that is "", of the run in
// store.
func locate(at string, store storage.Store) rpc.Locate {
	if at != "" {
		return rpc.At(at)
	}
	return func(ctx context.Context) (string, error) {
		a, err := address.Read(ctx, store)
		return a.RPC, err
	}
}
