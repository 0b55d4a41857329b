package storage_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ndls/internal/storage"
)

const (
	testBucket = "graph"
	testSecret = "secret-of-the-test"
)

// serverBinary finds the S3 server that the tests run against.
func serverBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("NDLS_S3_SERVER")
	if path == "" {
		path = filepath.Join("..", "..", ".tools", "bin", "versitygw")
	}
	if _, err := os.Stat(path); err != nil {
		const advice = "no S3 server to test against: run `make s3-server`, or set NDLS_S3_SERVER to a versitygw binary"
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s (%v)", advice, err)
		}
		t.Skip(advice)
	}
	return path
}

// startServer runs an S3 server with one empty bucket until the test ends, and
// returns its address. The credentials are in the environment.
func startServer(t *testing.T) *url.URL {
	t.Helper()
	binary, dir := serverBinary(t), t.TempDir()
	for _, sub := range []string{"iam", filepath.Join("root", testBucket)} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "testkey")
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	address := freeAddress(t)
	cmd := exec.Command(binary, "--port", address, "--health", "/health", "--quiet", "--iam-dir", filepath.Join(dir, "iam"), "posix", filepath.Join(dir, "root"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=testkey", "ROOT_SECRET_KEY="+testSecret)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	server := &url.URL{Scheme: "http", Host: address}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(server.String() + "/health")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				http.DefaultClient.CloseIdleConnections()
				return server
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", binary, err)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func bucketURI(server *url.URL, bucket, prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s&region=us-east-1&use_path_style=true", bucket, prefix, url.QueryEscape(server.String()))
}

func openBucket(t *testing.T, server *url.URL, prefix string) *storage.Bucket {
	t.Helper()
	b, err := storage.OpenBucket(context.Background(), bucketURI(server, testBucket, prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// emptyStores returns a function that opens another prefix at each call.
func emptyStores(server *url.URL) func(t *testing.T) storage.Store {
	var n atomic.Int64
	return func(t *testing.T) storage.Store {
		return openBucket(t, server, fmt.Sprintf("runs/%d", n.Add(1)))
	}
}

// fault is what a proxy does to one request.
type fault int

const (
	pass     fault = iota
	busy           // 503 SlowDown instead of an answer
	reset          // the connection breaks before the server sees the request
	lost           // the server does it and the connection breaks before the reply
	truncate       // half of the reply's body, then the connection breaks
	faults
)

func (f fault) String() string { return [...]string{"pass", "busy", "reset", "lost", "truncate"}[f] }

// proxy stands before a server and does to each request what choose says.
type proxy struct {
	*httptest.Server
	mu       sync.Mutex
	choose   func(*http.Request) fault // called under mu
	count    [faults]int
	requests int
}

func startProxy(t *testing.T, server *url.URL, choose func(*http.Request) fault) (*proxy, *url.URL) {
	t.Helper()
	transport := &http.Transport{}
	forward := &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // of requests that the client gave up
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Host = r.In.Host // it is signed
		},
	}
	p := &proxy{choose: choose}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(forward, w, r) }))
	t.Cleanup(func() {
		p.Close()
		transport.CloseIdleConnections()
	})
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return p, u
}

func (p *proxy) decide(r *http.Request) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.choose(r)
	p.requests++
	p.count[f]++
	return f
}

func (p *proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	switch p.decide(r) {
	case busy:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
	case reset:
		breakConnection(w)
	case lost:
		forward.ServeHTTP(httptest.NewRecorder(), r)
		breakConnection(w)
	case truncate:
		whole := httptest.NewRecorder()
		forward.ServeHTTP(whole, r)
		for key, values := range whole.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(whole.Code)
		if body := whole.Body.Bytes(); len(body) > 0 {
			_, _ = w.Write(body[:len(body)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	default:
		forward.ServeHTTP(w, r)
	}
}

// breakConnection makes the client see a reset.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// seeded breaks a third of all requests in a pattern that seed gives.
func seeded(seed uint64) func(*http.Request) fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(*http.Request) fault {
		switch x := rng.IntN(100); {
		case x < 10:
			return busy
		case x < 16:
			return reset
		case x < 22:
			return lost
		case x < 34:
			return truncate
		}
		return pass
	}
}
