package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// boss is a coordinator that gives out tasks one after the other.
type boss struct {
	cat   *catalog.Catalog
	tasks []control.Task

	mu       sync.Mutex
	known    bool
	fencing  uint64
	renewals int
	joins    int
	outcomes []control.Outcome
	// fault, unless nil, decides what a call ends with before it does anything.
	fault func(call string) error
	// onCommit, unless nil, is told of each change.
	onCommit func(control.Change)
}

func newBoss(t *testing.T, store storage.Store, tasks ...control.Task) *boss {
	t.Helper()
	cat, err := catalog.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return &boss{cat: cat, tasks: tasks}
}

func (b *boss) enter(call string) (func(), error) {
	b.mu.Lock()
	if b.fault != nil {
		if err := b.fault(call); err != nil {
			b.mu.Unlock()
			return nil, err
		}
	}
	return b.mu.Unlock, nil
}

func (b *boss) Join(context.Context, control.Hello) (control.Welcome, error) {
	leave, err := b.enter("join")
	if err != nil {
		return control.Welcome{}, err
	}
	defer leave()
	b.known = true
	b.joins++
	return control.Welcome{Heartbeat: 2 * time.Millisecond, Checkpoint: time.Nanosecond}, nil
}

func (b *boss) Next(context.Context, string) (control.Lease, error) {
	leave, err := b.enter("next")
	if err != nil {
		return control.Lease{}, err
	}
	defer leave()
	switch {
	case !b.known:
		return control.Lease{}, control.ErrRefused
	case len(b.tasks) == 0:
		return control.Lease{}, control.ErrEnded
	}
	task := b.tasks[0]
	b.tasks = b.tasks[1:]
	b.fencing++
	return control.Lease{Task: task, Fencing: b.fencing}, nil
}

func (b *boss) Gang(context.Context, uint64) (control.Gang, error) {
	return control.Gang{}, errors.New("there are no gangs here")
}

func (b *boss) Renew(_ context.Context, fencing uint64, _ control.Progress) error {
	leave, err := b.enter("renew")
	if err != nil {
		return err
	}
	defer leave()
	b.renewals++
	if fencing != b.fencing {
		return control.ErrLeaseLost
	}
	return nil
}

func (b *boss) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	leave, err := b.enter("commit")
	if err != nil {
		return err
	}
	defer leave()
	if fencing != b.fencing {
		return control.ErrLeaseLost
	}
	if b.onCommit != nil {
		b.onCommit(c)
	}
	var added []catalog.Entry
	for _, e := range c.Added {
		added = append(added, catalog.Entry(e))
	}
	return b.cat.Apply(ctx, added, c.Removed, c.Delete)
}

func (b *boss) Finish(_ context.Context, _ uint64, o control.Outcome) error {
	leave, err := b.enter("finish")
	if err != nil {
		return err
	}
	defer leave()
	b.outcomes = append(b.outcomes, o)
	return nil
}

func (b *boss) Catalog(_ context.Context, since catalog.Version) (catalog.Listing, error) {
	return b.cat.Since(since), nil
}

// TestWhoMeasuresTheRunDirectory: a worker alone measures all that lies in the run
// directory, one of several its scratch folder only.
func TestWhoMeasuresTheRunDirectory(t *testing.T) {
	const there = 8 << 20
	for _, alone := range []bool{false, true} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, there), 0o644); err != nil {
			t.Fatal(err)
		}
		store, err := storage.NewLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := stagetest.On(t, stagetest.Small)
		b := newBoss(t, store, m.Task(control.Partition, stagetest.SmallPlan()))
		err = Serve(t.Context(), b, storage.NewCounting(store), Options{Hello: control.Hello{Worker: "w"}, Resources: m.Resources, Alone: alone})
		if err != nil || len(b.outcomes) != 1 || b.outcomes[0].Report == nil {
			t.Fatalf("%v, outcomes %+v", err, b.outcomes)
		}
		if got := b.outcomes[0].Report.MeasuredDisk; (got >= there) != alone {
			t.Errorf("alone: %v: measured %d bytes, %d lie in the run directory", alone, got, there)
		}
	}
}

