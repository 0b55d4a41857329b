package lsi

import (
	"errors"
	"fmt"
	"testing"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// TestWorkIsDone compares what was planned with what a run moves and holds.
func TestWorkIsDone(t *testing.T) {
	testkit.NotUnderRace(t, "TestBlocksThreadsAndKernelsDoNotShow and TestPolynomialsFindK start the same goroutines")
	fewAlways(t)
	const n, width, kmax = 8192, 48, 40
	g := testgraph.Random(n, 3*n, 7)
	for _, place := range []spmv.Residency{spmv.Resident, spmv.Spilled, spmv.External} {
		for _, columns := range []int{16, 48} {
			for _, epsilon := range []float64{0.3, 0.08, 1e-9} {
				for _, tolerance := range []float64{0, 0.01} {
					t.Run(fmt.Sprintf("%s/%d columns/epsilon %g/tolerance %g", place, columns, epsilon, tolerance), func(t *testing.T) {
						s := setup{r: 0.5, component: true, columns: columns, place: place, tolerance: tolerance, memory: 20 << 20} // so that kept rows go to disk
						read, written := direct.ScratchTraffic()
						table, stats := run(t, g, s, Signs(5, ids(n), width), epsilon, kmax)
						after, afterWritten := direct.ScratchTraffic()
						o, last := Options{Epsilon: epsilon, Kmax: kmax, Tolerance: tolerance, Layout: layout(columns, place)}, largest(table)
						ends := stats.ends
						want := o.work(n, width, true, last, openUnits(table), openUnits(table), func(*tracker) int {
							end := ends[0]
							ends = ends[1:]
							return end
						})
						if planned := o.Work(n, n, width, true, last); planned.Passes > stats.Passes+2 || planned.Passes < stats.Passes*9/10-2 {
							t.Errorf("%d passes with windows that end at hops %v, planned %d", stats.Passes, stats.ends, planned.Passes)
						}
						if stats.Passes != want.Passes || after-read != want.Read || afterWritten-written != want.Written {
							t.Errorf("%d passes, %d bytes read, %d written; planned %+v", stats.Passes, after-read, afterWritten-written, want)
						}
						// Resident rows move between windows of hops alone; others move with each hop.
						var moved hops.Work
						for _, h := range stats.ByHop {
							moved.Read, moved.Written = moved.Read+h.Read, moved.Written+h.Written
						}
						least := hops.Work{}
						if place != spmv.Resident && tolerance == 0 {
							least = hops.Work{Read: want.Read * 3 / 4, Written: want.Written * 2 / 3}
						}
						if moved.Read < least.Read || moved.Written < least.Written || moved.Read > want.Read || moved.Written > want.Written || place == spmv.Resident && tolerance == 0 && moved != least {
							t.Errorf("hops have %d bytes read and %d written, of %+v", moved.Read, moved.Written, want)
						}
					})
				}
			}
		}
	}
}

// openUnits counts the units of nodes whose K is above plainHops.
func openUnits(table *Table) (units int64) {
	for lo := 0; lo < len(table.k.S); lo += packed.StripRows {
		open := 0
		for i := lo; i < min(lo+packed.StripRows, len(table.k.S)); i++ {
			if k, _ := table.K(int64(i)); k > plainHops {
				open++
			}
		}
		units += unitsOf(open)
	}
	return units
}

// largest is the largest K.
func largest(table *Table) (most int) {
	for i := range table.k.S {
		k, _ := table.K(int64(i))
		most = max(most, k)
	}
	return most
}

// TestPlanFits lays blocks out in less and less memory.
func TestPlanFits(t *testing.T) {
	r := hops.Capacity{Nodes: 1 << 20, Components: 3, Threads: 2, Columns: 64}
	o, least, err := Options{}.Plan(r)
	if !errors.Is(err, mem.ErrBudget) || o.Layout.Columns != packed.PanelColumns || o.Layout.Residency != spmv.External {
		t.Fatalf("without memory: %+v, error %v", o.Layout, err)
	}
	before := spmv.Layout{Residency: spmv.External}
	for r.Free = least; r.Free < 2<<30; r.Free += 16 << 20 {
		o, need, err := Options{}.Plan(r)
		if err != nil || need > r.Free {
			t.Fatalf("%d bytes: needs %d, error %v", r.Free, need, err)
		}
		if o.Layout.Residency > before.Residency {
			t.Errorf("%d bytes: %s after %s", r.Free, o.Layout.Residency, before.Residency)
		}
		before = o.Layout
	}
	if before.Residency != spmv.Resident || before.Columns != 64 {
		t.Errorf("with 2 GiB: %+v", before)
	}
}
