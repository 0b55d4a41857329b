package watch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/progress"
)

// Options say what is served beside the state.
type Options struct {
	// Watch has the progress of this process, nil if that is not followed.
	Watch *progress.Watch
	// Versions holds the versions of this process.
	Versions map[string]string
	// Log is the log of the run, nil if it is not kept.
	Log *Log
	// Graph says in words what is worked on; nil where nobody knows.
	Graph func(context.Context) string
	// Limits gives those of this host, nil until they are measured. It is nil where they never are.
	Limits func() *control.Limits
	// Hosts are names by which requests may call this host, beside localhost, its own name and IP addresses.
	Hosts []string
	// Steering holds what a request with Token can do; nobody can if Token is empty.
	Token string
	Steering
	// Profile serves /debug/pprof/, which is for loopback addresses alone.
	Profile bool
}

// Steering holds what somebody with the token of a run can do to it.
type Steering struct {
	// Stop stops the run, as a signal does.
	Stop func()
	// Drain stops the run after the tasks that are under way.
	Drain func()
	// DrainWorker gives a worker no further task.
	DrainWorker func(name string) error
}

//go:embed state.schema.json
var schema []byte

// Server serves the state of a run over HTTP.
type Server struct {
	handler http.Handler
	events  *events
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Finish shows the state once more to all who listen to events, and ends what they receive. It waits until they have
// it, but not for long.
func (s *Server) Finish() { s.events.finish() }

// New serves the state of a run: as a page at /, as JSON at /status, with its schema at
// /status.schema.json, as events at /events, and at /metrics in the text format of Prometheus. At /healthz it
// answers 200 as long as this process leads the run, and 503 once it stops or another has taken over.
//
// It answers requests alone that name this host: a page of another site, whose name was made to point here, gets 403.
func New(run Run, o Options) *Server {
	w := newWatcher(run, o)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(to http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		if err := pages().Execute(&text, "page", shown{w.state(), o.Token != ""}); err != nil {
			http.Error(to, err.Error(), http.StatusInternalServerError)
			return
		}
		to.Header().Set("Content-Type", "text/html; charset=utf-8")
		to.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
		_, _ = to.Write(text.Bytes())
	})
	mux.HandleFunc("GET /healthz", func(to http.ResponseWriter, _ *http.Request) {
		if !run.Leading() {
			http.Error(to, "stopping", http.StatusServiceUnavailable)
			return
		}
		_, _ = to.Write([]byte("leading\n"))
	})
	mux.HandleFunc("GET /status", func(to http.ResponseWriter, _ *http.Request) {
		to.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(to).Encode(w.state())
	})
	mux.HandleFunc("GET /status.schema.json", func(to http.ResponseWriter, _ *http.Request) {
		to.Header().Set("Content-Type", "application/schema+json")
		_, _ = to.Write(schema)
	})
	events := newEvents(w.state)
	mux.Handle("GET /events", events)
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.registry(), promhttp.HandlerOpts{}))
	if o.Token != "" {
		mux.HandleFunc("POST /stop", o.bearing(o.halt))
		mux.HandleFunc("POST /drain", o.bearing(o.drain))
	}
	if o.Profile {
		mux.HandleFunc("GET /debug/pprof/", local(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/cmdline", local(pprof.Cmdline))
		mux.HandleFunc("GET /debug/pprof/profile", local(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", local(pprof.Symbol))
		mux.HandleFunc("GET /debug/pprof/trace", local(pprof.Trace))
	}
	return &Server{o.guarded(mux), events}
}

// shown holds what the page shows.
type shown struct {
	State
	Steering bool
}

// bearing does what a request asks for if that bears the token.
func (o Options) bearing(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// Digests have the same length, so that the time of the comparison says nothing.
		want, got := sha256.Sum256([]byte(o.Token)), sha256.Sum256([]byte(given))
		if !ok || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the request must bear the token of the run: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		do(w, r)
	}
}

// halt stops the run.
func (o Options) halt(w http.ResponseWriter, _ *http.Request) {
	o.Stop()
	accepted(w, "the run stops; the same command continues it")
}

// drain lets the run end after the tasks that are under way, or a worker after its task.
func (o Options) drain(w http.ResponseWriter, r *http.Request) {
	worker := r.URL.Query().Get("worker")
	if worker == "" {
		o.Drain()
		accepted(w, "the run stops after the tasks that are under way; the same command continues it")
		return
	}
	if err := o.DrainWorker(worker); err != nil {
		http.Error(w, failure.Text(err), http.StatusConflict)
		return
	}
	accepted(w, "the worker gets no further task")
}

func accepted(w http.ResponseWriter, text string) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte(text + "\n"))
}

// answerTimeout bounds how long a caller may take to receive an answer.
const answerTimeout = 30 * time.Second

// guarded refuses requests that name another host, and does not wait for callers that do not read.
func (o Options) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.namesThisHost(r.Host) {
			http.Error(w, "this page answers to localhost, to IP addresses and to the name of its host, not to "+strconv.Quote(r.Host)+"; --http-host adds names", http.StatusForbidden)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
		h.ServeHTTP(w, r)
	})
}

// longest bounds how long a profile may take.
const longest = 10 * time.Minute

// local answers on loopback addresses alone.
func local(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r) {
			http.Error(w, "profiles are given on loopback addresses alone: give --http 127.0.0.1:PORT", http.StatusForbidden)
			return
		}
		to := http.NewResponseController(w)
		_ = to.SetWriteDeadline(time.Now().Add(longest))
		_ = to.SetReadDeadline(time.Now().Add(longest))
		h(w, r)
	}
}

// isLoopback reports whether a request came to an address that only this host reaches.
func isLoopback(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := at.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// namesThisHost reports whether the Host of a request is an IP address, localhost, the host's own name or one that it
// was given, with a port or without.
func (o Options) namesThisHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	own, err := os.Hostname()
	return net.ParseIP(strings.Trim(host, "[]")) != nil || strings.EqualFold(host, "localhost") || err == nil && strings.EqualFold(host, own) ||
		slices.ContainsFunc(o.Hosts, func(name string) bool { return strings.EqualFold(host, name) })
}
