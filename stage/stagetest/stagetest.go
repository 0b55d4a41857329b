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
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/stage"
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
	cat.Bind(stage.Binding(task.Plan))
	env := &stage.Env{
		Session: &stage.Session{Budget: budget}, Task: task, Plan: task.Plan, Inputs: task.Inputs, Resources: task.Resources,
		Catalog: cat, Report: control.StageReport{Stage: task.Stage},
	}
	defer env.Close()
	err = stage.Execute(ctx, env)
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
