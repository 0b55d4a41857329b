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
	"time"

	"ndls/internal/failure"
	"ndls/internal/progress"
	"ndls/internal/vfs"
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

// MetricsInterval is how often the metrics are written to a file.
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
	// listener is nil where no page is served.
	listener net.Listener
	// stop stops the run, as a signal does; token is what one must know for that, "" if nobody may.
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
	c.Log = slog.New(keeping{next: logger(c.Log).Handler(), to: kept})
	if c.Workers.Output == nil {
		c.Workers.Output = kept
	} else {
		c.Workers.Output = io.MultiWriter(c.Workers.Output, kept)
	}
	return kept
}

// followed returns a context whose progress is followed for who watches the run, and who may stop it with a token.
// What cannot be watched is an error before anything is made. The caller closes the onlooker.
func (w Watching) followed(ctx context.Context, token string) (context.Context, onlooker, error) {
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
		if o.listener, err = net.Listen("tcp", w.HTTP); err != nil {
			return ctx, o, fmt.Errorf("--http: %w", err)
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
	if o.listener != nil {
		_ = o.listener.Close() // the server may have closed it
	}
}

// watched serves the page of the run, and writes its metrics, until stop is called. Neither of them can end the run:
// what fails is told in the log.
func (r *session) watched(ctx context.Context) (stop func()) {
	o := watch.Options{
		Watch: r.onlooker.progress, Log: r.onlooker.log, Limits: r.limits.Load, Versions: Versions(), Hosts: r.Watching.Hosts, Profile: r.Watching.Profile,
		Token: r.onlooker.token,
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
	if l := r.onlooker.listener; l != nil {
		r.Log.Info("how the run goes", "at", "http://"+l.Addr().String()+"/")
		page := watch.New(r.scheduler, o)
		finish = page.Finish
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
		services.Go(func() {
			if err := serveHTTP(ctx, l, page); err != nil {
				r.Log.Warn("the page of the run is gone", "because", err)
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
		err = vfs.ReplaceFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("--metrics-file: %w", err)
	}
	return nil
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, listener net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	after := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = s.Close()
	})
	err := s.Serve(listener)
	if !after() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("--http: %w", err)
}
