package stage_test

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
	"ndls/internal/testkit"
	"ndls/stage/stagetest"
)

// TestResourcesDoNotShow runs the whole job under every mix of threads, memory,
// kernel and width of blocks: every committed byte is the same, whatever the plan.
func TestResourcesDoNotShow(t *testing.T) {
	for name, change := range map[string]func(*control.Plan){
		"ndls": func(*control.Plan) {},
		"ndls-reference": func(p *control.Plan) {
			p.Smooth.Rule, p.Labels.Rule = "ndls-reference", "ndls-reference"
			p.LSI.Mode, p.LSI.Stationary, p.LSI.R = "feature", "global", 0
		},
		"float16": func(p *control.Plan) { p.Precision = "float16" },
		"few polynomials, labelled": func(p *control.Plan) {
			p.Tolerance, p.LSI.Epsilon, p.Smooth.Targets = 0.1, 0.02, control.LabelledTargets
		},
		"every hop": func(p *control.Plan) { p.Tolerance = 0 },
		"every hop, weights": func(p *control.Plan) {
			p.Partition.Dataset, p.Tolerance, p.LSI.Kmax = stagetest.Small+",weights=8", 0, 60
		},
		"ndls-reference, float16": func(p *control.Plan) {
			p.Precision, p.Smooth.Rule, p.LSI.Kmax, p.LSI.Epsilon = "float16", "ndls-reference", 60, 0.01
		},
		"labelled": func(p *control.Plan) { p.Smooth.Targets = control.LabelledTargets },
		"correct":  func(p *control.Plan) { p.Labels.Rule, p.Labels.CorrectHops = control.CorrectSmooth, 12 },
		"correct by node, float16": func(p *control.Plan) {
			p.Labels.Rule, p.Labels.CorrectScale, p.Precision = control.CorrectSmoothByNode, "0.8", "float16"
		},
		"sign": func(p *control.Plan) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.LabelColumns, p.Precision = "sign", 3, 2, "float16"
		},
		"hops and label columns": func(p *control.Plan) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "0..2,5", 3 },
		"fastrp":                 fastRP,
		"nafs": func(p *control.Plan) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth, p.LSI.R = "nafs", 4, control.NodeDepth, 0.3
			p.Partition.Normalize, p.Train.Epochs = "l1", 60 // rows of large norm would put all weight on hop 0
		},
		"sign by node": func(p *control.Plan) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth, p.Smooth.LabelColumns = "sign", 4, control.NodeDepth, 2
		},
		"appnp by node": func(p *control.Plan) {
			p.Smooth.Rule, p.Smooth.Depth, p.Smooth.KeepHops = "appnp", control.NodeDepth, "0,3"
		},
	} {
		plan := stagetest.SmallPlan()
		change(&plan)
		stages := whole
		if plan.SomeTargets() {
			stages = slices.DeleteFunc(slices.Clone(whole), func(s control.Stage) bool { return s == control.LabelDepth || s == control.SmoothLabels })
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
			store := storage.NewMem()
			res := stagetest.On(t, plan.Partition.Dataset)
			res.Threads, res.Memory, res.Kernel, res.BlockColumns = c.threads, c.memory, c.kernel, c.columns
			if !kernelHere(c.kernel) {
				res.Kernel = "auto"
			}
			reports := stagetest.Run(t, store, plan, res, stages...)
			got := stagetest.Sums(t, store)
			if want == nil {
				want = got
				a, least := reports[len(reports)-1].Accuracy, 0.5
				if strings.HasSuffix(name, "weights") {
					least = 0.4 // a neighbour of large weight hides the others; guessing gives 0.25
				}
				if a == nil || a.Base.Test == nil || plan.Smooth.Rule != "ndls-reference" && a.Base.Test.Mean < least {
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
	plan := stagetest.SmallPlan()
	plan.Train.Epochs = 1
	t.Run("as by default", func(t *testing.T) { failAtEveryStep(t, plan) })
	plan.Partition.Dataset, plan.Train.Runs, plan.Labels.Kmax = classes37, 1, 3
	plan.Probabilities, plan.DropFeatures = control.BestProbability, true
	plan.Labels.Rule, plan.Labels.CorrectHops = control.CorrectSmooth, 3
	t.Run("with little disk, and corrected labels", func(t *testing.T) { failAtEveryStep(t, plan) })
}

func failAtEveryStep(t *testing.T, plan control.Plan) {
	t.Parallel()
	m := stagetest.On(t, plan.Partition.Dataset)
	m.BlockColumns = 16
	clean := storage.NewFaulty(storage.NewMem(), 0)
	stagetest.Run(t, clean, plan, m, whole...)
	want := stagetest.Sums(t, clean)
	total := clean.Ops()

	const tries = 20
	failed, first := 0, 1+rand.Int64N(max(total/tries, 1))
	for i := range int64(tries) {
		at := first + i*total/tries
		inner := storage.NewMem()
		if err := attempt(storage.NewFaulty(inner, at), m, plan); err != nil {
			failed++
			if !errors.Is(err, storage.ErrDisk) {
				t.Errorf("operation %d: %v", at, err)
			}
		}
		// A crash leaves what was committed.
		left := inner.CrashClone()
		stagetest.Run(t, left, plan, m, whole...)
		stagetest.Compare(t, fmt.Sprintf("operation %d of %d", at, total), stagetest.Sums(t, left), want)
	}
	if failed < tries*3/4 {
		t.Errorf("only %d of %d faults were felt", failed, tries)
	}
}

// attempt runs all stages until one fails.
func attempt(store storage.Store, m stagetest.Setup, plan control.Plan) error {
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		return err
	}
	for _, s := range whole {
		if _, err := stagetest.Execute(context.Background(), cat, m.Task(s, plan)); err != nil {
			return err
		}
	}
	return nil
}
