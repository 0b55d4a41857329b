package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/retry"
)

const (
	// DefaultPatience is the time for which a coordinator may be away.
	DefaultPatience = 2 * time.Minute
	// longestPause bounds the growing pauses between attempts.
	longestPause = 2 * time.Second
	// remindAfter is the number of failed attempts in a row after which the log reports them, and
	// then about every half minute.
	remindAfter = 2
	remindEvery = 30 * time.Second
)

// ErrNoCoordinator reports that no coordinator could be reached.
var ErrNoCoordinator = errors.New("no coordinator answers")

// Options holds the settings of a client. The zero value is usable.
type Options struct {
	// Patience is the time for which a call is tried while there is no coordinator, 0 for
	// DefaultPatience.
	Patience time.Duration
	// Log receives a message about repeated calls; nil drops it.
	Log *slog.Logger
}

// Client represents the coordinator in a worker of another process. Its methods may be called at
// the same time.
type Client struct {
	conn     *grpc.ClientConn
	patience time.Duration
	log      *slog.Logger
	cancel   context.CancelFunc
	// trouble holds the error of the last attempt to connect.
	trouble *trouble
	// met says that a call has succeeded; run names the run that was joined.
	met     atomic.Bool
	run     atomic.Value
	numbers atomic.Uint64
}

var _ Service = (*Client)(nil)

// Dial returns a client of the coordinator that locate finds. It makes no connection: the first
// call does. locate receives ctx until the client is closed.
func Dial(ctx context.Context, locate Locate, s *Security, o Options) (*Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &Client{patience: o.Patience, log: o.Log, cancel: cancel, trouble: &trouble{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.patience == 0 {
		c.patience = DefaultPatience
	}
	options := append(s.DialOptions(Coordinator),
		// If two credentials are given, the later one counts.
		grpc.WithTransportCredentials(watched{s.clientCredentials(Coordinator), c.trouble}),
		grpc.WithResolvers(builder{ctx, locate}),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(c.trouble.dial),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: retry.First, Multiplier: 2, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: connectTimeout / 4,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}),
	)
	conn, err := grpc.NewClient(scheme+":///coordinator", options...)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("rpc: a client: %w", err)
	}
	c.conn = conn
	return c, nil
}

// Close ends the connection and with it the calls under way.
func (c *Client) Close() error {
	c.cancel()
	return c.conn.Close()
}

// Join implements control.Service.
func (c *Client) Join(ctx context.Context, h control.Hello) (control.Welcome, error) {
	w, err := call[welcomed](ctx, c, "join", c.patience, h)
	if err == nil {
		c.run.Store(w.Run)
	}
	return w.Welcome, err
}

// Next implements control.Service. It waits until ctx ends.
func (c *Client) Next(ctx context.Context, worker string) (control.Lease, error) {
	return call[control.Lease](ctx, c, "next", c.patience, worker)
}

// Gang implements control.Service. It waits until ctx ends.
func (c *Client) Gang(ctx context.Context, fencing uint64) (control.Gang, error) {
	return call[control.Gang](ctx, c, "gang", c.patience, fencing)
}

// Renew implements control.Service.
func (c *Client) Renew(ctx context.Context, fencing uint64, p control.Progress) error {
	_, err := call[struct{}](ctx, c, "renew", c.patience, renewal{fencing, p})
	return err
}

// Commit implements control.Service.
func (c *Client) Commit(ctx context.Context, fencing uint64, change control.Change) error {
	_, err := call[struct{}](ctx, c, "commit", c.patience, commitment{fencing, c.numbers.Add(1), change})
	return err
}

// Finish implements control.Service.
func (c *Client) Finish(ctx context.Context, fencing uint64, outcome control.Outcome) error {
	_, err := call[struct{}](ctx, c, "finish", c.patience, ending{fencing, outcome})
	return err
}

// Catalog implements control.Service.
func (c *Client) Catalog(ctx context.Context, since catalog.Version) (catalog.Listing, error) {
	return call[catalog.Listing](ctx, c, "catalog", c.patience, since)
}

// Status returns the JSON document of the coordinator about the run. It serves people who wait: if
// no coordinator answers, it fails at once.
func (c *Client) Status(ctx context.Context) ([]byte, error) {
	return call[json.RawMessage](ctx, c, "status", 0, struct{}{})
}

