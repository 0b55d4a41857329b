package smooth

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/stationary"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/shards"
	"ndls/spmv"
)

const width = 37

type config struct {
	r         float64
	component bool
	kernel    string
	threads   int
	columns   int
	place     spmv.Residency
	precision spmv.Precision
	spilled   bool    // sums
	targets   []int64 // nil: all
	pruned    bool
	keep      []int
	after     func(hop int) error
	beside    []Beside
	tolerance float64
	depths    int
	standing  float64
	whole     bool // no copies of edges
}

// defaultAlpha is the residual share of the authors' released code.
const defaultAlpha = 0.15

// smoothed runs a rule over all column blocks and returns targets × width values.
func smoothed(t testing.TB, g testgraph.Graph, c config, rule Rule, x []float64, k []int) []float32 {
	out, _ := smoothedStats(t, g, c, rule, x, k)
	return out
}

func smoothedStats(t testing.TB, g testgraph.Graph, c config, rule Rule, x []float64, k []int) (out []float32, all hops.Stats) {
	t.Helper()
	s, free := engine(t, g, c, rule, k)
	defer free()
	out = make([]float32, s.o.Targets.Len()*width)
	for first := 0; first < width; first += c.columns {
		rows := columnsOf(x, len(g.Adj), first, c.columns)
		stats, err := s.Run(context.Background(), rows)
		if err != nil {
			t.Fatal(err)
		}
		all.Add(stats)
		found := stats.Passes - s.Hops() // to find rows that stand
		if found != 0 && !(c.standing > 0 && first == 0 && PlainHops <= found && found <= mostPlainHops) {
			t.Fatalf("%d passes for %d hops", stats.Passes, s.Hops())
		}
		// In two parts, as where files are written a few at a time.
		for col := 0; col < c.columns; col += 16 {
			row := 0
			if err := s.Output(col, 16, rows, func(part []float32) error {
				for ; len(part) > 0; part = part[16:] {
					copy(out[row*width+first+col:][:max(min(16, width-first-col), 0)], part)
					row++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if col+first+16 >= width {
				break
			}
		}
	}
	return out, all
}

// engine prepares smoothing as c says.
func engine(t testing.TB, g testgraph.Graph, c config, rule Rule, k []int) (*Smoother, func()) {
	t.Helper()
	b, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(g.Adj))
	hg, freeGraph := graph(t, g, c, b)
	if c.whole {
		hg.Filter = nil
	}
	targets := AllTargets(n)
	if c.targets != nil {
		if targets, err = NewTargets(b, n); err != nil {
			t.Fatal(err)
		}
		for _, i := range c.targets {
			targets.Add(i)
		}
		targets.Finish()
	}
	blocks := 1
	if c.pruned {
		blocks = (width + c.columns - 1) / c.columns
	}
	s, err := New(t.Context(), hg, Options{
		Rule: rule, K: func(i int64) int { return k[i] }, Targets: targets, SpilledSums: c.spilled,
		Blocks: blocks, Keep: c.keep, After: c.after, Beside: c.beside, Tolerance: c.tolerance, Depths: c.depths, Standing: c.standing,
		Layout: spmv.Layout{Columns: c.columns, Precision: c.precision, Residency: c.place, Window: packed.StripRows, Accumulators: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		s.Free()
		targets.Free()
		freeGraph()
	}
}

// columnsOf puts columns [first, first+columns) of the n rows of x; those past its
// width are zero.
func columnsOf(x []float64, n, first, columns int) hops.Rows {
	return func(put func([]float32) error) error {
		row := make([]float32, columns)
		for i := range n {
			clear(row)
			for j := first; j < min(first+columns, width); j++ {
				row[j-first] = float32(x[i*width+j])
			}
			if err := put(row); err != nil {
				return err
			}
		}
		return nil
	}
}

func graph(t testing.TB, g testgraph.Graph, c config, b *mem.Budget) (hops.Graph, func()) {
	kernel, err := spmv.Select(c.kernel)
	if err != nil {
		t.Fatal(err)
	}
	component, count := g.Components()
	if !c.component {
		component, count = nil, 1
	}
	degree, solo := g.Degree(), group.Solo(int64(len(g.Adj)))
	nodes := stationary.Nodes{Degree: degree, Strength1: g.Strength1(), Component: component, Components: count}
	if g.Directed {
		nodes.Degree = g.Sent()
	}
	state, err := stationary.New(t.Context(), solo, b, nodes, c.r)
	if err != nil {
		t.Fatal(err)
	}
	dir := testgraph.Scratch(t)
	return hops.Graph{
		Source: g.Source(), Degree: degree, Divisors: g.Divisors(c.r), Sent: g.Sent(), Kernel: kernel, State: state, Budget: b, Threads: c.threads, Scratch: dir, Group: solo,
		Filter: func(ctx context.Context, src packed.Source, keep, from func(int64) bool, bytes int64) (hops.Stream, error) {
			return shards.FilterHops(ctx, src, keep, from, dir, b, bytes, 2)
		},
	}, state.Free
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

// hopsOf lists X^(0), X^(1), … by the definition.
func hopsOf(o *testgraph.Oracle, x []float64, last int) [][]float64 {
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
	"appnp": func(x [][]float64, _ int, alpha float64, depth int) []float64 {
		m := make([]float64, len(x[0]))
		for hop, row := range x[:depth+1] {
			w := math.Pow(1-alpha, float64(hop))
			if hop < depth {
				w *= alpha
			}
			for c := range m {
				m[c] += w * row[c]
			}
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
	testkit.NotUnderRace(t, "TestKeptHopsDoNotShow and TestDepthByNodeEqualsTheDefinition start the same goroutines")
	const alpha, depth = 0.15, 7
	for _, name := range Names() {
		if definition[name] == nil {
			continue // it adds nothing up; see TestKeptHops
		}
		for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
			for _, r := range []float64{0, 0.5, 0.8, 1} {
				for _, component := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/r=%g/component=%v", name, g.Name, r, component), func(t *testing.T) {
						n := len(g.Adj)
						rule, err := NewRule(name, alpha, depth)
						if err != nil {
							t.Fatal(err)
						}
						x, k := input(n), lsi(n)
						got := smoothed(t, g, config{r: r, component: component, kernel: "auto", threads: 2, columns: 48}, rule, x, k)
						all := hopsOf(testgraph.NewOracle(g, r, false), x, max(depth, slices.Max(k)))
						for i := range n {
							var rows [][]float64
							for _, h := range all {
								rows = append(rows, h[i*width:(i+1)*width])
							}
							want := definition[name](rows, k[i], alpha, depth)
							for c, w := range want {
								if d := math.Abs(float64(got[i*width+c]) - w); d > 2e-6*max(1, math.Abs(w)) {
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

// TestAppnpIsAWalkWithRestarts: the weights of hops equal those of the steps
// Z ← (1 − α) Â Z + α X from Z = X, which the paper has.
func TestAppnpIsAWalkWithRestarts(t *testing.T) {
	const alpha, depth = 0.15, 7
	for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
		n, o := len(g.Adj), testgraph.NewOracle(g, 0.5, false)
		x, k := input(n), lsi(n)
		want := slices.Clone(x)
		for range depth {
			want = o.Apply(want, width)
			for i := range want {
				want[i] = (1-alpha)*want[i] + alpha*x[i]
			}
		}
		got := smoothed(t, g, config{r: 0.5, kernel: "auto", threads: 2, columns: 48}, mustRule(t, "appnp", alpha, depth), x, k)
		for i, w := range want {
			if d := math.Abs(float64(got[i]) - w); d > 2e-6*max(1, math.Abs(w)) {
				t.Fatalf("%s: node %d, column %d: %g, the walk gives %g", g.Name, i/width, i%width, got[i], w)
			}
		}
	}
}

// TestBlocksThreadsAndKernelsDoNotShow compares every way to compute one result.
func TestBlocksThreadsAndKernelsDoNotShow(t *testing.T) {
	plain := testgraph.Random(700, 1500, 5)
	for _, g := range []testgraph.Graph{plain, plain.RandomWeights(10, 6)} {
		testWays(t, g)
	}
}

func testWays(t *testing.T, g testgraph.Graph) {
	x, k := input(700), lsi(700)
	rule, err := NewRule("ndls-reference", defaultAlpha, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := smoothed(t, g, config{r: 0.5, component: true, kernel: "go", threads: 1, columns: 48}, rule, x, k)
	for _, kernel := range []string{"auto", "go"} {
		for _, threads := range []int{1, 2, 5} {
			for _, columns := range []int{16, 32, 48} {
				for _, place := range []spmv.Residency{spmv.Resident, spmv.Spilled, spmv.External} {
					c := config{r: 0.5, component: true, kernel: kernel, threads: threads, columns: columns, place: place, spilled: place != spmv.Resident}
					if got := smoothed(t, g, c, rule, x, k); !slices.Equal(got, want) {
						t.Errorf("%s, %+v: other bits", g.Name, c)
					}
				}
			}
		}
	}
}

// TestTargets: some rows are the same as among all, in memory and on disk.
func TestTargets(t *testing.T) {
	g := testgraph.Random(700, 1500, 5)
	x, k := input(700), lsi(700)
	targets := []int64{699, 3, 64, 0, 65, 127, 128, 400}
	sorted := slices.Sorted(slices.Values(targets))
	for _, name := range []string{"ndls", "ndls-reference", "sgc"} {
		rule, err := NewRule(name, defaultAlpha, 4)
		if err != nil {
			t.Fatal(err)
		}
		c := config{r: 0.5, component: true, threads: 2, columns: 48}
		all := smoothed(t, g, c, rule, x, k)
		c.targets = targets
		for _, spilled := range []bool{false, true} {
			c.spilled = spilled
			got := smoothed(t, g, c, rule, x, k)
			for at, i := range sorted {
				if !slices.Equal(got[at*width:(at+1)*width], all[i*width:(i+1)*width]) {
					t.Errorf("%s, spilled %v: row %d differs from that among all", name, spilled, i)
				}
			}
		}
	}
}

// TestTargetsPart: the targets of ranges of rows are together those of all.
func TestTargetsPart(t *testing.T) {
	const n = 3*packed.StripRows + 70
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	some, err := NewTargets(b, n)
	if err != nil {
		t.Fatal(err)
	}
	defer some.Free()
	for i := int64(0); i < n; i += 1 + i*i%61 {
		some.Add(i)
	}
	some.Add(n - 1)
	some.Finish()
	for _, all := range []*Targets{some, AllTargets(n)} {
		var got, want []int64
		all.each(0, n, func(i int64) { want = append(want, i) })
		for _, r := range [][2]int64{{0, packed.StripRows}, {packed.StripRows, 3*packed.StripRows + 3}, {3 * packed.StripRows, n}} {
			part, err := all.Part(b, r[0], r[1])
			if err != nil {
				t.Fatal(err)
			}
			rows := r[1] - r[0]
			var own []int64
			part.each(0, rows, func(i int64) { own = append(own, r[0]+i) })
			if part.Len() != int64(len(own)) || part.Before(rows) != part.Len() || part.All() != all.All() {
				t.Errorf("rows %v: %d targets of %d, all %v", r, part.Len(), len(own), part.All())
			}
			got = slices.DeleteFunc(got, func(i int64) bool { return i >= r[0] }) // the ranges overlap
			got = append(got, own...)
			part.Free()
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d targets of parts, %d of all", len(got), len(want))
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

// TestTakes: a parameter changes rows under the rules that take it, and under no other one.
func TestTakes(t *testing.T) {
	takes := func(take func(Takes) bool, name string) bool { return slices.Contains(NamesThat(take), name) }
	for _, name := range Names() {
		weights := func(alpha float64, depth int) string {
			r, err := NewRule(name, alpha, depth)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(r.Hops(5), r.Weights(5))
		}
		if got, want := weights(0.1, 3) != weights(0.4, 3), takes(func(x Takes) bool { return x.Alpha }, name); got != want {
			t.Errorf("%s: alpha changes rows: %v, want %v", name, got, want)
		}
		if got, want := weights(0.1, 3) != weights(0.1, 4), takes(func(x Takes) bool { return x.Depth }, name); got != want {
			t.Errorf("%s: the depth changes rows: %v, want %v", name, got, want)
		}
	}
}
