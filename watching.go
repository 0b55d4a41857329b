package ndls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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
	// the environment variable [TokenVariable], can stop the run there.
	HTTP string
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
	// stop stops the run, as a signal does; token is what one must know for that, "" if nobody may.
	stop  context.CancelCauseFunc
	token string
}

// errStopped is why a run ended that was stopped through its page.
var errStopped = errors.New("a request to /stop has stopped the run")

// followed returns a context whose progress is followed for who watches the run, and who may stop it with a token.
func (w Watching) followed(ctx context.Context, token string) (context.Context, onlooker) {
	if w.HTTP == "" && w.MetricsFile == "" {
		return ctx, onlooker{}
	}
	ctx, stop := context.WithCancelCause(ctx)
	ctx, watch := progress.WithWatch(ctx)
	return ctx, onlooker{watch, stop, token}
}

// watched serves the page of the run, and writes its metrics, until stop is called. What fails before that ends the
// run by fail.
func (r *session) watched(ctx context.Context, fail func(error)) (stop func(), err error) {
	o := watch.Options{Watch: r.onlooker.progress, Versions: Versions(), Profile: r.Watching.Profile}
	if r.onlooker.token != "" {
		o.Token, o.Stop = r.onlooker.token, func() { r.onlooker.stop(errStopped) }
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ends []func()
	finish := func() {}
	stop = func() {
		finish()
		cancel()
		for _, end := range ends {
			end()
		}
	}
	if at := r.Watching.HTTP; at != "" {
		listener, err := net.Listen("tcp", at)
		if err != nil {
			stop()
			return nil, fmt.Errorf("--http: %w", err)
		}
		r.Log.Info("how the run goes", "at", "http://"+listener.Addr().String()+"/")
		page := watch.New(r.scheduler, o)
		finish = page.Finish
		ends = append(ends, beside(func() error { return serveHTTP(ctx, listener, page) }, fail))
	}
	if path := r.Watching.MetricsFile; path != "" {
		if err := writeMetrics(path, r, o); err != nil {
			stop()
			return nil, err
		}
		ends = append(ends, beside(func() error {
			tick := time.NewTicker(MetricsInterval)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return writeMetrics(path, r, o)
				case <-tick.C:
					if err := writeMetrics(path, r, o); err != nil {
						return err
					}
				}
			}
		}, fail))
	}
	return stop, nil
}

// beside runs do, and gives an error of it to fail. The caller calls end to wait for it.
func beside(do func() error, fail func(error)) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := do(); err != nil {
			fail(err)
		}
	}()
	return func() { <-done }
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