// call makes a call with its argument.
func call[R any](ctx context.Context, c *Client, name string, patience time.Duration, argument any) (result R, err error) {
	text, err := json.Marshal(argument)
	if err != nil {
		return result, fmt.Errorf("rpc: %s: %w", name, err)
	}
	pass(name)
	err = c.try(ctx, name, patience, func(ctx context.Context, o ...grpc.CallOption) error {
		text, err := ask(ctx, c.conn, name, text, o...)
		if err != nil {
			return err
		}
		var a answer[R]
		if err := json.Unmarshal(text, &a); err != nil {
			return fmt.Errorf("the answer makes no sense: %w", err)
		}
		if f := a.Failed; f != nil {
			return &remote{name, f.Text, control.KindsNamed(f.Kinds)}
		}
		result = a.Result
		return nil
	})
	if err == nil {
		pass(name + "-done")
	}
	return result, err
}

// try makes a call until it is answered or patience has ended.
func (c *Client) try(ctx context.Context, call string, patience time.Duration,
	attempt func(context.Context, ...grpc.CallOption) error,
) error {
	if run, ok := c.run.Load().(string); ok {
		ctx = metadata.AppendToOutgoingContext(ctx, runHeader, run)
	}
	var away time.Time // since when there has been no coordinator
	var told time.Time // when the log said so last
	pauses := retry.Pauses(longestPause)
	for attempts := 1; ; attempts++ {
		began := time.Now()
		var reached peer.Peer
		err := attempt(ctx, grpc.Peer(&reached))
		if err == nil {
			c.met.Store(true)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("rpc: %s: %w", call, ctx.Err())
		}
		if !c.mayPass(err) {
			return c.explain(call, err)
		}
		// A call that waited long and was connected reached a coordinator then.
		if now := time.Now(); away.IsZero() || reached.Addr != nil && now.Sub(began) > longestPause {
			away, attempts = now, 1
			pauses.Reset()
		}
		rest := time.Until(away.Add(patience))
		if rest <= 0 {
			return c.explain(call, err)
		}
		if attempts >= remindAfter && time.Since(told) > remindEvery {
			if told.IsZero() && !c.met.Load() {
				c.log.Info("no coordinator yet", "waiting", rest.Round(time.Second))
			} else {
				c.log.Warn("the coordinator does not answer; the call is repeated", "call", call, "for", rest.Round(time.Second), "because", c.explain(call, err))
			}
			told = time.Now()
		}
		if err := sleep(ctx, min(rest, pauses.NextBackOff())); err != nil {
			return fmt.Errorf("rpc: %s: %w", call, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayPass reports whether a call that failed so may succeed later by itself.
func (c *Client) mayPass(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable:
		return c.met.Load() || refusal(c.trouble.get()) == nil
	case codes.Aborted:
		return true
	}
	return false
}

// explain returns the error of a call that is given up.
func (c *Client) explain(call string, err error) error {
	if status.Code(err) != codes.Unavailable {
		return fromStatus(call, err)
	}
	trouble := c.trouble.get()
	if cause := refusal(trouble); cause != nil {
		return fmt.Errorf("rpc: %s: %w: %w", call, cause, control.ErrRefused)
	}
	if trouble == nil {
		trouble = errors.New(status.Convert(err).Message())
	}
	return fmt.Errorf("rpc: %s: %w; start it again, or look for what keeps its address from being reached: %w", call, ErrNoCoordinator, trouble)
}

// errSilent reports a connection that ended without an answer, as when a server dies.
var errSilent = errors.New("the connection was closed without a word")

// trouble holds the error of the last connection, nil if it works.
type trouble struct{ last atomic.Pointer[error] }

func (t *trouble) set(err error) { t.last.Store(&err) }

func (t *trouble) get() error {
	if err := t.last.Load(); err != nil {
		return *err
	}
	return nil
}

// dial connects.
func (t *trouble) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		t.set(err)
	}
	return conn, err
}

// watched notes why connections fail, because gRPC passes on only a text.
type watched struct {
	credentials.TransportCredentials
	trouble *trouble
}

func (w watched) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		w.trouble.set(err)
		return nil, nil, err
	}
	return &watchedConn{Conn: c, trouble: w.trouble}, info, nil
}

func (w watched) Clone() credentials.TransportCredentials {
	return watched{w.TransportCredentials.Clone(), w.trouble}
}

// watchedConn notes how the first read ends. In TLS 1.3 a client learns there that its certificate
// was refused.
type watchedConn struct {
	net.Conn
	trouble *trouble
	heard   bool
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.heard {
		return n, err
	}
	c.heard = true
	switch {
	case n > 0:
		c.trouble.set(nil)
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET): // the latter if it has not read everything
		c.trouble.set(errSilent)
	case err != nil:
		c.trouble.set(err)
	}
	return n, err
}
