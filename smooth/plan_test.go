package smooth

import (
	"errors"
	"fmt"
	"testing"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// TestWorkIsDone compares what was planned with what smoothing moves.
func TestWorkIsDone(t *testing.T) {
	const n = 8192
	g := testgraph.Random(n, 3*n, 7)
	for _, name := range []string{"ndls", "sgc"} {
		for _, place := range []spmv.Residency{spmv.Resident, spmv.Spilled, spmv.External} {
			for _, spilled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/spilled %v", name, place, spilled), func(t *testing.T) {
					rule, err := NewRule(name, 0.1, 9)
					if err != nil {
						t.Fatal(err)
					}
					k := make([]int, n)
					for i := range k {
						k[i] = 9
					}
					c := config{r: 0.5, component: true, threads: 2, columns: 32, place: place, spilled: spilled}
					read, written := direct.ScratchTraffic()
					_, stats := smoothedStats(t, g, c, rule, input(n), k)
					after, afterWritten := direct.ScratchTraffic()
					o := Options{
						Rule: rule, Targets: AllTargets(n), SpilledSums: spilled,
						Layout: spmv.Layout{Columns: 32, Residency: place, Window: packed.StripRows, Accumulators: 1},
					}
					// Three outputs of one panel are asked for of two blocks.
					want := o.Work(n, 2*32, 9, 0)
					if spilled {
						want.Read += 3 * n * 32 * sumBytes
					}
					if stats.Passes != want.Passes || after-read != want.Read || afterWritten-written != want.Written {
						t.Errorf("%d passes, %d bytes read, %d written; planned %+v", stats.Passes, after-read, afterWritten-written, want)
					}
				})
			}
		}
	}
}

// TestPlanFits lays blocks out in less and less memory.
func TestPlanFits(t *testing.T) {
	rule, err := NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := Options{Rule: rule, Targets: AllTargets(1 << 20)}
	some := Options{Rule: rule, Targets: CountedTargets(1<<20, 1000)}
	r := hops.Capacity{Nodes: 1 << 20, Components: 3, Threads: 2, Columns: 64}
	o, least, err := all.Plan(r)
	if !errors.Is(err, mem.ErrBudget) || !o.SpilledSums || o.Layout.Residency != spmv.External {
		t.Fatalf("without memory: %+v, error %v", o, err)
	}
	for r.Free = least; r.Free < 2<<30; r.Free += 16 << 20 {
		o, need, err := all.Plan(r)
		if err != nil || need > r.Free {
			t.Fatalf("%d bytes: needs %d, error %v", r.Free, need, err)
		}
		if p, less, err := some.Plan(r); err != nil || less > r.Free || p.Layout.Residency > o.Layout.Residency || p.Layout.Residency == o.Layout.Residency && p.Layout.Columns < o.Layout.Columns {
			t.Errorf("%d bytes: %+v for some targets, %+v for all, error %v", r.Free, p.Layout, o.Layout, err)
		}
	}
	if o, _, _ = all.Plan(r); o.SpilledSums || o.Layout.Residency != spmv.Resident || o.Layout.Columns != r.Useful().Columns {
		t.Errorf("with 2 GiB: %+v", o)
	}
}

// TestPlanReadsAhead: hop 0 of the next block gets memory where blocks stay as they are, there are
// several, and each is read once.
func TestPlanReadsAhead(t *testing.T) {
	rule, err := NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	residual, err := NewRule("s2gc", 0.2, 5)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Rule: rule, Targets: AllTargets(1 << 20)}
	r := hops.Capacity{Nodes: 1 << 20, Components: 3, Threads: 2, Columns: 64}
	_, r.Free, _ = o.Plan(r)
	seen := [2]int{}
	for ; r.Free < 2<<30; r.Free += 16 << 20 {
		plain, less, err := o.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		asked := o
		asked.Ahead = true
		with, need, err := asked.Plan(r)
		if err != nil || need > r.Free || with.Layout != plain.Layout || with.SpilledSums != plain.SpilledSums {
			t.Fatalf("%d bytes: needs %d, %+v, and %+v without reading ahead, error %v", r.Free, need, with.Layout, plain.Layout, err)
		}
		more := int64(0)
		if with.Ahead {
			seen[1]++
			more = 4*r.Nodes*int64(with.Layout.Columns) + 4096
		} else {
			seen[0]++
		}
		if need != less+more {
			t.Errorf("%d bytes: needs %d, without reading ahead %d, %d columns", r.Free, need, less, with.Layout.Columns)
		}
		one := r
		one.Columns = with.Layout.Columns
		if p, _, err := asked.Plan(one); err == nil && p.Layout == with.Layout && p.Ahead {
			t.Errorf("%d bytes: one block is read ahead", r.Free)
		}
		asked.Rule = residual
		if p, _, err := asked.Plan(r); err == nil && p.Ahead {
			t.Fatalf("%d bytes: blocks that are read twice are read ahead", r.Free)
		}
	}
	if seen[0] == 0 || seen[1] == 0 {
		t.Errorf("%d plans do not read ahead, %d do", seen[0], seen[1])
	}
}
