package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/failure"
	"ndls/plan"
)

func makeKeys(t testing.TB, hosts ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	if err := MakeKeys(dir, hosts, time.Hour); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t testing.TB, dir string, role Role) *Security {
	t.Helper()
	s, err := LoadSecurity(dir, role, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at is s with its clock set off.
func at(s *Security, off time.Duration) *Security {
	moved := *s
	moved.now = func() time.Time { return time.Now().Add(off) }
	return &moved
}

func TestWhoMayTalkToWhom(t *testing.T) {
	keys, others := makeKeys(t, "node1", "10.0.0.1", "::1"), makeKeys(t)
	coordinator, worker := load(t, keys, Coordinator), load(t, keys, Worker)
	us := token(t)
	for _, tc := range []struct {
		name           string
		server, client *Security
		want           string // "" if they may
	}{
		{"keys of the job", coordinator, worker, ""},
		{"token of the job", us, us, ""},
		{"another token", us, token(t), "give both sides the same token"},
		{"keys of another job", coordinator, load(t, others, Worker), "certificate is not of this job"},
		{"server of another job", load(t, others, Coordinator), worker, "certificate is not of this job"},
		{"a worker that serves as coordinator", worker, worker, "certificate is not of this job"},
		{"a coordinator that calls as worker", coordinator, coordinator, "does not take this worker's certificate"},
		{"roles swapped", worker, coordinator, "certificate is not of this job"},
		{"expired for the client", coordinator, at(worker, 2*time.Hour), "expired"},
		{"expired for the server", at(coordinator, 2*time.Hour), worker, "does not take this worker's certificate"},
		{"not yet valid", coordinator, at(worker, -time.Hour), "not yet valid"},
		{"token client, server with keys", coordinator, us, "give both sides the same token"},
		{"client with keys, token server", us, worker, "certificate is not of this job"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			f := &fake{welcome: control.Welcome{Plan: plan.Default()}, status: []byte("{}")}
			start(t, l, f, tc.server)
			c := dial(t, At(l.Addr().String()), tc.client, time.Hour)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, errJoin := c.Join(ctx, control.Hello{})
			_, errStatus := c.Status(ctx)
			_, errCatalog := c.Catalog(ctx, catalog.Version{})
			for _, err := range []error{errJoin, errStatus, errCatalog, c.Renew(ctx, 1, control.Progress{})} {
				switch {
				case tc.want == "" && err != nil:
					t.Fatal(err)
				case tc.want == "":
				case err == nil || !strings.Contains(err.Error(), tc.want):
					t.Fatalf("%v does not say %q", err, tc.want)
				case !errors.Is(err, control.ErrRefused):
					t.Fatalf("%v is not ErrRefused", err)
				}
			}
			if tc.want != "" && len(f.notes()) != 0 {
				t.Fatalf("the service was asked %+v", f.notes())
			}
		})
	}
}

// TestStrangersDoNotKeepMembersOut: a thousand connections that say nothing, or something else than TLS, before a worker comes and
// after it, are closed, and that of the worker is not.
func TestStrangersDoNotKeepMembersOut(t *testing.T) {
	us := token(t)
	l := listen(t, "127.0.0.1:0")
	start(t, l, &fake{welcome: control.Welcome{Plan: plan.Default()}, status: []byte("{}")}, us)
	var strangers []net.Conn
	flood := func() {
		for i := range 500 {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			strangers = append(strangers, c)
			if i%2 == 0 {
				_, _ = c.Write([]byte{22, 3, 1}) // a handshake begins so
			}
		}
	}
	flood()
	c := dial(t, At(l.Addr().String()), us, 10*time.Second)
	if _, err := c.Join(t.Context(), control.Hello{}); err != nil {
		t.Fatal(err)
	}
	state := c.conn.GetState()
	flood()
	if _, err := c.Status(t.Context()); err != nil || c.conn.GetState() != state {
		t.Errorf("the worker's connection went from %v to %v, %v", state, c.conn.GetState(), err)
	}
	open := len(strangers)
	for end := time.Now().Add(10 * time.Second); open > 256 && time.Now().Before(end); { // the last may not be accepted yet
		open = 0
		for _, s := range strangers {
			_ = s.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := s.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
	}
	if open > 256 || open == 0 {
		t.Errorf("%d connections of strangers are open", open)
	}
}

// Who speaks without TLS, as earlier versions did with a token, is not served.
func TestNoTokenAtAll(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	f := &fake{}
	start(t, l, f, token(t))
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err = ask(context.Background(), conn, "renew", []byte("{}")); err == nil || len(f.notes()) != 0 {
		t.Fatalf("%v, and the service was asked %v", err, f.notes())
	}
}

// TestTokenIsNotSent puts a listener that reads all in place of the coordinator, and one
// between the worker and the coordinator: neither sees the token, nor what could be sent
// again in its place.
func TestTokenIsNotSent(t *testing.T) {
	s := token(t)
	var heard recorder
	false1 := listen(t, "127.0.0.1:0")
	var reading sync.WaitGroup
	defer reading.Wait()
	defer false1.Close()
	reading.Go(func() {
		for {
			c, err := false1.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = io.Copy(&heard, c)
			_ = c.Close()
		}
	})
	fooled := dial(t, At(false1.Addr().String()), s, 500*time.Millisecond)
	if err := fooled.Renew(t.Context(), 1, control.Progress{}); err == nil {
		t.Error("a listener without the token was taken for the coordinator")
	}

	l := listen(t, "127.0.0.1:0")
	f := &fake{welcome: control.Welcome{Plan: plan.Default()}}
	start(t, l, f, s)
	between := listen(t, "127.0.0.1:0")
	defer between.Close()
	reading.Go(func() {
		c, err := between.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		reading.Go(func() { _, _ = io.Copy(io.MultiWriter(to, &heard), c); _ = to.Close() })
		_, _ = io.Copy(io.MultiWriter(c, &heard), to)
		_ = c.Close()
	})
	const name = "a-worker-with-a-long-name"
	true1 := dial(t, At(between.Addr().String()), s, time.Second)
	if _, err := true1.Join(t.Context(), control.Hello{Worker: name}); err != nil {
		t.Fatal(err)
	}
	_ = true1.Close()
	text := heard.text()
	for _, secret := range [][]byte{[]byte(s.token), s.secret, s.derive(authorityLabel), []byte(name)} {
		if bytes.Contains(text, secret) {
			t.Errorf("%q was sent", secret)
		}
	}
	if len(text) < 500 {
		t.Errorf("only %d bytes were heard", len(text))
	}
}

// recorder retains what is written to it.
type recorder struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *recorder) text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.b.Bytes())
}

