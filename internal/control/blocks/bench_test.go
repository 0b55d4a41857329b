package blocks

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/flight"
	wireformat "github.com/apache/arrow/go/v14/arrow/flight/gen/flight"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"google.golang.org/grpc"
)

// bare is a Flight server as Arrow's documentation writes one: records made
// before, Arrow's writer, gRPC's defaults, no checksum.
type bare struct {
	flight.BaseFlightServer
	schema  *arrow.Schema
	records []arrow.Record
}

func (s *bare) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	w := flight.NewRecordWriter(stream, ipc.WithSchema(s.schema))
	for _, r := range s.records {
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return w.Close()
}

// bareClient returns a function that reads all records of a bare server, so many bytes
// of rows in each.
func bareClient(b *testing.B, data []byte, t Ticket, batch int64) func() error {
	s := &bare{schema: t.schema()}
	for step := batch; len(data) > 0; {
		step = min(step, int64(len(data)))
		s.records = append(s.records, record(s.schema, data[:step], step/int64(t.RowBytes())))
		data = data[step:]
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	flight.RegisterFlightServiceServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), plain)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
		server.Stop()
		<-ended
	})
	return func() error {
		stream, err := wireformat.NewFlightServiceClient(conn).DoGet(b.Context(), &flight.Ticket{})
		if err != nil {
			return err
		}
		r, err := flight.NewRecordReader(stream)
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
		}
		return r.Err()
	}
}

// copier sends copies of an owner's rows.
type copier struct{ *owner }

func (c copier) Rows(ctx context.Context, t Ticket, send func(int64, []byte) error) error {
	page := make([]byte, c.piece*int64(t.RowBytes()))
	return c.owner.Rows(ctx, t, func(first int64, rows []byte) error {
		return send(first, page[:copy(page, rows)])
	})
}

// BenchmarkFetch moves 64 MiB over loopback, alternating with a bare Flight
// service so that a machine with other work slows both: only the ratio counts, and of the
// pairs the one in the middle.
// Fetch's time includes making and checking the checksums, and copying the rows to
// where they belong. The gang's rows go as package group/remote sends them: in copies
// of 128 KiB.
func BenchmarkFetch(b *testing.B) {
	for _, width := range []struct {
		name    string
		columns int
		batch   int64
		copies  bool
	}{{"columns=16", 16, 1 << 20, false}, {"columns=128", 128, 1 << 20, false}, {"gang", 16, 1 << 17, true}} {
		b.Run(width.name, func(b *testing.B) {
			data, into := randomBytes(1, 64<<20), make([]byte, 64<<20)
			t := testTicket(data)
			t.Columns = width.columns
			t.Rows = int64(len(data) / t.RowBytes())
			var source Source = newOwner(data, t.Rows)
			if width.copies {
				source = copier{newOwner(data, width.batch/int64(t.RowBytes()))}
			}
			address, _ := serve(b, source)
			c := dial(b, address)
			readBare := bareClient(b, data, t, width.batch)
			var ours, theirs time.Duration
			var ratios []float64
			for b.Loop() {
				start := time.Now()
				if err := readBare(); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				err := c.Fetch(b.Context(), t, func(first int64, rows []byte) error {
					copy(into[first*int64(t.RowBytes()):], rows)
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				bare, fetch := middle.Sub(start), time.Since(middle)
				theirs, ours = theirs+bare, ours+fetch
				ratios = append(ratios, bare.Seconds()/fetch.Seconds())
			}
			total := float64(len(data)) * float64(b.N)
			b.ReportMetric(total/ours.Seconds()/1e6, "fetch-MB/s")
			b.ReportMetric(total/theirs.Seconds()/1e6, "bare-MB/s")
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "median-fetch/bare")
		})
	}
}
