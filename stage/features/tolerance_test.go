package features_test

import (
	"math"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// TestTolerance compares rows of few polynomials with rows of all hops on a published data set: they are as near as the tolerance says, take
// as many passes as the report says, and rows of nodes with few hops agree up to rounding. The few nodes with another K are left out: they
// have rows of another hop.
func TestTolerance(t *testing.T) {
	uri := "planetoid:" + testgraph.Published(t, "data/cora") + "/cora"
	opts := plan.Default()
	opts.Partition.Dataset, opts.LSI.Probes, opts.LSI.Epsilon = "planetoid:cora", 16, 0.02
	stages := []control.Stage{control.Partition, control.LSI, control.Smooth}
	made := func(tolerance float64) (storage.Store, control.StageReport, control.StageReport) {
		opts.Tolerance = tolerance
		store := storagetest.NewMem()
		reports := stagetest.Run(t, store, opts, stagetest.On(t, uri), stages...)
		return store, reports[1], reports[2]
	}
	exact, foundAll, all := made(0)
	if all.Polynomials != nil || foundAll.Polynomials != nil || foundAll.LSI.Uncertain != 0 {
		t.Errorf("without a tolerance the reports say %+v, %+v and %d uncertain nodes", all.Polynomials, foundAll.Polynomials, foundAll.LSI.Uncertain)
	}
	want, k := stagetest.Rows(t, exact, catalog.KindSmoothed), stagetest.K(t, exact)
	for tolerance, passes := range map[float64]int{0.01: 29, 0.001: 39} {
		store, found, report := made(tolerance)
		if p := found.Polynomials; (p == nil) != (found.Passes == 200) || (p == nil) != (found.LSI.Uncertain == 0) || p != nil && p.Passes != found.Passes {
			t.Errorf("lsi made %d passes, reports %+v and %d uncertain nodes", found.Passes, p, found.LSI.Uncertain)
		}
		own, other := stagetest.K(t, store), 0
		if p := report.Polynomials; p == nil || *p != (control.Polynomials{Tolerance: tolerance, Passes: passes, Hops: 200, Share: 1}) {
			t.Fatalf("the report says %+v", p)
		}
		if report.Passes*200 != all.Passes*passes {
			t.Errorf("%d passes in place of %d", report.Passes, all.Passes)
		}
		mean, most, few := 0.0, 0.0, 0.0
		for id, got := range stagetest.Rows(t, store, catalog.KindSmoothed) {
			if own[id] != k[id] {
				other++
				continue
			}
			off, length := 0.0, 0.0
			for c, x := range want[id] {
				off += math.Pow(float64(got[c]-x), 2)
				length += float64(x) * float64(x)
			}
			if length == 0 {
				continue
			}
			d := math.Sqrt(off / length)
			mean, most = mean+d/float64(len(want)), max(most, d)
			if k[id] <= passes {
				few = max(few, d)
			}
		}
		t.Logf("tolerance %g: rows are off by %.2e in the mean, %.2e at most; by %.2e with at most %d hops", tolerance, mean, most, few, passes)
		if share := float64(other) / float64(len(k)); share > max(5*tolerance, 0.01) { // rounding alone moves K of some nodes by a hop
			t.Errorf("tolerance %g: K of %d nodes is another one", tolerance, other)
		}
		if !(mean > 0 && mean < tolerance/2) || most > 5*tolerance || few > 1e-5 {
			t.Errorf("tolerance %g: rows are off by %g in the mean, %g at most; by %g with at most %d hops", tolerance, mean, most, few, passes)
		}
	}
}
