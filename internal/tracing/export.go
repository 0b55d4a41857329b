package tracing

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// setting is the variable of the OpenTelemetry specification (OTLP exporter) for traces, else that for all signals.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// exporter sends spans to a collector by OTLP over HTTP.
type exporter struct {
	client   http.Client
	url      string
	header   http.Header
	compress bool
	timeout  time.Duration // of one batch, with the repetitions
}

// newExporter makes the exporter that the variables describe. OTEL_EXPORTER_OTLP_PROTOCOL is not read: every collector
// takes http/protobuf.
func newExporter() (*exporter, error) {
	e := &exporter{header: http.Header{"Content-Type": {"application/x-protobuf"}}, timeout: 10 * time.Second}
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	general := endpoint == ""
	u, err := url.Parse(cmp.Or(endpoint, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the endpoint of a collector has the form http://host:4318")
	}
	if general {
		u = u.JoinPath("v1/traces")
	}
	e.url = u.String()
	for _, pair := range strings.Split(setting("HEADERS"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); err == nil && strings.TrimSpace(name) != "" {
			e.header.Set(strings.TrimSpace(name), value)
		}
	}
	if e.compress = setting("COMPRESSION") == "gzip"; e.compress {
		e.header.Set("Content-Encoding", "gzip")
	}
	if text := setting("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: it is a number of milliseconds", text)
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = certificates(); err != nil {
		return nil, err
	}
	e.client.Transport = transport
	return e, nil
}

// certificates returns the certificates that the variables name, nil if there are none.
func certificates() (*tls.Config, error) {
	var c tls.Config
	authority, own, key := setting("CERTIFICATE"), setting("CLIENT_CERTIFICATE"), setting("CLIENT_KEY")
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", authority)
		}
	}
	if own != "" {
		pair, err := tls.LoadX509KeyPair(own, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if c.RootCAs == nil && c.Certificates == nil {
		return nil, nil
	}
	return &c, nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// ExportSpans implements sdk.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	body := request(spans)
	if e.compress {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		again, err := e.send(ctx, body)
		if !again {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// send makes one attempt, and tells whether another one may help: these are the statuses that the specification names
// (OTLP/HTTP response), and connections that fail.
func (e *exporter) send(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header = e.header.Clone()
	reply, err := e.client.Do(req)
	if err != nil {
		var u *url.Error
		return ctx.Err() == nil && errors.As(err, &u) && u.Temporary(), err
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(reply.Body, 64<<10))
	switch reply.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	default:
		if reply.StatusCode/100 == 2 {
			return false, nil
		}
	}
	return again, fmt.Errorf("%s answered %s: %.200q", e.url, reply.Status, bytes.TrimSpace(text))
}

// message appends a field that is a message.
func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

// word appends a field that is text or bytes, unless it is empty.
func word[T string | []byte](b []byte, field protowire.Number, s T) []byte {
	if len(s) == 0 {
		return b
	}
	return message(b, field, []byte(s))
}

// number appends a field that is a varint.
func number(b []byte, field protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), x)
}

// moment appends a field that is a time.
func moment(b []byte, field protowire.Number, t time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(max(t.UnixNano(), 0)))
}

// request is an ExportTraceServiceRequest (opentelemetry-proto 1.11) with the spans of a process, which all have the
// resource and the scope of the first one.
func request(spans []sdk.ReadOnlySpan) []byte {
	if len(spans) == 0 {
		return nil
	}
	var of, scoped []byte // ResourceSpans, ScopeSpans
	scope := spans[0].InstrumentationScope()
	scoped = message(scoped, 1, word(word(nil, 1, scope.Name), 2, scope.Version))
	for _, s := range spans {
		scoped = message(scoped, 2, encode(s))
	}
	of = message(of, 1, about(spans[0].Resource()))
	of = message(of, 2, scoped)
	of = word(of, 3, spans[0].Resource().SchemaURL())
	return message(nil, 1, of)
}

// about is a Resource.
func about(r *resource.Resource) []byte { return attributes(nil, 1, r.Attributes()) }

// encode is a Span. The spans of this package have no events and no links.
func encode(s sdk.ReadOnlySpan) []byte {
	const knowsWhetherRemote, remote = 0x100, 0x200 // SpanFlags
	trace, id, parent := s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent()
	b := word(nil, 1, trace[:])
	b = word(b, 2, id[:])
	b = word(b, 3, s.SpanContext().TraceState().String())
	flags := uint32(s.SpanContext().TraceFlags()) | knowsWhetherRemote
	if parent.HasSpanID() {
		above := parent.SpanID()
		b = word(b, 4, above[:])
	}
	if parent.IsRemote() {
		flags |= remote
	}
	b = word(b, 5, s.Name())
	b = number(b, 6, uint64(s.SpanKind()))
	b = moment(b, 7, s.StartTime())
	b = moment(b, 8, s.EndTime())
	b = attributes(b, 9, s.Attributes())
	status := word(nil, 2, s.Status().Description)
	switch s.Status().Code {
	case codes.Ok:
		status = number(status, 3, 1)
	case codes.Error:
		status = number(status, 3, 2)
	}
	b = message(b, 15, status)
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flags)
}

// attributes appends a field of KeyValues.
func attributes(b []byte, field protowire.Number, list []attribute.KeyValue) []byte {
	for _, a := range list {
		var value []byte
		switch a.Value.Type() {
		case attribute.BOOL:
			value = number(nil, 2, protowire.EncodeBool(a.Value.AsBool()))
		case attribute.INT64:
			value = number(nil, 3, uint64(a.Value.AsInt64()))
		case attribute.FLOAT64:
			value = protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(a.Value.AsFloat64()))
		default:
			value = message(nil, 1, []byte(fmt.Sprint(a.Value.AsInterface())))
		}
		b = message(b, field, message(word(nil, 1, string(a.Key)), 2, value))
	}
	return b
}