func TestOlderTLSIsRefused(t *testing.T) {
	keys := makeKeys(t)
	l := listen(t, "127.0.0.1:0")
	start(t, l, &fake{}, load(t, keys, Coordinator))
	config := load(t, keys, Worker).clientTLS(Coordinator)
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if c, err := tls.Dial("tcp", l.Addr().String(), config); err == nil {
		c.Close()
		t.Fatal("TLS 1.2 was accepted")
	}
}

// Workers fetch rows from one another: a worker serves, as a worker.
func TestWorkersServeWorkers(t *testing.T) {
	keys := makeKeys(t)
	worker := load(t, keys, Worker)
	for _, tc := range []struct {
		name   string
		server Role
		fails  bool
	}{
		{"expected", Worker, false},
		{"taken for the coordinator", Coordinator, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			start(t, l, &fake{}, worker)
			conn, err := grpc.NewClient(l.Addr().String(), worker.DialOptions(tc.server)...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = ask(context.Background(), conn, "renew", []byte("{}"))
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
		})
	}
}

// noRows is asked for rows that nobody may see.
type noRows struct{ asked atomic.Bool }

func (n *noRows) Rows(context.Context, blocks.Ticket, func(int64, []byte) error) error {
	n.asked.Store(true)
	return blocks.ErrNotHeld
}

// TestWhoMayFetchRows has workers ask each other for rows: who is not of the job is
// refused before the owner hears of it.
func TestWhoMayFetchRows(t *testing.T) {
	keys, others := makeKeys(t), makeKeys(t)
	worker, us := load(t, keys, Worker), token(t)
	bare := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	for _, tc := range []struct {
		name   string
		server *Security
		client []grpc.DialOption
		may    bool
	}{
		{"keys of the job", worker, worker.DialOptions(Worker), true},
		{"token of the job", us, us.DialOptions(Worker), true},
		{"keys of another job", worker, load(t, others, Worker).DialOptions(Worker), false},
		{"the coordinator's keys", worker, load(t, keys, Coordinator).DialOptions(Worker), false},
		{"TLS without a certificate", worker, []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))}, false},
		{"no keys", worker, bare, false},
		{"an expired certificate", worker, at(worker, 2*time.Hour).DialOptions(Worker), false},
		{"another token", us, token(t).DialOptions(Worker), false},
		{"no token", us, bare, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			source, listener := &noRows{}, listen(t, "127.0.0.1:0")
			ctx, cancel := context.WithCancel(context.Background())
			var serving sync.WaitGroup
			serving.Go(func() {
				if err := blocks.Serve(ctx, listener, source, tc.server.ServerOptions()...); err != nil {
					t.Error(err)
				}
			})
			defer serving.Wait()
			defer cancel()
			c, err := blocks.Dial(listener.Addr().String(), tc.client...)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = c.Fetch(ctx, blocks.Ticket{Plan: "p", Stage: "s", Columns: 16, Precision: "float32", Rows: 1}, nil)
			if tc.may != errors.Is(err, blocks.ErrNotHeld) || tc.may != source.asked.Load() {
				t.Errorf("the owner was asked: %v; error %v", source.asked.Load(), err)
			}
		})
	}
}

