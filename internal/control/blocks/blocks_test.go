package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/flight"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var plain = grpc.WithTransportCredentials(insecure.NewCredentials())

// owner has the rows of one hop of a block, and goes from hop to hop.
type owner struct {
	rows []byte
	// piece is the number of rows that it sends at a time.
	piece int64

	mu    sync.Mutex
	hop   int
	moved chan struct{}
}

func newOwner(rows []byte, piece int64) *owner {
	return &owner{rows: rows, piece: piece, moved: make(chan struct{})}
}

func (o *owner) advance() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hop++
	close(o.moved)
	o.moved = make(chan struct{})
}

// wait returns when the owner has come to hop k.
func (o *owner) wait(ctx context.Context, k int) error {
	for {
		o.mu.Lock()
		at, moved := o.hop, o.moved
		o.mu.Unlock()
		switch {
		case at > k:
			return fmt.Errorf("at hop %d, asked for %d: %w", at, k, ErrPast)
		case at == k:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

func (o *owner) Rows(ctx context.Context, t Ticket, send func(int64, []byte) error) error {
	size := int64(t.RowBytes())
	if t.Plan != "sha256:test" || (t.Row+t.Rows)*size > int64(len(o.rows)) {
		return fmt.Errorf("%v: %w", t, ErrNotHeld)
	}
	if err := o.wait(ctx, t.Hop); err != nil {
		return err
	}
	for first := t.Row; first < t.Row+t.Rows; first += o.piece {
		end := min(first+o.piece, t.Row+t.Rows)
		if err := send(first, o.rows[first*size:end*size]); err != nil {
			return err
		}
	}
	return nil
}

// sourceFunc is a source that is a function.
type sourceFunc func(context.Context, Ticket, func(int64, []byte) error) error

func (f sourceFunc) Rows(ctx context.Context, t Ticket, send func(int64, []byte) error) error {
	return f(ctx, t, send)
}

// serve serves until stop is called or the test ends.
func serve(t testing.TB, s Source, options ...grpc.ServerOption) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, s, options...) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

func dial(t testing.TB, address string, options ...grpc.DialOption) *Client {
	t.Helper()
	c, err := Dial(address, append([]grpc.DialOption{plain}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// testTicket is for all of rows of 16 float32 columns.
func testTicket(rows []byte) Ticket {
	return Ticket{Plan: "sha256:test", Stage: "smooth", Columns: 16, Precision: "float32", Rows: int64(len(rows) / 64)}
}

// collect fetches the rows of a ticket into memory.
func collect(ctx context.Context, c *Client, t Ticket) ([]byte, error) {
	var got []byte
	err := c.Fetch(ctx, t, func(_ int64, rows []byte) error {
		got = append(got, rows...)
		return nil
	})
	return got, err
}

// TestRoundTrip fetches any range of rows of any width, sent in pieces of any size.
func TestRoundTrip(t *testing.T) {
	data := randomBytes(1, 3<<20)
	o := newOwner(data, 1)
	address, _ := serve(t, o)
	c := dial(t, address)
	rapid.Check(t, func(t *rapid.T) {
		ticket := Ticket{
			Plan: "sha256:test", Stage: "smooth",
			Columns:   rapid.OneOf(rapid.IntRange(1, 40), rapid.Just(16), rapid.Just(4096)).Draw(t, "columns"),
			Precision: rapid.SampledFrom([]string{"float32", "float16"}).Draw(t, "precision"),
		}
		size := int64(ticket.RowBytes())
		n := int64(len(data)) / size
		ticket.Row = rapid.Int64Range(0, n-1).Draw(t, "row")
		ticket.Rows = rapid.Int64Range(1, n-ticket.Row).Draw(t, "rows")
		o.piece = rapid.Int64Range(1+n/100, n).Draw(t, "piece")
		next := ticket.Row
		err := c.Fetch(context.Background(), ticket, func(first int64, rows []byte) error {
			if first != next {
				t.Fatalf("row %d came in place of %d", first, next)
			}
			next += int64(len(rows)) / size
			if !bytes.Equal(rows, data[first*size:next*size]) {
				t.Fatalf("rows %d to %d are others", first, next)
			}
			return nil
		})
		if err != nil || next != ticket.Row+ticket.Rows {
			t.Fatalf("%v ended at row %d: %v", ticket, next, err)
		}
	})
}

// TestAnyFlightClientReads decodes the stream with Arrow's own reader.
func TestAnyFlightClientReads(t *testing.T) {
	data := randomBytes(2, 5000*64)
	address, _ := serve(t, newOwner(data, 700))
	c := dial(t, address)
	for _, tc := range []struct {
		name      string
		columns   int
		precision string
	}{
		{"whole panels", 16, "float32"},
		{"half precision", 32, "float16"},
		{"rows that need padding", 3, "float16"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ticket := testTicket(data)
			ticket.Columns, ticket.Precision = tc.columns, tc.precision
			stream, err := c.service.DoGet(t.Context(), &flight.Ticket{Ticket: ticket.Encode()})
			if err != nil {
				t.Fatal(err)
			}
			r, err := flight.NewRecordReader(stream)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			var got []byte
			for r.Next() {
				lists := r.Record().Column(0).(*array.FixedSizeList)
				values := lists.ListValues()
				if lists.NullN() != 0 || !arrow.TypeEqual(lists.DataType(), ticket.schema().Field(0).Type) {
					t.Fatalf("%d nulls, %v", lists.NullN(), lists.DataType())
				}
				got = append(got, values.Data().Buffers()[1].Bytes()[:lists.Len()*ticket.RowBytes()]...)
			}
			if r.Err() != nil || !bytes.Equal(got, data[:5000*ticket.RowBytes()]) {
				t.Errorf("%d bytes, %v", len(got), r.Err())
			}
		})
	}
}

func TestWaitsForTheHop(t *testing.T) {
	data := randomBytes(3, 1000*64)
	o := newOwner(data, 1000)
	address, _ := serve(t, o)
	c := dial(t, address)
	ticket := testTicket(data)
	ticket.Hop = 2
	type result struct {
		rows []byte
		err  error
	}
	came := make(chan result, 1)
	go func() {
		rows, err := collect(context.Background(), c, ticket)
		came <- result{rows, err}
	}()
	o.advance()
	select {
	case r := <-came:
		t.Fatalf("%d bytes at hop 1, %v", len(r.rows), r.err)
	case <-time.After(50 * time.Millisecond):
	}
	o.advance()
	if r := <-came; r.err != nil || !bytes.Equal(r.rows, data) {
		t.Errorf("%d bytes, %v", len(r.rows), r.err)
	}
	o.advance()
	_, err := collect(t.Context(), c, ticket)
	if !errors.Is(err, ErrPast) || errors.Is(err, ErrRetry) || !strings.Contains(err.Error(), "at hop 3, asked for 2") {
		t.Errorf("error = %v, want ErrPast", err)
	}
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	data := randomBytes(4, 100*64)
	for _, tc := range []struct {
		name   string
		source error
		want   error
		retry  bool
	}{
		{"not held", fmt.Errorf("block of panel 4: %w", ErrNotHeld), ErrNotHeld, false},
		{"past", ErrPast, ErrPast, false},
		{"a disk", errors.New("input/output error"), ErrRetry, true},
		{"going", context.Canceled, ErrRetry, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address, _ := serve(t, sourceFunc(func(context.Context, Ticket, func(int64, []byte) error) error { return tc.source }))
			_, err := collect(t.Context(), dial(t, address), testTicket(data))
			if !errors.Is(err, tc.want) || errors.Is(err, ErrRetry) != tc.retry || !strings.Contains(err.Error(), tc.source.Error()) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestSourceMustKeepToTheTicket(t *testing.T) {
	data := randomBytes(5, 100*64)
	for _, tc := range []struct {
		name  string
		rows  func(send func(int64, []byte) error) error
		wants string
	}{
		{"too few", func(send func(int64, []byte) error) error { return send(0, data[:64]) }, "ended at row 1"},
		{"another start", func(send func(int64, []byte) error) error { return send(1, data[64:]) }, "from row 1"},
		{"half a row", func(send func(int64, []byte) error) error { return send(0, data[:32]) }, "32 bytes"},
		{"too many", func(send func(int64, []byte) error) error { return send(0, append(data, data...)) }, "12800 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address, _ := serve(t, sourceFunc(func(_ context.Context, _ Ticket, send func(int64, []byte) error) error { return tc.rows(send) }))
			if _, err := collect(t.Context(), dial(t, address), testTicket(data)); !errors.Is(err, ErrRetry) || !strings.Contains(err.Error(), tc.wants) {
				t.Errorf("error = %v, want one with %q", err, tc.wants)
			}
		})
	}
}

// endless sends the same rows until its context ends, and says so.
func endless(data []byte) (Source, chan error) {
	ended := make(chan error, 1)
	return sourceFunc(func(ctx context.Context, t Ticket, send func(int64, []byte) error) error {
		err := error(nil)
		for first := int64(0); err == nil; first += int64(len(data) / 64) {
			err = send(first, data)
		}
		ended <- err
		return err
	}), ended
}

func TestCancelInTheMiddle(t *testing.T) {
	data := randomBytes(6, 1<<20)
	source, ended := endless(data)
	address, _ := serve(t, source)
	ticket := testTicket(data)
	ticket.Rows = maxRows
	ctx, cancel := context.WithCancel(t.Context())
	batches := 0
	err := dial(t, address).Fetch(ctx, ticket, func(int64, []byte) error {
		if batches++; batches == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrRetry) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	if err := <-ended; err == nil {
		t.Error("the source went on")
	}
}

func TestErrorOfPutEndsTheFetch(t *testing.T) {
	data := randomBytes(6, 1<<20)
	source, ended := endless(data)
	address, _ := serve(t, source)
	ticket := testTicket(data)
	ticket.Rows = maxRows
	full := errors.New("scratch is full")
	if err := dial(t, address).Fetch(t.Context(), ticket, func(int64, []byte) error { return full }); !errors.Is(err, full) || errors.Is(err, ErrRetry) {
		t.Errorf("error = %v, want that of put", err)
	}
	if err := <-ended; err == nil {
		t.Error("the source went on")
	}
}

func TestServerGoneInTheMiddle(t *testing.T) {
	data := randomBytes(7, 1<<20)
	source, ended := endless(data)
	address, stop := serve(t, source)
	c := dial(t, address)
	ticket := testTicket(data)
	ticket.Rows = maxRows
	next := int64(0)
	err := c.Fetch(t.Context(), ticket, func(first int64, rows []byte) error {
		if next = first + int64(len(rows)/64); first > 0 {
			stop()
		}
		return nil
	})
	if !errors.Is(err, ErrRetry) {
		t.Errorf("error = %v, want ErrRetry", err)
	}
	if err := <-ended; err == nil {
		t.Error("the source went on")
	}
	if next == 0 {
		t.Error("nothing was put")
	}
	if _, err := collect(t.Context(), c, ticket); !errors.Is(err, ErrRetry) {
		t.Errorf("error = %v of a server that is gone, want ErrRetry", err)
	}
}

// TestServerGoneWhileWaiting stops an owner that is being waited for.
func TestServerGoneWhileWaiting(t *testing.T) {
	data := randomBytes(8, 64)
	waiting := make(chan struct{})
	address, stop := serve(t, sourceFunc(func(ctx context.Context, _ Ticket, _ func(int64, []byte) error) error {
		close(waiting)
		<-ctx.Done()
		return ctx.Err()
	}))
	c := dial(t, address)
	failed := make(chan error, 1)
	go func() {
		_, err := collect(context.Background(), c, testTicket(data))
		failed <- err
	}()
	<-waiting
	stop()
	if err := <-failed; !errors.Is(err, ErrRetry) {
		t.Errorf("error = %v, want ErrRetry", err)
	}
}

// meddler is a Flight server that changes messages of ours.
type meddler struct {
	flight.BaseFlightServer
	rows   []byte
	change func(int, *flight.FlightData) *flight.FlightData
}

type meddled struct {
	flight.FlightService_DoGetServer
	sent   int
	change func(int, *flight.FlightData) *flight.FlightData
}

func (m *meddled) Send(d *flight.FlightData) error {
	d = m.change(m.sent, d)
	m.sent++
	if d == nil {
		return nil
	}
	return m.FlightService_DoGetServer.Send(d)
}

func (m *meddler) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	t, err := ParseTicket(ticket.GetTicket())
	if err != nil {
		return err
	}
	out := newOutput(t, &meddled{FlightService_DoGetServer: stream, change: m.change})
	for first := int64(0); first < t.Rows; first += t.Rows / 4 {
		if err := out.send(first, m.rows[first*64:(first+t.Rows/4)*64]); err != nil {
			return err
		}
	}
	return out.close()
}

func TestDamageIsDetected(t *testing.T) {
	data := randomBytes(9, 4000*64)
	other := Ticket{Plan: "sha256:test", Stage: "smooth", Columns: 32, Precision: "float16", Rows: 4000}
	header := other.schemaMessage()
	// Message 0 is the schema, 1 to 4 are batches.
	for _, tc := range []struct {
		name   string
		change func(int, *flight.FlightData) *flight.FlightData
		want   string
	}{
		{"a bit of a row", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 3 {
				d.DataBody = bytes.Clone(d.DataBody)
				d.DataBody[100] ^= 4
			}
			return d
		}, "checksum"},
		{"the row number", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 2 {
				d.AppMetadata = bytes.Clone(d.AppMetadata)
				d.AppMetadata[0] ^= 1
			}
			return d
		}, "checksum"},
		{"no checksum", func(i int, d *flight.FlightData) *flight.FlightData {
			d.AppMetadata = nil
			return d
		}, "0 bytes of metadata"},
		{"a batch is lost", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 2 {
				return nil
			}
			return d
		}, "row 2000 came in place of 1000"},
		{"the last batch is lost", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 4 {
				return nil
			}
			return d
		}, "ended at row 3000"},
		{"rows are cut off", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 1 {
				d.DataBody = d.DataBody[:640]
			}
			return d
		}, "a batch of 1000 rows with 640 bytes"},
		{"rows are too many", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 4 {
				d.DataBody = make([]byte, 1001*64)
				d.AppMetadata = label(3000, 1001, d.DataBody)
			}
			return d
		}, "a batch of 1001 rows"},
		{"no schema", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 0 {
				return nil
			}
			return d
		}, "another schema"},
		{"another schema", func(i int, d *flight.FlightData) *flight.FlightData {
			if i == 0 {
				d.DataHeader = header
			}
			return d
		}, "another schema"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := grpc.NewServer()
			flight.RegisterFlightServiceServer(s, &meddler{rows: data, change: tc.change})
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(listener) }()
			defer func() { s.Stop(); <-ended }()
			got, err := collect(t.Context(), dial(t, listener.Addr().String()), testTicket(data))
			if !errors.Is(err, ErrCorrupt) || !errors.Is(err, ErrRetry) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want ErrCorrupt and ErrRetry with %q", err, tc.want)
			}
			if !bytes.HasPrefix(data, got) {
				t.Error("damaged rows were put")
			}
		})
	}
}

