package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/worker"
)

// mortal is a coordinator as seen by a worker that is cut off from it for good
// after some calls: to the coordinator it is dead.
type mortal struct {
	control.Service
	mu    sync.Mutex
	calls map[string]int // left, of those that are counted
	dead  bool
}

var errDead = errors.New("cut off")

func (m *mortal) pass(call string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left, ok := m.calls[call]; ok {
		m.calls[call] = left - 1
		m.dead = m.dead || left <= 1
	}
	if m.dead {
		return errDead
	}
	return nil
}

func (m *mortal) Next(ctx context.Context, name string) (control.Lease, error) {
	if err := m.pass("before next"); err != nil {
		return control.Lease{}, err
	}
	l, err := m.Service.Next(ctx, name)
	if err != nil {
		return l, err // a worker without a lease loses nothing
	}
	return l, m.pass("next")
}

func (m *mortal) Renew(ctx context.Context, fencing uint64, p control.Progress) error {
	return errors.Join(m.pass("renew"), m.Service.Renew(ctx, fencing, p))
}

func (m *mortal) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	if err := m.pass("before commit"); err != nil {
		return err
	}
	return errors.Join(m.Service.Commit(ctx, fencing, c), m.pass("commit"))
}

func (m *mortal) Finish(ctx context.Context, fencing uint64, o control.Outcome) error {
	if err := m.pass("before finish"); err != nil {
		return err
	}
	return errors.Join(m.Service.Finish(ctx, fencing, o), m.pass("finish"))
}

// stopping is a coordinator that is stopped, with all workers, after some commits.
type stopping struct {
	control.Service
	left *atomic.Int64
	stop func()
}

func (s *stopping) Commit(ctx context.Context, fencing uint64, c control.Change) error {
	err := s.Service.Commit(ctx, fencing, c)
	if s.left.Add(-1) == 0 {
		s.stop()
	}
	return err
}

// partitionWith partitions with workers, each of which dies at a point and is
// started again, and returns what the catalogue lists and how often workers died.
func partitionWith(t *testing.T, store storage.Store, opts plan.Options, uri string, memories []int64, deaths ...string) (entries []catalog.Entry, died int64) {
	t.Helper()
	return partitionUntil(t, store, opts, uri, memories, 0, false, deaths...)
}

// partitionUntil is partitionWith, that ends after so many commits if that is not 0. It
// discards what is there where restart says so.
func partitionUntil(t *testing.T, store storage.Store, opts plan.Options, uri string, memories []int64, commits int64, restart bool, deaths ...string) (entries []catalog.Entry, died int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var left, dead atomic.Int64
	left.Store(commits)
	journal, err := coordinator.OpenJournal(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := coordinator.NewScheduler(ctx, journal, cat, opts, coordinator.Options{
		Version: "1", Lease: 300 * time.Millisecond, Workers: len(memories),
	})
	if err != nil {
		t.Fatal(err)
	}
	job := coordinator.Job{
		Store: store, Catalog: cat, Tasks: scheduler, Plan: opts, Inputs: control.Inputs{Dataset: uri}, Restart: restart, Log: slog.New(slog.DiscardHandler),
	}
	var workers sync.WaitGroup
	for i, memory := range memories {
		scratch := t.TempDir()
		workers.Go(func() {
			for life := 0; ; life++ {
				svc := &mortal{Service: &stopping{scheduler, &left, cancel}, calls: map[string]int{}}
				if at := life*len(memories) + i; at < len(deaths) {
					svc.calls[deaths[at]] = 1 + life%3
				}
				err := worker.Serve(ctx, svc, storage.NewCounting(store), worker.Options{
					Hello:     control.Hello{Worker: fmt.Sprintf("w%d-%d", i, life), Version: "1"},
					Resources: control.Resources{Memory: memory, Threads: 1 + i%2, Scratch: scratch, Kernel: "auto"},
				})
				if err == nil || !errors.Is(err, errDead) {
					if err != nil && (commits == 0 || ctx.Err() == nil) {
						t.Errorf("worker %d: %v", i, err)
					}
					return
				}
				dead.Add(1)
			}
		})
	}
	_, err = job.Run(ctx, control.Partition)
	if (err != nil) != (commits > 0) {
		t.Errorf("ended with %v", err)
	}
	if err != nil {
		cancel()
	}
	scheduler.End(ctx)
	workers.Wait()
	return cat.Entries(""), dead.Load()
}

// TestPartitionOnWorkers partitions with one to four workers of different memory,
// all of which die at points of their protocol, and compares the files.
func TestPartitionOnWorkers(t *testing.T) {
	const mib = 1 << 20
	const uri = "synthetic:nodes=20000,edges=300000,features=70,classes=6,seed=9"
	opts := plan.Default()
	opts.Partition.Dataset, opts.Partition.Split = uri, "random:20,30"
	want, _ := partitionWith(t, storagetest.NewMem(), opts, uri, []int64{512 * mib})
	if len(want) < 5+3 {
		t.Fatalf("only %d files", len(want))
	}
	points := []string{"before next", "next", "before commit", "commit", "before finish", "finish"}
	var drawn []string
	for range 8 {
		drawn = append(drawn, points[rand.IntN(len(points))])
	}
	for _, c := range []struct {
		name     string
		memories []int64
		deaths   []string
		died     int64 // at least
	}{
		{"two workers", []int64{130 * mib, 512 * mib}, nil, 0},
		{"four workers", []int64{130 * mib, 150 * mib, 512 * mib, 130 * mib}, nil, 0},
		{"two workers that die", []int64{130 * mib, 200 * mib}, points, 1},
		{"three workers that die anywhere", []int64{130 * mib, 200 * mib, 512 * mib}, drawn, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, died := partitionWith(t, storagetest.NewMem(), opts, uri, c.memories, c.deaths...)
			if died < c.died {
				t.Errorf("workers died %d times", died)
			}
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("deaths %v: committed\n%v, want\n%v", c.deaths, got, want)
				}
			}
		})
	}
}