func serve(ctx context.Context, b *boss, store storage.Store, m stagetest.Setup, patience time.Duration) error {
	return Serve(ctx, b, storage.NewCounting(store), Options{
		Hello: control.Hello{Worker: "w"}, Resources: m.Resources, Patience: patience,
	})
}

func tasksOf(m stagetest.Setup, opts plan.Options, stages ...control.Stage) (tasks []control.Task) {
	for _, s := range stages {
		tasks = append(tasks, m.Task(s, opts))
	}
	return tasks
}

// TestServe does all stages, with every fourth call failing.
func TestServe(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	plain := storagetest.NewMem()
	stagetest.Run(t, plain, opts, m, registry.Always()...)
	store := storagetest.NewMem()
	b := newBoss(t, store, tasksOf(m, opts, registry.Always()...)...)
	calls := 0
	b.fault = func(string) error {
		if calls++; calls%4 == 1 {
			return errors.New("the line is bad")
		}
		return nil
	}
	if err := serve(t.Context(), b, store, m, time.Minute); err != nil {
		t.Fatal(err)
	}
	stagetest.Compare(t, "served", stagetest.Sums(t, store), stagetest.Sums(t, plain))
	if len(b.outcomes) != len(registry.Always()) || b.renewals == 0 {
		t.Errorf("%d tasks of %d, %d renewals", len(b.outcomes), len(registry.Always()), b.renewals)
	}
	for _, o := range b.outcomes {
		if o.Report == nil {
			t.Errorf("outcome %+v", o)
		}
	}
}

// TestServeJoinsAgain forgets the worker between tasks.
func TestServeJoinsAgain(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	store := storagetest.NewMem()
	b := newBoss(t, store, tasksOf(m, opts, control.Partition, control.LSI)...)
	b.fault = func(call string) error {
		if call == "finish" {
			b.known = false
		}
		return nil
	}
	if err := serve(t.Context(), b, store, m, 0); err != nil || b.joins != 3 || len(b.outcomes) != 2 {
		t.Errorf("%v, %d joins, %d outcomes", err, b.joins, len(b.outcomes))
	}
	b = newBoss(t, store)
	b.fault = func(call string) error { return map[string]error{"join": control.ErrRefused}[call] }
	if err := serve(t.Context(), b, store, m, time.Minute); !errors.Is(err, control.ErrRefused) {
		t.Errorf("a refused worker ends with %v", err)
	}
}

// TestServeGivesUpLostTasks takes the lease away, at a renewal or a commit: nothing
// more of the task is listed, and the worker goes on with the next.
func TestServeGivesUpLostTasks(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	for _, call := range []string{"renew", "commit"} {
		store := storagetest.NewMem()
		stagetest.Run(t, store, opts, m, control.Partition, control.LSI)
		before := stagetest.Sums(t, store)
		// The renewal is refused long before so many hops are done.
		long := opts
		long.Smooth.Rule, long.Smooth.Hops = "sgc", 30000
		if call == "commit" {
			long = opts
		}
		b := newBoss(t, store, tasksOf(m, long, control.Smooth)...)
		b.fault = func(c string) error {
			if c == call {
				return control.ErrLeaseLost
			}
			return nil
		}
		if err := serve(t.Context(), b, store, m, time.Minute); err != nil {
			t.Errorf("%s: %v", call, err)
		}
		if len(b.outcomes) != 0 {
			t.Errorf("%s: outcomes %+v of a lost task", call, b.outcomes)
		}
		stagetest.Compare(t, call, stagetest.Sums(t, store), before)
	}
}

