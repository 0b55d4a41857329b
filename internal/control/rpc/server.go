package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"ndls/internal/control"
	"ndls/internal/control/conns"
	"ndls/internal/control/rpc/controlpb"
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
	// arriving bounds the bytes of all joins and commits under way. leastArriving is the least that
	// each of them counts, so that there are at most 4096.
	arriving      = 256 << 20
	leastArriving = 64 << 10
	// mostCalls bounds the calls of one connection that are under way.
	mostCalls = 256
	// runHeader names the run to which a caller belongs.
	runHeader = "ndls-run"
)

// Statuser is a service that reports the state of the run.
type Statuser interface {
	// Status returns a JSON document.
	Status(ctx context.Context) ([]byte, error)
}

// Serve serves the service on l until ctx ends, and closes l. Calls of Next and Renew then end at
// once, others within ten seconds; Serve returns nil after the last of them. If the service is a
// [Statuser], Serve answers Client.Status too.
func Serve(ctx context.Context, l net.Listener, service control.Service, s *Security) error {
	options := append(s.ServerOptions(),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.MaxConcurrentStreams(mostCalls),
	)
	transport := grpc.NewServer(options...)
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	controlpb.RegisterControlServer(transport, &server{service: service, stopping: ctx, work: work, arriving: semaphore.NewWeighted(arriving)})

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
	controlpb.UnimplementedControlServer
	service control.Service
	// stopping ends when the server is told to stop, work when it stops waiting.
	stopping, work context.Context
	// run names the run to which workers were welcomed, "" before the first.
	run     atomic.Value
	commits commits
	// arriving holds the bytes of joins and commits that are under way.
	arriving *semaphore.Weighted
}

func (s *server) Join(stream grpc.ClientStreamingServer[controlpb.Hello, controlpb.Welcome]) error {
	hello, release, err := collect(s.arriving, stream, func(all, piece *controlpb.Hello) int {
		all.Holds = append(all.Holds, piece.Holds...)
		return len(all.Holds)
	})
	defer release()
	if err != nil {
		return err
	}
	welcome, err := s.service.Join(stream.Context(), toHello(hello))
	if err != nil {
		return toStatus(err)
	}
	m, err := fromWelcome(welcome)
	if err != nil {
		return toStatus(err)
	}
	s.run.Store(runName(m))
	if err := s.checkRun(stream.Context()); err != nil {
		return err
	}
	return stream.SendAndClose(m)
}

// runName returns a name that differs between runs.
func runName(m *controlpb.Welcome) string {
	sum := sha256.Sum256(slices.Concat(m.GetPlanJson(), []byte(m.GetStore())))
	return hex.EncodeToString(sum[:16])
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
	return toStatus(err)
}

