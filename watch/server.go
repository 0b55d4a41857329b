package watch

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ndls/internal/progress"
)

// Options say what is served beside the state.
type Options struct {
	// Watch has the progress of this process, nil if that is not followed.
	Watch *progress.Watch
	// Versions are those of this process.
	Versions map[string]string
	// Token, unless it is empty, is what a request to /stop must bear for Stop to be called.
	Token string
	Stop  func()
	// Profile serves /debug/pprof/, which is for loopback addresses alone.
	Profile bool
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
// On a loopback address it answers requests alone that name this host: a page of
// another site, whose name was made to point here, gets 403.
func New(run Run, o Options) *Server {
	w := &watcher{run: run, watch: o.Watch, versions: o.Versions}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(to http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := pages().ExecuteTemplate(&page, "page", w.state()); err != nil {
			http.Error(to, err.Error(), http.StatusInternalServerError)
			return
		}
		to.Header().Set("Content-Type", "text/html; charset=utf-8")
		to.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
		_, _ = to.Write(page.Bytes())
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
		mux.HandleFunc("POST /stop", o.halt)
	}
	if o.Profile {
		mux.HandleFunc("GET /debug/pprof/", local(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/cmdline", local(pprof.Cmdline))
		mux.HandleFunc("GET /debug/pprof/profile", local(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", local(pprof.Symbol))
		mux.HandleFunc("GET /debug/pprof/trace", local(pprof.Trace))
	}
	return &Server{guarded(mux), events}
}

// halt stops the run for who knows the token.
func (o Options) halt(w http.ResponseWriter, r *http.Request) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	// Digests have the same length, so that the time of the comparison says nothing.
	want, got := sha256.Sum256([]byte(o.Token)), sha256.Sum256([]byte(given))
	if !ok || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the request must bear the token of the run: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	o.Stop()
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte("the run stops; the same command continues it\n"))
}

// answerTimeout bounds how long a caller may take to receive an answer.
const answerTimeout = 30 * time.Second

// guarded refuses requests for other hosts on loopback addresses, and does not wait for
// callers that do not read.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLoopback(r) && !namesThisHost(r.Host) {
			http.Error(w, "this page answers to localhost, to IP addresses and to the name of its host, not to "+strconv.Quote(r.Host), http.StatusForbidden)
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
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(longest))
		h(w, r)
	}
}

// isLoopback says whether a request came to an address that only this host reaches.
func isLoopback(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := at.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// namesThisHost says whether the Host of a request is an IP address, localhost or the
// host's own name, with a port or without.
func namesThisHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	own, err := os.Hostname()
	return net.ParseIP(strings.Trim(host, "[]")) != nil || strings.EqualFold(host, "localhost") || err == nil && strings.EqualFold(host, own)
}
