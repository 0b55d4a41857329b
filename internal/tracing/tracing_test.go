package tracing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestSpansAreSent receives spans as a collector does.
func TestSpansAreSent(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range request.GetResourceSpans() {
			service := ""
			for _, a := range of.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					service = a.GetValue().GetStringValue()
				}
			}
			for _, scope := range of.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					text := service + " " + s.GetName() + " " + s.GetStatus().GetMessage()
					for _, a := range s.GetAttributes() {
						text += " " + a.GetKey() + "=" + a.GetValue().String()
					}
					got = append(got, text)
				}
			}
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	stop, err := Start(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := Span(t.Context(), "stage", attribute.String("stage", "lsi"))
	_, endHop := Span(ctx, "hop", attribute.Int("hop", 3))
	endHop(errors.New("no disk"), attribute.Int64("edges", 7))
	end(nil)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"ndls stage ", "ndls hop no disk", "hop=int_value:3", "edges=int_value:7"} {
		if !strings.Contains(strings.ReplaceAll(text, "  ", " "), want) {
			t.Errorf("the collector lacks %q:\n%s", want, text)
		}
	}
}

// TestNobodyListens: without the variables nothing is sent, and with them and no collector the run goes on.
func TestNobodyListens(t *testing.T) {
	stop, err := Start(t.Context(), "1")
	if err != nil || stop() != nil {
		t.Error(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	ctx, cancel := context.WithCancel(t.Context())
	stop, err = Start(ctx, "1")
	if err != nil {
		t.Fatal(err)
	}
	_, end := Span(ctx, "stage")
	end(nil)
	cancel()
	if err := stop(); err == nil {
		t.Error("spans went to nobody")
	}
}

// TestCarried: work that is done elsewhere is a part of the span that asks for it.
func TestCarried(t *testing.T) {
	if text := Carried(t.Context()); text != "" {
		t.Errorf("no span is carried as %q", text)
	}
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	otel.SetTracerProvider(sdk.NewTracerProvider())
	ctx, end := Span(t.Context(), "stage")
	defer end(nil)
	stage := trace.SpanContextFromContext(ctx)
	there := trace.SpanContextFromContext(Within(context.Background(), Carried(ctx)))
	if !there.IsRemote() || there.SpanID() != stage.SpanID() || there.TraceID() != stage.TraceID() {
		t.Errorf("%v came there as %v", stage, there)
	}
	for _, text := range []string{"", "00-1", "00-00000000000000000000000000000000-0000000000000000-01"} {
		if x := trace.SpanContextFromContext(Within(context.Background(), text)); x.IsValid() {
			t.Errorf("%q is taken for the span %v", text, x)
		}
	}
}
