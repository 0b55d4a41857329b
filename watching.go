package ndls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"ndls/internal/control/conns"
	"ndls/internal/failure"
	"ndls/internal/progress"
	"ndls/internal/vfs"
	"ndls/shards"
	"ndls/watch"
)

// Watching says how others can see how a run goes while it works.
type Watching struct {
	// HTTP is HOST:PORT of the page of the run, of its JSON and of its metrics; "" serves none, port 0
	// picks a free one, which the log names. Who knows the token of the job, or, of a run without one, the value of
	// the environment variable [TokenVariable], can stop or drain the run there.
	HTTP string
	// Hosts are names by which requests to HTTP may call this host, beside localhost, its own name and IP addresses:
	// of a Kubernetes Service, or of a proxy that passes its name on.
	Hosts []string
	// Profile serves profiles of this process at /debug/pprof/, on loopback addresses alone.
	Profile bool
	// MetricsFile is a file for the metrics, which is replaced every [MetricsInterval] and at the end; "" for none.
	// Its name must end in .prom for the node exporter to read it.
	MetricsFile string
}

// MetricsInterval is the interval at which the metrics are written to a file.
const MetricsInterval = 15 * time.Second

// check refuses what does not go together.
func (w Watching) check() error {
	if w.Profile && w.HTTP == "" {
		return failure.Of(ErrOption, "--pprof serves profiles beside the page: give --http 127.0.0.1:PORT, too")
	}
	if host, _, err := net.SplitHostPort(w.HTTP); w.HTTP != "" && err != nil {
		return failure.Of(ErrOption, "--http %s is no HOST:PORT", w.HTTP)
	} else if ip := net.ParseIP(host); w.Profile && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return failure.Of(ErrOption, "--pprof serves profiles to this host alone: give --http 127.0.0.1:PORT")
	}
	return nil
}

// onlooker is who watches a run.
type onlooker struct {
	progress *progress.Watch
	// door is nil where no page is served.
	door *door
	// stop stops the run, as a signal does; token is the secret that this needs, "" if nobody may.
	stop  context.CancelCauseFunc
	token string
	// log keeps the last lines of the log, nil where no page is served.
	log *watch.Log
}

// errStopped and errDrained are why a run ended that was stopped through its page.
var (
	errStopped = errors.New("a request to /stop has stopped the run")
	errDrained = errors.New("a request to /drain has stopped the run after the tasks that were under way")
)

// logged has the log of a run, and what its worker processes write, kept for its page, if there is to be one.
func (c *Config) logged() *watch.Log {
	if c.Watching.HTTP == "" {
		return nil
	}
	kept := &watch.Log{}
	c.Log = slog.New(slog.NewMultiHandler(logger(c.Log).Handler(), keeping{to: kept}))
	if c.Workers.Output == nil {
		c.Workers.Output = kept
	} else {
		c.Workers.Output = io.MultiWriter(c.Workers.Output, kept)
	}
	return kept
}

// followed returns a context whose progress is followed for who watches the run, and who may stop it with a token.
// What cannot be watched is an error before anything is made. The caller closes the onlooker.
func (w Watching) followed(ctx context.Context, token string, log *slog.Logger) (context.Context, onlooker, error) {
	var o onlooker
	if w.HTTP == "" && w.MetricsFile == "" {
		return ctx, o, nil
	}
	if w.MetricsFile != "" {
		if _, err := vfs.Stat(filepath.Dir(w.MetricsFile)); err != nil {
			return ctx, o, fmt.Errorf("--metrics-file: %w", err)
		}
	}
	if w.HTTP != "" {
		var err error
		if o.door, err = openDoor(w.HTTP, log); err != nil {
			return ctx, o, err
		}
	}
	ctx, o.stop = context.WithCancelCause(ctx)
	ctx, o.progress = progress.WithWatch(ctx)
	o.token = token
	return ctx, o, nil
}

// close gives back what followed has taken.
func (o onlooker) close() {
	if o.stop != nil {
		o.stop(nil)
	}
	if o.door != nil {
		o.door.close()
	}
}

