package labels_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// TestDepthOfLabelSmoothing compares the curve of the choice with what evaluate says when
// each depth is given: the sums of all depths are prefixes of the same sums. The depth chosen
// is the smallest of the best, for each model, and its predictions equal those of that depth.
func TestDepthOfLabelSmoothing(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"ndls":      func(*plan.Options) {},
		"reference": func(p *plan.Options) { p.Labels.Rule = "ndls-reference" },
		"float16":   func(p *plan.Options) { p.Precision = "float16" },
		"correct":   func(p *plan.Options) { p.Labels.Rule = plan.CorrectSmooth },
		"correct by node": func(p *plan.Options) {
			p.Labels.Rule, p.Labels.CorrectScale, p.LSI.Epsilon = plan.CorrectSmoothByNode, "0.5", 0.2
		},
		"epsilon": func(p *plan.Options) { p.Labels.Epsilon = 0.2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := stagetest.SmallPlan()
			opts.Train.Runs, opts.Train.Epochs, opts.Labels.Kmax, opts.Labels.Depth = 3, 4, 6, plan.AutoDepth
			change(&opts)
			store := storagetest.NewMem()
			var depth *control.LabelDepthReport
			var base, smoothed control.SplitAccuracy
			for _, r := range stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), registry.Always()...) {
				if r.LabelDepth != nil {
					depth = r.LabelDepth
				}
				if r.Accuracy != nil {
					base, smoothed = r.Accuracy.Base, r.Accuracy.Smoothed
				}
			}
			if depth == nil || len(depth.Curve) != opts.Labels.Kmax+1 || len(depth.Depths) != 3 || depth.ValidationNodes == 0 {
				t.Fatalf("the report has %+v", depth)
			}
			near := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 1e-12 {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			t.Logf("%+v", depth)
			near("depth 0", depth.Curve[0].Mean, base.Valid.Mean)
			if smoothed.Valid.Mean < base.Valid.Mean {
				t.Errorf("label smoothing made validation accuracy worse: %v after %v", smoothed.Valid.Mean, base.Valid.Mean)
			}
			best := slices.MaxFunc(depth.Curve, func(a, b control.DepthAccuracy) int {
				if a.Valid > b.Valid {
					return 1
				} else if a.Valid < b.Valid {
					return -1
				}
				return 0
			})
			if depth.Chosen != best.Depth || depth.Depths[depth.Run] != depth.Chosen {
				t.Errorf("depth %d is chosen, %d is best of %+v", depth.Chosen, best.Depth, depth.Curve)
			}
			chosen := stagetest.Sums(t, store)
			for d, x := range depth.Curve {
				opts.Labels.Depth = strconv.Itoa(d)
				reports := stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), control.SmoothLabels, control.Evaluate)
				near("depth "+opts.Labels.Depth, x.Mean, reports[1].Accuracy.Smoothed.Valid.Mean)
				if d == depth.Chosen {
					const path = "predictions/part-00000.arrow"
					if got := stagetest.Sums(t, store)[path]; got == "" || got != chosen[path] {
						t.Errorf("the predictions of depth %d are not those of the depth that was chosen", d)
					}
				}
			}
		})
	}
}
