package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/control/conns"
)

const (
	// grace is the time for which calls may continue after a server was told to stop.
	grace = 10 * time.Second
	// pingAfter and pingTimeout find a peer that is gone without a message. A machine with busy
	// cores must be able to answer in time.
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
	// connectTimeout bounds the handshake of a connection.
	connectTimeout = 20 * time.Second
	// arriving bounds the bytes of the arguments of all calls under way, longestArgument those of one: a commit of
	// [control.MaxFiles] files has less.
	arriving        = 256 << 20
	longestArgument = arriving / 2
	// mostCalls bounds the calls of one connection that are under way.
	mostCalls = 256
	// runHeader names the run to which a caller belongs.
	runHeader = "ndls-run"
)

// Service is a service that also reports the state of the run.
type Service interface {
	control.Service
	// Status returns a JSON document.
	Status(ctx context.Context) ([]byte, error)
}

// Serve serves the service on l until ctx ends, and closes l. Calls of Next and Renew then end at
// once, others within ten seconds; Serve returns nil after the last of them.
func Serve(ctx context.Context, l net.Listener, service Service, s *Security) error {
	options := append(s.ServerOptions(),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.MaxConcurrentStreams(mostCalls),
		grpc.ForceServerCodec(codec{}),
	)
	transport := grpc.NewServer(options...)
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	transport.RegisterService(&calls, &server{service: service, stopping: ctx, work: work, arriving: semaphore.NewWeighted(arriving)})

	served := make(chan error, 1)
	tracked := conns.Track(l)
	go func() { served <- transport.Serve(tracked) }()
	select {
	case err := <-served:
		transport.Stop()
		return fmt.Errorf("rpc: serving on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	_ = l.Close() // no connection is accepted after this
	tracked.CloseSilent()
	late := time.AfterFunc(grace, func() {
		abandon()
		tracked.CloseAll()
		transport.Stop()
	})
	transport.GracefulStop()
	late.Stop()
	<-served
	return nil
}

// server is the gRPC side of a service.
type server struct {
	service Service
	// stopping ends when the server is told to stop, work when it stops waiting.
	stopping, work context.Context
	// run names the run to which workers were welcomed, "" before the first.
	run     atomic.Value
	commits commits
	// arriving holds the bytes of the arguments of calls that are under way.
	arriving *semaphore.Weighted
}

// calls lists what a server answers.
var calls = grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
	method("join", (*server).join), method("next", (*server).next), method("gang", (*server).gang), method("renew", (*server).renew),
	method("commit", (*server).commit), method("finish", (*server).finish), method("catalog", (*server).catalog),
	method("status", (*server).status),
}}

func (s *server) join(ctx context.Context, h control.Hello) (w welcomed, err error) {
	if len(h.Holds) > control.MaxFiles {
		return w, status.Errorf(codes.InvalidArgument, "a call names more than %d files", control.MaxFiles)
	}
	if w.Welcome, err = s.service.Join(ctx, h); err != nil {
		return w, err
	}
	sum := sha256.Sum256([]byte(w.Welcome.Plan.Hash() + w.Welcome.Store))
	w.Run = hex.EncodeToString(sum[:16])
	s.run.Store(w.Run)
	return w, s.checkRun(ctx)
}

// checkRun refuses a caller of another run. Such a caller comes when its coordinator's address was
// given to a new process.
func (s *server) checkRun(ctx context.Context) error {
	run, known := s.run.Load().(string)
	for _, theirs := range metadata.ValueFromIncomingContext(ctx, runHeader) {
		if known && theirs != run {
			return status.Error(codes.Aborted, "this is the coordinator of another run")
		}
	}
	return nil
}

// untilStop returns ctx, which also ends when the server is told to stop.
func (s *server) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	waiting, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.stopping, cancel)
	return waiting, func() { unhook(); cancel() }
}

// ended returns the error of a call whose context came from untilStop.
func (s *server) ended(err error) error {
	if s.stopping.Err() != nil && errors.Is(err, context.Canceled) {
		return status.Error(codes.Unavailable, "the coordinator is stopping")
	}
	return err
}

