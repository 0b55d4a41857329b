package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow/go/v14/arrow/flight"
	wireformat "github.com/apache/arrow/go/v14/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	// streamWindow is the number of bytes of a stream that may be on their way: four batches, so
	// that the next ones travel while put works on one.
	streamWindow = 4 << 20
	// connWindow is the same for all streams of a connection.
	connWindow = 4 * streamWindow
	// reach is the time for which a client tries to connect to an owner. A live owner may be
	// unreachable for a moment, and a client that gives up at once soon fails too often.
	reach = 2 * time.Second
)

var (
	// ErrRetry reports an owner that is gone, ending or failing. The same rows may be available
	// later, from it or from their next owner.
	ErrRetry = errors.New("the owner of the rows does not answer")
	// ErrCorrupt reports rows that were damaged on their way. It comes with ErrRetry.
	ErrCorrupt = errors.New("damaged rows")
	// ErrPast reports a hop that the owner no longer has.
	ErrPast = errors.New("the owner has gone past that hop")
	// ErrNotHeld reports rows that the owner does not hold, or rows of another plan.
	ErrNotHeld = errors.New("the rows are not held here")
)

// Client fetches rows from one owner. It is safe for concurrent use; all fetches
// share one connection.
type Client struct {
	conn    *grpc.ClientConn
	service wireformat.FlightServiceClient
	address string
}

// Dial prepares a client for the owner at host:port. It connects with the first
// Fetch, and again after the connection is lost. Options bring credentials.
func Dial(address string, options ...grpc.DialOption) (*Client, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{
		// Owners are on the cluster, where an HTTP proxy of the environment has no business.
		grpc.WithNoProxy(),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithReadBufferSize(ioBuffer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2 * batchBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reach / 20, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reach / 2},
			MinConnectTimeout: reach,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: quiet, Timeout: quiet}),
	}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("blocks: dial %s: %w", address, err)
	}
	return &Client{conn: conn, service: wireformat.NewFlightServiceClient(conn), address: address}, nil
}

// Close ends the connection, and fetches with it.
func (c *Client) Close() error { return c.conn.Close() }

// Fetch calls put with the rows of the ticket in ascending order, some thousand at a time. first is
// the number of the first of them; put may use the rows until it returns. Fetch waits until the
// owner reaches the hop. After an error, the rows passed to put are right and the rest is missing.
// Errors wrap ErrRetry, ErrPast, ErrNotHeld or ErrTicket, put's error or that of ctx; any other
// error means that the owner refuses this client, now and later.
func (c *Client) Fetch(ctx context.Context, t Ticket, put func(first int64, rows []byte) error) error {
	if err := t.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.fetch(ctx, t, put); err != nil {
		return fmt.Errorf("blocks: fetch %v from %s: %w", t, c.address, err)
	}
	return nil
}

func (c *Client) fetch(ctx context.Context, t Ticket, put func(first int64, rows []byte) error) error {
	var f frame
	defer f.free()
	stream, err := c.open(ctx, t, &f)
	if err != nil {
		return err
	}
	if !bytes.Equal(f.header, t.schemaMessage()) {
		return fmt.Errorf("the stream begins with another schema than %v: %w: %w", t.schema(), ErrCorrupt, ErrRetry)
	}
	next, last := t.Row, t.Row+t.Rows
	for {
		err := stream.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fromStatus(ctx, err)
		}
		rows, err := check(t, next, f.label, f.body)
		if err != nil {
			return fmt.Errorf("%w: %w", err, ErrRetry)
		}
		if err := put(next, rows); err != nil {
			return err
		}
		next += int64(len(rows) / t.RowBytes())
	}
	if next != last {
		return fmt.Errorf("the stream ended at row %d: %w: %w", next, ErrCorrupt, ErrRetry)
	}
	return nil
}

// open asks for the rows of a ticket, and reads the first message into f.
func (c *Client) open(ctx context.Context, t Ticket, f *frame) (wireformat.FlightService_DoGetClient, error) {
	asking, cancel := context.WithCancelCause(ctx)
	answered, stop := context.WithCancel(asking)
	go c.watch(answered, cancel)
	stream, err := c.service.DoGet(asking, &flight.Ticket{Ticket: t.Encode()}, grpc.ForceCodecV2(newCodec()), grpc.WaitForReady(true))
	if err == nil {
		err = stream.RecvMsg(f)
	}
	stop()
	if err == nil {
		return stream, nil
	}
	if cause := context.Cause(asking); errors.Is(cause, ErrRetry) {
		err = cause
	} else {
		err = fromStatus(ctx, err)
	}
	cancel(nil)
	return nil, err
}

// watch calls cancel after there has been no connection for the time reach, unless ctx ends before.
// It is needed until the owner has answered: if the connection is lost before the owner has seen a
// request, gRPC sends that again by itself, whenever there is a connection.
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	for ctx.Err() == nil {
		c.conn.WaitForStateChange(ctx, connectivity.Ready)
		lost, stop := context.WithTimeout(ctx, reach)
		state := c.conn.GetState()
		for state != connectivity.Ready && c.conn.WaitForStateChange(lost, state) {
			state = c.conn.GetState()
		}
		stop()
		if state != connectivity.Ready && ctx.Err() == nil {
			cancel(fmt.Errorf("no connection for %v: %w", reach, ErrRetry))
			return
		}
	}
}

// fromStatus maps the status of a failed call to an error.
func fromStatus(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch status.Code(err) {
	case codes.InvalidArgument:
		return fmt.Errorf("%w: %w", err, ErrTicket)
	case codes.OutOfRange:
		return fmt.Errorf("%w: %w", err, ErrPast)
	case codes.NotFound:
		return fmt.Errorf("%w: %w", err, ErrNotHeld)
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.ResourceExhausted:
		return err
	}
	return fmt.Errorf("%w: %w", err, ErrRetry)
}
