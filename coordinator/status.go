package coordinator

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ndls/internal/control"
	"ndls/internal/mem"
)

// Status is how a run goes. Its JSON field names are stable.
type Status struct {
	// Run is the URI of the run directory.
	Run      string `json:"run"`
	PlanHash string `json:"plan_hash"`
	// State is "waiting" for workers or for the next phase, "running", "stopping" or
	// "ended".
	State string        `json:"state"`
	Stage control.Stage `json:"stage,omitempty"`
	Phase control.Part  `json:"phase,omitempty"`
	Tasks TaskCounts    `json:"tasks"`
	// Stages lists the stages of the run as its record has them.
	Stages []StageStatus `json:"stages"`
	// WantedWorkers is how many must be there before the first task.
	WantedWorkers int            `json:"wanted_workers"`
	Workers       []WorkerStatus `json:"workers"`
	// Losses lists the work of the run that had to be done again; SecondsLost is
	// the sum.
	Losses      []Loss  `json:"losses"`
	SecondsLost float64 `json:"seconds_lost"`
}

// TaskCounts are the tasks of a phase.
type TaskCounts struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Done    int `json:"done"`
}

// WorkerStatus is what is known of a worker that has joined.
type WorkerStatus struct {
	Name string `json:"name"`
	// Here is false once nothing was heard for the time of a lease.
	Here bool `json:"here"`
	// LastSeen is in seconds before now.
	LastSeen float64 `json:"last_seen_seconds"`
	Memory   int64   `json:"memory"`
	Threads  int     `json:"threads"`
	// Losses counts what of the run was lost with this worker.
	Losses int `json:"losses"`
	// Task is "" for a worker that has none, and Progress empty.
	Task     string           `json:"task,omitempty"`
	Progress control.Progress `json:"progress,omitzero"`
	// Rate is in units of Progress a second.
	Rate float64 `json:"rate,omitempty"`
}

// Status tells how the run goes now.
func (s *Scheduler) Status() Status {
	stages := s.stages()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases
	st := Status{
		Run: s.cat.Store().URI(), PlanHash: s.plan.Hash(), State: s.state(), Stage: l.stage, Tasks: l.counts(), Stages: stages,
		WantedWorkers: s.o.Workers, Workers: []WorkerStatus{}, Losses: append([]Loss{}, l.losses...),
	}
	if len(l.tasks) > 0 {
		st.Phase = l.tasks[0].Part
	}
	lost := map[string]int{}
	for _, x := range l.losses {
		st.SecondsLost += x.SecondsLost
		lost[x.Worker]++
	}
	for _, m := range s.members {
		w := WorkerStatus{
			Name: m.Worker, Here: s.here(m), LastSeen: time.Since(m.seen).Seconds(), Memory: m.Memory, Threads: m.Threads, Losses: lost[m.Worker],
		}
		if m.polls > 0 {
			w.LastSeen = 0
		}
		if x := l.of(m.Worker); x != nil {
			w.Task, w.Progress, w.Rate = x.task.ID(), x.progress, x.rate
		}
		st.Workers = append(st.Workers, w)
	}
	slices.SortFunc(st.Workers, func(a, b WorkerStatus) int { return cmp.Compare(a.Name, b.Name) })
	return st
}

// readTime bounds how long a status waits for the record.
const readTime = 5 * time.Second

// stages are those of the record, none where that cannot be read now.
func (s *Scheduler) stages() []StageStatus {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	rec, err := ReadRecord(ctx, s.cat.Store())
	if err != nil || rec == nil {
		return []StageStatus{}
	}
	return rec.Progress()
}

func (s *Scheduler) state() string {
	switch {
	case s.ended:
		return "ended"
	case s.stopping || s.err != nil:
		return "stopping"
	case s.running && s.gathered:
		return "running"
	}
	return "waiting"
}

// Handler serves the status: as a page at /, as JSON at /status, and at /metrics
// in the text format of Prometheus. At /healthz it answers 200 as long as this
// coordinator leads the run, and 503 once it stops or another has taken over.
//
// On a loopback address it answers requests alone that name this host: a page of
// another site, whose name was made to point here, gets 403.
func (s *Scheduler) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := statusPage.Execute(&page, s.Status()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page.Bytes())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.leading.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("leading\n"))
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Status())
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(s.Status().metrics()))
	})
	return guarded(mux)
}

// answerTimeout bounds how long a caller may take to receive an answer.
const answerTimeout = 30 * time.Second

// guarded refuses requests for other hosts on loopback addresses, and does not wait for
// callers that do not read.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if isLoopback(local) && !namesThisHost(r.Host) {
			http.Error(w, "this page answers to localhost, to IP addresses and to the name of its host, not to "+strconv.Quote(r.Host), http.StatusForbidden)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
		h.ServeHTTP(w, r)
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
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

//go:embed status.html.tmpl
var statusText string

var statusPage = template.Must(template.New("status").Funcs(template.FuncMap{
	"bytes": func(n int64) string { return mem.Bytes(n).String() },
}).Parse(statusText))

// metrics is the status in the text format of Prometheus, version 0.0.4.
func (st Status) metrics() string {
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	family("ndls_tasks", "gauge", "Tasks of the present phase.")
	for _, x := range []struct {
		state string
		n     int
	}{{"waiting", st.Tasks.Waiting}, {"running", st.Tasks.Running}, {"done", st.Tasks.Done}} {
		fmt.Fprintf(&b, "ndls_tasks{stage=%s,phase=%s,state=%s} %d\n", label(string(st.Stage)), label(string(st.Phase)), label(x.state), x.n)
	}
	here := 0
	for _, w := range st.Workers {
		if w.Here {
			here++
		}
	}
	family("ndls_workers", "gauge", "Workers that have given a sign of life lately.")
	fmt.Fprintf(&b, "ndls_workers %d\n", here)
	family("ndls_losses_total", "counter", "Attempts at tasks that were lost or failed.")
	fmt.Fprintf(&b, "ndls_losses_total %d\n", len(st.Losses))
	family("ndls_lost_seconds_total", "counter", "Seconds of work that had to be done again.")
	fmt.Fprintf(&b, "ndls_lost_seconds_total %g\n", st.SecondsLost)
	for _, f := range []struct {
		name, help string
		value      func(control.Progress) int64
	}{
		{"ndls_progress_done", "What a worker has done of its present work.", func(p control.Progress) int64 { return p.Done }},
		{"ndls_progress_total", "What a worker's present work is in all, 0 if that is not known.", func(p control.Progress) int64 { return p.Total }},
		{"ndls_progress_saved", "What a worker's loss would not take away.", func(p control.Progress) int64 { return p.Saved }},
	} {
		family(f.name, "gauge", f.help)
		for _, w := range st.Workers {
			if w.Task != "" {
				fmt.Fprintf(&b, "%s{worker=%s,task=%s,unit=%s} %d\n", f.name, label(w.Name), label(w.Task), label(w.Progress.Unit), f.value(w.Progress))
			}
		}
	}
	return b.String()
}

// label quotes a label's value.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
