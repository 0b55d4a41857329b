package features_test

import (
	"maps"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// With --keep-features=false no tile of input features is left, and all other files equal those of a run that keeps them.
func TestFeaturesThatAreNotKept(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"ndls":                   func(*plan.Options) {},
		"float16":                func(p *plan.Options) { p.Precision = "float16" },
		"every hop":              func(p *plan.Options) { p.Tolerance, p.LSI.Kmax, p.LSI.Epsilon = 0, 60, 0.01 },
		"labelled":               func(p *plan.Options) { p.Smooth.Targets = plan.LabelledTargets },
		"hops and label columns": func(p *plan.Options) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "1,3", 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts, stages := stagetest.SmallPlan(), []control.Stage{control.Partition, control.LSI, control.Smooth, control.Train}
			change(&opts)
			m := stagetest.On(t, stagetest.Small)
			m.BlockColumns = 16
			kept, dropped := storagetest.NewMem(), storagetest.NewMem()
			stagetest.Run(t, kept, opts, m, stages...)
			opts.DropFeatures = true
			stagetest.Run(t, dropped, opts, m, stages...)
			want := stagetest.Sums(t, kept)
			maps.DeleteFunc(want, func(path, _ string) bool { return strings.HasPrefix(path, "graph/features/") })
			stagetest.Compare(t, name, stagetest.Sums(t, dropped), want)
			if left := stagetest.Open(t, dropped).Entries(catalog.KindFeatures); len(left) > 0 {
				t.Errorf("%d tiles of features are left", len(left))
			}
		})
	}
}