func (s *server) next(ctx context.Context, worker string) (control.Lease, error) {
	waiting, cancel := s.untilStop(ctx)
	defer cancel()
	lease, err := s.service.Next(waiting, worker)
	if err != nil {
		return lease, s.ended(err)
	}
	if ctx.Err() != nil {
		o := control.Outcome{Kind: control.Drained, Reason: "the worker had gone before the task reached it"}
		return lease, errors.Join(ctx.Err(), s.service.Finish(s.work, lease.Fencing, o))
	}
	return lease, nil
}

func (s *server) gang(ctx context.Context, fencing uint64) (control.Gang, error) {
	waiting, cancel := s.untilStop(ctx)
	defer cancel()
	g, err := s.service.Gang(waiting, fencing)
	return g, s.ended(err)
}

func (s *server) renew(ctx context.Context, r renewal) (none struct{}, err error) {
	waiting, cancel := s.untilStop(ctx)
	defer cancel()
	return none, s.ended(s.service.Renew(waiting, r.Fencing, r.Progress))
}

func (s *server) commit(_ context.Context, c commitment) (none struct{}, err error) {
	return none, s.commits.once(c.Fencing, c.Number, func() error {
		return s.service.Commit(s.work, c.Fencing, c.Change)
	})
}

func (s *server) finish(_ context.Context, e ending) (none struct{}, err error) {
	if err = s.service.Finish(s.work, e.Fencing, e.Outcome); err == nil || errors.Is(err, control.ErrLeaseLost) {
		s.commits.forget(e.Fencing)
	}
	return none, err
}

func (s *server) catalog(ctx context.Context, since catalog.Version) (catalog.Listing, error) {
	return s.service.Catalog(ctx, since)
}

func (s *server) status(ctx context.Context, _ struct{}) (json.RawMessage, error) {
	return s.service.Status(ctx)
}

// errFull is the error for a caller that sends more than there is space for now. The caller repeats
// the call.
var errFull = status.Error(codes.Aborted, "more arrives at the coordinator at the same time than it has space for")

// collect receives the argument of a call. Its bytes count in arriving until release is called, also after an error.
func (s *server) collect(stream interface{ RecvMsg(m any) error }) (text []byte, release func(), err error) {
	taken := int64(0)
	text, err = receive(stream, func(bytes int) error {
		switch {
		case taken+int64(bytes) > longestArgument:
			return status.Errorf(codes.InvalidArgument, "the argument of a call has more than %d bytes", longestArgument)
		case !s.arriving.TryAcquire(int64(bytes)):
			return errFull
		}
		taken += int64(bytes)
		return nil
	})
	return text, func() { s.arriving.Release(taken) }, err
}

// commits holds back copies of commits. A copy may arrive long after the first, if its connection
// had stalled and the sender continued over another one.
type commits struct {
	mu     sync.Mutex
	leases map[uint64]map[uint64]*commit // by fencing number and number
}

// commit is under way or has succeeded.
type commit struct {
	done chan struct{}
	err  error
}

// once calls do, unless a commit with these numbers is under way, for whose end it waits, or has
// succeeded.
func (c *commits) once(fencing, number uint64, do func() error) error {
	c.mu.Lock()
	if first := c.leases[fencing][number]; first != nil {
		c.mu.Unlock()
		<-first.done
		return first.err
	}
	mine := &commit{done: make(chan struct{})}
	if c.leases == nil {
		c.leases = map[uint64]map[uint64]*commit{}
	}
	if c.leases[fencing] == nil {
		c.leases[fencing] = map[uint64]*commit{}
	}
	c.leases[fencing][number] = mine
	c.mu.Unlock()

	mine.err = do()
	close(mine.done)
	switch {
	case errors.Is(mine.err, control.ErrLeaseLost):
		c.forget(fencing)
	case mine.err != nil:
		c.mu.Lock()
		delete(c.leases[fencing], number)
		c.mu.Unlock()
	}
	return mine.err
}

// forget drops what is known of an ended lease; the service refuses whatever still comes for it.
func (c *commits) forget(fencing uint64) {
	c.mu.Lock()
	delete(c.leases, fencing)
	c.mu.Unlock()
}
