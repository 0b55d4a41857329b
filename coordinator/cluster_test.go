package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/stage/registry"
)

// These tests run on the clock of a synctest bubble: waiting takes no time.

// act names what a worker does with a task.
type act string

const (
	does    act = "does"    // it, in 45 s
	dies    act = "dies"    // in the middle, without a word
	stalls  act = "stalls"  // for three leases, then goes on as if nothing had happened
	drains  act = "drains"  // gives it back and leaves
	retries act = "retries" // fails, as it need not
	fails   act = "fails"   // for good, and leaves
	crawls  act = "crawls"  // takes 100 times as long
)

const workTime = 45 * time.Second

// cluster is a store with one coordinator at a time, and its workers.
type cluster struct {
	t     *testing.T
	store *storagetest.Mem
	tasks []control.Task
	o     Options

	mu       sync.Mutex
	now      *Scheduler          // nil while there is none
	accepted map[string][]string // task → workers whose report was accepted
	refused  int                 // calls under a lost lease
	fencings []uint64            // in the order in which they were given out
	workers  sync.WaitGroup
}

// ofRun is an entry of a file that was made under the plan of the run.
func ofRun(e catalog.Entry) catalog.Entry {
	e.Stage = string(control.Smooth)
	e.Plan = registry.Hashes(plan.Default())[e.Stage]
	return e
}

func newCluster(t *testing.T, tasks int) *cluster {
	return &cluster{
		t: t, store: storagetest.NewMem(), tasks: columnTasks(tasks), accepted: map[string][]string{},
		o: Options{Version: "1", Lease: testTTL},
	}
}

// start makes a coordinator, which takes over from one before.
func (c *cluster) start() *Scheduler { return c.startOn(c.store) }

func (c *cluster) startOn(store storage.Store) *Scheduler {
	c.t.Helper()
	s, err := c.open(store)
	if err != nil {
		c.t.Fatal(err)
	}
	c.set(s)
	return s
}

func (c *cluster) open(store storage.Store) (*Scheduler, error) {
	ctx := context.Background()
	j, err := OpenJournal(ctx, store)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	return NewScheduler(ctx, j, cat, plan.Default(), c.o)
}

func (c *cluster) set(s *Scheduler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = s
}

var errGone = errors.New("connection refused")

// service is the coordinator that can be reached.
func (c *cluster) service() (control.Service, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		return nil, errGone
	}
	return c.now, nil
}

// mortal is the store as a process sees it, which does nothing more once killed.
type mortal struct {
	storage.Store
	killed atomic.Bool
}

var errKilled = errors.New("killed")

func (m *mortal) Create(ctx context.Context, name string) (storage.Writer, error) {
	if m.killed.Load() {
		return nil, errKilled
	}
	return m.Store.Create(ctx, name)
}

func (m *mortal) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	if m.killed.Load() {
		return nil, errKilled
	}
	return m.Store.CreateNew(ctx, name)
}

// call repeats a call of the service while that may help.
func (c *cluster) call(f func(control.Service) error) error {
	for {
		svc, err := c.service()
		if err == nil {
			err = f(svc)
		}
		if err == nil || errors.Is(err, control.ErrEnded) || errors.Is(err, control.ErrLeaseLost) || errors.Is(err, control.ErrRefused) {
			return err
		}
		time.Sleep(time.Second)
	}
}

// work starts a worker that does these things with its first tasks, then does
// whatever it gets.
func (c *cluster) work(name string, acts ...act) {
	c.workers.Go(func() {
		for joined := false; ; {
			var l control.Lease
			err := c.call(func(s control.Service) (err error) {
				if !joined {
					if _, err := s.Join(context.Background(), control.Hello{Worker: name, Version: "1"}); err != nil {
						return err
					}
				}
				joined = true
				// A poll that hangs on a coordinator that is gone ends some time.
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				l, err = s.Next(ctx, name)
				return err
			})
			if errors.Is(err, control.ErrRefused) {
				joined = false
				continue
			}
			if err != nil {
				return
			}
			c.mu.Lock()
			c.fencings = append(c.fencings, l.Fencing)
			c.mu.Unlock()
			a := does
			if len(acts) > 0 {
				a, acts = acts[0], acts[1:]
			}
			if !c.act(name, a, l) {
				return
			}
		}
	})
}

