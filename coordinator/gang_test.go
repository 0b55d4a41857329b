package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/storage/storagetest"
	"ndls/placement"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
)

const (
	breaks act = "breaks" // says that another member is gone
	small  act = "small"  // has not the memory or the disk for it
)

func gangTasks(n int) (tasks []control.Task) {
	for i := range n {
		tasks = append(tasks, control.Task{Stage: control.Smooth, Part: control.Strips, First: i, Last: i + 1, Needs: int64(n - i)})
	}
	return tasks
}

// gangCluster is a cluster of workers that are members of gangs.
type gangCluster struct {
	*cluster
	gangs   map[uint64][]string // who was in which gang
	left    map[uint64]bool     // gangs of which one has left
	silent  bool                // others do not notice that before their lease ends
	refused int
}

func newGangCluster(t *testing.T, tasks int) *gangCluster {
	c := &gangCluster{cluster: newCluster(t, tasks), gangs: map[uint64][]string{}, left: map[uint64]bool{}}
	c.tasks = gangTasks(tasks)
	return c
}

// join starts a worker that does these things in its first gangs, then does its work.
func (c *gangCluster) join(name string, memory int64, acts ...act) {
	c.workers.Go(func() {
		joined := false
		for {
			var l control.Lease
			err := c.call(func(s control.Service) (err error) {
				if !joined {
					_, err = s.Join(context.Background(), control.Hello{Worker: name, Version: "1", Memory: memory, Blocks: "at " + name})
				}
				if err == nil {
					l, err = s.Next(context.Background(), name)
				}
				return err
			})
			joined = !errors.Is(err, control.ErrRefused)
			if !joined {
				continue
			}
			if err != nil || !c.inGang(name, l, &acts) {
				return
			}
		}
	})
}

// inGang does something in a gang, and reports whether the worker goes on.
func (c *gangCluster) inGang(name string, l control.Lease, acts *[]act) bool {
	// The lease is kept while others are waited for.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.workers.Go(func() {
		for ctx.Err() == nil {
			if err := c.call(func(s control.Service) error { return s.Renew(context.Background(), l.Fencing, control.Progress{}) }); err != nil {
				return
			}
			select {
			case <-time.After(l.TTL / 3):
			case <-ctx.Done():
			}
		}
	})
	var g control.Gang
	err := c.call(func(s control.Service) (err error) {
		g, err = s.Gang(context.Background(), l.Fencing)
		return err
	})
	if errors.Is(err, control.ErrLeaseLost) {
		c.note(func() { c.refused++ })
		return true
	}
	if err != nil {
		return false
	}
	if g.Peers[g.Self] != "at "+name || g.Borders[g.Self] != l.Task.First || len(g.Borders) != len(g.Peers)+1 {
		c.t.Errorf("%s with %s is in gang %+v", name, l.Task.ID(), g)
	}
	c.note(func() { c.gangs[g.Number] = append(c.gangs[g.Number], name) })
	a := does
	if len(*acts) > 0 {
		a, *acts = (*acts)[0], (*acts)[1:]
	}
	if a == stalls {
		cancel()
		time.Sleep(2 * l.TTL)
		return true
	}
	if a != does {
		time.Sleep(time.Second)
		c.note(func() { c.left[g.Number] = true })
	}
	switch a {
	case dies:
		return false
	case drains, retries, breaks, small:
		kind := map[act]control.Kind{drains: control.Drained, retries: control.Retry, breaks: control.Broken, small: control.Unable}[a]
		c.finish(name, l, control.Outcome{Kind: kind, Reason: "no route to host"})
		return a != drains
	}
	for end := time.Now().Add(workTime); time.Now().Before(end); time.Sleep(time.Second) {
		var broken bool
		c.note(func() { broken = c.left[g.Number] && !c.silent })
		if broken {
			c.finish(name, l, control.Outcome{Kind: control.Broken, Reason: "connection reset"})
			return true
		}
		s, err := c.service()
		if err == nil && errors.Is(s.Renew(context.Background(), l.Fencing, control.Progress{}), control.ErrLeaseLost) {
			c.note(func() { c.refused++ })
			return true
		}
	}
	c.finish(name, l, control.Outcome{Report: &control.StageReport{Stage: l.Task.Stage, EdgesStreamed: 1 << l.Task.First}})
	return true
}

