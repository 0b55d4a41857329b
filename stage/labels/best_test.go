package labels_test

import (
	"math"
	"slices"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// TestBestProbabilities: with --probabilities best, soft labels and predictions have the
// class and the probability that they have with all probabilities, and the same accuracy.
func TestBestProbabilities(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"depth 0":   func(p *plan.Options) { p.Labels.Depth = "0" },
		"ndls":      func(p *plan.Options) { p.Labels.Depth = "3" },
		"reference": func(p *plan.Options) { p.Labels.Depth, p.Labels.Rule = "3", "ndls-reference" },
		"correct":   func(p *plan.Options) { p.Labels.Depth, p.Labels.Rule = "3", plan.CorrectSmooth },
		"chosen":    func(*plan.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := stagetest.SmallPlan()
			opts.Partition.Dataset, opts.Labels.Kmax = stagetest.Classes37, 4
			opts.Train.Runs = 1 // of several, the losses that decide between equals are known with all probabilities alone
			change(&opts)
			stages := registry.Always()
			if opts.Labels.Depth != plan.AutoDepth {
				stages = slices.DeleteFunc(slices.Clone(registry.Always()), func(s control.Stage) bool { return s == control.LabelDepth })
			}
			all, best := storagetest.NewMem(), storagetest.NewMem()
			want := stagetest.Run(t, all, opts, stagetest.On(t, stagetest.Classes37), stages...)
			opts.Probabilities = plan.BestProbability
			got := stagetest.Run(t, best, opts, stagetest.On(t, stagetest.Classes37), stages...)
			last := len(stages) - 1
			if g, w := got[last].Accuracy, want[last].Accuracy; *g.Smoothed.Test != *w.Smoothed.Test || *g.Base.Valid != *w.Base.Valid {
				t.Errorf("accuracy %+v, with all probabilities %+v", g, w)
			}
			for _, kind := range []string{catalog.KindSoftLabels, catalog.KindPredictions} {
				label, p := stagetest.Labels(t, best, kind)
				_, full := stagetest.Labels(t, all, kind)
				if len(label) != 3000 {
					t.Fatalf("%s: %d rows", kind, len(label))
				}
				for id, class := range label {
					top := full[id][class]
					if len(p[id]) != 1 || math.Abs(float64(p[id][0]-top)) > 1e-6 {
						t.Fatalf("%s: node %d has probabilities %v, want %v", kind, id, p[id], top)
					}
					for c, x := range full[id] {
						if x > top {
							t.Fatalf("%s: node %d has class %d of probability %v, and class %d of %v", kind, id, class, top, c, x)
						}
					}
				}
			}
		})
	}
}