// TestPartitionCutAnew stops partitions in each step and goes on with another number of
// workers, or begins again: the files are the same, and nothing else is left but what gc removes.
func TestPartitionCutAnew(t *testing.T) {
	const mib = 1 << 20
	const uri = "synthetic:nodes=5000,edges=60000,features=40,classes=6,seed=9"
	opts := plan.Default()
	opts.Partition.Dataset = uri
	each := func(n int) (memories []int64) {
		for range n {
			memories = append(memories, 200*mib)
		}
		return memories
	}
	undisturbed := storagetest.NewMem()
	want, _ := partitionWith(t, undisturbed, opts, uri, each(3))
	if left, err := undisturbed.List(t.Context(), "graph/runs/"); err != nil || len(left) > 0 {
		t.Errorf("a partition that nobody stops leaves %v (%v)", left, err)
	}
	draws := 20
	if testing.Short() {
		draws = 4
	}
	// A partition by two or three workers has more than thirty commits.
	d := rand.New(rand.NewPCG(1, 2))
	for range draws {
		before, after, commits, restart := 2+d.IntN(2), 1+d.IntN(4), int64(2+d.IntN(28)), d.IntN(8) == 0
		t.Run(fmt.Sprintf("%d commits by %d workers, then %d, restart %t", commits, before, after, restart), func(t *testing.T) {
			t.Parallel()
			store := storagetest.NewMem()
			partitionUntil(t, store, opts, uri, each(before), commits, false)
			got, _ := partitionUntil(t, store, opts, uri, each(after), 0, restart)
			if !slices.Equal(got, want) {
				t.Errorf("committed\n%v, want\n%v", got, want)
			}
			cat, err := catalog.Open(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			// A worker that was stopped may have written a file that it did not list, or not removed one that is off the list.
			orphans, foreign, err := cat.Orphans(t.Context())
			if err != nil || len(foreign) > 0 {
				t.Errorf("gc does not know %v (%v)", foreign, err)
			}
			names, err := store.List(t.Context(), "graph/runs/")
			names = slices.DeleteFunc(names, func(i storage.Info) bool {
				return slices.ContainsFunc(orphans, func(o storage.Info) bool { return o.Name == i.Name })
			})
			if err != nil || len(names) > 0 {
				t.Errorf("gc would leave %v (%v)", names, err)
			}
		})
	}
}