func (c *gangCluster) note(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
}

// A gang is all there or nobody, and only who is to blame for its end pays.
func TestGang(t *testing.T) {
	for _, tc := range []struct {
		name    string
		members map[string][]act
		gangs   int
		losses  int
		fails   string
		silent  bool
	}{
		{"nothing happens", map[string][]act{"a": nil, "b": nil, "c": nil}, 1, 0, "", false},
		{"one dies without a word", map[string][]act{"a": nil, "b": nil, "c": nil, "d": {dies}}, 0, 0, "", true},
		{"one dies, others notice at once", map[string][]act{"a": nil, "b": nil, "c": nil, "d": {dies}}, 0, 0, "", false},
		{"one fails", map[string][]act{"a": nil, "b": {retries}, "c": nil}, 2, 1, "", false},
		{"one lacks the room", map[string][]act{"a": nil, "b": nil, "c": nil, "d": {small, small}}, 0, 0, "", false},
		{"one is told to stop", map[string][]act{"a": nil, "b": nil, "c": nil, "d": {drains}}, 0, 0, "", false},
		{"a connection breaks", map[string][]act{"a": {breaks}, "b": nil, "c": nil}, 2, 0, "", false},
		{
			"they never reach each other",
			map[string][]act{"a": {breaks, breaks, breaks, breaks, breaks}, "b": {breaks, breaks, breaks, breaks, breaks}, "c": {breaks, breaks, breaks, breaks, breaks}},
			5, 0, "could not reach each other 5 times, last: no route to host", false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGangCluster(t, 3)
				c.silent = tc.silent
				s := c.start()
				for _, name := range []string{"d", "c", "b", "a"} {
					if acts, ok := tc.members[name]; ok {
						c.join(name, 3, acts...)
						synctest.Wait()
					}
				}
				reports, err := s.Run(context.Background(), c.tasks)
				s.End(context.Background())
				c.workers.Wait()
				if tc.fails != "" {
					if !errors.Is(err, ErrTask) || !strings.Contains(err.Error(), tc.fails) {
						t.Errorf("error %v", err)
					}
				} else if err != nil || len(reports) != 3 {
					t.Fatalf("%d reports, %v", len(reports), err)
				}
				for number, members := range c.gangs {
					slices.Sort(members)
					if len(slices.Compact(members)) != len(members) || len(members) > 3 {
						t.Errorf("gang %d has %v", number, members)
					}
				}
				if tc.gangs > 0 && len(c.gangs) != tc.gangs {
					t.Errorf("gangs %v, want %d", c.gangs, tc.gangs)
				}
				want := tc.losses
				if slices.Contains(tc.members["d"], dies) || slices.Contains(tc.members["d"], small) {
					// d is in one gang at most, and in none if it came too late.
					for _, members := range c.gangs {
						if slices.Contains(members, "d") {
							want++
						}
					}
					if want > 1 {
						t.Errorf("gangs %v", c.gangs)
					}
				}
				if got := s.Losses(); len(got) != want {
					t.Errorf("losses %+v, want %d; gangs %v", got, want, c.gangs)
				}
			})
		})
	}
}

