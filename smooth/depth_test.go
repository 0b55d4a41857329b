package smooth

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/testgraph"
	"ndls/spmv"
)

// definitionByNode is a rule with min(K, depth) hops, by its definition with that depth.
func definitionByNode(name string, x [][]float64, k int, alpha float64, depth int) []float64 {
	last := min(k, depth)
	switch {
	case name == "s2gc" && last == 0:
		return x[0]
	case name == "gbp" && alpha > 0:
		row, all, own := slices.Clone(definition[name](x, k, alpha, last)), 0.0, 0.0
		for hop := range depth + 1 {
			all += math.Pow(1-alpha, float64(hop))
			if hop <= last {
				own = all
			}
		}
		for c := range row {
			row[c] *= all / own
		}
		return row
	}
	return definition[name](x, k, alpha, last)
}

// TestDepthByNodeEqualsTheDefinition compares rules that count K hops of a node with their
// formulas over dense float64 hops. A node whose K is as large as the depth has the bits of the
// rule that counts the same hops of all nodes.
func TestDepthByNodeEqualsTheDefinition(t *testing.T) {
	const depth = 7
	for _, name := range []string{"sgc", "s2gc", "gbp", "appnp"} {
		for _, alpha := range []float64{0, 0.15, 1} {
			for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
				r := []float64{0, 0.5, 0.8, 1}[len(g.Adj)%4]
				t.Run(fmt.Sprintf("%s/%s/alpha=%g/r=%g", name, g.Name, alpha, r), func(t *testing.T) {
					n := len(g.Adj)
					x, k := input(n), lsi(n)
					c := config{r: r, component: true, kernel: "auto", threads: 2, columns: 48}
					got := smoothed(t, g, c, mustRule(t, name+byNode, alpha, depth), x, k)
					fixed := smoothed(t, g, c, mustRule(t, name, alpha, depth), x, k)
					all := hopsOf(testgraph.NewOracle(g, r, false), x, depth)
					for i := range n {
						var rows [][]float64
						for _, h := range all {
							rows = append(rows, h[i*width:(i+1)*width])
						}
						for c, want := range definitionByNode(name, rows, k[i], alpha, depth) {
							if d := math.Abs(float64(got[i*width+c]) - want); !(d <= 2e-6*max(1, math.Abs(want))) {
								t.Fatalf("node %d (K = %d), column %d: %g, the definition says %g", i, k[i], c, got[i*width+c], want)
							}
						}
						if k[i] >= depth && !slices.Equal(got[i*width:(i+1)*width], fixed[i*width:(i+1)*width]) {
							t.Errorf("node %d with K = %d has other bits than without", i, k[i])
						}
					}
				})
			}
		}
	}
}

// TestListsByNode: sign with K hops of a node repeats the row of hop K.
func TestListsByNode(t *testing.T) {
	const depth = 5
	keep := []int{0, 1, 2, 3, 4, 5}
	for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
		for _, c := range []config{
			{r: 0.5, component: true, kernel: "auto", threads: 2, columns: 48},
			{r: 0.8, component: true, kernel: "go", threads: 1, columns: 16, place: spmv.External, spilled: true, pruned: true},
		} {
			n := len(g.Adj)
			x, k := input(n), lsi(n)
			c.keep = keep
			got := keptHops(t, g, c, mustRule(t, "sign"+byNode, 0, depth), x, k)
			all := hopsOf(testgraph.NewOracle(g, c.r, false), x, depth)
			for _, hop := range keep {
				for at, v := range got[hop] {
					if want := all[min(hop, k[at/width])][at]; math.Abs(float64(v)-want) > 2e-6 {
						t.Fatalf("%s, hop %d, node %d (K = %d), column %d: %g, the definition says %g", g.Name, hop, at/width, k[at/width], at%width, v, want)
					}
				}
			}
		}
	}
}