// TestServeDrains stops the worker in the middle of a task.
func TestServeDrains(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	store := storagetest.NewMem()
	stagetest.Run(t, store, opts, m, control.Partition, control.LSI)
	opts.Smooth.Rule, opts.Smooth.Hops = "sgc", 30000
	b := newBoss(t, store, tasksOf(m, opts, control.Smooth)...)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the node goes away")
	b.fault = func(call string) error {
		if call == "renew" {
			cancel(cause)
		}
		return nil
	}
	if err := serve(ctx, b, store, m, time.Minute); !errors.Is(err, cause) {
		t.Errorf("ended with %v", err)
	}
	if len(b.outcomes) != 1 || b.outcomes[0].Kind != control.Drained || !strings.Contains(b.outcomes[0].Reason, cause.Error()) {
		t.Errorf("outcomes %+v", b.outcomes)
	}
}

// TestServeSaysWhatFailed looks at the kinds of failures.
func TestServeSaysWhatFailed(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	store := storagetest.NewMem()
	stagetest.Run(t, store, opts, m, control.Partition)
	for name, c := range map[string]struct {
		change func(task *control.Task, m *stagetest.Setup, s *storagetest.Mem)
		kind   control.Kind
		is     error
	}{
		"budget":                 {func(_ *control.Task, m *stagetest.Setup, _ *storagetest.Mem) { m.Memory = 1 << 20 }, control.Unable, nil},
		"scratch that is a file": {func(_ *control.Task, m *stagetest.Setup, _ *storagetest.Mem) { m.Scratch = "/proc/version/x" }, control.Unable, nil},
		"damage": {func(_ *control.Task, _ *stagetest.Setup, s *storagetest.Mem) {
			if err := s.FlipByte("graph/nodes.parquet", 100); err != nil {
				t.Fatal(err)
			}
		}, control.Fatal, seal.ErrCorrupt},
		"no dataset": {func(task *control.Task, _ *stagetest.Setup, _ *storagetest.Mem) {
			task.Stage, task.Inputs.Dataset = control.Partition, "nonsense"
		}, control.Fatal, nil},
	} {
		s := store.CrashClone()
		task, setup := m.Task(control.LSI, opts), m
		c.change(&task, &setup, s)
		b := newBoss(t, s, task)
		err := serve(t.Context(), b, s, setup, 0)
		if len(b.outcomes) != 1 || b.outcomes[0].Kind != c.kind || b.outcomes[0].Reason == "" {
			t.Errorf("%s: outcomes %+v", name, b.outcomes)
		}
		if (err != nil) != (c.kind == control.Fatal) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

// TestServeRepeatsWhatMayPass: a commit that the coordinator can never do ends the task
// at once; one that it could not do is repeated, and the log says so from the second time
// on.
func TestServeRepeatsWhatMayPass(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	plain := storagetest.NewMem()
	stagetest.Run(t, plain, opts, m, control.Partition)
	for _, c := range []struct {
		name    string
		err     error
		fails   int
		kind    control.Kind
		commits int
		warned  bool
	}{
		{"rejected", fmt.Errorf("../x: %w", control.ErrRejected), 9, control.Fatal, 1, false},
		{"damaged", fmt.Errorf("catalog.parquet: %w", seal.ErrCorrupt), 9, control.Fatal, 1, false},
		{"once", errors.New("503 slow down"), 1, "", 2, false},
		{"a full disk", fmt.Errorf("catalog.parquet: %w", storage.ErrDisk), 3, "", 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := plain.CrashClone()
			b := newBoss(t, store, m.Task(control.LSI, opts))
			commits := 0
			b.fault = func(call string) error {
				if call != "commit" {
					return nil
				}
				if commits++; commits <= c.fails {
					return c.err
				}
				return nil
			}
			var text bytes.Buffer
			err := Serve(t.Context(), b, storage.NewCounting(store), Options{
				Hello: control.Hello{Worker: "w"}, Resources: m.Resources, Patience: time.Minute,
				Log: slog.New(slog.NewTextHandler(&text, nil)),
			})
			if c.kind == control.Fatal != (err != nil) || err != nil && !errors.Is(err, c.err) {
				t.Errorf("ended with %v", err)
			}
			if len(b.outcomes) != 1 || b.outcomes[0].Kind != c.kind || commits < c.commits || c.kind == control.Fatal && commits > c.commits {
				t.Errorf("%d commits, outcomes %+v", commits, b.outcomes)
			}
			if got := strings.Contains(text.String(), "level=WARN msg=\"the coordinator could not do it"); got != c.warned {
				t.Errorf("warned %v, want %v\n%s", got, c.warned, &text)
			}
		})
	}
}

// TestAloneDoesNotTryInVain: what the operating system refuses ends a run on one machine at
// once, and without a word of how the program is made; where there are other workers it may
// pass.
func TestAloneDoesNotTryInVain(t *testing.T) {
	for _, tc := range []struct {
		err         error
		alone, with control.Kind
	}{
		{fmt.Errorf("worker: write x: %w", syscall.ENOSPC), control.Fatal, control.Retry},
		{fmt.Errorf("worker: open x: %w", syscall.EACCES), control.Fatal, control.Retry},
		{fmt.Errorf("worker: open x: %w", syscall.EIO), control.Retry, control.Retry},
		{fmt.Errorf("worker: line 2: %w", failure.ErrData), control.Fatal, control.Fatal},
	} {
		for _, alone := range []bool{true, false} {
			want := tc.with
			if alone {
				want = tc.alone
			}
			s := &server{o: Options{Alone: alone, Log: slog.New(slog.DiscardHandler)}}
			if out := s.outcome(t.Context(), control.StageReport{}, tc.err); out.Kind != want || strings.Contains(out.Reason, "worker") {
				t.Errorf("%v, alone %v: %+v, want %s", tc.err, alone, out, want)
			}
		}
	}
	s := &server{o: Options{Alone: true, Log: slog.New(slog.DiscardHandler)}}
	err := s.patiently(t.Context(), "committing", func() error { return syscall.EIO })
	if err.Error() != syscall.EIO.Error() || !errors.Is(err, errUnheard) {
		t.Errorf("alone: %v", err)
	}
}

// TestOutdatedIsNoDamage takes the files of a task away that another attempt has
// done: this one failed for a reason that passes.
func TestOutdatedIsNoDamage(t *testing.T) {
	store := storagetest.NewMem()
	b := newBoss(t, store)
	listed := catalog.Entry{Kind: catalog.KindSmoothedTile, Path: "tile", Interval: 0, Block: 0}
	s := &server{svc: b, o: Options{Resources: control.Resources{Scratch: "/local/w"}}, cat: catalog.NewView(store, []catalog.Entry{listed}, nil)}
	for _, c := range []struct {
		err  error
		want control.Kind
	}{
		{fmt.Errorf("tile: %w", seal.ErrCorrupt), control.Retry}, // and the view is up to date
		{fmt.Errorf("tile: %w", seal.ErrCorrupt), control.Fatal},
		{fmt.Errorf("writing: %w", storage.ErrDisk), control.Retry},
		{fmt.Errorf("reading: %w", syscall.EIO), control.Retry},
		{errors.New("the labels make no sense"), control.Fatal},
		{fmt.Errorf("lsi: %w", mem.ErrBudget), control.Unable},
		{fmt.Errorf("spill: %w", &fs.PathError{Op: "write", Path: "/local/w/x.tmp", Err: syscall.ENOSPC}), control.Unable},
		{fmt.Errorf("tile: %w", &fs.PathError{Op: "write", Path: "/shared/w/x", Err: syscall.ENOSPC}), control.Retry},
	} {
		if got := s.outcome(t.Context(), control.StageReport{}, c.err); got.Kind != c.want {
			t.Errorf("%v is %q, want %q", c.err, got.Kind, c.want)
		}
	}
	if slices.ContainsFunc(s.cat.Entries(""), func(e catalog.Entry) bool { return e.Path == "tile" }) {
		t.Error("the view lists what is gone")
	}
}
