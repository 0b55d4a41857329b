package storagetest

import (
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
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Bucket is the bucket of a [Server].
const Bucket = "graph"

// Secret is the secret of a server's only user.
const Secret = "secret-of-the-test"

// serverPath returns the path of the S3 server for the tests, if there is one.
func serverPath(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("NDLS_S3_SERVER"); path != "" {
		return path
	}
	return filepath.Join(moduleRoot(t), ".tools", "bin", "versitygw")
}

// HasServer reports whether [StartServer] finds an S3 server.
func HasServer(t testing.TB) bool {
	t.Helper()
	_, err := os.Stat(serverPath(t))
	return err == nil
}

// serverBinary finds the S3 server that the tests run against.
func serverBinary(t testing.TB) string {
	t.Helper()
	path := serverPath(t)
	if _, err := os.Stat(path); err != nil {
		const advice = "no S3 server to test against: run `make s3-server`, or set NDLS_S3_SERVER to a versitygw binary"
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s (%v)", advice, err)
		}
		t.Skip(advice)
	}
	return path
}

// moduleRoot is the folder of go.mod, above that in which tests run.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = os.ErrNotExist
		}
	}
	t.Fatal("no go.mod above the tests: ", err)
	return ""
}

// Server is an S3 server with one bucket, for one test.
type Server struct {
	// URL is its address.
	URL *url.URL
	// Environment has its credentials: KEY=VALUE.
	Environment []string
	// Folder holds the objects of the bucket as files under their names.
	Folder string
}

// StartServer runs an S3 server with an empty bucket until the test ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	binary, dir := serverBinary(t), t.TempDir()
	s := &Server{
		Environment: []string{"AWS_ACCESS_KEY_ID=testkey", "AWS_SECRET_ACCESS_KEY=" + Secret, "AWS_EC2_METADATA_DISABLED=true"},
		Folder:      filepath.Join(dir, "root", Bucket),
	}
	for _, sub := range []string{filepath.Join(dir, "iam"), s.Folder} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	cmd := exec.Command(binary, "--port", address, "--health", "/health", "--quiet", "--iam-dir", filepath.Join(dir, "iam"), "posix",
		filepath.Join(dir, "root"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=testkey", "ROOT_SECRET_KEY="+Secret)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The kernel kills the server when the thread that started it ends. So that thread waits for the
	// server to end.
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	s.URL = &url.URL{Scheme: "http", Host: address}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(s.URL.String() + "/health")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				http.DefaultClient.CloseIdleConnections()
				return s
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", binary, err)
		}
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// BucketURI names a prefix in a bucket of the server, or proxy, at an address.
func BucketURI(server *url.URL, bucket, prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s&region=us-east-1&use_path_style=true", bucket, prefix, url.QueryEscape(server.String()))
}

// Fault is the effect of a [Proxy] on one request.
type Fault int

// The faults.
const (
	Pass     Fault = iota
	Busy           // 503 SlowDown instead of an answer
	Reset          // the connection breaks before the server sees the request
	Lost           // the server does it and the connection breaks before the reply
	Truncate       // half of the reply's body, then the connection breaks
	Faults         // how many there are
)

func (f Fault) String() string { return [...]string{"pass", "busy", "reset", "lost", "truncate"}[f] }

// Proxy stands before a server and does to each request what was chosen.
type Proxy struct {
	server *httptest.Server
	mu     sync.Mutex
	choose func(*http.Request) Fault // called under mu
	count  [Faults]int
	delay  atomic.Int64
}

// Slow has each request wait for so long before it goes on, from now on.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// Counts says how many requests met each fault.
func (p *Proxy) Counts() [Faults]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Requests returns the number of all requests.
func (p *Proxy) Requests() (n int) {
	for _, c := range p.Counts() {
		n += c
	}
	return n
}

// StartProxy runs a proxy until the test ends, and returns its address. choose is
// called for one request at a time.
func StartProxy(t testing.TB, server *url.URL, choose func(*http.Request) Fault) (*Proxy, *url.URL) {
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
	p := &Proxy{choose: choose}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(forward, w, r) }))
	t.Cleanup(func() {
		p.server.Close()
		transport.CloseIdleConnections()
	})
	u, err := url.Parse(p.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return p, u
}

func (p *Proxy) decide(r *http.Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.choose(r)
	p.count[f]++
	return f
}

func (p *Proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	fault := p.decide(r)
	select {
	case <-time.After(time.Duration(p.delay.Load())):
	case <-r.Context().Done():
	}
	switch fault {
	case Busy:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
	case Reset:
		breakConnection(w)
	case Lost:
		forward.ServeHTTP(httptest.NewRecorder(), r)
		breakConnection(w)
	case Truncate:
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

// Seeded breaks a third of all requests in a pattern that seed gives.
func Seeded(seed uint64) func(*http.Request) Fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(*http.Request) Fault {
		switch x := rng.IntN(100); {
		case x < 10:
			return Busy
		case x < 16:
			return Reset
		case x < 22:
			return Lost
		case x < 34:
			return Truncate
		}
		return Pass
	}
}
