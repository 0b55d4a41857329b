package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/plan"
)

// line is a listener whose connections can be cut.
type line struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

// Accept notes each connection.
func (l *line) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, c)
		l.mu.Unlock()
	}
	return c, err
}

// cut breaks all connections, as the death of the process does.
func (l *line) cut() {
	l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}

// directory holds the address of the present coordinator.
type directory struct{ address atomic.Value }

func (d *directory) locate(context.Context) (string, error) {
	if a, ok := d.address.Load().(string); ok {
		return a, nil
	}
	return "", errors.New("no coordinator.json yet")
}

func TestCoordinatorRestartsAtAnotherAddress(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(p *line, stop func())
	}{
		{"stopped", func(_ *line, stop func()) { stop() }},
		{"killed", func(p *line, _ func()) { p.cut() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := token(t)
			ctx := context.Background()
			var d directory
			welcome := control.Welcome{Plan: plan.Default(), Store: "/run"}
			waiting := make(chan struct{})
			wait := sync.OnceFunc(func() { close(waiting) })
			before := &fake{welcome: welcome, next: func(ctx context.Context) (control.Lease, error) {
				wait()
				<-ctx.Done()
				return control.Lease{}, ctx.Err()
			}}
			inRenew := make(chan struct{})
			stalled := &stalling{fake: before, begin: sync.OnceFunc(func() { close(inRenew) })}
			p := &line{Listener: listen(t, "127.0.0.1:0")}
			stop := serveUntil(t, p, stalled, s)
			d.address.Store(p.Addr().String())
			c := dial(t, d.locate, s, 20*time.Second)
			if _, err := c.Join(ctx, control.Hello{Worker: "w"}); err != nil {
				t.Fatal(err)
			}

			next, renew := make(chan error, 1), make(chan error, 1)
			var got control.Lease
			go func() {
				var err error
				got, err = c.Next(ctx, "w")
				next <- err
			}()
			go func() { renew <- c.Renew(ctx, 5, control.Progress{}) }()
			<-waiting
			<-inRenew
			tc.end(p, stop)

			after := &fake{welcome: welcome, next: func(context.Context) (control.Lease, error) { return lease, nil }}
			l := listen(t, "127.0.0.1:0")
			start(t, l, after, s)
			d.address.Store(l.Addr().String())
			if err := errors.Join(<-next, <-renew); err != nil {
				t.Fatal(err)
			}
			if got.Fencing != lease.Fencing {
				t.Fatalf("next gave %+v", got)
			}
			if err := errors.Join(c.Commit(ctx, 5, change), c.Finish(ctx, 5, control.Outcome{Kind: control.Retry})); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// stalling never answers Renew.
type stalling struct {
	*fake
	begin func()
}

func (s *stalling) Renew(ctx context.Context, _ uint64, _ control.Progress) error {
	s.begin()
	<-ctx.Done()
	return ctx.Err()
}

// serveUntil is start for a server whose listener may be closed under it, and
// that does not wait for its calls.
func serveUntil(t *testing.T, l net.Listener, service Service, s *Security) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := Serve(ctx, l, service, s)
		if err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	return cancel
}

// fragile is a listener whose first connections break after some bytes were sent.
type fragile struct {
	net.Listener
	limits []int
}

func (f *fragile) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil || len(f.limits) == 0 {
		return c, err
	}
	rest := f.limits[0]
	f.limits = f.limits[1:]
	return &fragileConn{c, rest}, nil
}

type fragileConn struct {
	net.Conn
	rest int
}

func (c *fragileConn) Write(p []byte) (int, error) {
	if len(p) <= c.rest {
		c.rest -= len(p)
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:c.rest])
	c.rest = 0
	return n, errors.Join(io.ErrShortWrite, c.Conn.Close())
}

func TestConnectionsBreakAnywhere(t *testing.T) {
	f := &fake{entries: make([]catalog.Entry, 20_000)}
	for i := range f.entries {
		f.entries[i] = catalog.Entry{Path: strconv.Itoa(i), Rows: int64(i), Checksum: strings.Repeat("ab", 32)}
	}
	all := control.Change{Added: f.entries}
	for _, limit := range []int{0, 1, 9, 60, 100, 300, 70_001, 1_000_003} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			l, s := listen(t, "127.0.0.1:0"), token(t)
			start(t, &fragile{l, []int{limit, limit / 2}}, f, s)
			c := dial(t, At(l.Addr().String()), s, 20*time.Second)
			ctx := context.Background()
			if l, err := c.Catalog(ctx, catalog.Version{}); err != nil || !slices.Equal(l.Added, f.entries) {
				t.Fatalf("%d entries, %v", len(l.Added), err)
			}
			if err := c.Commit(ctx, 1, all); err != nil {
				t.Fatal(err)
			}
			notes := f.notes()
			if got := notes[len(notes)-1].(control.Change); !slices.Equal(got.Added, all.Added) {
				t.Fatalf("%d entries were committed", len(got.Added))
			}
		})
	}
}