// act does something with a task, and reports whether the worker goes on.
func (c *cluster) act(name string, a act, l control.Lease) bool {
	takes := workTime
	switch a {
	case dies:
		c.busy(l, workTime/2)
		return false
	case stalls:
		time.Sleep(3 * l.TTL)
	case drains:
		c.finish(name, l, control.Outcome{Kind: control.Drained, Reason: "told to stop"})
		return false
	case retries, fails:
		kind := control.Retry
		if a == fails {
			kind = control.Fatal
		}
		c.finish(name, l, control.Outcome{Kind: kind, Reason: "no space left on w"})
		return a == retries
	case crawls:
		takes *= 100
	}
	if !c.busy(l, takes) {
		return true
	}
	// A file of the task, replaced as the worker's catalogue does it.
	path := fmt.Sprintf("smoothed/tiles/tile-00000-%05d.f32", l.Task.First)
	if !c.commit(l, control.Change{Removed: []string{path}}) {
		return true
	}
	c.commit(l, control.Change{Added: []catalog.Entry{ofRun(catalog.Entry{Kind: catalog.KindSmoothedTile, Path: path, Rows: 1, Block: int32(l.Task.First)})}})
	c.finish(name, l, control.Outcome{Report: &control.StageReport{Stage: l.Task.Stage, Rows: 1, EdgesStreamed: 1 << l.Task.First, Seconds: takes.Seconds()}})
	return true
}

// busy works for a while, and reports whether the lease is still there.
func (c *cluster) busy(l control.Lease, d time.Duration) bool {
	for left := d; left > 0; left -= l.TTL / 3 {
		time.Sleep(min(left, l.TTL/3))
		err := c.call(func(s control.Service) error {
			return s.Renew(context.Background(), l.Fencing, control.Progress{Done: int64(d-left) / int64(time.Second), Unit: "seconds"})
		})
		if err != nil {
			c.lostLease(err)
			return false
		}
	}
	return true
}

func (c *cluster) commit(l control.Lease, change control.Change) bool {
	err := c.call(func(s control.Service) error { return s.Commit(context.Background(), l.Fencing, change) })
	if err != nil {
		c.lostLease(err)
	}
	return err == nil
}

func (c *cluster) finish(name string, l control.Lease, o control.Outcome) {
	err := c.call(func(s control.Service) error { return s.Finish(context.Background(), l.Fencing, o) })
	if err != nil {
		c.lostLease(err)
		return
	}
	if o.Report != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.accepted[l.Task.ID()] = append(c.accepted[l.Task.ID()], name)
	}
}

func (c *cluster) lostLease(err error) {
	if !errors.Is(err, control.ErrLeaseLost) {
		c.t.Errorf("a call under a lease failed: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
}

// left are the tasks whose files are not there, as a stage is cut after a restart.
func (c *cluster) left() []control.Task {
	cat, err := catalog.Open(context.Background(), c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	done := cat.Entries(catalog.KindSmoothedTile)
	return slices.DeleteFunc(slices.Clone(c.tasks), func(t control.Task) bool {
		return slices.ContainsFunc(done, func(e catalog.Entry) bool { return e.Block == int32(t.First) })
	})
}

// check sees that each task counts once, and that nothing was given out twice.
func (c *cluster) check(reports []control.StageReport) {
	c.t.Helper()
	var edges int64
	for _, r := range reports {
		edges += r.EdgesStreamed
	}
	if len(reports) != len(c.tasks) || edges != 1<<len(c.tasks)-1 {
		c.t.Errorf("%d reports of %d tasks, sum %b", len(reports), len(c.tasks), edges)
	}
	for id, workers := range c.accepted {
		if len(workers) > 1 {
			c.t.Errorf("task %s was accepted from %v", id, workers)
		}
	}
	seen := slices.Sorted(slices.Values(c.fencings))
	if len(slices.Compact(slices.Clone(seen))) != len(seen) {
		c.t.Errorf("leases given out twice: %v", seen)
	}
	cat, err := catalog.Open(context.Background(), c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	if got := len(cat.Entries(catalog.KindSmoothedTile)); got != len(c.tasks) {
		c.t.Errorf("%d files of %d tasks", got, len(c.tasks))
	}
}

func TestCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		workers map[string][]act
		late    []string // join after 5 minutes
		flaps   string   // a member declared dead every second
		losses  int
		refused bool
	}{
		{name: "nothing happens", workers: map[string][]act{"a": nil, "b": nil, "c": nil}},
		{name: "one worker", workers: map[string][]act{"a": nil}},
		{name: "one dies", workers: map[string][]act{"a": {does, dies}, "b": nil}, losses: 1},
		{name: "two die at once", workers: map[string][]act{"a": {dies}, "b": {dies}, "c": nil}, losses: 2},
		{name: "all die, another comes late", workers: map[string][]act{"a": {dies}, "b": {does, dies}}, late: []string{"c"}, losses: 2},
		{name: "a zombie comes back", workers: map[string][]act{"a": {stalls}, "b": nil}, losses: 1, refused: true},
		{name: "all are zombies", workers: map[string][]act{"a": {stalls, does, stalls}, "b": {stalls}}, losses: 3, refused: true},
		{name: "one drains", workers: map[string][]act{"a": {does, drains}, "b": nil}},
		{name: "failures that pass", workers: map[string][]act{"a": {retries, retries}, "b": nil}, losses: 2},
		{name: "one is slow", workers: map[string][]act{"a": {crawls}, "b": nil, "c": nil}, refused: true},
		{name: "a member flaps", workers: map[string][]act{"a": nil, "b": nil}, flaps: "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 7)
				s := c.start()
				for name, acts := range tc.workers {
					c.work(name, acts...)
				}
				ctx, cancel := context.WithCancel(context.Background())
				var helpers sync.WaitGroup
				helpers.Go(func() {
					for tc.flaps != "" && ctx.Err() == nil {
						s.Dead(tc.flaps)
						time.Sleep(time.Second)
					}
				})
				helpers.Go(func() {
					time.Sleep(5 * time.Minute)
					for _, name := range tc.late {
						c.work(name)
					}
				})
				reports, err := s.Run(ctx, c.tasks)
				if err != nil {
					t.Fatal(err)
				}
				cancel()
				helpers.Wait()
				s.End(context.Background())
				c.workers.Wait()
				c.check(reports)
				if got := s.Losses(); len(got) != tc.losses {
					t.Errorf("losses %+v, want %d", got, tc.losses)
				}
				if (c.refused > 0) != tc.refused {
					t.Errorf("%d calls refused, want some: %v", c.refused, tc.refused)
				}
			})
		})
	}
}

