package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans holds what a collector has received, by the id of the span.
type spans struct {
	mu   sync.Mutex
	list map[string]*otlp.Span
}

// ServeHTTP receives spans by OTLP, as a collector does.
func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, x := range scope.GetSpans() {
				s.list[string(x.GetSpanId())] = x
			}
		}
	}
}

// about is an attribute of a span, nil if it has none of that name.
func about(x *otlp.Span, name string) any {
	for _, a := range x.GetAttributes() {
		if a.GetKey() == name {
			if text := a.GetValue().GetStringValue(); text != "" {
				return text
			}
			return a.GetValue().GetIntValue()
		}
	}
	return nil
}

// check looks at the spans of a run: each hop is a part of a task, and each task of its stage. It returns how many
// there are of each, and how many hops of each stage.
func (s *spans) check(t *testing.T) (counts map[string]int, hops map[any]int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	counts, hops = map[string]int{}, map[any]int{}
	above := map[string]string{"hop": "task", "task": "stage"}
	plans := map[any]bool{}
	for _, x := range s.list {
		counts[x.GetName()]++
		parent := s.list[string(x.GetParentSpanId())]
		if want := above[x.GetName()]; parent.GetName() != want {
			t.Errorf("the span %s is a part of %q, want %q", x.GetName(), parent.GetName(), want)
			continue
		}
		if parent == nil {
			if len(x.GetParentSpanId()) > 0 {
				t.Errorf("the parent of the span %s was not sent", x.GetName())
			}
		} else if !bytes.Equal(x.GetTraceId(), parent.GetTraceId()) || x.GetStartTimeUnixNano() < parent.GetStartTimeUnixNano() || x.GetEndTimeUnixNano() > parent.GetEndTimeUnixNano() {
			t.Errorf("the span %s is not within its parent", x.GetName())
		}
		switch x.GetName() {
		case "stage":
			plans[about(x, "ndls.plan")] = true
		case "task":
			plans[about(x, "ndls.plan")] = true
			if got, want := about(x, "ndls.stage"), about(parent, "ndls.stage"); got != want || got == nil {
				t.Errorf("a task of %v is a part of the stage %v", got, want)
			}
		case "hop":
			hops[about(parent, "ndls.stage")]++
			if edges, ok := about(x, "ndls.edges").(int64); !ok || edges == 0 {
				t.Errorf("hop %v read %v edges", about(x, "ndls.hop"), edges)
			}
		default:
			t.Errorf("a span %s", x.GetName())
		}
	}
	if len(plans) != 1 || plans[nil] {
		t.Errorf("the spans of a run carry the plans %v", plans)
	}
	return counts, hops
}

// TestSpansOfARun: a collector gets the stages, tasks and hops of a run in this process.
func TestSpansOfARun(t *testing.T) {
	got := &spans{list: map[string]*otlp.Span{}}
	server := httptest.NewServer(got)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0)) // a command sets its own
	var out, errs bytes.Buffer
	if code := run(t.Context(), append([]string{"run", "--dataset", toy, "--run", filepath.Join(t.TempDir(), "run")}, quickly...), &out, &errs); code != 0 {
		t.Fatalf("status %d:\n%s", code, errs.String())
	}
	counts, hops := got.check(t)
	if counts["stage"] < 5 || counts["task"] < counts["stage"] || hops["lsi"] == 0 || hops["smooth"] == 0 {
		t.Errorf("spans %v, hops %v", counts, hops)
	}
}

// TestSpansOfWorkers: the tasks of workers in other processes are parts of the stages of the coordinator.
func TestSpansOfWorkers(t *testing.T) {
	got := &spans{list: map[string]*otlp.Span{}}
	server := httptest.NewServer(got)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", filepath.Join(t.TempDir(), "run"), "--workers", "2"}, quickly...)...)
	counts, hops := got.check(t)
	if counts["stage"] < 5 || counts["task"] < counts["stage"] || hops["lsi"] == 0 || hops["smooth"] == 0 {
		t.Errorf("spans %v, hops %v", counts, hops)
	}
}
