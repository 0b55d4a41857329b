package registry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// TestResourcesDoNotShow runs the whole job under every mix of threads, memory,
// kernel and width of blocks: every committed byte is the same, whatever the plan.
func TestResourcesDoNotShow(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"ndls": func(*plan.Options) {},
		"ndls-reference": func(p *plan.Options) {
			p.Smooth.Rule, p.Labels.Rule = "ndls-reference", "ndls-reference"
			p.LSI.Mode, p.LSI.Stationary, p.LSI.R = "feature", "global", 0
		},
		"float16": func(p *plan.Options) { p.Precision = "float16" },
		"few polynomials, labelled": func(p *plan.Options) {
			p.Tolerance, p.LSI.Epsilon, p.Smooth.Targets = 0.1, 0.02, plan.LabelledTargets
		},
		"every hop": func(p *plan.Options) { p.Tolerance = 0 },
		"every hop, weights": func(p *plan.Options) {
			p.Partition.Dataset, p.Tolerance, p.LSI.Kmax = stagetest.Small+",weights=8", 0, 60
		},
		"ndls-reference, float16": func(p *plan.Options) {
			p.Precision, p.Smooth.Rule, p.LSI.Kmax, p.LSI.Epsilon = "float16", "ndls-reference", 60, 0.01
		},
		"labelled": func(p *plan.Options) { p.Smooth.Targets = plan.LabelledTargets },
		"correct":  func(p *plan.Options) { p.Labels.Rule, p.Labels.CorrectHops = plan.CorrectSmooth, 12 },
		"correct by node, float16": func(p *plan.Options) {
			p.Labels.Rule, p.Labels.CorrectScale, p.Precision = plan.CorrectSmoothByNode, "0.8", "float16"
		},
		"sign": func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.LabelColumns, p.Precision = "sign", 3, 2, "float16"
		},
		"hops and label columns": func(p *plan.Options) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "0..2,5", 3 },
		"fastrp":                 stagetest.FastRP,
		"nafs": func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth, p.LSI.R = "nafs", 4, plan.NodeDepth, 0.3
			p.Partition.Normalize, p.Train.Epochs = "l1", 60 // rows of large norm would put all weight on hop 0
		},
		"sign by node": func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth, p.Smooth.LabelColumns = "sign", 4, plan.NodeDepth, 2
		},
		"appnp by node": func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Depth, p.Smooth.KeepHops = "appnp", plan.NodeDepth, "0,3"
		},
	} {
		opts := stagetest.SmallPlan()
		change(&opts)
		stages := registry.Always()
		if opts.SomeTargets() {
			stages = slices.DeleteFunc(slices.Clone(registry.Always()), func(s control.Stage) bool { return s == control.LabelDepth || s == control.SmoothLabels })
		}
		var want map[string]string
		for i, c := range []struct {
			threads int
			memory  int64
			kernel  string
			columns int
		}{
			{1, 1 << 30, "go", 0},
			{2, mem.MinBudget, "auto", 0},
			{5, 200 << 20, "auto", 16},
			{2, 1 << 30, "avx2", 32},
			{3, 300 << 20, "go", 48},
		} {
			if (i > 2 || testing.Short()) && name != "ndls" {
				continue
			}
			store := storagetest.NewMem()
			res := stagetest.On(t, opts.Partition.Dataset)
			res.Threads, res.Memory, res.Kernel, res.BlockColumns = c.threads, c.memory, c.kernel, c.columns
			if !stagetest.HasKernel(c.kernel) {
				res.Kernel = "auto"
			}
			reports := stagetest.Run(t, store, opts, res, stages...)
			got := stagetest.Sums(t, store)
			if want == nil {
				want = got
				a, least := reports[len(reports)-1].Accuracy, 0.5
				if strings.HasSuffix(name, "weights") {
					least = 0.4 // a neighbour of large weight hides the others; guessing gives 0.25
				}
				if a == nil || a.Base.Test == nil || opts.Smooth.Rule != "ndls-reference" && a.Base.Test.Mean < least {
					t.Errorf("%s: accuracy %+v: nothing was learnt", name, a)
				}
			}
			stagetest.Compare(t, fmt.Sprintf("%s %+v", name, c), got, want)
		}
	}
}

// TestFailAtEveryStep lets operations of the store fail, one in each run, from one that is drawn
// on; then resumes without faults: the same bytes.
func TestFailAtEveryStep(t *testing.T) {
	testkit.Slow(t, "80 runs")
	opts := stagetest.SmallPlan()
	opts.Train.Epochs = 1
	t.Run("as by default", func(t *testing.T) { failAtEveryStep(t, opts) })
	opts.Partition.Dataset, opts.Train.Runs, opts.Labels.Kmax = stagetest.Classes37, 1, 3
	opts.Probabilities, opts.DropFeatures = plan.BestProbability, true
	opts.Labels.Rule, opts.Labels.CorrectHops = plan.CorrectSmooth, 3
	t.Run("with little disk, and corrected labels", func(t *testing.T) { failAtEveryStep(t, opts) })
}

func failAtEveryStep(t *testing.T, opts plan.Options) {
	t.Parallel()
	m := stagetest.On(t, opts.Partition.Dataset)
	m.BlockColumns = 16
	clean := storagetest.NewFaulty(storagetest.NewMem(), 0)
	stagetest.Run(t, clean, opts, m, registry.Always()...)
	want := stagetest.Sums(t, clean)
	total := clean.Ops()

	const tries = 20
	failed, first := 0, 1+rand.Int64N(max(total/tries, 1))
	for i := range int64(tries) {
		at := first + i*total/tries
		inner := storagetest.NewMem()
		if err := attempt(storagetest.NewFaulty(inner, at), m, opts); err != nil {
			failed++
			if !errors.Is(err, storage.ErrDisk) {
				t.Errorf("operation %d: %v", at, err)
			}
		}
		// A crash leaves what was committed.
		left := inner.CrashClone()
		stagetest.Run(t, left, opts, m, registry.Always()...)
		stagetest.Compare(t, fmt.Sprintf("operation %d of %d", at, total), stagetest.Sums(t, left), want)
	}
	if failed < tries*3/4 {
		t.Errorf("only %d of %d faults were felt", failed, tries)
	}
}

// attempt runs all stages until one fails.
func attempt(store storage.Store, m stagetest.Setup, opts plan.Options) error {
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		return err
	}
	for _, s := range registry.Always() {
		if _, err := stagetest.Execute(context.Background(), cat, m.Task(s, opts)); err != nil {
			return err
		}
	}
	return nil
}