// The coordinator dies, at any second of the phase, and another takes over after
// a while. Workers go on with what they have.
func TestRestartAtAnySecond(t *testing.T) {
	for at := time.Second; at < 4*time.Minute; at += 7 * time.Second {
		for _, away := range []time.Duration{0, 10 * time.Second, 2 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 7)
				process := &mortal{Store: c.store}
				first := c.startOn(process)
				c.work("a")
				c.work("b", does, drains)
				c.work("c", does, stalls)
				c.work("d", does, dies)
				var old sync.WaitGroup
				ended := make(chan struct{})
				old.Go(func() {
					defer close(ended)
					if _, err := first.Run(context.Background(), c.tasks); err != nil && !errors.Is(err, ErrSuperseded) && !errors.Is(err, errKilled) {
						t.Errorf("the first coordinator: %v", err)
					}
				})
				time.Sleep(at)
				select {
				case <-ended: // before it could be replaced
					first.End(context.Background())
					c.workers.Wait()
					old.Wait()
					return
				default:
				}
				c.set(nil)
				// Where the other comes at once the first is cut off rather than dead.
				process.killed.Store(away > 0)
				time.Sleep(away)
				second := c.start()
				reports, err := second.Run(context.Background(), c.left())
				if err != nil {
					t.Fatalf("restart after %v: %v", at, err)
				}
				second.End(context.Background())
				c.workers.Wait()
				old.Wait()
				c.check(reports)
				if n := len(second.Losses()); n > 2 { // of c and d
					t.Errorf("restart after %v: losses %+v", at, second.Losses())
				}
			})
		}
	}
}

// A worker that is alive keeps its task over a restart, and its commits count. If the task
// ends after the phase was cut anew and before it begins, it is not done again: not if it
// is the last, and not if others wait.
func TestTaskOutlivesTheCoordinator(t *testing.T) {
	for _, tasks := range []int{1, 2, 5} {
		for _, between := range []time.Duration{0, workTime} { // cut and begin
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, tasks)
				ctx, cancel := context.WithCancel(context.Background())
				first := c.start()
				var old sync.WaitGroup
				old.Go(func() { _, _ = first.Run(ctx, c.tasks) })
				c.work("a")
				time.Sleep(20 * time.Second)
				c.set(nil)
				second := c.start()
				left := c.left()
				time.Sleep(between)
				reports, err := second.Run(context.Background(), left)
				if err != nil {
					t.Fatal(err)
				}
				if len(left) != tasks || len(c.fencings) != tasks || len(second.Losses()) > 0 {
					t.Errorf("%d tasks left, leases %v, losses %+v", len(left), c.fencings, second.Losses())
				}
				second.End(context.Background())
				c.workers.Wait()
				cancel()
				old.Wait()
				c.check(reports)
			})
		}
	}
}

