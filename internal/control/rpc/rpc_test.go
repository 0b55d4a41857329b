package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a coordinator that does what its fields say and notes what it was asked.
type fake struct {
	status  []byte
	welcome control.Welcome
	next    func(ctx context.Context) (control.Lease, error)
	gang    func(ctx context.Context) (control.Gang, error)
	entries []catalog.Entry
	removed []string
	err     error
	commit  func(ctx context.Context) error

	mu    sync.Mutex
	asked []any
}

func (f *fake) note(v ...any) {
	f.mu.Lock()
	f.asked = append(f.asked, v...)
	f.mu.Unlock()
}

func (f *fake) notes() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]any(nil), f.asked...)
}

func (f *fake) Join(_ context.Context, h control.Hello) (control.Welcome, error) {
	f.note(h)
	return f.welcome, f.err
}

func (f *fake) Next(ctx context.Context, worker string) (control.Lease, error) {
	f.note(worker)
	if f.next != nil {
		return f.next(ctx)
	}
	return control.Lease{}, f.err
}

func (f *fake) Renew(_ context.Context, fencing uint64, p control.Progress) error {
	f.note(fencing, p)
	return f.err
}

func (f *fake) Gang(ctx context.Context, fencing uint64) (control.Gang, error) {
	f.note(fencing)
	if f.gang != nil {
		return f.gang(ctx)
	}
	return control.Gang{}, f.err
}

func (f *fake) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	f.note(fencing, c)
	if f.commit != nil {
		return f.commit(ctx)
	}
	return f.err
}

func (f *fake) Finish(_ context.Context, fencing uint64, o control.Outcome) error {
	f.note(fencing, o)
	return f.err
}

func (f *fake) Catalog(_ context.Context, since catalog.Version) (catalog.Listing, error) {
	since.Number++
	return catalog.Listing{Version: since, Whole: since.Owner == 0, Added: f.entries, Removed: f.removed}, f.err
}

func (f *fake) Status(context.Context) ([]byte, error) { return f.status, f.err }

