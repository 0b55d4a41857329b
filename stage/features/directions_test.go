package features_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
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
	for direction, g := range map[string]testgraph.Graph{plan.Out: d.graph, plan.In: d.graph.Reversed()} {
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
	for _, direction := range []string{plan.In, plan.Out, plan.Both} {
		for _, rule := range []string{"sgc", "s2gc", "gbp", "appnp", "sign"} {
			t.Run(fmt.Sprintf("%s/%s", direction, rule), func(t *testing.T) {
				opts, written := plan.Default(), []int{1, 3}
				opts.Partition.Dataset, opts.Partition.Normalize, opts.LSI.R = "edges:drawn?directed=true", "none", r
				opts.Smooth.Rule, opts.Smooth.Hops, opts.Smooth.Alpha, opts.Smooth.Direction = rule, depth, alpha, direction
				if rule == "sign" {
					written = []int{0, 1, 2, 3, 4}
				} else {
					opts.Smooth.KeepHops = "1,3"
				}
				store := storagetest.NewMem()
				stagetest.Run(t, store, opts, stagetest.On(t, d.uri), control.Partition, control.Smooth)
				var smoothed, lists [][]float64
				for i, one := range opts.Directions() {
					smoothed = append(smoothed, sums[rule+" "+one])
					for _, hop := range written {
						if hop > 0 || i == 0 {
							lists = append(lists, hops[one][hop])
						}
					}
				}
				if rule != "sign" {
					equalsOracle(t, "smoothed", stagetest.Rows(t, store, catalog.KindSmoothed), sideBySide(smoothed))
				}
				equalsOracle(t, "hops", stagetest.Rows(t, store, catalog.KindKeptHops), sideBySide(lists))
			})
		}
	}
}
