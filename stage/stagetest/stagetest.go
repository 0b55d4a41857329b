// Package stagetest runs the stages of a plan in the process of a test, one after the other, and
// reads what they have committed. It is for tests of package stage, and for those that compare with
// a run without workers.
//
// # Memory
//
// Each stage has a budget and a session of its own, which end with it.
//
// # Determinism
//
// The committed bytes equal those of a run of ndls with the same plan.
package stagetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
	"ndls/stage"
	"ndls/stage/registry"
)

// Small is a graph that a test can run many times; its labels can be learnt.
const Small = "synthetic:nodes=3000,edges=12000,features=40,classes=4,seed=3"

// SmallPlan returns a plan for [Small] with few probes, hops and epochs.
func SmallPlan() plan.Options {
	p := plan.Default()
	p.Partition.Dataset = Small
	p.LSI.Probes, p.LSI.Kmax, p.LSI.Epsilon = 48, 30, 0.1
	p.Train.Epochs, p.Train.Runs, p.Train.Hidden = 6, 2, 16
	return p
}

// Setup holds what a task gets beside its plan.
type Setup struct {
	control.Resources
	control.Inputs
}

// On returns a setup for a dataset with 1 GiB of memory and two threads.
func On(t testing.TB, dataset string) Setup {
	return Setup{
		control.Resources{Memory: 1 << 30, Threads: 2, Scratch: t.TempDir(), Kernel: "auto"},
		control.Inputs{Dataset: dataset},
	}
}

// Task returns the task of a whole stage.
func (s Setup) Task(name control.Stage, p plan.Options) control.Task {
	return control.Task{Stage: name, Part: control.Whole, Plan: p, Inputs: s.Inputs, Resources: s.Resources}
}

// Open opens the catalogue of a store.
func Open(t testing.TB, store storage.Store) *catalog.Catalog {
	t.Helper()
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// Execute executes a task, a stage or a part of one, in a session of its own.
func Execute(ctx context.Context, cat *catalog.Catalog, task control.Task) (control.StageReport, error) {
	budget, err := mem.NewBudget(task.Resources.Memory)
	if err != nil {
		return control.StageReport{}, err
	}
	cat.Bind(registry.Binding(task.Plan))
	env := &stage.Env{
		Session: &stage.Session{Budget: budget}, Task: task, Plan: task.Plan, Inputs: task.Inputs, Resources: task.Resources,
		Catalog: cat, Report: control.StageReport{Stage: task.Stage},
	}
	defer env.Close()
	err = registry.Execute(ctx, env)
	env.Report.PlannedPeak = mem.Total(budget.Peak())
	return env.Report, err
}

// Run executes stages one after the other and returns their reports. An error ends the test.
func Run(t testing.TB, store storage.Store, opts plan.Options, setup Setup, stages ...control.Stage) (reports []control.StageReport) {
	t.Helper()
	cat := Open(t, store)
	for _, s := range stages {
		r, err := Execute(context.Background(), cat, setup.Task(s, opts))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		reports = append(reports, r)
	}
	return reports
}

// Sums returns rows and checksum of each file that the catalogue lists, by path. It compares the
// checksums with the files.
func Sums(t testing.TB, store storage.Store) map[string]string {
	t.Helper()
	cat, sums := Open(t, store), map[string]string{}
	for _, e := range cat.All() {
		if err := cat.Verify(context.Background(), e); err != nil {
			t.Error(err)
		}
		sums[e.Path] = fmt.Sprint(e.Rows, " rows, ", e.Checksum)
	}
	return sums
}

// Compare reports each file whose [Sums] differ.
func Compare(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for path, w := range want {
		if got[path] != w {
			t.Errorf("%s: %s: %s, want %s", what, path, got[path], w)
		}
	}
	for path := range got {
		if want[path] == "" {
			t.Errorf("%s: %s is new", what, path)
		}
	}
}

// Classes37 is a graph whose classes and features take several panels.
const Classes37 = "synthetic:nodes=3000,edges=12000,features=40,classes=37,seed=3"

// FastRP lets the rows be made of the edges alone. There are three panels of two hops.
func FastRP(p *plan.Options) {
	p.Smooth.Rule, p.Smooth.Dimensions, p.Smooth.HopWeights = plan.FastRP, 40, "0,1,0,2"
	p.Train.Epochs = 60
}

// HasKernel reports whether this processor has a kernel.
func HasKernel(name string) bool {
	_, err := spmv.Select(name)
	return err == nil
}

// Rows reads Arrow row files, by input id.
func Rows(t testing.TB, store storage.Store, kind string) map[int64][]float32 {
	t.Helper()
	ctx, cat := context.Background(), Open(t, store)
	out := map[int64][]float32{}
	for _, e := range cat.Entries(kind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		rr, err := shards.OpenRows(r, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rr.NumBatches() {
			var b shards.RowBatch
			if err := rr.ReadBatch(i, &b); err != nil {
				t.Fatal(err)
			}
			w := rr.Schema().Values()
			for k, id := range b.ID {
				out[id] = b.Values[k*w : (k+1)*w]
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Labels reads labels and probabilities of Arrow row files, by input id.
func Labels(t testing.TB, store storage.Store, kind string) (label map[int64]int32, probability map[int64][]float32) {
	t.Helper()
	ctx, cat := context.Background(), Open(t, store)
	label, probability = map[int64]int32{}, map[int64][]float32{}
	for _, e := range cat.Entries(kind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rows, err := shards.OpenRows(r, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows.NumBatches() {
			var b shards.RowBatch
			if err := rows.ReadBatch(i, &b); err != nil {
				t.Fatal(err)
			}
			width := rows.Schema().Width
			for k, id := range b.ID {
				probability[id] = b.Values[k*width : (k+1)*width]
				if rows.Schema().Label {
					label[id] = b.Label[k]
				}
			}
		}
	}
	return label, probability
}

// K returns the local smoothing iteration of every node, by input id.
func K(t testing.TB, store storage.Store) map[int64]int {
	t.Helper()
	cat, k := Open(t, store), map[int64]int{}
	for _, e := range cat.Entries(catalog.KindLSI) {
		r, err := cat.Open(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		if err := shards.ReadLSI(r, e.Path, shards.Readers{}, func(_ int64, b shards.LSIBatch) error {
			for i, id := range b.ID {
				k[id] = int(b.K[i])
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	return k
}

// InSteps has a stage done in the steps that it is cut into, a piece a task, in any order, but for
// the task of the whole stage. It returns how many tasks there were.
func InSteps(t testing.TB, rng *rand.Rand, store storage.Store, task control.Task, do func(control.Task)) (tasks int) {
	t.Helper()
	for {
		cat := Open(t, store)
		sum, err := shards.ReadSummary(context.Background(), cat)
		if err != nil {
			t.Fatal(err)
		}
		steps, ok := registry.Of(task.Stage)[0].Shape(task.Plan, sum).(stage.Steps)
		if !ok {
			return tasks
		}
		left, err := steps.Next(context.Background(), cat)
		if err != nil {
			t.Fatal(err)
		}
		if left.Done() {
			return tasks
		}
		rng.Shuffle(len(left.Pieces), func(i, j int) { left.Pieces[i], left.Pieces[j] = left.Pieces[j], left.Pieces[i] })
		for _, p := range left.Pieces {
			task.Part, task.First, task.Last = control.Part(left.Step), p.First, p.Last
			do(task)
			tasks++
		}
	}
}
