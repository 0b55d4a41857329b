package stage_test

import (
	"maps"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/stage/stagetest"
)

// With --keep-features=false no tile of input features is left, and all other files equal those of a run that keeps them.
func TestFeaturesThatAreNotKept(t *testing.T) {
	for name, change := range map[string]func(*control.Plan){
		"ndls":                   func(*control.Plan) {},
		"float16":                func(p *control.Plan) { p.Precision = "float16" },
		"every hop":              func(p *control.Plan) { p.Tolerance, p.LSI.Kmax, p.LSI.Epsilon = 0, 60, 0.01 },
		"labelled":               func(p *control.Plan) { p.Smooth.Targets = control.LabelledTargets },
		"hops and label columns": func(p *control.Plan) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "1,3", 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, stages := stagetest.SmallPlan(), []control.Stage{control.Partition, control.LSI, control.Smooth, control.Train}
			change(&plan)
			m := stagetest.On(t, stagetest.Small)
			m.BlockColumns = 16
			kept, dropped := storage.NewMem(), storage.NewMem()
			stagetest.Run(t, kept, plan, m, stages...)
			plan.DropFeatures = true
			stagetest.Run(t, dropped, plan, m, stages...)
			want := stagetest.Sums(t, kept)
			maps.DeleteFunc(want, func(path, _ string) bool { return strings.HasPrefix(path, "graph/features/") })
			stagetest.Compare(t, name, stagetest.Sums(t, dropped), want)
			if left := stagetest.Open(t, dropped).Entries(catalog.KindFeatures); len(left) > 0 {
				t.Errorf("%d tiles of features are left", len(left))
			}
		})
	}
}
