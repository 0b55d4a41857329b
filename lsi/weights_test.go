package lsi

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/testgraph"
)

// TestWeightsOfOne: a graph whose weights are all 1 has the table of the same graph without
// weights, for every probe.
func TestWeightsOfOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(rt, "nodes")
		g := testgraph.Random(n, rapid.IntRange(0, 3*n).Draw(rt, "edges"), rapid.Uint64().Draw(rt, "seed"))
		s := setup{r: rapid.SampledFrom([]float64{0, 0.5, 0.8, 1}).Draw(rt, "r"), component: rapid.Bool().Draw(rt, "component")}
		for _, probe := range []Probe{Identity(int64(n)), Signs(5, ids(n), 32)} {
			want, _ := run(t, g, s, probe, 0.05, 30)
			got, _ := run(t, g.Weighted(func(_, _ uint32) float32 { return 1 }), s, probe, 0.05, 30)
			if !slices.Equal(got.k.S, want.k.S) {
				rt.Fatalf("%s, %T: %v, not %v", g.Name, probe, got.k.S, want.k.S)
			}
		}
	})
}

// TestWeakerEdgesSettleLater: the weaker the edges of a clique are, the more the self-loop of
// weight 1 holds each row back.
func TestWeakerEdgesSettleLater(t *testing.T) {
	last := -1
	for _, w := range []float32{1, 0.25, 1.0 / 16} {
		g := testgraph.Clique(6).Weighted(func(_, _ uint32) float32 { return w })
		table, _ := run(t, g, setup{r: 0, component: true}, Identity(6), 0.02, 60)
		k, _ := table.K(0)
		if k <= last {
			t.Errorf("weight %g: K = %d, and %d with larger weights", w, k, last)
		}
		if !slices.Equal(table.k.S[1:], table.k.S[:5]) {
			t.Errorf("weight %g: K = %v of nodes that are all alike", w, table.k.S)
		}
		last = k
	}
}

// TestBoundWithWeights: Theorem 3.1 holds with the matrix of weights, and strengths in place of
// degrees.
func TestBoundWithWeights(t *testing.T) {
	const epsilon = 0.03
	for seed := range uint64(4) {
		g := connected(40, seed).RandomWeights(5, seed)
		d1 := g.Strength1()
		lambda2, volume := secondEigenvalue(t, g), 0.0
		for _, d := range d1 {
			volume += float64(d)
		}
		table, _ := run(t, g, setup{r: 0, component: true}, Identity(40), epsilon, 500)
		for i, d := range d1 {
			bound, err := Bound(lambda2, epsilon, float64(d), volume)
			if err != nil {
				t.Fatal(err)
			}
			if k, capped := table.K(int64(i)); capped || float64(k) > math.Ceil(bound) {
				t.Errorf("seed %d, node %d: K = %d (capped %v), the bound is %g", seed, i, k, capped, bound)
			}
		}
	}
}