// Finished tasks of a phase are not done again after a restart, though all workers
// are gone; the cut may be another one then.
func TestFinishedTasksStayFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		ctx, cancel := context.WithCancelCause(context.Background())
		first := c.start()
		c.work("a", does, does, dies)
		cause := errors.New("told to stop")
		time.AfterFunc(100*time.Second, func() { cancel(cause) })
		if _, err := first.Run(ctx, c.tasks); !errors.Is(err, cause) {
			t.Fatalf("error %v", err)
		}
		c.workers.Wait()
		all := c.tasks
		c.tasks = all[2:] // as the catalogue has it
		second := c.start()
		c.work("b")
		reports, err := second.Run(context.Background(), c.tasks)
		if err != nil {
			t.Fatal(err)
		}
		second.End(context.Background())
		c.workers.Wait()
		c.tasks = all
		c.check(reports)
		if len(c.fencings) != 5 {
			t.Errorf("%d leases", len(c.fencings))
		}
	})
}

// A coordinator that was superseded gives out and accepts nothing.
func TestSupersededCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		old := c.start()
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := old.Run(context.Background(), c.tasks); !errors.Is(err, ErrSuperseded) {
				t.Errorf("error %v", err)
			}
		})
		ctx := context.Background()
		join := func(s *Scheduler, name string) {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		join(old, "a")
		join(old, "b")
		l, err := old.Next(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		c.start()
		if _, err := old.Next(ctx, "b"); !errors.Is(err, ErrSuperseded) {
			t.Errorf("Next: %v", err)
		}
		for what, err := range map[string]error{
			"renew":  old.Renew(ctx, l.Fencing, control.Progress{}),
			"commit": old.Commit(ctx, l.Fencing, control.Change{Added: []catalog.Entry{ofRun(catalog.Entry{Kind: "k", Path: "model/scores"})}}),
			"finish": old.Finish(ctx, l.Fencing, reported(1)),
		} {
			if !errors.Is(err, ErrSuperseded) || errors.Is(err, control.ErrLeaseLost) {
				t.Errorf("%s: %v", what, err)
			}
		}
		running.Wait()
	})
}

// A commit that a coordinator makes while another takes over is not confirmed.
func TestCommitAcrossATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		old := c.start()
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _, _ = old.Run(ctx, c.tasks) })
		if _, err := old.Join(ctx, control.Hello{Worker: "a", Version: "1"}); err != nil {
			t.Fatal(err)
		}
		l, err := old.Next(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		successor := c.start()
		change := control.Change{Added: []catalog.Entry{ofRun(catalog.Entry{Kind: "k", Path: "model/scores", Block: -1, Interval: -1})}}
		if err := old.Commit(ctx, l.Fencing, change); !errors.Is(err, ErrSuperseded) {
			t.Errorf("confirmed: %v", err)
		}
		// The worker says it again to the successor.
		if err := successor.Commit(ctx, l.Fencing, change); err != nil {
			t.Error(err)
		}
		if list, err := successor.Catalog(ctx, catalog.Version{}); err != nil || !list.Whole || len(list.Added) != 1 || list.Added[0] != change.Added[0] {
			t.Errorf("catalogue %v, %v", list, err)
		}
		cancel()
		running.Wait()
	})
}

func TestRunGivesUp(t *testing.T) {
	for _, tc := range []struct {
		name string
		acts []act
		want string
	}{
		{"failure for good", []act{fails}, "no space left on w"},
		{"failures in a row", []act{retries, retries, retries}, "smooth/columns/0-1 failed 3 times, last: no space left on w"},
		{"losses in a row", slices.Repeat([]act{stalls}, lossLimit), "smooth/columns/0-1 was lost 20 times, last with worker w: no sign of life"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3)
				s := c.start()
				c.work("w", tc.acts...)
				_, err := s.Run(context.Background(), c.tasks)
				if !errors.Is(err, ErrTask) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want one with %q", err, tc.want)
				}
				s.End(context.Background())
				c.workers.Wait()
				if tc.acts[0] == retries && len(s.Losses()) != 3 {
					t.Errorf("losses %+v", s.Losses())
				}
				// The same run again begins with new budgets.
				c.accepted, c.fencings = map[string][]string{}, nil
				again := c.start()
				c.work("w2")
				reports, err := again.Run(context.Background(), c.tasks)
				if err != nil {
					t.Fatal(err)
				}
				again.End(context.Background())
				c.workers.Wait()
				c.check(reports)
			})
		})
	}
}

// Nothing is given out before enough workers are there; then all get something.
func TestWaitsForWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.o.Workers = 3
		s := c.start()
		if s.Workers() != 3 {
			t.Errorf("a stage is cut for %d workers", s.Workers())
		}
		begun := time.Now()
		for i, name := range []string{"a", "b", "c"} {
			time.AfterFunc(time.Duration(i)*20*time.Second, func() { c.work(name) })
		}
		time.AfterFunc(30*time.Second, func() {
			if st := s.Status(); st.State != "waiting" || st.Tasks.Waiting != 3 {
				t.Errorf("status with two workers: %+v", st)
			}
		})
		reports, err := s.Run(context.Background(), c.tasks)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 40*time.Second+workTime {
			t.Errorf("took %v", took)
		}
		s.End(context.Background())
		c.workers.Wait()
		c.check(reports)
	})
}

