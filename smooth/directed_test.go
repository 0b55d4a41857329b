package smooth

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/testgraph"
	"ndls/spmv"
)

// TestDirectionsEqualTheDefinition compares every rule that needs no K, and hops that are kept,
// with dense float64 hops of graphs with directions: the row of a node takes those of its
// neighbours, and not the other way round.
func TestDirectionsEqualTheDefinition(t *testing.T) {
	const alpha, depth = 0.15, 5
	for _, g := range testgraph.SmallDirected() {
		for _, r := range []float64{0, 0.3, 0.5, 1} {
			n := len(g.Adj)
			x, k := input(n), lsi(n)
			all := hopsOf(testgraph.NewOracle(g, r, false), x, depth)
			for _, name := range []string{"sgc", "s2gc", "gbp", "appnp"} {
				t.Run(fmt.Sprintf("%s/%s/r=%g", name, g.Name, r), func(t *testing.T) {
					got := smoothed(t, g, config{r: r, kernel: "auto", threads: 2, columns: 48}, mustRule(t, name, alpha, depth), x, k)
					for i := range n {
						var rows [][]float64
						for _, h := range all {
							rows = append(rows, h[i*width:(i+1)*width])
						}
						for c, want := range definition[name](rows, 0, alpha, depth) {
							if d := math.Abs(float64(got[i*width+c]) - want); d > 1e-5*max(1, math.Abs(want)) {
								t.Fatalf("node %d, column %d: %g, the definition says %g", i, c, got[i*width+c], want)
							}
						}
					}
				})
			}
			t.Run(fmt.Sprintf("sign/%s/r=%g", g.Name, r), func(t *testing.T) {
				keep := []int{0, 1, 2, depth}
				got := keptHops(t, g, config{r: r, kernel: "auto", threads: 2, columns: 16, pruned: true, keep: keep}, mustRule(t, "sign", 0, depth), x, k)
				for i, hop := range keep {
					for at, want := range all[hop] {
						if d := math.Abs(float64(got[i][at]) - want); d > 1e-5*max(1, math.Abs(want)) {
							t.Fatalf("hop %d, node %d, column %d: %g, the definition says %g", hop, at/width, at%width, got[i][at], want)
						}
					}
				}
			})
		}
	}
}

// TestDirectionsDoNotShow: rows of a graph with directions have the same bits for all threads,
// kernels, columns, places of rows and targets. A row is not left out because no edge leads from a
// row that is needed to it.
func TestDirectionsDoNotShow(t *testing.T) {
	g := testgraph.Random(700, 1500, 5)
	for i, a := range g.Adj { // keep edges to larger nodes, and some others
		g.Adj[i] = slices.DeleteFunc(slices.Clone(a), func(j uint32) bool { return int(j) < i && (int(j)+i)%5 > 0 })
	}
	g.Directed = true
	x, k := input(700), lsi(700)
	for _, name := range []string{"sgc", "s2gc", "gbp", "appnp"} {
		rule := mustRule(t, name, 0.3, 6)
		want := smoothed(t, g, config{r: 0.5, kernel: "go", threads: 1, columns: 48}, rule, x, k)
		for _, columns := range []int{16, 32, 48} {
			for _, place := range []spmv.Residency{spmv.Resident, spmv.Spilled, spmv.External} {
				c := config{r: 0.5, threads: 3, columns: columns, place: place, spilled: place != spmv.Resident, pruned: columns < 48}
				if got := smoothed(t, g, c, rule, x, k); !slices.Equal(got, want) {
					t.Errorf("%s, %+v: other bits", name, c)
				}
				c.targets = []int64{3, 64, 127, 400, 699}
				got := smoothed(t, g, c, rule, x, k)
				for at, node := range c.targets {
					if !slices.Equal(got[at*width:(at+1)*width], want[node*width:(node+1)*width]) {
						t.Errorf("%s, %+v: other bits of node %d", name, c, node)
					}
				}
			}
		}
	}
}

// TestDirectionsOfBothWays: a graph whose edges all have both directions gives the rows of the
// graph without directions.
func TestDirectionsOfBothWays(t *testing.T) {
	g := testgraph.Random(300, 900, 4)
	x, k := input(300), lsi(300)
	for _, r := range []float64{0, 0.5, 1} {
		c := config{r: r, kernel: "auto", threads: 2, columns: 48}
		want := smoothed(t, g, c, mustRule(t, "gbp", 0.2, 6), x, k)
		other := g
		other.Directed = true
		for i, got := range smoothed(t, other, c, mustRule(t, "gbp", 0.2, 6), x, k) {
			if math.Abs(float64(got-want[i])) > 1e-6 {
				t.Fatalf("r=%g: value %d is %g, and %g without directions", r, i, got, want[i])
			}
		}
	}
}
