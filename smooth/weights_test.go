package smooth

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/testgraph"
	"ndls/spmv"
)

// TestWeightsOfOne: a graph whose weights are all 1 gives the bits of the same graph without
// weights, under every rule that adds
// hops up, for float32 and float16 rows.
func TestWeightsOfOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 80).Draw(rt, "nodes")
		g := testgraph.Random(n, rapid.IntRange(0, 3*n).Draw(rt, "edges"), rapid.Uint64().Draw(rt, "seed"))
		rule, err := NewRule(rapid.SampledFrom(slices.Sorted(maps.Keys(definition))).Draw(rt, "rule"), defaultAlpha, 3)
		if err != nil {
			rt.Fatal(err)
		}
		c := config{
			r: rapid.SampledFrom([]float64{0, 0.5, 0.8, 1}).Draw(rt, "r"), threads: 2, columns: 48,
			kernel:    rapid.SampledFrom([]string{"auto", "go"}).Draw(rt, "kernel"),
			precision: rapid.SampledFrom([]spmv.Precision{spmv.Float32, spmv.Float16}).Draw(rt, "precision"),
		}
		x, k := input(n), lsi(n)
		want := smoothed(t, g, c, rule, x, k)
		got := smoothed(t, g.Weighted(func(_, _ uint32) float32 { return 1 }), c, rule, x, k)
		if !slices.Equal(got, want) {
			rt.Fatalf("%s, %+v: other bits", g.Name, c)
		}
	})
}