// A coordinator that is told to stop gives out nothing more, and lets workers end
// what they have for the time of a lease. It does not say that the run has ended.
func TestStop(t *testing.T) {
	for _, tc := range []struct {
		name  string
		act   act
		takes time.Duration
	}{
		{"work ends", does, workTime - 20*time.Second},
		{"work goes on", crawls, testTTL},
		{"work is given back", drains, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2)
				s := c.start()
				c.work("a", tc.act)
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(20*time.Second, cancel)
				stopped := time.Now().Add(20 * time.Second)
				_, err := s.Run(ctx, c.tasks)
				if took := time.Since(stopped); took != tc.takes {
					t.Errorf("stopped after %v, want %v", took, tc.takes)
				}
				if !errors.Is(err, context.Canceled) || errors.Is(err, ErrTask) {
					t.Errorf("error %v", err)
				}
				if _, err := s.Next(context.Background(), "a"); err == nil || errors.Is(err, control.ErrEnded) || errors.Is(err, control.ErrRefused) {
					t.Errorf("Next: %v", err)
				}
				c.set(nil)
				time.Sleep(10 * time.Second)
				again := c.start()
				if tc.act == drains {
					c.work("b")
				}
				reports, err := again.Run(context.Background(), c.left())
				if err != nil {
					t.Fatal(err)
				}
				again.End(context.Background())
				c.workers.Wait()
				c.check(reports)
				if tc.act != drains && len(c.fencings) != 2 || len(again.Losses()) > 0 {
					t.Errorf("leases %v, losses %+v", c.fencings, again.Losses())
				}
			})
		})
	}
}

// A worker that cannot do its task, or is told to stop, leaves: the end of the run does not
// wait for it.
func TestEndDoesNotWaitForWhoLeft(t *testing.T) {
	for _, a := range []act{fails, drains} {
		t.Run(string(a), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2)
				s := c.start()
				c.work("a", a)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := s.Run(ctx, c.tasks)
				if err == nil {
					t.Fatal("a run without workers ended well")
				}
				ended := time.Now()
				s.End(context.Background())
				if took := time.Since(ended); took > 0 {
					t.Errorf("the end took %v", took)
				}
				c.workers.Wait()
			})
		})
	}
}

// With its only worker in its own process nothing is waited for after a crash.
func TestAloneDoesNotWaitForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.o.Alone = true
		ctx, cancel := context.WithCancel(context.Background())
		first := c.start()
		var old sync.WaitGroup
		old.Go(func() { _, _ = first.Run(ctx, c.tasks) })
		c.work("a", dies)
		c.workers.Wait()
		begun := time.Now()
		c.start() // killed before it gave out anything
		second := c.start()
		if second.Workers() != 1 {
			t.Errorf("a stage is cut for %d workers", second.Workers())
		}
		c.work("b")
		reports, err := second.Run(context.Background(), c.tasks)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != workTime || len(second.Losses()) > 0 {
			t.Errorf("took %v, losses %+v", took, second.Losses())
		}
		second.End(context.Background())
		c.workers.Wait()
		cancel()
		old.Wait()
		c.check(reports)
	})
}

// The lease of a worker in the coordinator's own process does not run out, however long the
// worker is silent; that of one elsewhere does.
func TestAloneKeepsItsLease(t *testing.T) {
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			c.o.Alone = alone
			s := c.start()
			c.work("a", stalls, stalls, stalls)
			reports, err := s.Run(context.Background(), c.tasks)
			if err != nil {
				t.Fatal(err)
			}
			if losses := len(s.Losses()); alone != (losses == 0) || alone && len(c.fencings) != 2 {
				t.Errorf("alone %v: %d leases for two tasks, %d lost", alone, len(c.fencings), losses)
			}
			s.End(context.Background())
			c.workers.Wait()
			c.check(reports)
		})
	}
}

// Reports of phases before are kept with those of the present one, over restarts,
// until the stage is forgotten.
func TestReportsOfAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		s := c.start()
		c.work("a")
		rows := []control.Task{{Stage: control.Smooth, Part: control.Rows, First: 0, Last: 1}}
		for _, phase := range []struct {
			tasks   []control.Task
			restart bool
			want    int
		}{
			{c.tasks, false, 2}, {rows, true, 3}, {[]control.Task{{Stage: control.SmoothLabels, Part: control.Whole}}, false, 1},
		} {
			if phase.restart {
				c.set(nil)
				s = c.start()
			}
			reports, err := s.Run(context.Background(), phase.tasks)
			if err != nil || len(reports) != phase.want {
				t.Errorf("%s: %d reports, want %d, %v", phase.tasks[0].ID(), len(reports), phase.want, err)
			}
		}
		if err := s.Forget(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		if st := s.Status(); st.Stage != "" || st.Tasks != (TaskCounts{}) {
			t.Errorf("status %+v", st)
		}
		s.End(context.Background())
		c.workers.Wait()
	})
}