// gridTasks returns the tasks of groups of two, each with a panel.
func gridTasks(groups int) (tasks []control.Task) {
	for i := range groups {
		for _, t := range gangTasks(2) {
			t.FirstPanel, t.LastPanel = i, i+1
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// TestGroups has several gangs at the same time: each has all its workers or none, one that loses a
// worker goes on with one that was left over, and the others are not disturbed.
func TestGroups(t *testing.T) {
	for _, tc := range []struct {
		name    string
		groups  int
		members map[string][]act
		leave   int // workers that do not end their gang, if they are in one
		most    time.Duration
	}{
		{"as many as places", 2, map[string][]act{"a": nil, "b": nil, "c": nil, "d": nil}, 0, workTime},
		{"one after the other", 5, map[string][]act{"a": nil, "b": nil, "c": nil, "d": nil}, 0, 3 * workTime},
		{"one left over", 4, map[string][]act{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil}, 0, 2 * workTime},
		{"one dies, and one was left over", 2, map[string][]act{"a": {dies}, "b": nil, "c": nil, "d": nil, "e": nil}, 1, workTime + 2*testTTL},
		{"two die, and none was left over", 4, map[string][]act{"a": {dies}, "b": {dies}, "c": nil, "d": nil}, 2, 5*workTime + 5*testTTL},
		{"one is told to stop", 2, map[string][]act{"a": {drains}, "b": nil, "c": nil}, 1, 2*workTime + 2*testTTL},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGangCluster(t, 2)
				c.tasks = gridTasks(tc.groups)
				s := c.start()
				for _, name := range slices.Sorted(maps.Keys(tc.members)) {
					c.join(name, 3, tc.members[name]...)
					synctest.Wait()
				}
				begun := time.Now()
				reports, err := s.Run(context.Background(), c.tasks)
				took := time.Since(begun)
				s.End(context.Background())
				c.workers.Wait()
				if err != nil || len(reports) != len(c.tasks) {
					t.Fatalf("%d reports, %v", len(reports), err)
				}
				for number, members := range c.gangs {
					if slices.Sort(members); len(slices.Compact(slices.Clone(members))) != 2 || len(members) != 2 {
						t.Errorf("gang %d has %v", number, members)
					}
				}
				if n := len(c.gangs); n < tc.groups || n > tc.groups+tc.leave || len(s.Losses()) > tc.leave {
					t.Errorf("gangs %v for %d groups; losses %+v", c.gangs, tc.groups, s.Losses())
				}
				if took > tc.most+5*time.Second {
					t.Errorf("took %v, want %v at most", took, tc.most)
				}
			})
		})
	}
}

// A coordinator that comes back tells those who still wait of the same gang.
func TestGangOutlivesTheCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangCluster(t, 2)
		ctx, cancel := context.WithCancel(context.Background())
		process := &mortal{Store: c.store}
		first := c.startOn(process)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = first.Run(ctx, c.tasks)
		}()
		hello := func(name string) control.Hello {
			return control.Hello{Worker: name, Version: "1", Memory: 2, Blocks: "at " + name}
		}
		var leases []control.Lease
		for _, name := range []string{"a", "b"} {
			if _, err := first.Join(ctx, hello(name)); err != nil {
				t.Fatal(err)
			}
			l, err := first.Next(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		early, err := first.Gang(ctx, leases[0].Fencing)
		if err != nil {
			t.Fatal(err)
		}
		process.killed.Store(true)
		second := c.start()
		if tasks := second.UnderWay(); len(tasks) != 2 || tasks[1].Needs != 1 {
			t.Errorf("under way: %+v", tasks)
		}
		late, err := second.Gang(ctx, leases[1].Fencing)
		if err != nil || late.Number != early.Number || !slices.Equal(late.Peers, early.Peers) || late.Self != 1 {
			t.Errorf("%+v before the restart, %+v after it, %v", early, late, err)
		}
		// A process that works alone ends all of the gang, and leaves a journal that can be read.
		c.o.Alone = true
		for range 2 {
			if tasks := c.start().UnderWay(); len(tasks) > 0 {
				t.Errorf("under way beside a process that works alone: %+v", tasks)
			}
		}
		cancel()
		<-done
	})
}

// A gang that lacks a worker is given up after some leases, and those who waited are
// free for another.
func TestGangIsCutAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangCluster(t, 3)
		s := c.start()
		c.join("a", 3)
		c.join("b", 2)
		c.join("weak", 0) // has no room for any
		begun := time.Now()
		if _, err := s.Run(context.Background(), c.tasks); !errors.Is(err, errShort) {
			t.Fatalf("error %v", err)
		}
		if waited := time.Since(begun); waited < 2*testTTL || waited > 3*testTTL {
			t.Errorf("waited %v", waited)
		}
		if tasks := s.UnderWay(); len(tasks) > 0 {
			t.Errorf("under way: %+v", tasks)
		}
		reports, err := s.Run(context.Background(), gangTasks(2))
		if err != nil || len(reports) != 2 {
			t.Fatalf("%d reports, %v", len(reports), err)
		}
		s.End(context.Background())
		c.workers.Wait()
		if len(s.Losses()) > 0 {
			t.Errorf("losses %+v", s.Losses())
		}
	})
}

