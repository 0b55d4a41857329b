package registry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
	"ndls/worker"
)

// pieces cuts [0, n) at random.
func pieces(rng *rand.Rand, n int) (all [][2]int) {
	for first := 0; first < n; {
		last := first + 1 + rng.IntN(n-first)
		all = append(all, [2]int{first, last})
		first = last
	}
	rng.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	return all
}

// TestCutsDoNotShow executes smooth and smooth-labels in parts, cut at random and in
// any order, by two workers in turn, train in steps, and compares with whole stages.
func TestCutsDoNotShow(t *testing.T) {
	testkit.NotUnderRace(t, "TestResourcesDoNotShow starts the same goroutines")
	soft := filepath.Join(t.TempDir(), "soft.csv")
	var text strings.Builder
	text.WriteString("id,a,b,c,d\n")
	for id := range 3000 {
		text.WriteString(strings.Join([]string{strconv.Itoa(id), strconv.Itoa(id % 3), "1", strconv.Itoa(id % 7), "2"}, ",") + "\n")
	}
	if err := os.WriteFile(soft, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*plan.Options, *stagetest.Setup){
		"ndls":            func(*plan.Options, *stagetest.Setup) {},
		"few polynomials": func(p *plan.Options, _ *stagetest.Setup) { p.Tolerance, p.LSI.Epsilon = 0.1, 0.02 },
		"fastrp":          func(p *plan.Options, _ *stagetest.Setup) { stagetest.FastRP(p) },
		"ndls-reference": func(p *plan.Options, _ *stagetest.Setup) {
			p.Smooth.Rule, p.Labels.Rule = "ndls-reference", "ndls-reference"
		},
		"little disk": func(p *plan.Options, m *stagetest.Setup) {
			p.Partition.Dataset, *m = stagetest.Classes37, stagetest.On(t, stagetest.Classes37)
			p.Probabilities, p.DropFeatures, p.Labels.Kmax = plan.BestProbability, true, 3
			m.BlockColumns = 16
		},
		"hops and label columns": func(p *plan.Options, _ *stagetest.Setup) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "1,3", 2 },
		"sign":                   func(p *plan.Options, _ *stagetest.Setup) { p.Smooth.Rule, p.Smooth.Hops = "sign", 2 },
		"correct": func(p *plan.Options, _ *stagetest.Setup) {
			p.Labels.Rule, p.Labels.CorrectHops = plan.CorrectSmooth, 4
		},
		"given, correct by node": func(p *plan.Options, m *stagetest.Setup) {
			p.Labels.SoftLabels, m.SoftLabels, p.Labels.Rule = "soft.csv", soft, plan.CorrectSmoothByNode
		},
		"nafs": func(p *plan.Options, _ *stagetest.Setup) { p.Smooth.Rule, p.Smooth.Hops = "nafs", 3 },
		"appnp by node": func(p *plan.Options, _ *stagetest.Setup) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth = "appnp", 3, plan.NodeDepth
		},
		"other epsilon": func(p *plan.Options, _ *stagetest.Setup) { p.Labels.Epsilon = 0.05 },
		"given":         func(p *plan.Options, m *stagetest.Setup) { p.Labels.SoftLabels, m.SoftLabels = "soft.csv", soft },
		"given, reference": func(p *plan.Options, m *stagetest.Setup) {
			p.Labels.SoftLabels, m.SoftLabels, p.Labels.Rule = "soft.csv", soft, "ndls-reference"
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
			opts.Train.Runs = 3
			change(&opts, &m)
			stages := slices.Clone(registry.Always())
			if opts.Labels.SoftLabels != "" {
				stages = slices.DeleteFunc(stages, func(s control.Stage) bool { return s == control.Train || s == control.Predict })
			}
			store := storagetest.NewMem()
			stagetest.Run(t, store, opts, m, stages...)
			want := stagetest.Sums(t, store)

			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 0))
			cut := storagetest.NewMem()
			var workers [2]*worker.Worker
			var views [2]*catalog.Catalog
			for i := range workers {
				counting := storage.NewCounting(cut)
				views[i] = stagetest.Open(t, counting)
				workers[i] = worker.New(counting, views[i])
				defer workers[i].Close()
			}
			do := func(task control.Task) control.StageReport {
				t.Helper()
				w := rng.IntN(2)
				views[w].Update(catalog.Listing{Whole: true, Added: stagetest.Open(t, cut).Entries("")})
				r, err := workers[w].Execute(context.Background(), task)
				if err != nil {
					t.Fatalf("seed %d: %s: %v", seed, task.ID(), err)
				}
				return r
			}
			for _, s := range stages {
				task := m.Task(s, opts)
				panels := map[control.Stage]int{control.Smooth: 3, control.LabelDepth: 3, control.SmoothLabels: 3}[s]
				if opts.Partition.Dataset == stagetest.Classes37 && panels > 0 && s != control.Smooth {
					panels = 9
				}
				if opts.Labels.SoftLabels != "" && panels > 0 && s != control.Smooth {
					panels = 1
				}
				if s == control.Smooth && opts.Smooth.LabelColumns > 0 {
					panels = 4 // features, then labels
				}
				if panels == 0 {
					if s != control.Partition {
						stagetest.InSteps(t, rng, cut, task, func(task control.Task) { do(task) })
					}
					do(task)
					continue
				}
				for _, p := range pieces(rng, panels) {
					task.Part, task.First, task.Last = control.Columns, p[0], p[1]
					do(task)
				}
				chosen(t, cut, task, func(task control.Task) { do(task) })
				task.Part, task.First, task.Last = control.Rows, 0, 1
				if r := do(task); r.Rows != 3000 && s != control.LabelDepth {
					t.Errorf("%s reports %d rows", task.ID(), r.Rows)
				}
			}
			stagetest.Compare(t, name, stagetest.Sums(t, cut), want)
		})
	}
}

