package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ndls/internal/control"
	"ndls/plan"
)

func paperJob(workers int) job {
	return job{Counts: papers, plan: papersPlan(plan.LabelledTargets), machine: reference, workers: workers}
}

// calm is a cluster to which nothing happens.
func calm() fate {
	return fate{lease: 30 * time.Second, checkpoint: 5 * time.Minute, replace: 2 * time.Minute}
}

// rough is one where several machines die in each run.
func rough(seed uint64) fate {
	f := calm()
	f.slow, f.mtbf, f.seed = 0.3, time.Hour, seed
	return f
}

func mustSimulate(t *testing.T, j job, f fate) []tally {
	t.Helper()
	tallies, err := simulate(j, f)
	if err != nil {
		t.Fatal(err)
	}
	return tallies
}

// Work done equals the planned work plus the lost work, and time went by for both.
func TestWorkIsDoneOrLost(t *testing.T) {
	deaths, second := 0.0, 0.0
	for seed := range uint64(6) {
		j, f := paperJob(4), rough(seed)
		f.slow = 0
		if seed%2 == 1 {
			f.slow = 1
		}
		for i, p := range mustSimulate(t, j, f) {
			if !(math.Abs(p.done-float64(p.planned)-p.lost) < 1e-6) {
				t.Errorf("seed %d, %s: %v units done, %d planned and %v lost", seed, name(p), p.done, p.planned, p.lost)
			}
			if f.slow == 0 && j.phases()[i].weights == nil && p.busy < p.done*j.phases()[i].piece.unit-1e-3 {
				t.Errorf("seed %d, %s: %v s for %v units", seed, name(p), p.busy, p.done)
			}
			if useful := p.busy - p.died - p.doubled; useful < 0 || p.died < 0 || p.doubled < 0 {
				t.Errorf("seed %d, %s: %v s, of which %v and %v lost", seed, name(p), p.busy, p.died, p.doubled)
			}
			deaths += p.died
			second += p.doubled
		}
	}
	if deaths == 0 || second == 0 {
		t.Errorf("%v s lost to deaths and %v done twice: nothing was tried", deaths, second)
	}
}

func TestOneWorkerIsTheClosedFormula(t *testing.T) {
	for _, tc := range []struct {
		name       string
		targets    string
		checkpoint time.Duration
	}{
		{"labelled", plan.LabelledTargets, 5 * time.Minute},
		{"all", plan.AllTargets, 5 * time.Minute},
		{"never saved", plan.LabelledTargets, 1000 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, f := paperJob(1), calm()
			j.plan, f.checkpoint = papersPlan(tc.targets), tc.checkpoint
			got, want := total(mustSimulate(t, j, f)), j.alone(j.phases(), tc.checkpoint.Seconds())
			if math.Abs(got-want) > 1e-3 {
				t.Errorf("%v s, the formula says %v", got, want)
			}
		})
	}
}

func TestSeedsReproduce(t *testing.T) {
	// Events of the same instant may share a record or not.
	run := func(seed uint64) []tally {
		tallies := mustSimulate(t, paperJob(5), rough(seed))
		for i := range tallies {
			tallies[i].records = 0
		}
		return tallies
	}
	a, b, c := run(3), run(3), run(4)
	if !slices.EqualFunc(a, b, sameTally) {
		t.Errorf("one seed gives\n%+v\nand\n%+v", a, b)
	}
	if total(a) == total(c) {
		t.Errorf("two seeds give %v s", total(a))
	}
}

// sameTally compares tallies up to a millisecond: who comes first of those that come at the same instant is not given, and
// a machine with much to do lets others be first.
func sameTally(a, b tally) bool {
	for _, x := range [][2]float64{{a.wall, b.wall}, {a.busy, b.busy}, {a.died, b.died}, {a.doubled, b.doubled}, {a.done, b.done}, {a.lost, b.lost}} {
		if math.Abs(x[0]-x[1]) > 1e-3 {
			return false
		}
	}
	return a.stage == b.stage && a.part == b.part && a.planned == b.planned && a.leases == b.leases && a.read == b.read && a.written == b.written
}