// TestGangGoesOnWithoutTheSick: a worker that stands still again and again does not end
// the run of the others, and is in fewer and fewer gangs.
func TestGangGoesOnWithoutTheSick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangCluster(t, 3)
		s := c.start()
		c.join("sick", 3, slices.Repeat([]act{stalls}, 100)...)
		c.join("a", 3)
		c.join("b", 3)
		var reports []control.StageReport
		err := errShort
		for members := 3; errors.Is(err, errShort); {
			if reports, err = s.Run(context.Background(), gangTasks(members)); err == nil {
				break
			}
			list, e := s.Sharers(context.Background(), false)
			if e != nil {
				t.Fatal(e)
			}
			members = len(list.Fit)
		}
		s.End(context.Background())
		c.workers.Wait()
		if err != nil || len(reports) != 2 {
			t.Fatalf("%d reports, %v", len(reports), err)
		}
		if n := len(s.Losses()); n < 2 || n > 5 {
			t.Errorf("%d losses", n)
		}
	})
}

// TestQuarantine: each further loss keeps a worker out for twice as long, up to a bound,
// and a task that it finishes lets it in again.
func TestQuarantine(t *testing.T) {
	now := time.Now()
	q := newQuarantine()
	for i, leases := range []int{0, 1, 2, 4, 8, 16, 32, 64, 64, 64} {
		q.strike(now, "sick", testTTL)
		end := now.Add(time.Duration(leases) * testTTL)
		if q.keepsOut(end, "sick") || leases > 0 && !q.keepsOut(end.Add(-1), "sick") || q.keepsOut(now, "well") {
			t.Errorf("after loss %d it is kept out until %v, want %d leases", i+1, q.until["sick"].Sub(now), leases)
		}
	}
	q.release("sick")
	if q.strike(now, "sick", testTTL); q.keepsOut(now, "sick") {
		t.Error("a finished task is forgotten")
	}
}

// offered are tasks with workers.
type offered struct {
	*fake
	workers []control.Hello
	late    []control.Hello // who has to be waited for
	held    []control.Hello // who is kept out of gangs
}

func (o *offered) Sharers(_ context.Context, all bool) (Sharers, error) {
	if all {
		o.workers = append(o.workers, o.late...)
	}
	return Sharers{Fit: o.workers, Held: o.held}, nil
}

func (o *offered) Workers() int { return len(o.workers) }