// chosen counts and picks what a stage writes, where it does, of a graph of one interval.
func chosen(t *testing.T, store storage.Store, task control.Task, do func(control.Task)) {
	t.Helper()
	cat := stagetest.Open(t, store)
	sum, err := shards.ReadSummary(t.Context(), cat)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := registry.Of(task.Stage)[0].Shape(task.Plan, sum).(stage.Matrix); ok && m.Tally != nil {
		task.Part, task.First, task.Last = control.Count, 0, 1
		do(task)
		task.Part, task.First, task.Last = control.Pick, 0, 0
		do(task)
	}
}

// TestRowsOfIntervals writes the rows of one interval, after which its tiles are
// gone: nothing is smoothed again for the other.
func TestRowsOfIntervals(t *testing.T) {
	const nodes = packed.BlockRows + 3*packed.StripRows/2
	opts, m := plan.Default(), stagetest.On(t, fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=16,classes=2,seed=3", nodes, nodes+nodes/10))
	opts.Partition.IntervalBlocks, opts.LSI.Probes, opts.LSI.Kmax = 1, 16, 2
	opts.Partition.Split, opts.Train.Runs, opts.Train.Epochs, opts.Metrics = "random:20,30", 2, 2, "auc"
	store := storagetest.NewMem()
	stagetest.Run(t, store, opts, m, control.Partition, control.LSI)
	parts := store.CrashClone()
	reports := stagetest.Run(t, store, opts, m, control.Smooth, control.Train, control.Predict, control.Evaluate)

	counting := storage.NewCounting(parts)
	w := worker.New(counting, stagetest.Open(t, counting))
	defer w.Close()
	task := m.Task(control.Smooth, opts)
	for _, c := range []struct {
		part        control.Part
		first, last int
		passes      bool
		rows        int64
	}{
		{control.Columns, 0, 1, true, 0},
		{control.Rows, 1, 2, false, nodes - packed.BlockRows},
		{control.Columns, 0, 1, false, 0},
		{control.Rows, 0, 1, false, packed.BlockRows},
	} {
		task.Part, task.First, task.Last = c.part, c.first, c.last
		r, err := w.Execute(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		if r.Rows != c.rows || (r.Passes > 0) != c.passes {
			t.Errorf("%s: %d rows, %d passes", task.ID(), r.Rows, r.Passes)
		}
	}
	whole := func(s control.Stage) control.StageReport {
		r, err := w.Execute(t.Context(), m.Task(s, opts))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whole(control.Train)
	if tasks := stagetest.InSteps(t, rand.New(rand.NewPCG(0, 0)), parts, m.Task(control.Predict, opts), func(task control.Task) {
		if _, err := w.Execute(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}); tasks != 2 {
		t.Errorf("predict has %d tasks of two intervals", tasks)
	}
	whole(control.Predict)
	if got, want := whole(control.Evaluate).Accuracy, reports[3].Accuracy; !reflect.DeepEqual(got, want) || want.Metrics.Base.AUC.Test == nil {
		t.Errorf("accuracy by interval %+v, of all rows %+v", got, want)
	}
	stagetest.Compare(t, "interval by interval", stagetest.Sums(t, parts), stagetest.Sums(t, store))
}

func TestPartsThatAreNone(t *testing.T) {
	opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
	store := storagetest.NewMem()
	stagetest.Run(t, store, opts, m, control.Partition, control.LSI)
	for _, task := range []control.Task{
		{Stage: control.LSI, Part: control.Columns, Last: 4},
		{Stage: control.Smooth, Part: control.Columns, First: 2, Last: 4},
		{Stage: control.Smooth, Part: control.Rows, First: 1, Last: 1},
		{Stage: control.Smooth, Part: "diagonal", Last: 1},
		{Stage: "polish"},
	} {
		task.Plan, task.Resources = opts, m.Resources
		if _, err := stagetest.Execute(t.Context(), stagetest.Open(t, store), task); err == nil {
			t.Errorf("%s is executed", task.ID())
		}
	}
}
