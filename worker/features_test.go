package worker

import (
	"maps"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
)

// With --keep-features=false no tile of input features is left, and all other files are those
// of a run that retains them.
func TestFeaturesThatAreNotKept(t *testing.T) {
	for name, change := range map[string]func(*control.Plan){
		"ndls":                   func(*control.Plan) {},
		"float16":                func(p *control.Plan) { p.Precision = "float16" },
		"slack":                  func(p *control.Plan) { p.LSI.Active, p.LSI.Slack, p.LSI.Kmax = "settled", 2, 60 },
		"deviation":              deviates,
		"labelled":               func(p *control.Plan) { p.Smooth.Targets = control.LabelledTargets },
		"hops and label columns": func(p *control.Plan) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "1,3", 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, stages := smallPlan(), []control.Stage{control.Partition, control.LSI, control.Smooth, control.Train}
			change(&plan)
			m := resources(t, small)
			m.BlockColumns = 16
			kept, dropped := storage.NewMem(), storage.NewMem()
			execute(t, kept, plan, m, stages...)
			plan.DropFeatures = true
			execute(t, dropped, plan, m, stages...)
			want := sums(t, kept)
			maps.DeleteFunc(want, func(path, _ string) bool { return strings.HasPrefix(path, "graph/features/") })
			compare(t, name, sums(t, dropped), want)
			cat, err := catalog.Open(t.Context(), dropped)
			if err != nil {
				t.Fatal(err)
			}
			if left := cat.Entries(catalog.KindFeatures); len(left) > 0 {
				t.Errorf("%d tiles of features are left", len(left))
			}
		})
	}
}
