package stage_test

import (
	"math"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/stage/stagetest"
)

// TestDeviation compares whole rows of real data sets, smoothed with rows that settle, with exact
// ones: their mean relative deviation is below the one that was asked for, the run reports it, K is
// the same, and fewer edges are read.
func TestDeviation(t *testing.T) {
	testkit.Slow(t, "real data sets")
	var exact storage.Store // of the data set before
	var e control.StageReport
	of := ""
	for _, c := range []struct {
		name  string
		bound float64
	}{{"cora", control.DefaultDeviation}, {"cora", 0.001}, {"citeseer", 0.01}} {
		uri := "planetoid:" + testgraph.Published(t, "data/"+c.name) + "/" + c.name
		plan := control.DefaultPlan()
		plan.Tolerance = 0
		plan.Partition.Dataset = "planetoid:" + c.name
		plan.LSI.Probes, plan.LSI.Kmax, plan.LSI.Epsilon = 16, 80, 0.03
		stages := []control.Stage{control.Partition, control.LSI, control.Smooth}
		if of != c.name {
			exact, of = storage.NewMem(), c.name
			e = stagetest.Run(t, exact, plan, stagetest.On(t, uri), stages...)[2]
		}
		settled := storage.NewMem()
		plan.LSI.Active, plan.Deviation = "settled", c.bound
		s := stagetest.Run(t, settled, plan, stagetest.On(t, uri), stages...)[2]

		want := rows(t, exact, catalog.KindSmoothed)
		mean, counted := 0.0, 0.0
		for id, got := range rows(t, settled, catalog.KindSmoothed) {
			var d, w float64
			for j, x := range want[id] {
				d += math.Pow(float64(got[j]-x), 2)
				w += float64(x) * float64(x)
			}
			if w > 0 {
				mean, counted = mean+math.Sqrt(d/w), counted+1
			}
		}
		mean /= counted
		share := float64(s.EdgesStreamed) / float64(e.EdgesStreamed)
		t.Logf("%s, bound %g: deviation %.2e of whole rows, reported %.2e; %.3f of the edges", c.name, c.bound, mean, s.Deviation.Mean, share)
		if !(mean > 0 && mean <= c.bound) || s.Deviation.Bound != c.bound {
			t.Errorf("%s: mean deviation %g, bound %g", c.name, mean, c.bound)
		}
		if r := s.Deviation.Mean / mean; r < 0.7 || r > 1.4 {
			t.Errorf("%s: reported deviation %g, of whole rows %g", c.name, s.Deviation.Mean, mean)
		}
		if c.bound >= control.DefaultDeviation && share > 0.7 {
			t.Errorf("%s: %.2f of the edges are read", c.name, share)
		}
		with := stagetest.Sums(t, settled)
		for path, sum := range stagetest.Sums(t, exact) {
			if got := with[path]; got != sum && path[:3] == "lsi" {
				t.Errorf("%s: %s: %s, exact %s", c.name, path, got, sum)
			}
		}
	}
}