func (s *server) Next(ctx context.Context, m *controlpb.NextRequest) (*controlpb.Lease, error) {
	if err := s.checkRun(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := s.untilStop(ctx)
	defer cancel()
	lease, err := s.service.Next(waiting, m.GetWorker())
	if err != nil {
		return nil, s.ended(err)
	}
	if ctx.Err() != nil {
		o := control.Outcome{Kind: control.Drained, Reason: "the worker had gone before the task reached it"}
		return nil, toStatus(errors.Join(ctx.Err(), s.service.Finish(s.work, lease.Fencing, o)))
	}
	answer, err := fromLease(lease)
	return answer, toStatus(err)
}

func (s *server) Gang(ctx context.Context, m *controlpb.GangRequest) (*controlpb.GangReply, error) {
	if err := s.checkRun(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := s.untilStop(ctx)
	defer cancel()
	g, err := s.service.Gang(waiting, m.GetFencing())
	if err != nil {
		return nil, s.ended(err)
	}
	return fromGang(g), nil
}

func (s *server) Renew(ctx context.Context, m *controlpb.RenewRequest) (*controlpb.RenewReply, error) {
	if err := s.checkRun(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := s.untilStop(ctx)
	defer cancel()
	return &controlpb.RenewReply{}, s.ended(s.service.Renew(waiting, m.GetFencing(), toProgress(m.GetProgress())))
}

func (s *server) Commit(stream grpc.ClientStreamingServer[controlpb.CommitRequest, controlpb.CommitReply]) error {
	if err := s.checkRun(stream.Context()); err != nil {
		return err
	}
	m, release, err := collect(s.arriving, stream, func(all, piece *controlpb.CommitRequest) int {
		all.Added = append(all.Added, piece.Added...)
		all.Removed = append(all.Removed, piece.Removed...)
		return len(all.Added) + len(all.Removed)
	})
	defer release()
	if err != nil {
		return err
	}
	err = s.commits.once(m.GetFencing(), m.GetNumber(), func() error {
		return s.service.Commit(s.work, m.GetFencing(), toChange(m))
	})
	if err != nil {
		return toStatus(err)
	}
	return stream.SendAndClose(&controlpb.CommitReply{})
}

func (s *server) Finish(ctx context.Context, m *controlpb.FinishRequest) (*controlpb.FinishReply, error) {
	if err := s.checkRun(ctx); err != nil {
		return nil, err
	}
	o, err := toOutcome(m)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, readable(err.Error()))
	}
	err = s.service.Finish(s.work, m.GetFencing(), o)
	if err == nil || errors.Is(err, control.ErrLeaseLost) {
		s.commits.forget(m.GetFencing())
	}
	return &controlpb.FinishReply{}, toStatus(err)
}

func (s *server) Catalog(m *controlpb.CatalogRequest, stream grpc.ServerStreamingServer[controlpb.CatalogReply]) error {
	if err := s.checkRun(stream.Context()); err != nil {
		return err
	}
	l, err := s.service.Catalog(stream.Context(), toVersion(m.GetSince()))
	if err != nil {
		return toStatus(err)
	}
	for piece := range fromListing(l) {
		if err := stream.Send(piece); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Status(_ *controlpb.StatusRequest, stream grpc.ServerStreamingServer[controlpb.StatusReply]) error {
	statuser, ok := s.service.(Statuser)
	if !ok {
		return status.Error(codes.Unimplemented, "this coordinator does not tell how the run stands")
	}
	text, err := statuser.Status(stream.Context())
	if err != nil {
		return toStatus(err)
	}
	for piece := range slices.Chunk(text, pieceBytes) {
		if err := stream.Send(&controlpb.StatusReply{Json: piece}); err != nil {
			return err
		}
	}
	return nil
}

// errFull is the error for a caller that sends more than there is space for now. The caller repeats
// the call.
var errFull = status.Error(codes.Aborted, "more arrives at the coordinator at the same time than it has space for")

// collect receives the pieces of an argument and adds each to the first. add returns the number of
// files that the argument names so far, at most [control.MaxFiles]. The received bytes count in
// arriving until release is called, also after an error.
func collect[M any, P interface {
	*M
	proto.Message
}](arriving *semaphore.Weighted, stream interface{ Recv() (*M, error) }, add func(all,
	piece *M) (files int),
) (all *M, release func(), err error) {
	taken := int64(0)
	release = func() { arriving.Release(taken) }
	take := func(n int64) error {
		if !arriving.TryAcquire(n) {
			return errFull
		}
		taken += n
		return nil
	}
	if err := take(leastArriving); err != nil {
		return nil, release, err
	}
	all, err = stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil, release, status.Error(codes.InvalidArgument, "a call without a message")
	}
	for err == nil {
		var piece *M
		if piece, err = stream.Recv(); err != nil {
			break
		}
		if err = take(int64(proto.Size(P(piece)))); err == nil && add(all, piece) > control.MaxFiles {
			return nil, release, status.Errorf(codes.InvalidArgument, "a call names more than %d files", control.MaxFiles)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, release, err
	}
	return all, release, nil
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