func TestJoin(t *testing.T) {
	c := newCluster(t, 1)
	s := c.start()
	ctx := context.Background()
	for _, tc := range []struct {
		name string
		h    control.Hello
		want string
	}{
		{"another version", control.Hello{Worker: "w", Version: "2"}, "worker w is ndls 2 and the coordinator ndls 1; start both from the same program"},
		{"no name", control.Hello{Version: "1"}, "needs a name"},
	} {
		if _, err := s.Join(ctx, tc.h); !errors.Is(err, control.ErrRefused) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := s.Next(ctx, "w"); !errors.Is(err, control.ErrRefused) {
		t.Errorf("a worker that has not joined: %v", err)
	}
	w, err := s.Join(ctx, control.Hello{Worker: "w", Version: "1"})
	want := control.Welcome{Plan: plan.Default(), Store: "mem:", Heartbeat: 10 * time.Second, Checkpoint: DefaultCheckpoint}
	if err != nil || w != want {
		t.Errorf("welcome %+v, %v", w, err)
	}
}

func TestCommitsTouchOnlyTheCatalogue(t *testing.T) {
	s := newCluster(t, 1).start()
	for _, path := range []string{
		"", RecordName, catalog.Name, "report.json", "journal/00000001.json", "cluster/coordinator.json",
		"notes.txt", "smoothed/mine.csv", "scratch/scratch-1.tmp", "../x", "/etc/passwd", "a/../../x", "a//b", ".", "a\x00b", "a\nb", "\xff", "x.tmp",
		strings.Repeat("a", 5000), strings.Repeat("a/", 600) + "a", "a/" + strings.Repeat("b", 250),
	} {
		for _, c := range []control.Change{{Removed: []string{path}, Delete: true}, {Added: []catalog.Entry{ofRun(catalog.Entry{Kind: "k", Path: path})}}} {
			if err := s.Commit(context.Background(), 1, c); !errors.Is(err, control.ErrRejected) || !control.Final(err) {
				t.Errorf("%.40q: %v", path, err)
			}
		}
	}
	for _, e := range []catalog.Entry{
		{Kind: "k", Path: "model/scores", Rows: -1},
		{Kind: "k", Path: "model/scores", Bytes: -1},
		{Kind: "k", Path: "model/scores", Interval: -2},
		{Kind: "k", Path: "model/scores", Block: -2},
		{Kind: "k", Path: "model/scores", Hop: -2},
		{Kind: "k", Path: "model/scores", Lo: 2, Hi: 1},
		{Kind: "k", Path: "model/scores", Lo: -1},
		{Kind: "k", Path: "model/scores", First: 1},
		{Kind: "k", Path: "model/scores", Plan: "\n"},
		{Path: "model/scores"},
		{Kind: "k\x1b[2J", Path: "model/scores"},
		{Kind: "k", Path: "model/scores", Checksum: "sha256:\x00"},
		{Kind: strings.Repeat("k", 5000), Path: "model/scores"},
	} {
		if e.Plan == "" {
			e = ofRun(e)
		}
		if err := s.Commit(context.Background(), 1, control.Change{Added: []catalog.Entry{e}}); !errors.Is(err, control.ErrRejected) {
			t.Errorf("%.80v: %v", e, err)
		}
	}
	if n := len(s.cat.Entries("")); n > 0 {
		t.Errorf("%d files are listed", n)
	}
}

// TestCommitOfAnotherPlan: a worker that has another plan than the run changes nothing.
func TestCommitOfAnotherPlan(t *testing.T) {
	s := newCluster(t, 1).start()
	own := registry.Hashes(plan.Default())
	other := plan.Default()
	other.LSI.Epsilon *= 2
	for _, tc := range []struct {
		stage, plan string
		want        error
	}{
		{"lsi", own["lsi"], control.ErrLeaseLost}, // only the lease is lacking
		{"lsi", registry.Hashes(other)["lsi"], control.ErrRejected},
		{"lsi", own["partition"], control.ErrRejected},
		{"lsi", "", control.ErrRejected},
		{"", "", control.ErrRejected},
		{"polish", own["lsi"], control.ErrRejected},
	} {
		e := catalog.Describe(catalog.KindLSI, "lsi/part-00000.parquet").Of(tc.stage)
		e.Plan = tc.plan
		if err := s.Commit(t.Context(), 1, control.Change{Added: []catalog.Entry{e}}); !errors.Is(err, tc.want) {
			t.Errorf("stage %q, plan %q: %v, want %v", tc.stage, tc.plan, err, tc.want)
		}
	}
	if err := s.Commit(t.Context(), 1, control.Change{Removed: make([]string, control.MaxFiles+1)}); !errors.Is(err, control.ErrRejected) {
		t.Errorf("too many files: %v", err)
	}
}

// TestMembersAreBounded: workers that are gone are forgotten, and there is an end to how
// many may join.
func TestMembersAreBounded(t *testing.T) {
	testkit.Slow(t, "ten thousand workers join")
	synctest.Test(t, func(t *testing.T) {
		s := newCluster(t, 1).start()
		join := func(name string) error {
			_, err := s.Join(t.Context(), control.Hello{Worker: name, Version: "1", Holds: []string{"graph/nodes.parquet"}})
			return err
		}
		for i := range maxMembers {
			if err := join(fmt.Sprint("w", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := join("late"); !errors.Is(err, control.ErrRefused) {
			t.Errorf("one too many: %v", err)
		}
		if err := join("w0"); err != nil {
			t.Errorf("one that is known already: %v", err)
		}
		time.Sleep((forgottenAfter + 1) * testTTL)
		if err := join("late"); err != nil || len(s.members.all) != 1 {
			t.Errorf("%d members after all are gone: %v", len(s.members.all), err)
		}
	})
}

// TestJoinRefusesOddNames: names of workers go to logs and terminals.
func TestJoinRefusesOddNames(t *testing.T) {
	s := newCluster(t, 1).start()
	for _, h := range []control.Hello{
		{Worker: ""},
		{Worker: "a\x1b[2Jb"},
		{Worker: "a\nb"},
		{Worker: "\xff"},
		{Worker: strings.Repeat("w", 1000)},
		{Worker: "w", Memory: -1},
		{Worker: "w", Threads: -1},
		{Worker: "w", Blocks: "host:1\x00"},
		{Worker: "w", Blocks: strings.Repeat("h", 1000)},
	} {
		h.Version = "1"
		if _, err := s.Join(context.Background(), h); !errors.Is(err, control.ErrRefused) {
			t.Errorf("%.60v: %v", h, err)
		}
	}
}

// A worker whose answer was lost on the way is told of its task again.
func TestNextIsRepeatable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		s := c.start()
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		if _, err := s.Join(ctx, control.Hello{Worker: "w", Version: "1"}); err != nil {
			t.Fatal(err)
		}
		first, err := s.Next(ctx, "w")
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Next(ctx, "w")
		if err != nil || second != first || first.TTL != testTTL {
			t.Errorf("first %+v, second %+v, %v", first, second, err)
		}
		cancel()
		running.Wait()
	})
}

// slow takes its time to replace a file.
type slow struct {
	storage.Store
	takes time.Duration
}

func (s slow) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	if strings.HasPrefix(name, "catalog/") {
		time.Sleep(s.takes)
	}
	return s.Store.CreateNew(ctx, name)
}