func TestMakeKeys(t *testing.T) {
	dir := makeKeys(t)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	before, err := os.ReadFile(filepath.Join(dir, "worker.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	if err := MakeKeys(dir, nil, time.Hour); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "choose another folder") {
		t.Fatalf("over keys: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "worker.key"))
	if err != nil || !bytes.Equal(before, after) {
		t.Fatal("a key was replaced")
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a part of the keys was written")
	}
	for _, host := range []string{"", "coordinator.ndls", "Coordinator.NDLS.", "*.example.org", "a:7", "a/b"} {
		if err := MakeKeys(filepath.Join(dir, "hosts"), []string{host}, time.Hour); !errors.Is(err, failure.ErrOption) {
			t.Errorf("host %q: %v", host, err)
		}
	}
	if err := MakeKeys(filepath.Join(dir, "valid"), nil, 0); !errors.Is(err, failure.ErrOption) {
		t.Errorf("valid never: %v", err)
	}
}

func TestLoadSecurity(t *testing.T) {
	t.Setenv(TokenVariable, "")
	keys := makeKeys(t)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := MakeToken()
	good, short := write("good", " "+strings.ToUpper(secret)+"\n"), write("short", "secret\n")
	without := func(name string) string {
		dir := makeKeys(t)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	with := func(name, text string) string {
		dir := makeKeys(t)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	stolen := makeKeys(t)
	for _, ext := range []string{".pem", ".key"} {
		if err := os.Rename(filepath.Join(stolen, "worker"+ext), filepath.Join(stolen, "coordinator"+ext)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name            string
		keys, tokenFile string
		variable        string
		want            string // of the error, "" for none
	}{
		{"keys", keys, "", "", ""},
		{"keys win over the variable", keys, "", secret, ""},
		{"token file", "", good, "", ""},
		{"variable", "", "", secret, ""},
		{"nothing", "", "", "", "neither keys nor a token"},
		{"both", keys, good, "", "give one"},
		{"short token", "", short, "", "64 hexadecimal digits: write one with"},
		{"no file", "", short + "er", "", "write one with"},
		{"no folder", keys + "er", "", "", "ndls cluster-keys"},
		{"no key", without("coordinator.key"), "", "", "ndls cluster-keys"},
		{"no certificate", without("coordinator.pem"), "", "", "ndls cluster-keys"},
		{"no gossip key", without("gossip.key"), "", "", "ndls cluster-keys"},
		{"bad authority", with("ca.pem", "x"), "", "", "holds no certificate"},
		{"bad key", with("coordinator.key", "x"), "", "", "ndls cluster-keys"},
		{"bad gossip key", with("gossip.key", "abc"), "", "", "64 hexadecimal digits"},
		{"a worker's keys renamed", stolen, "", "", "coordinator.ndls"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(TokenVariable, tc.variable)
			s, err := LoadSecurity(tc.keys, Coordinator, tc.tokenFile)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("%v does not say %q", err, tc.want)
				}
				return
			}
			if err != nil || (s.Token() == "") != (tc.keys != "") {
				t.Fatalf("%+v, %v", s, err)
			}
		})
	}
	if _, err := loadKeys(keys, Worker, func() time.Time { return time.Now().Add(2 * time.Hour) }); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("expired keys: %v", err)
	}
}

func TestGossipKey(t *testing.T) {
	keys := makeKeys(t)
	a, b := load(t, keys, Coordinator).GossipKey(), load(t, keys, Worker).GossipKey()
	if len(a) != 32 || !bytes.Equal(a, b) {
		t.Fatalf("the roles' keys are %x and %x", a, b)
	}
	if other := load(t, makeKeys(t), Worker).GossipKey(); bytes.Equal(a, other) {
		t.Fatal("two jobs have one gossip key")
	}
	s := token(t)
	if k := s.GossipKey(); len(k) != 32 || bytes.Equal(k, token(t).GossipKey()) || bytes.Equal(k, s.secret) {
		t.Fatalf("the token's gossip key is %x", k)
	}
}

func FuzzToken(f *testing.F) {
	f.Add(MakeToken())
	f.Add("")
	f.Add(strings.Repeat("0g", 32))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := TokenSecurity(text, "the test")
		if err != nil {
			return
		}
		if len(s.token) != 64 || len(s.secret) != 32 || strings.ToLower(strings.TrimSpace(text)) != s.token {
			t.Fatalf("%q became %q", text, s.token)
		}
	})
}

// TestExposedSecrets: a secret that other users may read is named.
func TestExposedSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o644: true} {
		if err := os.WriteFile(file, []byte(MakeToken()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		s, err := LoadSecurity("", Worker, file)
		if err != nil || slices.Contains(s.Exposed, file) != want {
			t.Errorf("mode %v: %v", mode, err)
		}
		_ = os.Remove(file)
	}
	keys := filepath.Join(dir, "keys")
	if err := MakeKeys(keys, nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	if s, err := LoadSecurity(keys, Worker, ""); err != nil || len(s.Exposed) > 0 {
		t.Errorf("keys as they are made: %v", err)
	}
	if err := os.Chmod(filepath.Join(keys, "worker.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := LoadSecurity(keys, Worker, ""); err != nil || !slices.Equal(s.Exposed, []string{filepath.Join(keys, "worker.key")}) {
		t.Errorf("a key that all may read: %v", err)
	}
}
