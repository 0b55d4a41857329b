package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/flight"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"ndls/internal/control/conns"
)

const (
	// ioBuffer is the number of bytes that a connection reads or writes at a time.
	ioBuffer = 256 << 10
	// quiet is the time without traffic after which a peer is asked for a sign of life, and the
	// time that it has to answer. A request may wait for a hop for hours, but must not after the
	// other host is gone.
	quiet = 30 * time.Second
	// connectTimeout bounds the handshake of a connection.
	connectTimeout = 20 * time.Second
	// mostRequests bounds the requests of one connection that are answered or wait: a worker
	// requests a few windows of each matrix at a time.
	mostRequests = 4096
)

// Source provides the rows of the process that owns them.
type Source interface {
	// Rows calls send with the rows of the ticket, in ascending order, in pieces of whole rows. A
	// piece may change after send returned. Rows waits until the owner reaches the hop, or ctx
	// ends. It fails with ErrPast if the owner has gone past the hop, and with ErrNotHeld for rows
	// that the owner does not hold. It is called concurrently, and returns send's error.
	Rows(ctx context.Context, t Ticket, send func(first int64, rows []byte) error) error
}

// Serve answers requests on the listener until ctx ends, then closes all connections and cuts off
// the requests under way. When it returns, all calls of the source have returned. Options bring
// credentials and checks of the caller. Every caller that can connect and passes the checks can
// read.
func Serve(ctx context.Context, listener net.Listener, source Source, options ...grpc.ServerOption) error {
	s := grpc.NewServer(append([]grpc.ServerOption{
		grpc.WriteBufferSize(ioBuffer),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.MaxConcurrentStreams(mostRequests),
		// Tickets are all that a server receives.
		grpc.MaxRecvMsgSize(2 * maxTicket),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quiet, Timeout: quiet}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: quiet / 2}),
		// The source's rows may be unmapped as soon as Serve returns.
		grpc.WaitForHandlers(true),
	}, options...)...)
	flight.RegisterFlightServiceServer(s, &service{source: source})
	tracked := conns.Track(listener)
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close() // no connection is accepted after this
		tracked.CloseAll()
		s.Stop()
	})
	err := s.Serve(tracked)
	if stop() {
		s.Stop()
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("blocks: serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

// service answers DoGet alone.
type service struct {
	flight.BaseFlightServer
	source Source
}

func (s *service) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	t, err := ParseTicket(ticket.GetTicket())
	if err != nil {
		return toStatus(err)
	}
	out := newOutput(t, stream)
	if err := s.source.Rows(stream.Context(), t, out.send); err != nil {
		return toStatus(err)
	}
	return toStatus(out.close())
}

// output writes the rows of a ticket to its stream.
type output struct {
	ticket Ticket
	schema *arrow.Schema
	writer *ipc.Writer
	wire   wire
	// next is the row that must come next, last the end of the rows.
	next, last int64
}

func newOutput(t Ticket, stream flight.DataStreamWriter) *output {
	o := &output{ticket: t, schema: t.schema(), wire: wire{stream: stream}, next: t.Row, last: t.Row + t.Rows}
	o.writer = ipc.NewWriterWithPayloadWriter(&o.wire, ipc.WithSchema(o.schema))
	return o
}

func (o *output) send(first int64, rows []byte) error {
	size := int64(o.ticket.RowBytes())
	n := int64(len(rows)) / size
	if first != o.next || n*size != int64(len(rows)) || first+n > o.last {
		return fmt.Errorf("blocks: the source sent %d bytes from row %d for %v", len(rows), first, o.ticket)
	}
	for n > 0 {
		k := min(n, o.ticket.batchRows())
		if err := o.batch(first, rows[:k*size], k); err != nil {
			return err
		}
		first, rows, n = first+k, rows[k*size:], n-k
	}
	o.next = first
	return nil
}

func (o *output) batch(first int64, rows []byte, n int64) error {
	o.wire.body, o.wire.label = padded(rows), label(first, n, rows)
	if n == o.wire.rows {
		return o.wire.send() // the header says how many rows there are, and nothing else
	}
	o.wire.rows = n
	rec := record(o.schema, rows, n)
	defer rec.Release()
	return o.writer.Write(rec)
}

func (o *output) close() error {
	if o.next != o.last {
		return fmt.Errorf("blocks: the source ended at row %d of %v", o.next, o.ticket)
	}
	return o.writer.Close()
}

// padded pads rows as Arrow's header promises. Rows of whole panels need padding at most in the
// last batch.
func padded(rows []byte) []byte {
	extra := padding(len(rows))
	if extra == 0 {
		return rows
	}
	return append(append(make([]byte, 0, len(rows)+extra), rows...), make([]byte, extra)...)
}

// wire sends the messages of an Arrow writer with the rows as their body. Arrow's
// own writer for Flight would copy them into a buffer first.
type wire struct {
	stream              flight.DataStreamWriter
	body, label, header []byte
	rows                int64 // of the batch that has the header
	begun               bool  // the schema, which comes before the first batch, is sent
}

func (*wire) Start() error { return nil }
func (*wire) Close() error { return nil }

func (w *wire) WritePayload(p ipc.Payload) error {
	header := p.Meta()
	defer header.Release()
	if !w.begun {
		w.begun = true
		return w.stream.Send(&flight.FlightData{DataHeader: header.Bytes()})
	}
	w.header = bytes.Clone(header.Bytes())
	return w.send()
}

// send sends a batch.
func (w *wire) send() error {
	return w.stream.Send(&flight.FlightData{DataHeader: w.header, DataBody: w.body, AppMetadata: w.label})
}

// toStatus returns an error with the code by which the other side knows its kind.
func toStatus(err error) error {
	code := codes.Aborted
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTicket):
		code = codes.InvalidArgument
	case errors.Is(err, ErrPast):
		code = codes.OutOfRange
	case errors.Is(err, ErrNotHeld):
		code = codes.NotFound
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, err.Error())
}