// TestWhoSharesRows: intervals are taken where no worker has room for 16 columns, or
// where they are asked for.
func TestWhoSharesRows(t *testing.T) {
	const nodes = 256 << 20
	sum := shards.Summary{Nodes: nodes, Edges: 8 * nodes, Features: 32, Components: 1, BlockRows: 1 << 20, IntervalRows: 1 << 24}
	opts := plan.Default()
	c := estimate.Counts{Nodes: nodes, Edges: 8 * nodes, Components: 1, Features: 32, Hops: 10}
	alone, err := estimate.Run(c, opts, control.Resources{Memory: 1 << 40, Threads: 1}, 0, registry.Costs(control.Smooth)...)
	if err != nil {
		t.Fatal(err)
	}
	least := alone[0].LeastBytes
	worker := func(name string, memory int64) control.Hello {
		return control.Hello{Worker: name, Memory: memory, Threads: 1, Blocks: name}
	}
	for _, tc := range []struct {
		name     string
		parallel placement.Parallel
		memory   []int64 // the last worker of more than two is late, negative ones are kept out of gangs
		part     control.Part
		refused  bool
	}{
		{"there is room", placement.Auto, []int64{least, least}, control.Columns, false},
		{"not for shares either", placement.Auto, []int64{least / 50, least / 50}, control.Columns, false},
		{"nor where they are asked for", placement.Intervals, []int64{least / 50, least / 50}, "", true},
		{"asked for", placement.Intervals, []int64{2 * least, least}, control.Strips, false},
		{"one is late", placement.Auto, []int64{least * 2 / 5, least * 2 / 5, least * 3 / 4}, control.Strips, false},
		{"one is held and not needed", placement.Intervals, []int64{2 * least, least, -least}, control.Strips, false},
		{"one is held and needed", placement.Auto, []int64{least * 2 / 5, least * 2 / 5, -least * 3 / 4}, control.Strips, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, f := setup(t, storagetest.NewMem(), sum)
			j.Plan, j.Parallel = opts, tc.parallel
			if err := shards.WriteSummary(t.Context(), j.Catalog, sum); err != nil {
				t.Fatal(err)
			}
			o := &offered{fake: f}
			for i, m := range tc.memory {
				if m < 0 {
					o.held = append(o.held, worker(fmt.Sprint(i), -m))
					continue
				}
				o.workers = append(o.workers, worker(fmt.Sprint(i), m))
			}
			members := len(tc.memory)
			if strings.HasSuffix(tc.name, "not needed") {
				members -= len(o.held)
			}
			o.workers, o.late = o.workers[:min(2, len(o.workers))], o.workers[min(2, len(o.workers)):]
			j.Tasks = o
			rec := &Record{Stages: []StageRecord{{StageReport: control.StageReport{Stage: control.Partition}, State: Complete}}}
			phases, _, err := j.phases(t.Context(), rec, registry.Of(control.Smooth)[0], sum)
			if tc.refused {
				if !errors.Is(err, mem.ErrBudget) || !strings.Contains(err.Error(), "more workers") {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil || len(phases) < 2 || phases[0][0].Part != tc.part || phases[1][0].Part != control.Rows {
				t.Fatalf("phases %v, %v", phases, err)
			}
			if tc.part == control.Strips {
				gang := phases[0]
				if len(gang) != members || gang[0].First != 0 || gang[0].Last != gang[1].First || gang[len(gang)-1].Last != packed.Strips(nodes) {
					t.Errorf("gang %+v", gang)
				}
				memory := slices.Clone(tc.memory)
				for i, m := range memory {
					memory[i] = max(m, -m)
				}
				slices.SortFunc(memory, func(a, b int64) int { return cmp.Compare(b, a) })
				for i, task := range gang {
					if task.Needs > memory[i] {
						t.Errorf("%s needs %d, its worker has %d", task.ID(), task.Needs, memory[i])
					}
				}
			}
		})
	}
}

// TestStepsOfGroups: groups go through the steps of a stage. One group of all workers makes all hops at once, unless others have begun steps.
func TestStepsOfGroups(t *testing.T) {
	const nodes, enough = 64 << 20, 64 << 30
	sum := shards.Summary{Nodes: nodes, Edges: 14 * nodes, Features: 128, Components: 1, BlockRows: 1 << 20, IntervalRows: 1 << 24}
	for _, tc := range []struct {
		name     string
		parallel placement.Parallel
		begun    bool
		groups   int
		once     bool
	}{
		{"two groups", placement.Grid, false, 2, false},
		{"one group", placement.Intervals, false, 1, true},
		{"one group, and others have begun", placement.Intervals, true, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, f := setup(t, storagetest.NewMem(), sum)
			if err := shards.WriteSummary(t.Context(), j.Catalog, sum); err != nil {
				t.Fatal(err)
			}
			o := &offered{fake: f}
			for i := range 16 {
				o.workers = append(o.workers, control.Hello{Worker: fmt.Sprint(i), Memory: enough, Threads: 1, Blocks: "here"})
			}
			j.Tasks, j.Parallel = o, tc.parallel
			j.Plan.LSI.Probes = 32
			if tc.begun {
				f, err := j.Catalog.Create(t.Context(), catalog.Describe(catalog.KindLSIRows, "lsi/rows/00001-00004").Holding(0, nodes).Panels(1, 2).AtHop(4))
				if err == nil {
					err = j.Catalog.Commit(t.Context(), f)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			rec := &Record{Stages: []StageRecord{{StageReport: control.StageReport{Stage: control.Partition}, State: Complete}}}
			lsi := registry.Of(control.LSI)[0]
			phases, g, err := j.phases(t.Context(), rec, lsi, sum)
			if err != nil || phases != nil || g == nil {
				t.Fatalf("phases %v, groups %v: %v", phases, g, err)
			}
			left, err := lsi.Shape(j.Plan, sum).(stage.Steps).Next(t.Context(), j.Catalog)
			if tasks := placement.Step(control.LSI, left, 16, g); err != nil || len(tasks) != 16 || g.Groups != tc.groups || (tasks[0].LastPanel == 0) != tc.once {
				t.Errorf("%d groups, %d tasks, the first one %s: %v", g.Groups, len(tasks), tasks[0].ID(), err)
			}
		})
	}
}

// TestSharersAreComplete: who asks for workers is not kept waiting for workers that are
// here again, nor for one that is gone for good.
func TestSharersAreComplete(t *testing.T) {
	for _, tc := range []struct {
		name          string
		restarted     bool
		all           bool
		workers, come int
		waits         time.Duration // -1 is for ever
	}{
		{"all are here", false, true, 2, 2, 0},
		{"one is to come, at first", false, false, 2, 1, -1},
		{"one is gone, after a restart", true, false, 2, 1, shortLeases * testTTL},
		{"the last is wanted too", true, true, 2, 1, shortLeases * testTTL},
		{"all are back after a restart", true, true, 2, 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGangCluster(t, 2)
				ctx, cancel := context.WithTimeout(t.Context(), 100*testTTL)
				defer cancel()
				if tc.restarted {
					c.begin(ctx)
				}
				c.o.Workers = tc.workers
				s := c.start()
				for i := range tc.come {
					h := control.Hello{Worker: fmt.Sprint(i), Version: "1", Blocks: "here"}
					if _, err := s.Join(ctx, h); err != nil {
						t.Fatal(err)
					}
					go func() { _, _ = s.Next(ctx, h.Worker) }()
				}
				begun := time.Now()
				list, err := s.Sharers(ctx, tc.all)
				workers := list.Fit
				if tc.waits < 0 {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("%v, error %v", workers, err)
					}
					return
				}
				if waited := time.Since(begun); err != nil || len(workers) != tc.come || waited < tc.waits || waited > tc.waits+testTTL/10 {
					t.Errorf("%d workers after %v, %v", len(workers), waited, err)
				}
			})
		})
	}
}

