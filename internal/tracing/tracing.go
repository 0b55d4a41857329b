// Package tracing makes spans of stages, tasks and hops, and sends them where OpenTelemetry's variables say.
//
// Without an exporter a span costs some nanoseconds: the calls go to the provider of the process, which drops them
// unless [Start], or a program around the library, has set another.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Variables of the OpenTelemetry specification (OTLP exporter) that name where spans go.
var variables = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// patience bounds how long the last spans may take to be sent.
const patience = 5 * time.Second

// Start sends spans of this process by OTLP over HTTP, if OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set and OTEL_SDK_DISABLED is not true; headers and certificates are in the
// other variables of the specification. stop sends what is left.
func Start(ctx context.Context, version string) (stop func() error, err error) {
	wanted := false
	for _, name := range variables {
		wanted = wanted || os.Getenv(name) != ""
	}
	if !wanted || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return func() error { return nil }, nil
	}
	exporter, err := newExporter()
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx, resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ndls"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	otel.SetTracerProvider(provider)
	var lost atomic.Pointer[error]
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { lost.CompareAndSwap(nil, &err) }))
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err := provider.Shutdown(ctx)
		if first := lost.Load(); first != nil {
			err = *first
		}
		if err != nil {
			return fmt.Errorf("tracing: spans were not sent: %w", err)
		}
		return nil
	}, nil
}

// Span begins a span. The caller calls end when it is over, with the error of the work, and with what is known then.
func Span(ctx context.Context, name string, about ...attribute.KeyValue) (_ context.Context,
	end func(err error, about ...attribute.KeyValue),
) {
	ctx, span := otel.Tracer("ndls").Start(ctx, name, trace.WithAttributes(about...))
	return ctx, func(err error, about ...attribute.KeyValue) {
		span.SetAttributes(about...)
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// parent is the name under which W3C Trace Context (section 3.2) passes a span on.
const parent = "traceparent"

// Carried is the span of ctx as text, "" if there is none: work that is done elsewhere for it is told so.
func Carried(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[parent]
}

// Within returns a context whose spans are parts of one that was carried here. A text that is none changes nothing.
func Within(ctx context.Context, carried string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parent: carried})
}