func TestManyFetchAtOnce(t *testing.T) {
	data := randomBytes(10, 6<<20)
	address, _ := serve(t, newOwner(data, 5000))
	shared, own := dial(t, address), dial(t, address)
	var fetchers sync.WaitGroup
	for i := range 8 {
		c := shared
		if i == 0 {
			c = own
		}
		ticket := testTicket(data)
		ticket.Row = int64(1000 * i)
		ticket.Rows -= ticket.Row
		fetchers.Go(func() {
			got, err := collect(t.Context(), c, ticket)
			if err != nil || !bytes.Equal(got, data[ticket.Row*64:]) {
				t.Errorf("fetcher %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	fetchers.Wait()
}

// TestSlowFetcherHoldsNobodyUp leaves one stream of a connection standing.
func TestSlowFetcherHoldsNobodyUp(t *testing.T) {
	data := randomBytes(11, 24<<20)
	address, _ := serve(t, newOwner(data, 1<<14))
	c := dial(t, address)
	standing, goOn := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		slow <- c.Fetch(context.Background(), testTicket(data), func(first int64, _ []byte) error {
			if first == 0 {
				close(standing)
				<-goOn
			}
			return nil
		})
	}()
	<-standing
	if got, err := collect(t.Context(), c, testTicket(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	close(goOn)
	if err := <-slow; err != nil {
		t.Errorf("the slow fetch: %v", err)
	}
}

// TestOwnerStopsForSlowFetcher counts what an owner can send to a fetcher that
// stands: what may be on its way, and the batches at both ends.
func TestOwnerStopsForSlowFetcher(t *testing.T) {
	data := randomBytes(13, batchBytes)
	var sent atomic.Int64
	address, _ := serve(t, sourceFunc(func(_ context.Context, _ Ticket, send func(int64, []byte) error) error {
		for first := int64(0); ; first += int64(len(data) / 64) {
			if err := send(first, data); err != nil {
				return err
			}
			sent.Add(int64(len(data)))
		}
	}))
	ticket := testTicket(data)
	ticket.Rows = maxRows
	enough := errors.New("enough")
	err := dial(t, address).Fetch(t.Context(), ticket, func(int64, []byte) error {
		for before := int64(-1); before != sent.Load(); time.Sleep(300 * time.Millisecond) {
			before = sent.Load()
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if got := sent.Load(); got < streamWindow/2 || got > streamWindow+4*batchBytes {
		t.Errorf("the owner sent %d bytes, the window is %d", got, streamWindow)
	}
}

// TestOptionsGuard checks that credentials of the caller take effect.
func TestOptionsGuard(t *testing.T) {
	data := randomBytes(12, 64)
	guard := grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if md, _ := metadata.FromIncomingContext(s.Context()); len(md["token"]) != 1 || md["token"][0] != "right" {
			return status.Error(codes.Unauthenticated, "another token")
		}
		return next(srv, s)
	})
	address, _ := serve(t, newOwner(data, 1), guard)
	if _, err := collect(t.Context(), dial(t, address), testTicket(data)); status.Code(err) != codes.Unauthenticated || errors.Is(err, ErrRetry) {
		t.Errorf("error = %v, want a refusal", err)
	}
	with := grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		return next(metadata.AppendToOutgoingContext(ctx, "token", "right"), d, cc, method, o...)
	})
	if _, err := collect(t.Context(), dial(t, address, with), testTicket(data)); err != nil {
		t.Errorf("with the right token: %v", err)
	}
}

func TestServeFailsWithItsListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := Serve(t.Context(), listener, newOwner(nil, 1)); err == nil {
		t.Error("served on a closed listener")
	}
}

func TestTicketRefused(t *testing.T) {
	good := testTicket(make([]byte, 640))
	if _, err := ParseTicket(good.Encode()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Ticket){
		"plan":       func(t *Ticket) { t.Plan = "" },
		"stage":      func(t *Ticket) { t.Stage = "" },
		"precision":  func(t *Ticket) { t.Precision = "float64" },
		"panel":      func(t *Ticket) { t.First = -1 },
		"no columns": func(t *Ticket) { t.Columns = 0 },
		"columns":    func(t *Ticket) { t.Columns = maxColumns + 1 },
		"hop":        func(t *Ticket) { t.Hop = -1 },
		"late hop":   func(t *Ticket) { t.Hop = maxHop + 1 },
		"row":        func(t *Ticket) { t.Row = -1 },
		"no rows":    func(t *Ticket) { t.Rows = 0 },
		"rows":       func(t *Ticket) { t.Row, t.Rows = 2, maxRows-1 },
		"overflow":   func(t *Ticket) { t.Row, t.Rows = 1<<62, 1<<62 },
	} {
		bad := good
		change(&bad)
		if _, err := ParseTicket(bad.Encode()); !errors.Is(err, ErrTicket) {
			t.Errorf("%s: error = %v, want ErrTicket", name, err)
		}
		if err := (&Client{}).Fetch(t.Context(), bad, nil); !errors.Is(err, ErrTicket) {
			t.Errorf("%s: fetch: %v, want ErrTicket", name, err)
		}
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"no JSON":       "rows",
		"two":           string(good.Encode()) + string(good.Encode()),
		"unknown field": strings.Replace(string(good.Encode()), "{", `{"depth":1,`, 1),
		"long":          strings.Repeat(" ", maxTicket) + string(good.Encode()),
	} {
		if _, err := ParseTicket([]byte(text)); !errors.Is(err, ErrTicket) {
			t.Errorf("%s: error = %v, want ErrTicket", name, err)
		}
	}
}

// TestServerRefusesBadTicket sends one that the client would not.
func TestServerRefusesBadTicket(t *testing.T) {
	address, _ := serve(t, newOwner(nil, 1))
	c := dial(t, address)
	stream, err := c.service.DoGet(t.Context(), &flight.Ticket{Ticket: []byte("{}")})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("error = %v, want InvalidArgument", err)
	}
	if err := fromStatus(t.Context(), err); !errors.Is(err, ErrTicket) {
		t.Errorf("error = %v, want ErrTicket", err)
	}
}

// FuzzFrame takes any bytes for a message, and compares with what protocol buffers
// make of them.
func FuzzFrame(f *testing.F) {
	whole, err := proto.Marshal(&flight.FlightData{DataHeader: []byte{1, 2}, DataBody: make([]byte, 100), AppMetadata: []byte("label")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		var want flight.FlightData
		refused := proto.Unmarshal(message, &want)
		var got frame
		if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, &got); err != nil {
			if refused == nil {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		defer got.free()
		if refused == nil && (!bytes.Equal(got.header, want.DataHeader) || !bytes.Equal(got.label, want.AppMetadata) || !bytes.Equal(got.body, want.DataBody)) {
			t.Fatalf("read %+v, want %+v", &got, &want)
		}
		if rows, err := check(testTicket(make([]byte, 640)), 0, got.label, got.body); err == nil && len(rows)%64 != 0 {
			t.Fatalf("%d bytes of rows", len(rows))
		}
	})
}

func FuzzParseTicket(f *testing.F) {
	f.Add(testTicket(make([]byte, 640)).Encode())
	f.Add([]byte(`{"plan":"p","stage":"lsi","first":2,"columns":32,"precision":"float16","hop":3,"row":1,"rows":2}`))
	f.Add([]byte(`{"rows":1e3}`))
	// The decoder puts three bytes in the place of each of these.
	f.Add([]byte(`{"plan":"p","stage":"` + strings.Repeat("\xff", 2900) + `","columns":32,"precision":"float16","rows":2}`))
	f.Add([]byte(`{"plan":"p","stage":"` + strings.Repeat("\xff", 9) + `","columns":32,"precision":"float16","rows":2}`))
	f.Add([]byte(`{"plan":"p","stage":"` + strings.Repeat("<", 2900) + `","columns":32,"precision":"float16","rows":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ticket, err := ParseTicket(text)
		if err != nil {
			if !errors.Is(err, ErrTicket) {
				t.Fatalf("error %v is no ErrTicket", err)
			}
			return
		}
		if ticket.Rows < 1 || ticket.Row+ticket.Rows > maxRows || ticket.RowBytes() < 2 || ticket.batchRows() < 1 {
			t.Fatalf("accepted %+v", ticket)
		}
		again, err := ParseTicket(ticket.Encode())
		if err != nil || again != ticket {
			t.Fatalf("%+v came back as %+v, %v", ticket, again, err)
		}
	})
}

// TestIdleConnectionsDoNotHoldServe: a server that is told to stop does not wait for
// callers that have connected and say nothing, or part of a handshake.
func TestIdleConnectionsDoNotHoldServe(t *testing.T) {
	for _, text := range []string{"", "PRI * HT"} {
		address, stop := serve(t, newOwner(nil, 1))
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // until it is accepted
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("after %q it took %v to stop", text, took)
		}
	}
}