// While one attempt at a task changes the catalogue, its lease does not run out,
// and another attempt does not end the task.
func TestCommitHoldsTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		s := c.startOn(slow{c.store, 2 * testTTL})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		next := func(name string) control.Lease {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1"}); err != nil {
				t.Fatal(err)
			}
			l, err := s.Next(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		other, first := next("a"), next("b")
		if err := s.Finish(ctx, other.Fencing, reported(1)); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			time.Sleep(testTTL / 2)
			if err := s.Renew(ctx, first.Fencing, control.Progress{}); err != nil {
				t.Fatal(err)
			}
		}
		second := next("a")
		if second.Task != first.Task {
			t.Fatalf("leased %s twice, and %s", first.Task.ID(), second.Task.ID())
		}
		begun := time.Now()
		running.Go(func() {
			err := s.Commit(ctx, first.Fencing, control.Change{Added: []catalog.Entry{ofRun(catalog.Entry{Kind: "k", Path: "model/scores"})}})
			if err != nil {
				t.Errorf("commit: %v", err)
			}
		})
		time.Sleep(time.Second)
		if err := s.Finish(ctx, second.Fencing, reported(1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 2*testTTL || len(s.Losses()) > 0 {
			t.Errorf("the task ended %v after the commit began; losses %+v", took, s.Losses())
		}
		if err := s.Commit(ctx, first.Fencing, control.Change{}); !errors.Is(err, control.ErrLeaseLost) {
			t.Errorf("commit after the task was done: %v", err)
		}
		cancel()
		running.Wait()
	})
}

// interrupted is a store in which something happens right before a file gets its name.
type interrupted struct {
	storage.Store
	before func()
}