func TestWorkerStartsBeforeTheCoordinator(t *testing.T) {
	s := token(t)
	var d directory
	c := dial(t, d.locate, s, 20*time.Second)
	joined := make(chan error, 1)
	go func() {
		_, err := c.Join(context.Background(), control.Hello{})
		joined <- err
	}()
	l := listen(t, "127.0.0.1:0")
	start(t, l, &fake{welcome: control.Welcome{Plan: plan.Default()}}, s)
	d.address.Store(l.Addr().String())
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
}

func TestPatienceEnds(t *testing.T) {
	gone := listen(t, "127.0.0.1:0")
	gone.Close()
	for _, tc := range []struct {
		name   string
		locate Locate
		want   string
	}{
		{"nobody listens", At(gone.Addr().String()), "refused"},
		{"no address", new(directory).locate, "no coordinator.json yet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, tc.locate, token(t), 300*time.Millisecond)
			began := time.Now()
			err := c.Renew(context.Background(), 1, control.Progress{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrNoCoordinator) {
				t.Fatal(err)
			}
			if took := time.Since(began); took < 300*time.Millisecond || took > 5*time.Second {
				t.Fatalf("patience ended after %v", took)
			}
			if errors.Is(err, control.ErrRefused) || errors.Is(err, control.ErrLeaseLost) {
				t.Fatalf("%v says more than is known", err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if err := c.Renew(ctx, 1, control.Progress{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if _, err := c.Status(context.Background()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatal(err)
			}
		})
	}
}

// A coordinator that is gone may leave its port to that of another job.
func TestAddressGoesToAStranger(t *testing.T) {
	ctx := context.Background()
	ours, theirs := token(t), token(t)
	welcome := control.Welcome{Plan: plan.Default(), Store: "/ours"}
	for _, tc := range []struct {
		name     string
		security *Security
	}{
		{"of another job", theirs},
		{"of another run of the job", ours},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d directory
			l := listen(t, "127.0.0.1:0")
			stop := start(t, l, &fake{welcome: welcome}, ours)
			d.address.Store(l.Addr().String())
			c := dial(t, d.locate, ours, 20*time.Second)
			if _, err := c.Join(ctx, control.Hello{}); err != nil {
				t.Fatal(err)
			}
			stop()

			stranger := &fake{welcome: control.Welcome{Plan: plan.Default(), Store: "/theirs"}}
			at := listen(t, l.Addr().String())
			stopStranger := start(t, at, stranger, tc.security)
			if _, err := dial(t, d.locate, tc.security, time.Second).Join(ctx, control.Hello{Worker: "theirs"}); err != nil {
				t.Fatal(err)
			}
			committed := make(chan error, 1)
			go func() { committed <- c.Commit(ctx, 5, change) }()
			time.Sleep(300 * time.Millisecond)
			again := &fake{welcome: welcome}
			l = listen(t, "127.0.0.1:0")
			start(t, l, again, ours)
			d.address.Store(l.Addr().String())
			stopStranger()
			if err := <-committed; err != nil {
				t.Fatal(err)
			}
			if len(stranger.notes()) != 1 || len(again.notes()) != 2 {
				t.Fatalf("the stranger was asked %+v, the coordinator %+v", stranger.notes(), again.notes())
			}
		})
	}
}

// A worker that comes before its coordinator says in a short line that it waits, and warns of nothing.
func TestWaitsForTheFirstCoordinator(t *testing.T) {
	s := token(t)
	var d directory
	var log bytes.Buffer
	c, err := Dial(context.Background(), d.locate, s, Options{Patience: 5 * time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	joined := make(chan error, 1)
	go func() {
		_, err := c.Join(context.Background(), control.Hello{})
		joined <- err
	}()
	time.Sleep(time.Second)
	l := listen(t, "127.0.0.1:0")
	start(t, l, &fake{welcome: control.Welcome{Plan: plan.Default()}}, s)
	d.address.Store(l.Addr().String())
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if strings.Contains(text, "WARN") || strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="no coordinator yet" waiting=5m0s`) || len(text) > 120 {
		t.Errorf("the log says %q", text)
	}
}