// TestDepthByNodeDoesNotShow: the bits of rows do not depend on how they are computed, nor on
// which of them are wanted.
func TestDepthByNodeDoesNotShow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 200).Draw(rt, "nodes")
		g := testgraph.Random(n, rapid.IntRange(0, 3*n).Draw(rt, "edges"), rapid.Uint64().Draw(rt, "seed"))
		rule := mustRule(t, rapid.SampledFrom([]string{"sgc", "s2gc", "gbp", "appnp"}).Draw(rt, "rule")+byNode, 0.2, rapid.IntRange(1, 9).Draw(rt, "depth"))
		x, k := input(n), lsi(n)
		want := smoothed(t, g, config{r: 0.5, component: true, kernel: "go", threads: 1, columns: 48}, rule, x, k)
		c := config{
			r: 0.5, component: true, kernel: "auto", threads: 3, columns: rapid.SampledFrom([]int{16, 32, 48}).Draw(rt, "columns"),
			place:   rapid.SampledFrom([]spmv.Residency{spmv.Resident, spmv.Spilled, spmv.External}).Draw(rt, "place"),
			spilled: rapid.Bool().Draw(rt, "spilled"), pruned: rapid.Bool().Draw(rt, "pruned"),
		}
		if got := smoothed(t, g, c, rule, x, k); !slices.Equal(got, want) {
			rt.Fatalf("%+v: other bits", c)
		}
		c.targets = []int64{int64(n - 1), 0, int64(n / 2)}
		sorted := slices.Compact(slices.Sorted(slices.Values(c.targets)))
		got := smoothed(t, g, c, rule, x, k)
		for at, i := range sorted {
			if !slices.Equal(got[at*width:(at+1)*width], want[int(i)*width:(int(i)+1)*width]) {
				rt.Fatalf("%+v: other bits of node %d", c, i)
			}
		}
	})
}

// TestResidual compares ndls with a residual with its formula.
func TestResidual(t *testing.T) {
	for _, share := range []float64{0, 0.2, 1} {
		for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
			n := len(g.Adj)
			x, k := input(n), lsi(n)
			rule, err := mustRule(t, "ndls", 0.7, 0).WithResidual(share)
			if err != nil {
				t.Fatal(err)
			}
			c := config{r: 0.5, component: true, kernel: "auto", threads: 2, columns: 48}
			got := smoothed(t, g, c, rule, x, k)
			all := hopsOf(testgraph.NewOracle(g, 0.5, false), x, slices.Max(k))
			for i := range n {
				for col := range width {
					want := 0.0
					for _, h := range all[:k[i]+1] {
						want += ((1-share)*h[i*width+col] + share*x[i*width+col]) / float64(k[i]+1)
					}
					if d := math.Abs(float64(got[i*width+col]) - want); d > 2e-6*max(1, math.Abs(want)) {
						t.Fatalf("%s, share %g, node %d (K = %d): %g, the definition says %g", g.Name, share, i, k[i], got[i*width+col], want)
					}
				}
			}
			if share == 0 && !slices.Equal(got, smoothed(t, g, c, mustRule(t, "ndls", 0, 0), x, k)) {
				t.Errorf("%s: a residual of 0 shows", g.Name)
			}
		}
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{"ndls": "K hops", "ndls-reference": "K hops", "fastrp": "alike"} {
		if _, err := mustRule(t, name, 0.1, 3).ByNode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s by node: %v", name, err)
		}
	}
	if _, err := mustRule(t, "gbp", 0.1, 3).WithResidual(0.5); err == nil {
		t.Error("gbp with the residual of ndls")
	}
}

// TestBlend compares rows of nafs with the definition, for distances whose powers are no numbers
// too.
func TestBlend(t *testing.T) {
	const hops, wide, stride = 5, 19, 32
	for _, scale := range []float64{1e-3, 1, 300, 1e6} {
		rows, limit := make([]float32, hops*stride), make([]float64, wide)
		for i := range rows {
			rows[i] = float32(scale * (float64(i*i%17)/9 - 1))
		}
		for c := range limit {
			limit[c] = scale * float64(c%5) / 7
		}
		for last := range hops {
			got, d, total := make([]float32, wide), make([]float64, last+1), 0.0
			for k := range d {
				for c := range wide {
					d[k] += math.Pow(float64(rows[k*stride+c])-1.5*limit[c], 2)
				}
				d[k] = math.Sqrt(d[k])
			}
			for k := range d {
				total += math.Exp(d[k] - slices.Max(d))
			}
			NewBlend(hops, wide).Row(got, rows, stride, last, limit, 1.5)
			for c, v := range got {
				want := 0.0
				for k := range d {
					want += math.Exp(d[k]-slices.Max(d)) / total * float64(rows[k*stride+c])
				}
				if math.Abs(float64(v)-want) > 1e-6*max(scale, math.Abs(want)) {
					t.Fatalf("scale %g, %d hops, column %d: %g, the definition says %g", scale, last, c, v, want)
				}
			}
		}
	}
}
