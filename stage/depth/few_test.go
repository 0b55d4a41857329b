package depth_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/stagetest"
	"ndls/worker"
)

// withRing writes a graph of which a tenth of the nodes have eight neighbours near them on a ring, and need many hops. The others have
// eight random neighbours.
func withRing(t *testing.T, nodes int) string {
	var b strings.Builder
	rng, ring := rand.New(rand.NewPCG(11, 0)), nodes/10
	for i := range nodes {
		for far := range 4 {
			if i < ring {
				fmt.Fprintf(&b, "%d %d\n", i, (i+far+1)%ring)
			} else {
				fmt.Fprintf(&b, "%d %d\n", i, ring+rng.IntN(nodes-ring))
			}
		}
	}
	fmt.Fprintf(&b, "0 %d\n", ring)
	path := filepath.Join(t.TempDir(), "ring.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFewPassesForK finds K from few polynomials with every mix of threads, memory, kernel and width of blocks, and by workers that share the
// panels of the probe: every committed byte is the same, and so is the report.
func TestFewPassesForK(t *testing.T) {
	path := withRing(t, 3000)
	for name, change := range map[string]func(*plan.Options){
		"sketch":  func(*plan.Options) {},
		"r":       func(p *plan.Options) { p.LSI.R, p.LSI.Probes, p.Tolerance = 0.2, 80, 0.01 },
		"later":   func(p *plan.Options) { p.LSI.Epsilon = 0.012 },
		"Kmax 60": func(p *plan.Options) { p.LSI.Kmax, p.LSI.Epsilon, p.Tolerance = 60, 0.13, 0.01 },
	} {
		opts := stagetest.SmallPlan()
		opts.Partition.Dataset, opts.Partition.Features = "edges:ring.txt", "none"
		opts.LSI.Probes, opts.LSI.Epsilon, opts.LSI.Kmax = 48, 0.1, 200
		change(&opts)
		stages := []control.Stage{control.Partition, control.LSI}
		var want map[string]string
		var report control.StageReport
		compare := func(what string, store storage.Store, r control.StageReport) {
			t.Helper()
			if want == nil {
				want, report = stagetest.Sums(t, store), r
				least, most := 8, 16 // hops of random signs find the rows that move
				if name == "later" {
					least, most = 0, 0
				}
				if p := r.Polynomials; p == nil || r.Passes < p.Passes+least || r.Passes > p.Passes+most ||
					p.Hops != opts.LSI.Kmax || r.LSI.Uncertain == 0 || r.LSI.Uncertain >= 3000 {
					t.Errorf("%s: %d passes, the report says %+v, and that K of %d nodes is uncertain", name, r.Passes, p, r.LSI.Uncertain)
				}
				return
			}
			stagetest.Compare(t, name+", "+what, stagetest.Sums(t, store), want)
			if !reflect.DeepEqual(r.LSI, report.LSI) {
				t.Errorf("%s, %s: the report says %+v, not %+v", name, what, r.LSI, report.LSI)
			}
		}
		for _, c := range []struct {
			threads int
			memory  int64
			kernel  string
			columns int
			lean    bool
		}{{2, 1 << 30, "auto", 0, false}, {1, mem.MinBudget, "go", 0, false}, {5, 200 << 20, "auto", 16, false}, {2, 1 << 30, "auto", 0, true}} {
			store := storagetest.NewMem()
			res := stagetest.On(t, "edges:"+path)
			res.Threads, res.Memory, res.Kernel, res.BlockColumns, res.Lean = c.threads, c.memory, c.kernel, c.columns, c.lean
			compare(fmt.Sprintf("%+v", c), store, stagetest.Run(t, store, opts, res, stages...)[1])
		}
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		store := storagetest.NewMem()
		m := stagetest.On(t, "edges:"+path)
		stagetest.Run(t, store, opts, m, control.Partition)
		var workers [2]*worker.Worker
		var views [2]*catalog.Catalog
		for i := range workers {
			counting := storage.NewCounting(store)
			views[i] = stagetest.Open(t, counting)
			workers[i] = worker.New(counting, views[i])
			defer workers[i].Close()
		}
		do := func(task control.Task) control.StageReport {
			w := rng.IntN(2)
			views[w].Update(catalog.Listing{Whole: true, Added: stagetest.Open(t, store).Entries("")})
			r, err := workers[w].Execute(t.Context(), task)
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, task.ID(), err)
			}
			return r
		}
		task := m.Task(control.LSI, opts)
		var of *control.Polynomials
		if tasks := stagetest.InSteps(t, rng, store, task, func(task control.Task) {
			if r := do(task); r.Polynomials != nil {
				of = r.Polynomials
			}
		}); tasks < 9 {
			t.Errorf("%s: %d tasks of workers that share panels", name, tasks)
		}
		if !reflect.DeepEqual(of, report.Polynomials) {
			t.Errorf("%s: tasks report %+v, the whole stage %+v", name, of, report.Polynomials)
		}
		compare(fmt.Sprintf("panels shared, seed %d", seed), store, do(task))
	}
}
