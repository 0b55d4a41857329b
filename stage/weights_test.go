package stage_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/testgraph"
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
				plan, store := control.DefaultPlan(), storage.NewMem()
				plan.Partition.Dataset, plan.Partition.Normalize, plan.Tolerance = "edges:drawn?weight=w", "none", 0
				plan.LSI.Mode, plan.LSI.R, plan.LSI.Stationary, plan.LSI.Epsilon, plan.LSI.Kmax = "influence-exact", r, stationary, epsilon, kmax
				stagetest.Run(t, store, plan, stagetest.On(t, d.uri), control.Partition, control.LSI, control.Smooth)
				got := kOf(t, store)
				for i, want := range k {
					if found, ok := got[int64(i)]; !ok || found != want {
						t.Errorf("node %d has K = %d, the definition says %d", i, found, want)
					}
				}
				want, all := make([][]float64, n), o.Smooth(x, width, k)
				for i := range want {
					want[i] = all[i*width : (i+1)*width]
				}
				equalsOracle(t, "smoothed", rows(t, store, catalog.KindSmoothed), want)
			})
		}
	}
}

// TestWeightsSettle: rows of a graph with weights settle, and are as near to exact ones as the
// bound says. K equals that of an exact run.
func TestWeightsSettle(t *testing.T) {
	const dataset = "synthetic:nodes=4000,edges=9000,features=245,classes=3,seed=5,weights=10"
	made := func(change func(*control.Plan)) (map[int64]int, map[int64][]float32, control.StageReport) {
		plan, store, m := control.DefaultPlan(), storage.NewMem(), stagetest.On(t, dataset)
		plan.Partition.Dataset, plan.LSI.Epsilon, plan.LSI.Kmax, plan.Tolerance, m.BlockColumns = dataset, 0.02, 80, 0, 16
		change(&plan)
		reports := stagetest.Run(t, store, plan, m, control.Partition, control.LSI, control.Smooth)
		return kOf(t, store), rows(t, store, catalog.KindSmoothed), reports[2]
	}
	exactK, exact, all := made(func(*control.Plan) {})
	for name, change := range map[string]func(*control.Plan){
		"deviation": func(p *control.Plan) { p.LSI.Active, p.Deviation = "settled", 0.01 },
		"slack":     func(p *control.Plan) { p.LSI.Active, p.LSI.Slack = "settled", 8 },
	} {
		const bound = 0.01
		k, rows, report := made(change)
		if name == "deviation" && !maps.Equal(k, exactK) {
			t.Error("another K than without settled rows")
		}
		mean := 0.0
		for id, row := range rows {
			off, length := 0.0, 0.0
			for c, x := range row {
				want := float64(exact[id][c])
				off += (float64(x) - want) * (float64(x) - want)
				length += want * want
			}
			mean += math.Sqrt(off/length) / float64(len(rows))
		}
		if reported := report.Deviation.Mean; !(mean > 0 && mean <= bound) || !(reported > 0 && reported <= bound) {
			t.Errorf("%s: rows are %g away from exact ones in the mean, the report says %g", name, mean, reported)
		}
		if edges := report.EdgesStreamed; float64(edges) > 0.8*float64(all.EdgesStreamed) {
			t.Errorf("%s: %d edges are read, %d without settled rows", name, edges, all.EdgesStreamed)
		}
	}
}