// watched serves the page of the run, and writes its metrics, until stop is called. Neither of them can end the run:
// what fails is told in the log.
func (r *session) watched(ctx context.Context) (stop func()) {
	o := watch.Options{
		Watch: r.onlooker.progress, Log: r.onlooker.log, Limits: r.limits.Load, Versions: Versions(), Hosts: r.Watching.Hosts,
		Profile: r.Watching.Profile,
		Token:   r.onlooker.token, Graph: r.graph,
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	finish := func() {}
	var services sync.WaitGroup
	drain := make(chan struct{}, 1)
	o.Steering = watch.Steering{
		Stop: func() { r.onlooker.stop(errStopped) },
		Drain: func() {
			select {
			case drain <- struct{}{}:
			default: // it was asked for before
			}
		},
		DrainWorker: r.scheduler.DrainWorker,
	}
	if d := r.onlooker.door; d != nil {
		page := watch.New(r.scheduler, o)
		d.page.Store(page)
		r.Log.Info("how the run goes", "at", "http://"+d.address+"/")
		finish = func() {
			page.Finish()
			d.close()
		}
		services.Go(func() {
			select {
			case <-drain:
			case <-ctx.Done():
				return
			}
			if r.scheduler.Drain(ctx) == nil {
				r.onlooker.stop(errDrained)
			}
		})
	}
	if path := r.Watching.MetricsFile; path != "" {
		services.Go(func() { r.keepMetrics(ctx, path, o) })
	}
	return func() {
		finish()
		cancel()
		services.Wait()
	}
}

// graph says what is worked on: the data set, and once that is imported its size.
func (r *session) graph(ctx context.Context) string {
	text := r.work.Plan.Partition.Dataset
	s, err := shards.ReadSummary(ctx, r.work.Catalog)
	if err != nil {
		return text // not imported yet
	}
	return fmt.Sprintf("%s: %d nodes, %d edges, %d features, %d classes", text, s.Nodes, s.Edges, s.Features, len(s.Classes))
}

// keepMetrics writes the metrics to a file at once, then now and again, and a last time when ctx ends.
func (r *session) keepMetrics(ctx context.Context, path string, o watch.Options) {
	tick := time.NewTicker(MetricsInterval)
	defer tick.Stop()
	failed := false
	for last := false; ; {
		err := writeMetrics(path, r, o)
		if err != nil && !failed {
			r.Log.Warn("the metrics are not written; the run goes on", "because", err)
		}
		if failed = err != nil; last {
			return
		}
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
	}
}

func writeMetrics(path string, r *session, o watch.Options) error {
	text, err := watch.Metrics(r.scheduler, o)
	if err == nil {
		err = vfs.ReplaceFile(path, text, 0o666)
	}
	if err != nil {
		return fmt.Errorf("--metrics-file: %w", err)
	}
	return nil
}

// door answers requests to the page of a run, also before the run has one: the graph may have to
// be counted first, and the state of an earlier run to be read.
type door struct {
	address string
	page    atomic.Pointer[watch.Server]
	close   func() // may be called more than once
}

// Bounds of a request to the page, which anybody can send who reaches its port: how long its header and the whole of it
// may take to arrive and its answer to be received, and the bytes of its header. What takes longer, such as events,
// sets deadlines of its own. A connection without a request is closed after idleTimeout; package conns bounds how many
// there are.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 20 * time.Second
	answerTimeout  = 30 * time.Second
	idleTimeout    = time.Minute
	mostHeader     = 16 << 10
	// lastAnswers is the time that the answers under way have when the program ends.
	lastAnswers = time.Second
)

// openDoor answers requests at HOST:PORT until the door is closed. That it cannot do so any more
// ends no run: it is told in the log.
func openDoor(address string, log *slog.Logger) (*door, error) {
	d := &door{}
	var err error
	d.address, d.close, err = answering(address, d, log)
	return d, err
}

// answering answers requests at HOST:PORT until stop is called, which may be called more than once. It returns the address. Who has asked
// before gets an answer: also who asked that the run stops, and the run has stopped since.
func answering(address string, to http.Handler, log *slog.Logger) (at string, stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--http: %w", err)
	}
	streams, endStreams := context.WithCancel(context.Background())
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return streams },
		Handler:     to, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: mostHeader,
	}
	tracked := conns.Track(l)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(tracked); !errors.Is(err, http.ErrServerClosed) {
			logger(log).Warn("the page is gone", "because", err)
		}
	})
	return l.Addr().String(), func() {
		endStreams() // of events, which have no end of their own
		ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		_ = server.Shutdown(ctx)
		_ = server.Close()
		serving.Wait()
	}, nil
}

// ServeHTTP implements http.Handler. At /livez it answers 200 as long as the process does.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := d.page.Load()
	switch {
	case r.URL.Path == "/livez":
		_, _ = io.WriteString(w, "alive\n")
	case page == nil:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the run begins: it has no page yet", http.StatusServiceUnavailable)
	default:
		page.ServeHTTP(w, r)
	}
}