func (s interrupted) Create(ctx context.Context, name string) (storage.Writer, error) {
	w, err := s.Store.Create(ctx, name)
	return interruptedWriter{w, s.before}, err
}

type interruptedWriter struct {
	storage.Writer
	before func()
}

func (w interruptedWriter) Commit(ctx context.Context) (storage.Digest, error) {
	w.before()
	return w.Writer.Commit(ctx)
}

// TestFinishedTaskKeepsItsFiles: of two attempts at a task one commits again what the
// other has listed, while that finishes. The file stays listed, and is whole.
func TestFinishedTaskKeepsItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		s := c.start()
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		next := func(name string) control.Lease {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1"}); err != nil {
				t.Fatal(err)
			}
			l, err := s.Next(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		other, first := next("fast"), next("slow")
		if err := s.Finish(ctx, other.Fencing, reported(1)); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			time.Sleep(testTTL / 2)
			if err := s.Renew(ctx, first.Fencing, control.Progress{}); err != nil {
				t.Fatal(err)
			}
		}
		second := next("fast")
		if second.Task != first.Task {
			t.Fatalf("leased %s twice, and %s", first.Task.ID(), second.Task.ID())
		}
		view := func(store storage.Store, l control.Lease) *catalog.Catalog {
			v := catalog.NewView(store, s.cat.Entries(""), func(ctx context.Context, added []catalog.Entry, removed []string, del bool) error {
				return s.Commit(ctx, l.Fencing, control.Change{Added: added, Removed: removed, Delete: del})
			})
			v.Bind(registry.Binding(s.plan))
			return v
		}
		write := func(cat *catalog.Catalog) error {
			f, err := cat.Create(ctx, catalog.Describe(catalog.KindSmoothedTile, "smoothed/tiles/tile-00000-00000.f32"))
			if err != nil {
				return err
			}
			if _, err := f.Write([]byte("the bytes of both")); err != nil {
				return err
			}
			return cat.Commit(ctx, f)
		}
		if err := write(view(c.store, first)); err != nil {
			t.Fatal(err)
		}
		late := interrupted{c.store, func() {
			if err := s.Finish(ctx, first.Fencing, reported(1)); err != nil {
				t.Error(err)
			}
		}}
		if err := write(view(late, second)); !errors.Is(err, control.ErrLeaseLost) {
			t.Errorf("a commit after the task was done: %v", err)
		}
		e, listed := s.cat.Lookup("smoothed/tiles/tile-00000-00000.f32")
		if !listed {
			t.Fatal("the task is done, and its file is not listed")
		}
		if err := s.cat.Verify(ctx, e); err != nil {
			t.Error(err)
		}
		cancel()
		running.Wait()
	})
}

// Time in which the coordinator could hear no one takes no lease away.
func TestCoordinatorStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		s, ctx := c.start(), context.Background()
		if err := (phaseLoop{s}).begin(ctx, c.tasks); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Join(ctx, control.Hello{Worker: "w", Version: "1"}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Next(ctx, "w")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if err := (phaseLoop{s}).tick(ctx, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(ctx, l.Fencing, control.Progress{}); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		if err := (phaseLoop{s}).tick(ctx, time.Second); err != nil { // it was the worker, then
			t.Fatal(err)
		}
		if err := s.Renew(ctx, l.Fencing, control.Progress{}); !errors.Is(err, control.ErrLeaseLost) {
			t.Error(err)
		}
	})
}

// Whatever operation of the coordinator's store fails, the next coordinator ends
// the phase with each task done once.
func TestPhaseFailsAtEveryStep(t *testing.T) {
	phase := func(t *testing.T, at int64) (ops int64) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3)
			faulty := storagetest.NewFaulty(c.store, at)
			ctx := context.Background()
			s, err := c.open(faulty)
			if err == nil {
				c.set(s)
			}
			c.work("a")
			c.work("b", retries)
			var reports []control.StageReport
			if err == nil {
				reports, err = s.Run(ctx, c.tasks)
			}
			if err != nil && !errors.Is(err, storage.ErrDisk) {
				t.Errorf("operation %d: %v", at, err)
			}
			for err != nil {
				c.set(nil)
				s = c.start()
				left := c.left()
				if len(left) == 0 {
					left = c.tasks[:1] // it finds all done, and is done again
				}
				reports, err = s.Run(ctx, left)
			}
			s.End(ctx)
			c.workers.Wait()
			if len(reports) < len(c.tasks) {
				t.Errorf("operation %d: %d reports", at, len(reports))
			}
			if len(c.left()) > 0 {
				t.Errorf("operation %d: %d tasks are left", at, len(c.left()))
			}
			ops = faulty.Ops()
		})
		return ops
	}
	for at, ops := int64(1), phase(t, 0); at <= ops; at++ {
		phase(t, at)
	}
}