// TestSharersOfAnother: who waits for workers that have gone to another coordinator
// finds that out.
func TestSharersOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangCluster(t, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*testTTL)
		defer cancel()
		c.begin(ctx)
		first := c.start()
		c.start()
		if workers, err := first.Sharers(ctx, false); !errors.Is(err, ErrSuperseded) {
			t.Errorf("workers %v, error %v", workers, err)
		}
	})
}

// begin has a coordinator give out a task before it is killed.
func (c *gangCluster) begin(ctx context.Context) {
	process := &mortal{Store: c.store}
	s := c.startOn(process)
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { _, _ = s.Run(ctx, c.tasks) })
	_, err := s.Join(ctx, control.Hello{Worker: "before", Version: "1", Memory: 9, Blocks: "there"})
	if err == nil {
		_, err = s.Next(ctx, "before")
	}
	if err != nil {
		c.t.Fatal(err)
	}
	process.killed.Store(true)
	cancel()
	run.Wait()
}

// TestGangEarnsItsLosses: a gang may lose workers as often as it comes nearer to its
// end in between, and a few times more.
func TestGangEarnsItsLosses(t *testing.T) {
	l := newLeases(testTTL)
	now := time.Now()
	apply := func(e event) {
		t.Helper()
		if err := l.apply(now, e); err != nil {
			t.Fatal(err)
		}
	}
	tasks := gangTasks(2)
	apply(event{Fact: phase, Stage: control.Smooth, Workers: 2, Tasks: partsOf(tasks)})
	restarts := 0
	lose := func(commits bool) {
		restarts++
		for _, task := range tasks {
			apply(event{Fact: leased, Task: task.ID(), Worker: task.ID(), Fencing: l.fencing + 1})
		}
		if commits {
			apply(event{Fact: committed, Fencing: l.fencing - 1, At: now})
		}
		apply(event{Fact: lost, Task: tasks[1].ID(), Fencing: l.fencing, Loss: &Loss{Task: tasks[1].ID(), Worker: fmt.Sprint("w", restarts)}})
	}
	for range 3 * lossBudget {
		lose(true)
	}
	for i := 1; l.failed == nil; i++ {
		lose(false)
		if failed := l.failed != nil; failed != (i == lossBudget-1) || i > lossBudget {
			t.Fatalf("after %d losses without a commit: failed %v", i, failed)
		}
	}
}
