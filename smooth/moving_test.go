package smooth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// withPath returns a graph of two components in which few nodes need many hops: each has random edges, and a path is joined to the first.
// k holds the hops of its nodes.
func withPath() (g testgraph.Graph, k []int) {
	const n, path = 900, 60
	rng := rand.New(rand.NewPCG(5, 0))
	var edges [][2]int
	for i := range n {
		for range 40 {
			edges = append(edges, [2]int{i, i/450*450 + rng.IntN(450)})
		}
		k = append(k, i%8)
	}
	for i := n; i < n+path; i++ {
		edges = append(edges, [2]int{max(i-1, n-1), i})
		k = append(k, 9+i*7919%120)
	}
	return testgraph.New("with a path", n+path, edges), k
}

// TestMoving leaves out rows that stand: rows are off by less than is asked for, those of nodes with few hops by rounding alone.
func TestMoving(t *testing.T) {
	const tolerance, standing = 0.001, 0.0002
	g, k := withPath()
	x := input(len(k))
	for _, name := range []string{"ndls", "ndls-reference", "gbp" + byNode, "appnp" + byNode, "s2gc" + byNode, "sgc" + byNode} {
		rule := mustRule(t, name, 0.005, 150)
		for _, c := range []config{
			{r: 0.5, threads: 2, columns: 48, component: true},
			{r: 0, threads: 1, columns: 16, component: true, pruned: true},
			{r: 1, threads: 2, columns: 32, component: true, precision: spmv.Float16},
		} {
			if name != "ndls" && c.r != 0.5 {
				continue
			}
			exact := smoothed(t, g, c, rule, x, k)
			c.tolerance, c.standing = tolerance, standing
			s, free := engine(t, g, c, rule, k)
			if s.moving == nil || s.moving.Rows() > int64(len(k)*2/3) {
				t.Errorf("%s %+v: %d rows move", name, c, s.moving.Rows())
			}
			free()
			got := smoothed(t, g, c, rule, x, k)
			rounding, most := 3e-5, 0.003
			if c.precision == spmv.Float16 {
				rounding, most = 5e-3, 0.02
			}
			for i := range k {
				off, all := 0.0, 0.0
				for col := range width {
					a, b := float64(got[i*width+col]), float64(exact[i*width+col])
					if k[i] <= PlainHops && math.Abs(a-b) > rounding {
						t.Fatalf("%s %+v: row %d with K %d, column %d: %g, not %g", name, c, i, k[i], col, a, b)
					}
					off, all = off+(a-b)*(a-b), all+b*b
				}
				if math.Sqrt(off) > most*math.Sqrt(all) {
					t.Fatalf("%s %+v: row %d with K %d is off by %g of %g", name, c, i, k[i], math.Sqrt(off), math.Sqrt(all))
				}
			}
		}
	}
}

// TestShares: an average over 0 … K has (K-h)/(K+1) of hops after h, and rules that weigh later hops less have less.
func TestShares(t *testing.T) {
	g, k := withPath()
	for _, name := range []string{"ndls", "gbp" + byNode} {
		s, free := engine(t, g, config{r: 0.5, threads: 1, columns: 16}, mustRule(t, name, 0.005, 150), k)
		share := s.leaving().sharesAfter(PlainHops, mostPlainHops)
		for i := range k {
			for hop := PlainHops; hop <= mostPlainHops; hop++ {
				want := float64(max(k[i]-hop, 0)) / float64(k[i]+1)
				got := share(int64(i), hop)
				if name == "ndls" && math.Abs(got-want) > 1e-12 || got < 0 || (got > 0) != (want > 0) || hop > PlainHops && got > share(int64(i), hop-1) {
					t.Fatalf("%s: hops after %d are %g of the sum of row %d with K %d, want %g", name, hop, got, i, k[i], want)
				}
			}
		}
		free()
	}
}

// TestMovingDoesNotShow: the rows have the same bits in every layout, with and without copies of edges, with other targets, beside other
// rules, and from every state.
func TestMovingDoesNotShow(t *testing.T) {
	testkit.NotUnderRace(t, "TestContinue starts the same goroutines")
	g, k := withPath()
	x := input(len(k))
	for name, c := range map[string]config{
		"ndls": {tolerance: 0.05, standing: 0.001}, "ndls-reference": {tolerance: 0.05, standing: 0.001, precision: spmv.Float16},
	} {
		c.r, c.component = 0.5, true
		rule := mustRule(t, name, defaultAlpha, 6)
		want := smoothed(t, g, way(0, c), rule, x, k)
		out := make([]float32, len(want))
		every := 3
		if testing.Short() {
			every = 8
		}
		for i := range ways {
			from := way(i, c)
			from.whole = true
			if !slices.Equal(smoothed(t, g, from, rule, x, k), want) {
				t.Errorf("%s %+v: other bits without copies of edges", name, from)
			}
			from.whole = false
			var states []saved
			if _, err := session(t, g, from, rule, x, k, cut(from.columns/16), keepAll(&states), out); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(out, want) {
				t.Fatalf("%s %+v: other bits", name, from)
			}
			for at, s := range states {
				if at%every != i%every && s.hop != PlainHops && s.hop != PlainHops+1 {
					continue
				}
				clear(out)
				to := way(i+1+at%(len(ways)-1), c)
				if err := goOn(t, g, to, rule, x, k, s, out); err != nil || !sameColumns(out, want, s.of) {
					t.Errorf("%s, %+v from %+v at hop %d: other bits, error %v", name, to, from, s.hop, err)
				}
			}
		}
		some := way(1, c)
		some.targets = []int64{3, 905, 17, 958}
		got := smoothed(t, g, some, rule, x, k)
		slices.Sort(some.targets)
		for i, node := range some.targets {
			if !slices.Equal(got[i*width:(i+1)*width], want[node*width:(node+1)*width]) {
				t.Errorf("%s: row %d has other bits where few are asked for", name, node)
			}
		}
	}
}

// TestMovingBeside: rules beside each other have the rows that they have alone.
func TestMovingBeside(t *testing.T) {
	g, k := withPath()
	x, fewer := input(len(k)), slices.Clone(k)
	for i := range fewer {
		fewer[i] = min(k[i], 60)
	}
	c := config{r: 0.5, threads: 2, columns: 48, component: true, tolerance: 0.05, standing: 0.001}
	rules := []Rule{mustRule(t, "ndls", 0, 0), mustRule(t, "s2gc", 0.1, 12), mustRule(t, "gbp"+byNode, 0.1, 150)}
	counts := [][]int{k, k, fewer}
	beside := c
	for number, rule := range rules[1:] {
		beside.beside = append(beside.beside, Beside{rule, func(i int64) int { return counts[number+1][i] }, c.standing})
	}
	s, free := engine(t, g, beside, rules[0], k)
	defer free()
	rows := columnsOf(x, len(k), 0, c.columns)
	if _, err := s.Run(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	for number, rule := range rules {
		want := smoothed(t, g, c, rule, x, counts[number])
		row := 0
		if err := s.Each(number).Output(0, 48, rows, func(part []float32) error {
			for ; len(part) > 0; part = part[48:] {
				if !slices.Equal(part[:width], want[row*width:(row+1)*width]) {
					return fmt.Errorf("row %d of %s has other bits", row, rule.Name)
				}
				row++
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}
