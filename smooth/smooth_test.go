package smooth

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/stationary"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

const width = 37

type config struct {
	r         float64
	component bool
	kernel    string
	threads   int
	columns   int
}

// smoothed runs a rule over all column blocks and returns n × width values.
func smoothed(t testing.TB, g testgraph.Graph, c config, rule Rule, x []float64, k []int) []float32 {
	t.Helper()
	b, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := spmv.Select(c.kernel)
	if err != nil {
		t.Fatal(err)
	}
	n := len(g.Adj)
	component, count := g.Components()
	if !c.component {
		component, count = nil, 1
	}
	degree := g.Degree()
	state, err := stationary.New(b, degree, component, count, c.r)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Free()
	s, err := New(Graph{
		Pass:  &spmv.Pass{Source: g.Source(), Degree: degree, Kernel: kernel, Threads: c.threads},
		State: state, Budget: b,
	}, rule, func(i int64) int { return k[i] }, c.threads)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	block, err := NewBlock(b, int64(n), c.columns)
	if err != nil {
		t.Fatal(err)
	}
	defer block.Free()
	out := make([]float32, n*width)
	for first := 0; first < width; first += c.columns {
		cols := min(c.columns, width-first)
		stats, err := s.Run(context.Background(), block,
			func(rows spmv.Rows) error {
				for i := range n {
					row := rows.Row(int64(i))
					for j := range cols {
						row[j] = float32(x[i*width+first+j])
					}
				}
				return nil
			},
			func(rows spmv.Rows) error {
				for i := range n {
					copy(out[i*width+first:][:cols], rows.Row(int64(i)))
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if stats.Passes != s.Hops() {
			t.Fatalf("%d passes for %d hops", stats.Passes, s.Hops())
		}
	}
	return out
}

func input(n int) []float64 {
	x := make([]float64, n*width)
	for i := range x {
		if i*2654435761%11 < 4 {
			x[i] = float64(i%13)/7 - 0.5
		}
		x[i] = float64(float32(x[i]))
	}
	return x
}

func lsi(n int) []int {
	k := make([]int, n)
	for i := range k {
		k[i] = i * i % 23
	}
	return k
}

// hops lists X^(0), X^(1), … by the definition.
func hops(o *testgraph.Oracle, x []float64, last int) [][]float64 {
	all := [][]float64{x}
	for range last {
		all = append(all, o.Apply(all[len(all)-1], width))
	}
	return all
}

// definition is each rule as its paper writes it, on rows of hops.
var definition = map[string]func(x [][]float64, k int, alpha float64, depth int) []float64{
	"ndls": func(x [][]float64, k int, _ float64, _ int) []float64 {
		return mean(x[:k+1])
	},
	"ndls-reference": func(x [][]float64, k int, alpha float64, _ int) []float64 {
		if k == 0 {
			return x[0]
		}
		var mixed [][]float64
		for _, row := range x[:k] {
			m := make([]float64, len(row))
			for c := range m {
				m[c] = (1-alpha)*row[c] + alpha*x[0][c]
			}
			mixed = append(mixed, m)
		}
		return mean(mixed)
	},
	"sgc": func(x [][]float64, _ int, _ float64, depth int) []float64 { return x[depth] },
	"s2gc": func(x [][]float64, _ int, alpha float64, depth int) []float64 {
		m := mean(x[1 : depth+1])
		for c := range m {
			m[c] = (1-alpha)*m[c] + alpha*x[0][c]
		}
		return m
	},
	"gbp": func(x [][]float64, _ int, alpha float64, depth int) []float64 {
		m := make([]float64, len(x[0]))
		for hop, row := range x[:depth+1] {
			for c := range m {
				m[c] += alpha * math.Pow(1-alpha, float64(hop)) * row[c]
			}
		}
		return m
	},
}

func mean(rows [][]float64) []float64 {
	m := make([]float64, len(rows[0]))
	for _, row := range rows {
		for c, x := range row {
			m[c] += x / float64(len(rows))
		}
	}
	return m
}

// TestRulesEqualTheirDefinition compares every rule with its formula over dense
// float64 hops.
func TestRulesEqualTheirDefinition(t *testing.T) {
	const alpha, depth = 0.15, 7
	for _, name := range Names() {
		for _, g := range testgraph.Small() {
			for _, r := range []float64{0, 0.5, 0.8, 1} {
				for _, component := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/r=%g/component=%v", name, g.Name, r, component), func(t *testing.T) {
						n := len(g.Adj)
						rule, err := NewRule(name, alpha, depth)
						if err != nil {
							t.Fatal(err)
						}
						x, k := input(n), lsi(n)
						got := smoothed(t, g, config{r, component, "auto", 2, 48}, rule, x, k)
						all := hops(testgraph.NewOracle(g, r, false), x, max(depth, slices.Max(k)))
						for i := range n {
							var rows [][]float64
							for _, h := range all {
								rows = append(rows, h[i*width:(i+1)*width])
							}
							want := definition[name](rows, k[i], alpha, depth)
							for c, w := range want {
								if d := math.Abs(float64(got[i*width+c]) - w); d > 2e-6 {
									t.Fatalf("node %d (K = %d), column %d: %g, the definition says %g", i, k[i], c, got[i*width+c], w)
								}
							}
						}
					})
				}
			}
		}
	}
}

// TestBlocksThreadsAndKernelsDoNotShow compares every way to compute one result.
func TestBlocksThreadsAndKernelsDoNotShow(t *testing.T) {
	g := testgraph.Random(700, 1500, 5)
	x, k := input(700), lsi(700)
	rule, err := NewRule("ndls-reference", DefaultAlpha, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := smoothed(t, g, config{0.5, true, "go", 1, 48}, rule, x, k)
	for _, kernel := range []string{"auto", "go"} {
		for _, threads := range []int{1, 2, 5} {
			for _, columns := range []int{16, 32, 48} {
				if got := smoothed(t, g, config{0.5, true, kernel, threads, columns}, rule, x, k); !slices.Equal(got, want) {
					t.Errorf("kernel %s, %d threads, blocks of %d columns: other bits", kernel, threads, columns)
				}
			}
		}
	}
}

func TestBadRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		alpha float64
		depth int
	}{{"gcn", 0.1, 2}, {"gbp", -0.1, 2}, {"gbp", 1.1, 2}, {"gbp", math.NaN(), 2}, {"sgc", 0, -1}, {"s2gc", 0, 0}} {
		if _, err := NewRule(c.name, c.alpha, c.depth); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
