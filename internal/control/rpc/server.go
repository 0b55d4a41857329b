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
	// grace is how long calls may go on after a server was told to stop.
	grace = 10 * time.Second
	// pingAfter and pingTimeout find a peer that has gone without a word. A
	// machine whose cores are busy must be able to answer in time.
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
	// connectTimeout is for the handshake of a connection.
	connectTimeout = 20 * time.Second
	// arriving bounds the bytes of all joins and commits that are under way, and leastArriving
	// is what each counts at least: there are no more than 4096 of them.
	arriving      = 256 << 20
	leastArriving = 64 << 10
	// mostCalls bounds the calls of one connection that are under way.
	mostCalls = 256
	// runHeader names the run to which a caller belongs.
	runHeader = "ndls-run"
)

// Statuser is a service that tells how the run stands.
type Statuser interface {
	// Status returns a JSON document.
	Status(ctx context.Context) ([]byte, error)
}

// Serve serves the service on l until ctx ends, and closes l. Calls of Next and
// Renew then end at once, others within ten seconds; Serve returns after the last of
// them, with nil. Where the service is a [Statuser] too, it answers Client.Status.
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
	_ = l.Close() // no connection is accepted after those that are closed now
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
	// run names the run that workers were welcomed to, "" before the first.
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

// runName tells runs apart.
func runName(m *controlpb.Welcome) string {
	sum := sha256.Sum256(slices.Concat(m.GetPlanJson(), []byte(m.GetStore())))
	return hex.EncodeToString(sum[:16])
}

// checkRun turns away a caller that belongs to another run. It came here because
// an address was given to a new process.
func (s *server) checkRun(ctx context.Context) error {
	run, known := s.run.Load().(string)
	for _, theirs := range metadata.ValueFromIncomingContext(ctx, runHeader) {
		if known && theirs != run {
			return status.Error(codes.Aborted, "this is the coordinator of another run")
		}
	}
	return nil
}

// untilStop is ctx until the server is told to stop.
func (s *server) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	waiting, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.stopping, cancel)
	return waiting, func() { unhook(); cancel() }
}

// ended is the error of a call that had its context from untilStop.
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

// errFull is told to a caller that sends more than there is space for now. It calls again.
var errFull = status.Error(codes.Aborted, "more arrives at the coordinator at the same time than it has space for")

// collect receives the pieces of an argument and adds each to the first. add says how many
// files the argument names so far: it may be [control.MaxFiles]. What was received takes of
// arriving until release is called, also after an error.
func collect[M any, P interface {
	*M
	proto.Message
}](arriving *semaphore.Weighted, stream interface{ Recv() (*M, error) }, add func(all, piece *M) (files int)) (all *M, release func(), err error) {
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

// commits holds back copies of commits. A copy may arrive long after the first:
// when the connection on which it was sent had stalled, and its sender went on
// over another one.
type commits struct {
	mu     sync.Mutex
	leases map[uint64]map[uint64]*commit // by fencing number and number
}

// commit is one that is under way or has succeeded.
type commit struct {
	done chan struct{}
	err  error
}

// once does what it is given, unless a commit with these numbers is under way,
// for whose end it waits, or has succeeded.
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

// forget drops what is known of a lease that has ended; the service turns away
// whatever still comes for it.
func (c *commits) forget(fencing uint64) {
	c.mu.Lock()
	delete(c.leases, fencing)
	c.mu.Unlock()
}
