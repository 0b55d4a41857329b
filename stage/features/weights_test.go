package features_test

import (
	"fmt"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// TestWeightsEqualTheDefinition compares K and rows of a graph with weights, in several components,
// with dense float64 matrices.
func TestWeightsEqualTheDefinition(t *testing.T) {
	const n, width, kmax, epsilon = 120, 5, 60, 0.0437
	d := drawOn(t, testgraph.Random(n, 150, 3), width)
	d.weigh(t, 30)
	var x []float64
	for _, row := range d.features {
		x = append(x, row...)
	}
	for _, r := range []float64{0, 0.5, 1} {
		for _, stationary := range []string{"global", "component"} {
			t.Run(fmt.Sprintf("r=%g/%s", r, stationary), func(t *testing.T) {
				o := testgraph.NewOracle(d.graph, r, stationary == "component")
				k, _ := testgraph.LSI(o.Distances(o.Identity(), n, kmax), epsilon)
				opts, store := plan.Default(), storagetest.NewMem()
				opts.Partition.Dataset, opts.Partition.Normalize, opts.Tolerance = "edges:drawn?weight=w", "none", 0
				opts.LSI.Mode, opts.LSI.R, opts.LSI.Stationary, opts.LSI.Epsilon, opts.LSI.Kmax = "influence-exact", r, stationary, epsilon, kmax
				stagetest.Run(t, store, opts, stagetest.On(t, d.uri), control.Partition, control.LSI, control.Smooth)
				got := stagetest.K(t, store)
				for i, want := range k {
					if found, ok := got[int64(i)]; !ok || found != want {
						t.Errorf("node %d has K = %d, the definition says %d", i, found, want)
					}
				}
				want, all := make([][]float64, n), o.Smooth(x, width, k)
				for i := range want {
					want[i] = all[i*width : (i+1)*width]
				}
				equalsOracle(t, "smoothed", stagetest.Rows(t, store, catalog.KindSmoothed), want)
			})
		}
	}
}