// Up to the number of blocks more workers are not slower.
func TestMoreWorkersAreNotSlower(t *testing.T) {
	for _, tc := range []struct {
		name string
		fate func(seed uint64) fate
	}{
		{"calm", func(uint64) fate { return calm() }},
		{"slow ones", func(seed uint64) fate { f := calm(); f.slow, f.seed = 0.25, seed; return f }},
		{"slow ones and deaths", func(seed uint64) fate { f := rough(seed); f.mtbf = 6 * time.Hour; return f }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := math.Inf(1)
			for _, workers := range []int{1, 2, 4, 8} {
				sum := 0.0
				for seed := range uint64(4) {
					for _, p := range mustSimulate(t, paperJob(workers), tc.fate(seed)) {
						if p.part == control.Columns {
							sum += p.wall
						}
					}
				}
				if sum > before {
					t.Errorf("%d workers take %v s, fewer %v", workers, sum/4, before/4)
				}
				before = sum
			}
		})
	}
}

// The coordinator's rules hold: a task that always dies is given up after five losses.
func TestLossBudget(t *testing.T) {
	f := rough(1)
	f.mtbf = time.Minute
	_, err := simulate(paperJob(2), f)
	if err == nil || !strings.Contains(err.Error(), "lost with 5 different workers") {
		t.Errorf("got %v", err)
	}
}

func TestGroups(t *testing.T) {
	g := group{job: paperJob(64), size: 4, row: rowBytes}
	if got, want := g.received(), 0.75*rowBytes*float64(papers.Nodes); got != want {
		t.Errorf("%v bytes received, want %v", got, want)
	}
	g.needed = true
	if got := g.received(); got >= 0.75*rowBytes*float64(papers.Nodes) {
		t.Errorf("%v bytes of needed rows are not less than all", got)
	}
	quiet := g.simulate(calm())
	if want := float64(papers.Hops) * g.hop(); math.Abs(quiet.wall-want-quiet.saving) > 1e-6 {
		t.Errorf("%v s where nothing happens, want %v", quiet.wall, want)
	}
	f := rough(2)
	f.slow, f.mtbf = 0, 10*time.Minute
	died := g.simulate(f)
	if died.deaths == 0 || math.Abs(died.wall-died.died-died.saving-float64(papers.Hops)*g.hop()) > g.hop()*float64(papers.Hops) || died.wall <= quiet.wall {
		t.Errorf("%+v beside %+v", died, quiet)
	}
	if again := g.simulate(f); again != died {
		t.Errorf("one seed gives %+v and %+v", died, again)
	}
}

