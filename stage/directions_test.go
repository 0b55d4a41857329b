package stage_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/testgraph"
	"ndls/stage/stagetest"
)

// TestDirectionsEqualTheDefinition compares rows and kept hops of a graph with directions, in which
// most edges end at few nodes, with dense float64 matrices: for each rule that needs no K, and each
// direction.
func TestDirectionsEqualTheDefinition(t *testing.T) {
	const n, width, depth, alpha, r = 90, 5, 4, 0.2, 0.3 // package smooth tests other r
	random := rand.New(rand.NewPCG(7, n))
	var edges [][2]int
	for range 260 {
		edges = append(edges, [2]int{random.IntN(n), min(random.IntN(n), random.IntN(n), random.IntN(n))})
	}
	d := drawOn(t, testgraph.NewDirected("", n, edges), width)
	var x []float64
	for _, row := range d.features {
		x = append(x, row...)
	}
	hops := map[string][][]float64{} // by direction
	sums := map[string][]float64{}   // by rule and direction
	for direction, g := range map[string]testgraph.Graph{control.Out: d.graph, control.In: d.graph.Reversed()} {
		o, list := testgraph.NewOracle(g, r, false), [][]float64{x}
		for range depth {
			list = append(list, o.Apply(list[len(list)-1], width))
		}
		s2gc, gbp, appnp := make([]float64, n*width), make([]float64, n*width), make([]float64, n*width)
		for i := range x {
			s2gc[i] = alpha * x[i]
			for k, h := range list {
				if k > 0 {
					s2gc[i] += (1 - alpha) * h[i] / depth
				}
				gbp[i] += alpha * math.Pow(1-alpha, float64(k)) * h[i]
			}
			appnp[i] = gbp[i] + math.Pow(1-alpha, depth+1)*list[depth][i]
		}
		hops[direction] = list
		sums["sgc "+direction], sums["s2gc "+direction], sums["gbp "+direction], sums["appnp "+direction] = list[depth], s2gc, gbp, appnp
	}
	// sideBySide has the rows of each part one after the other.
	sideBySide := func(parts [][]float64) [][]float64 {
		rows := make([][]float64, n)
		for i := range rows {
			for _, p := range parts {
				rows[i] = append(rows[i], p[i*width:(i+1)*width]...)
			}
		}
		return rows
	}
	for _, direction := range []string{control.In, control.Out, control.Both} {
		for _, rule := range []string{"sgc", "s2gc", "gbp", "appnp", "sign"} {
			t.Run(fmt.Sprintf("%s/%s", direction, rule), func(t *testing.T) {
				plan, written := control.DefaultPlan(), []int{1, 3}
				plan.Partition.Dataset, plan.Partition.Normalize, plan.LSI.R = "edges:drawn?directed=true", "none", r
				plan.Smooth.Rule, plan.Smooth.Hops, plan.Smooth.Alpha, plan.Smooth.Direction = rule, depth, alpha, direction
				if rule == "sign" {
					written = []int{0, 1, 2, 3, 4}
				} else {
					plan.Smooth.KeepHops = "1,3"
				}
				store := storage.NewMem()
				stagetest.Run(t, store, plan, stagetest.On(t, d.uri), control.Partition, control.Smooth)
				var smoothed, lists [][]float64
				for i, one := range plan.Directions() {
					smoothed = append(smoothed, sums[rule+" "+one])
					for _, hop := range written {
						if hop > 0 || i == 0 {
							lists = append(lists, hops[one][hop])
						}
					}
				}
				if rule != "sign" {
					equalsOracle(t, "smoothed", rows(t, store, catalog.KindSmoothed), sideBySide(smoothed))
				}
				equalsOracle(t, "hops", rows(t, store, catalog.KindKeptHops), sideBySide(lists))
			})
		}
	}
}
