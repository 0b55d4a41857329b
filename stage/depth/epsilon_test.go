package depth_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// K for a looser epsilon of label smoothing, which the LSI stage finds in the same passes, equals that of an LSI stage with that epsilon, and so are predictions, which need no passes for it.
func TestLooserEpsilonOfLabels(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"sketch":  func(*plan.Options) {},
		"exact":   func(p *plan.Options) { p.LSI.Mode, p.LSI.Kmax = "influence-exact", 4 },
		"feature": func(p *plan.Options) { p.LSI.Mode = "feature" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
			opts.LSI.Epsilon, opts.Labels.Epsilon, opts.Labels.Kmax = 0.03, 0.3, 4
			change(&opts)
			m.BlockColumns = 16
			store := storagetest.NewMem()
			stagetest.Run(t, store, opts, m, registry.Always()[:5]...)
			separate := storagetest.NewMem()
			other := opts
			other.LSI.Epsilon, other.Labels.Epsilon = 0.3, 0
			stagetest.Run(t, separate, other, m, control.Partition, control.LSI)
			const path = "lsi/part-00000.parquet"
			got, want := stagetest.Sums(t, store)["lsi/epsilon-0.3/part-00000.parquet"], stagetest.Sums(t, separate)[path]
			if got == "" || got != want {
				t.Errorf("K for labels: %s, that of a separate run: %s", got, want)
			}
			if stagetest.Sums(t, store)[path] == want {
				t.Error("both epsilons have the same K: nothing was tested")
			}
			without := store.CrashClone()
			if err := stagetest.Open(t, without).Remove(t.Context(), func(e catalog.Entry) bool { return e.Kind == catalog.KindLabelLSI }); err != nil {
				t.Fatal(err)
			}
			with, again := stagetest.Run(t, store, opts, m, registry.Always()[5:]...), stagetest.Run(t, without, opts, m, registry.Always()[5:]...)
			if again[0].Passes <= with[0].Passes {
				t.Errorf("%d passes with K for labels, %d without", with[0].Passes, again[0].Passes)
			}
			const predictions = "predictions/part-00000.arrow"
			if a, b := stagetest.Sums(t, store)[predictions], stagetest.Sums(t, without)[predictions]; a == "" || a != b {
				t.Errorf("predictions %s with K for labels, %s without", a, b)
			}
		})
	}
}

// TestOtherLabelEpsilonOnTheWay: workers that share panels keep K apart for an epsilon of labels that changes while they find K. The table for
// the new one, which was not sought from the beginning, is left out.
func TestOtherLabelEpsilonOnTheWay(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	opts.LSI.Epsilon, opts.LSI.Probes, opts.Labels.Epsilon = 0.03, 64, 0.3
	want, store := storagetest.NewMem(), storagetest.NewMem()
	stagetest.Run(t, want, opts, m, control.Partition, control.LSI)
	stagetest.Run(t, store, opts, m, control.Partition)
	execute := func(task control.Task) {
		task.Plan.Labels.Epsilon = opts.Labels.Epsilon
		if _, err := stagetest.Execute(t.Context(), stagetest.Open(t, store), task); err != nil {
			t.Fatal(err)
		}
		if task.Part == control.Rows {
			opts.Labels.Epsilon = 0.2
		}
	}
	task := m.Task(control.LSI, opts)
	if stagetest.InSteps(t, rand.New(rand.NewPCG(0, 0)), store, task, execute); opts.Labels.Epsilon != 0.2 {
		t.Fatal("no step has found K")
	}
	execute(task)
	const path = "lsi/part-00000.parquet"
	got := stagetest.Sums(t, store)
	if got[path] == "" || got[path] != stagetest.Sums(t, want)[path] {
		t.Errorf("the K table is %s, not %s", got[path], stagetest.Sums(t, want)[path])
	}
	if other := got["lsi/epsilon-0.2/part-00000.parquet"]; other != "" {
		t.Errorf("there is a table for the new epsilon: %s", other)
	}
}

// Where labels are not smoothed, no K table is made for that.
func TestNoTableOfLabelsForSomeTargets(t *testing.T) {
	opts := stagetest.SmallPlan()
	opts.LSI.Epsilon, opts.Labels.Epsilon, opts.Smooth.Targets = 0.03, 0.3, plan.LabelledTargets
	store := storagetest.NewMem()
	stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), control.Partition, control.LSI)
	for path := range stagetest.Sums(t, store) {
		if strings.HasPrefix(path, "lsi/epsilon") {
			t.Errorf("%s is made", path)
		}
	}
}