func token(t testing.TB) *Security {
	t.Helper()
	s, err := TokenSecurity(MakeToken(), "the test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// start serves until stop is called, or the test ends.
func start(t testing.TB, l net.Listener, service Service, s *Security) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, service, s) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func dial(t testing.TB, locate Locate, s *Security, patience time.Duration) *Client {
	t.Helper()
	c, err := Dial(context.Background(), locate, s, Options{Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// pair is a client of the service.
func pair(t testing.TB, service Service) *Client {
	t.Helper()
	s := token(t)
	l := listen(t, "127.0.0.1:0")
	start(t, l, service, s)
	return dial(t, At(l.Addr().String()), s, 5*time.Second)
}

var (
	lease = control.Lease{
		Task: control.Task{
			Stage: control.Smooth, Part: control.Columns, First: 2, Last: 4, Plan: plan.Default(),
			Inputs: control.Inputs{Dataset: "npy:/data/x", SoftLabels: "s.npy", Targets: "ids.txt", TrainRows: "runs/a", ValidRows: "runs/b"},
		},
		Fencing: 17, TTL: 30 * time.Second,
	}
	change = control.Change{
		Added:   []catalog.Entry{{Kind: "tile", Path: "tiles/a", Rows: 5, Bytes: 70, Checksum: "sha256:ab", Interval: -1, Block: 3}},
		Removed: []string{"checkpoints/b"}, Delete: true,
	}
)

var gang = control.Gang{Number: 21, Self: 1, Borders: []int{0, 3, 9}, Peers: []string{"10.0.0.1:70", "10.0.0.2:70"}}

func TestCallsArriveAsTheyWereMade(t *testing.T) {
	ctx := context.Background()
	f := &fake{
		welcome: control.Welcome{
			Plan: plan.Default(), Store: "s3://bucket/run", Heartbeat: 10 * time.Second, Checkpoint: 5 * time.Minute,
		},
		next:    func(context.Context) (control.Lease, error) { return lease, nil },
		gang:    func(context.Context) (control.Gang, error) { return gang, nil },
		entries: change.Added,
	}
	text := slices.Concat([]byte(`[1`), bytes.Repeat([]byte(`,1`), 4*pieceBytes), []byte(`]`))
	f.status = text
	c := pair(t, f)

	hello := control.Hello{Worker: "w-1", Version: "1.2", Memory: 1 << 40, Threads: 8, Blocks: "10.0.0.1:70", Holds: []string{"x", "y"}}
	progress := control.Progress{What: "hops", Done: 3, Total: 10, Unit: "hops", Saved: 2}
	done := control.Outcome{Report: &control.StageReport{
		Stage: control.LSI, Seconds: 1.5, Findings: control.Findings{LSI: &control.LSIReport{Histogram: [][2]int64{{1, 2}}}},
	}}
	failed := control.Outcome{Kind: control.Drained, Reason: "SIGTERM"}

	if w, err := c.Join(ctx, hello); err != nil || !reflect.DeepEqual(w, f.welcome) {
		t.Fatalf("join: %+v, %v", w, err)
	}
	if l, err := c.Next(ctx, "w-1"); err != nil || !reflect.DeepEqual(l, lease) {
		t.Fatalf("next: %+v, %v", l, err)
	}
	if g, err := c.Gang(ctx, 17); err != nil || !reflect.DeepEqual(g, gang) {
		t.Fatalf("gang: %+v, %v", g, err)
	}
	for i, err := range []error{
		c.Renew(ctx, 17, progress), c.Commit(ctx, 17, change), c.Finish(ctx, 17, done), c.Finish(ctx, 18, failed),
	} {
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	since := catalog.Version{Owner: 1 << 63, Number: 41}
	changed := catalog.Listing{Version: catalog.Version{Owner: 1 << 63, Number: 42}, Added: f.entries}
	if got, err := c.Catalog(ctx, since); err != nil || !reflect.DeepEqual(got, changed) {
		t.Fatalf("catalog: %+v, %v", got, err)
	}
	if got, err := c.Status(ctx); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("status: %d bytes, %v", len(got), err)
	}
	want := []any{hello, "w-1", uint64(17), uint64(17), progress, uint64(17), change, uint64(17), done, uint64(18), failed}
	if !reflect.DeepEqual(f.notes(), want) {
		t.Fatalf("the service was asked %+v, want %+v", f.notes(), want)
	}
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		is   error
	}{
		{"lease lost", fmt.Errorf("coordinator: lease 17 of smooth: %w", control.ErrLeaseLost), control.ErrLeaseLost},
		{"ended", control.ErrEnded, control.ErrEnded},
		{"refused", fmt.Errorf("coordinator: version 1.2 here, 1.3 there: %w", control.ErrRefused), control.ErrRefused},
		{"deadline of the service", fmt.Errorf("storage: put: %w", context.DeadlineExceeded), context.DeadlineExceeded},
		{"cancelled in the service", context.Canceled, context.Canceled},
		{"rejected", fmt.Errorf("../x is no name: %w", control.ErrRejected), control.ErrRejected},
		{"corrupt", fmt.Errorf("catalog.parquet: %w", seal.ErrCorrupt), seal.ErrCorrupt},
		{"another format", fmt.Errorf("catalog.parquet: %w", seal.ErrVersion), seal.ErrVersion},
		{"no space", fmt.Errorf("writing catalog.parquet: %w", storage.ErrDisk), storage.ErrDisk},
		{"budget", fmt.Errorf("planning: %w", mem.ErrBudget), mem.ErrBudget},
		{"unable", control.ErrUnable, control.ErrUnable},
		{"another plan", control.ErrPlanMismatch, control.ErrPlanMismatch},
		{"an option", failure.ErrOption, failure.ErrOption},
		{"other", errors.New("storage: 503 slow down"), nil},
		{"bytes that are not UTF-8", errors.New("storage: a\xffb"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{err: tc.err}
			c := pair(t, f)
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			join := func() error { _, err := c.Join(ctx, control.Hello{}); return err }
			next := func() error { _, err := c.Next(ctx, "w"); return err }
			catalog := func() error { _, err := c.Catalog(ctx, catalog.Version{}); return err }
			status := func() error { _, err := c.Status(ctx); return err }
			for i, err := range []error{
				join(), next(), c.Renew(ctx, 1, control.Progress{}), c.Commit(ctx, 1, change),
				c.Finish(ctx, 1, control.Outcome{Kind: control.Retry}), catalog(), status(),
			} {
				if err == nil || !strings.Contains(err.Error(), strings.ToValidUTF8(tc.err.Error(), "\uFFFD")) {
					t.Fatalf("call %d: %v has not the text of %v", i, err, tc.err)
				}
				for _, kind := range []error{
					control.ErrLeaseLost, control.ErrEnded, control.ErrRefused, control.ErrRejected, context.Canceled, context.DeadlineExceeded, control.ErrUnable,
					failure.ErrOption, control.ErrPlanMismatch, seal.ErrCorrupt, seal.ErrVersion, mem.ErrBudget, failure.ErrData, storage.ErrNoSpace, storage.ErrDisk,
				} {
					if errors.Is(err, kind) != (kind == tc.is) {
						t.Fatalf("call %d: errors.Is(%v, %v) is %v", i, err, kind, errors.Is(err, kind))
					}
				}
			}
		})
	}
}

// TestErrorsOfTwoKinds: an error that is of several kinds here is of all of them there.
func TestErrorsOfTwoKinds(t *testing.T) {
	c := pair(t, &fake{err: fmt.Errorf("%w: %w", seal.ErrCorrupt, control.ErrRejected)})
	err := c.Commit(t.Context(), 1, control.Change{})
	if !errors.Is(err, seal.ErrCorrupt) || !errors.Is(err, control.ErrRejected) || errors.Is(err, storage.ErrDisk) || !control.Final(err) {
		t.Errorf("error %v", err)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	ended := make(chan error, 1)
	f := &fake{next: func(ctx context.Context) (control.Lease, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return control.Lease{}, ctx.Err()
	}}
	c := pair(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := c.Next(ctx, "w"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("next: %v", err)
	}
	if err := <-ended; err == nil {
		t.Fatal("the service was not told")
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := c.Next(ctx, "w"); !errors.Is(err, context.Canceled) {
		t.Fatalf("next: %v", err)
	}
	<-ended
}

func TestLeaseForAWorkerThatIsGoneIsGivenBack(t *testing.T) {
	asked, leased := make(chan struct{}), make(chan struct{})
	f := &fake{next: func(ctx context.Context) (control.Lease, error) {
		close(asked)
		<-ctx.Done()
		close(leased)
		return lease, nil
	}}
	l, s := listen(t, "127.0.0.1:0"), token(t)
	stop := start(t, l, f, s)
	c := dial(t, At(l.Addr().String()), s, time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-asked // a call that ends before it reaches the coordinator leases nothing
		cancel()
	}()
	if _, err := c.Next(ctx, "w"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-leased
	stop() // waits for the handler
	notes := f.notes()
	o, ok := notes[len(notes)-1].(control.Outcome)
	if !ok || o.Kind != control.Drained || notes[len(notes)-2] != lease.Fencing {
		t.Fatalf("the service was asked %+v", notes)
	}
}

func TestLargeLists(t *testing.T) {
	const n = 100_000
	f := &fake{entries: make([]catalog.Entry, n)}
	removed := make([]string, n)
	for i := range f.entries {
		f.entries[i] = catalog.Entry{
			Kind: "tile", Path: fmt.Sprintf("tiles/%032d/%d", i, i%7), Rows: int64(i) << 20, Bytes: int64(i) * 977,
			Checksum: "sha256:" + strings.Repeat("ab", 32), Interval: int32(i), Block: -1,
		}
		removed[i] = f.entries[i].Path
	}
	c := pair(t, f)
	ctx := context.Background()
	f.removed = removed
	l, err := c.Catalog(ctx, catalog.Version{})
	if err != nil || !l.Whole || !reflect.DeepEqual(l.Added, f.entries) || !slices.Equal(l.Removed, removed) {
		t.Fatalf("catalog: %d added, %d removed, %v", len(l.Added), len(l.Removed), err)
	}
	all := control.Change{Added: f.entries, Removed: removed}
	if err := c.Commit(ctx, 1, all); err != nil {
		t.Fatal(err)
	}
	hello := control.Hello{Worker: "w", Holds: removed}
	if _, err := c.Join(ctx, hello); err != nil {
		t.Fatal(err)
	}
	if got := f.notes(); !reflect.DeepEqual(got, []any{uint64(1), all, hello}) {
		t.Fatal("the change or the list of held files arrived otherwise")
	}
}

func TestCopiesOfACommit(t *testing.T) {
	var c commits
	calls := 0
	do := func(err error) func() error { return func() error { calls++; return err } }
	busy := errors.New("busy")
	if err := c.once(1, 1, do(busy)); !errors.Is(err, busy) {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.once(1, 1, do(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 2 {
		t.Fatalf("%d calls: one that failed is made again, one that succeeded is not", calls)
	}
	if err := errors.Join(c.once(1, 2, do(nil)), c.once(2, 1, do(nil))); err != nil || calls != 4 {
		t.Fatalf("%d calls, %v: another number, or another lease, is another commit", calls, err)
	}

	begun, end := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- c.once(3, 1, func() error { close(begun); <-end; return nil })
	}()
	<-begun
	go func() { first <- c.once(3, 1, do(errors.New("the copy was made"))) }()
	close(end)
	if err := errors.Join(<-first, <-first); err != nil {
		t.Fatal(err)
	}

	if err := c.once(1, 9, do(control.ErrLeaseLost)); !errors.Is(err, control.ErrLeaseLost) {
		t.Fatal(err)
	}
	c.forget(2)
	c.forget(3)
	if len(c.leases) != 0 {
		t.Fatalf("%d leases are remembered that have ended", len(c.leases))
	}
}

func TestCommitGoesOnWithoutItsCaller(t *testing.T) {
	begun, end, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f := &fake{commit: func(ctx context.Context) error {
		close(begun)
		<-end
		result <- ctx.Err()
		return nil
	}}
	l, s := listen(t, "127.0.0.1:0"), token(t)
	stop := start(t, l, f, s)
	c := dial(t, At(l.Addr().String()), s, time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-begun; cancel() }()
	if err := c.Commit(ctx, 1, change); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.Close()
	close(end)
	stop()
	if err := <-result; err != nil {
		t.Fatalf("the commit was ended by %v", err)
	}
}

func TestAnOutcomeThatCannotTravel(t *testing.T) {
	c := pair(t, &fake{})
	for name, o := range map[string]control.Outcome{
		"NaN": {Report: &control.StageReport{Seconds: nan()}},
	} {
		if err := c.Finish(context.Background(), 1, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := c.Finish(context.Background(), 1, control.Outcome{Kind: control.Retry, Reason: "a\xffb"}); err != nil {
		t.Fatal(err)
	}
}

func nan() float64 {
	var zero float64
	return zero / zero
}

func BenchmarkRenew(b *testing.B) {
	c := pair(b, &quiet{})
	for b.Loop() {
		if err := c.Renew(context.Background(), 1, control.Progress{What: "hops", Done: 3, Total: 10, Unit: "hops"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatalog measures what a worker waits for when it joins a run of 100,000 files, and before
// a later task if 20 files have changed.
func BenchmarkCatalog(b *testing.B) {
	for _, files := range []int{100_000, 20} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			f := &quiet{}
			for i := range files {
				f.entries = append(f.entries, catalog.Entry{
					Kind: "tile", Path: fmt.Sprintf("tiles/%032d", i), Rows: 1 << 20, Bytes: 1 << 26, Checksum: "sha256:" + strings.Repeat("ab", 32),
				})
			}
			c := pair(b, f)
			for b.Loop() {
				if l, err := c.Catalog(context.Background(), catalog.Version{}); err != nil || len(l.Added) != files {
					b.Fatal(err)
				}
			}
			text, err := json.Marshal(catalog.Listing{Added: f.entries})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(text)), "bytes")
		})
	}
}

// quiet is a fake that remembers nothing.
type quiet struct {
	fake
}

func (*quiet) Renew(context.Context, uint64, control.Progress) error { return nil }

// TestIdleConnectionsDoNotHoldServe: a server that is told to stop does not wait for
// callers that have connected and say nothing.
func TestIdleConnectionsDoNotHoldServe(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	stop := start(t, l, &fake{}, token(t))
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(50 * time.Millisecond) // until it is accepted
	begun := time.Now()
	stop()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v to stop", took)
	}
}

// endless is a stream whose pieces do not end.
type endless struct{ pieces int }

func (e *endless) RecvMsg(m any) error {
	e.pieces++
	return codec{}.Unmarshal(make([]byte, pieceBytes), m)
}

// brief is a stream of one piece.
type brief struct{ sent bool }

func (b *brief) RecvMsg(m any) error {
	if b.sent {
		return io.EOF
	}
	b.sent = true
	return codec{}.Unmarshal(make([]byte, pieceBytes), m)
}

// TestCallsAreBounded: a caller cannot fill the memory with one call, nor many callers with
// many at the same time, who are told to call again.
func TestCallsAreBounded(t *testing.T) {
	e := &endless{}
	s := &server{arriving: semaphore.NewWeighted(arriving)}
	_, release, err := s.collect(e)
	if !errors.Is(fromStatus("join", err), control.ErrRejected) || e.pieces != longestArgument/pieceBytes+1 {
		t.Errorf("%v after %d pieces", err, e.pieces)
	}
	release()
	var releases []func()
	refused := 0
	const most = arriving / pieceBytes
	for range 2 * most {
		_, release, err := s.collect(&brief{})
		releases = append(releases, release)
		if errors.Is(err, errFull) {
			refused++
		}
	}
	if refused != most {
		t.Errorf("%d calls were refused, not %d", refused, most)
	}
	for _, release := range releases {
		release()
	}
	if !s.arriving.TryAcquire(arriving) {
		t.Error("calls that have ended take space")
	}
	if c := (&Client{}); !c.mayPass(errFull) {
		t.Error("a client does not call again")
	}
}

// fill sets every field to something, so that one that does not travel is missed.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1))
	case reflect.Array:
		fill(v.Index(0))
	case reflect.String:
		v.SetString("retry")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Uint64:
		v.SetUint(math.MaxUint64)
	default:
		v.SetInt(7)
	}
}

func filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// TestNoFieldIsForgotten: all that the sides say to each other survives the journey.
func TestNoFieldIsForgotten(t *testing.T) {
	lease := filled[control.Lease]()
	lease.Task.Resources = control.Resources{} // those of the worker
	for _, here := range []any{
		&lease, new(filled[control.Hello]()), new(filled[welcomed]()), new(filled[control.Gang]()), new(filled[renewal]()),
		new(filled[commitment]()), new(filled[ending]()), new(filled[catalog.Listing]()),
	} {
		text, err := json.Marshal(here)
		if err != nil {
			t.Fatal(err)
		}
		there := reflect.New(reflect.TypeOf(here).Elem()).Interface()
		if err := json.Unmarshal(text, there); err != nil || !reflect.DeepEqual(here, there) {
			t.Errorf("%+v became %+v, %v", here, there, err)
		}
	}
}

// FuzzCalls sends what strangers may: a call that makes no sense is refused, and the server goes on.
func FuzzCalls(f *testing.F) {
	calls := []string{"join", "next", "gang", "renew", "commit", "finish", "catalog", "status", "none"}
	for i, text := range []string{`{"worker":"w"}`, `"w"`, "7", `{"Fencing":1}`, `{"Change":{"added":[{}]}}`, `{"Outcome":null}`, `{"Number":-1}`, "", "["} {
		f.Add(i, []byte(text))
	}
	c := pair(f, &fake{})
	f.Fuzz(func(t *testing.T, call int, text []byte) {
		if _, err := ask(t.Context(), c.conn, calls[max(call, 0)%len(calls)], text); err != nil && status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.Unimplemented {
			t.Fatal(err)
		}
	})
}