func TestTables(t *testing.T) {
	for _, tc := range []struct {
		args, holds string
	}{
		{"-workers 1,8 -seeds 1", "| 1 | 298 |"},
		{"-table bytes -workers 4", "| partition rows | 22 |"},
		{"-table gangs -workers 2,8", "| 8 | "},
		{"-table bytes -workers 8", "| smooth columns | 8 |"},
		{"-table intervals -workers 16 -sizes 1,2", "| 2 | 8 | all |"},
		{"-table intervals -graph 10g -workers 1000 -sizes 125", "| 125 | 8 | needed |"},
		{"-table held", "| 2 | columns |"},
		{"-table renewals -workers 300 -for 1s -dir " + t.TempDir(), "| 300 | renew | "},
		{"-table limits -files 10,20 -dir " + t.TempDir(), "two records | 20 |"},
	} {
		var out bytes.Buffer
		if err := command(&out, strings.Fields(tc.args)); err != nil || !strings.Contains(out.String(), tc.holds) {
			t.Errorf("%s: error %v, no %q in\n%s", tc.args, err, tc.holds, out.String())
		}
	}
	for _, bad := range []string{"-table none", "-graph none", "-workers 0", "-sizes x"} {
		if err := command(&bytes.Buffer{}, strings.Fields(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestCoresAreShared: four workers on two cores take twice as long as on four.
func TestCoresAreShared(t *testing.T) {
	j := paperJob(4)
	j.replayed = []phase{{stage: control.Smooth, part: control.Columns, tasks: []int{1, 1, 1, 1}, piece: work{units: 1, unit: 10}}}
	alone := total(mustSimulate(t, j, calm()))
	j.cores = 2
	shared := total(mustSimulate(t, j, calm()))
	if math.Abs(alone-10) > 0.1 || math.Abs(shared-20) > 0.2 {
		t.Errorf("%v s on four cores, %v on two", alone, shared)
	}
}

// TestGrid: with more workers than panels, groups share their rows, and all have something to
// do. Groups are so large that the edges of a worker stay in memory. The bound of edges in memory is never beaten.
func TestGrid(t *testing.T) {
	before := math.Inf(1)
	for _, workers := range []int{8, 16, 32, 64} {
		j := paperJob(workers)
		j.machine.Net, j.grid = 12.5e9, true
		if g := j.groupOf(8, rowBytes); g.size != max(workers/8, 4) {
			t.Errorf("%d workers share 8 panels in groups of %d", workers, g.size)
		}
		var sum tally
		columns := 0.0
		for _, p := range mustSimulate(t, j, calm()) {
			if p.stage == control.Smooth && p.part == control.Columns {
				columns = p.wall
			}
			sum.add(p)
		}
		if columns > 0.75*before {
			t.Errorf("%d workers smooth in %.0f s, half as many in %.0f", workers, columns, before)
		}
		before = columns
		j.inMemory = true
		if bound := j.floor(float64(sum.read + sum.written)); sum.wall < bound.total {
			t.Errorf("%d workers take %.0f s, and the hardware allows %.0f", workers, sum.wall, bound.total)
		}
	}
}

// TestProbeGroups: where the network decides, groups that have a panel of the probe each are faster than one group of all
// workers, and where it does not they are not made.
func TestProbeGroups(t *testing.T) {
	for _, tc := range []struct {
		probes  int
		net     float64
		workers int
		phases  int // 1 for one group; else two of each stretch of hops, of which the last has the passes of polynomials, and one that joins
	}{
		{16, 1.25e9, 16, 1}, {32, 1.25e9, 16, 9}, {32, 12.5e9, 4, 1}, {64, 1.25e9, 16, 9}, {32, 1.25e9, 2, 1},
	} {
		j := paperJob(tc.workers)
		j.machine.Net, j.grid, j.plan.LSI.Probes = tc.net, true, tc.probes
		phases := j.lsi()
		if len(phases) != tc.phases {
			t.Errorf("%d probes, %d workers, %.2g B/s: %d phases, want %d", tc.probes, tc.workers, tc.net, len(phases), tc.phases)
		}
		all := group{job: j, size: tc.workers, row: probeRow, barrier: barrierSeconds, fewest: j.first(tc.workers)}
		if took, one := j.takes(phases), j.takes(j.lsiBy(all)); took > one || tc.phases > 1 && took > 0.8*one {
			t.Errorf("%d probes, %d workers, %.2g B/s: %.0f s, %.0f in one group", tc.probes, tc.workers, tc.net, took, one)
		}
	}
}

// TestLargestGraph simulates the web graph whole, with a thousand workers.
func TestLargestGraph(t *testing.T) {
	j := paperJob(1000)
	j.Counts, j.grid = web, true
	j.machine.Memory, j.machine.Threads, j.machine.Edges, j.machine.Net = 64<<30, 16, 2.4e9, 12.5e9
	tallies := mustSimulate(t, j, calm())
	for _, p := range tallies {
		if !(p.wall >= 0) || p.wall > 1e6 || p.read < 0 || p.written < 0 || math.Abs(p.done-float64(p.planned)-p.lost) > 1e-6 {
			t.Errorf("%+v", p)
		}
	}
	if wall := total(tallies); !(wall > 400) {
		t.Errorf("all of it in %v s", wall)
	}
	for _, p := range tallies {
		if n := 1000; p.stage == control.Smooth && p.part == control.Columns && p.busy < 0.5*float64(n)*p.wall {
			t.Errorf("%d workers are busy for %.0f s in %.0f", n, p.busy, p.wall)
		}
	}
}
