package smooth

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// probabilities lists c_kj by steps of the walk.
func probabilities(k int) []float64 {
	c := []float64{1}
	for range k {
		next := make([]float64, len(c)+1)
		for j, p := range c {
			if j == 0 {
				next[1] += p
				continue
			}
			next[j-1] += p / 2
			next[j+1] += p / 2
		}
		c = next
	}
	return c
}

// TestSeries compares the weights of all counts with sums of walks.
func TestSeries(t *testing.T) {
	testkit.NotUnderRace(t, "TestKeptHopsDoNotShow and TestDepthByNodeEqualsTheDefinition start the same goroutines")
	const most = 131
	for _, finals := range []bool{false, true} {
		s := &Smoother{o: Options{Rule: Propagation(0.9)}}
		if !finals {
			s.o.Rule = mustRule(t, "ndls", 0, 0)
		}
		s.weigh(most)
		x := newSeries(s.weights, s.finals)
		sums := make([][]float64, most+1)
		for count := range sums {
			sums[count] = make([]float64, most)
			for k := range count {
				w := s.weights[k]
				if finals && k == count-1 {
					w = s.finals[k]
				}
				for j, p := range probabilities(k) {
					sums[count][j] += w * p
				}
			}
		}
		for ; x.Degree() < most-1; x.next() {
			for count, w := range x.column {
				if math.Abs(w-sums[count][x.Degree()]) > 1e-12*float64(most) {
					t.Fatalf("count %d, T_%d: %g, not %g", count, x.Degree(), w, sums[count][x.Degree()])
				}
			}
		}
	}
}

// TestDegree has the numbers of passes of averages over 0 … K for 1 %, 0.5 %, 0.1 % and 0.01 %, and for hop K alone for 1 % and 0.1 %.
func TestDegree(t *testing.T) {
	tolerances := []float64{0.01, 0.005, 0.001, 0.0001}
	for _, tc := range []struct {
		k       int
		average []int
		alone   [2]int
	}{
		{20, []int{9, 10, 12, 14}, [2]int{12, 14}},
		{40, []int{13, 14, 17, 21}, [2]int{16, 20}},
		{100, []int{20, 23, 27, 33}, [2]int{26, 32}},
		{200, []int{29, 32, 39, 47}, [2]int{36, 46}},
		{1000, []int{65, 72, 87, 106}, [2]int{82, 104}},
	} {
		for i, want := range tc.average {
			if got := (Options{Rule: mustRule(t, "ndls", 0, 0), Tolerance: tolerances[i]}).Passes(tc.k); got != want {
				t.Errorf("averages over %d hops within %g take %d passes, not %d", tc.k, tolerances[i], got, want)
			}
		}
		for i, want := range tc.alone {
			if got := (Options{Rule: mustRule(t, "sgc", 0, tc.k), Tolerance: tolerances[2*i]}).Passes(tc.k); got != want {
				t.Errorf("hop %d within %g takes %d passes, not %d", tc.k, tolerances[2*i], got, want)
			}
		}
	}
	for _, tc := range []Options{
		{Rule: mustRule(t, "ndls", 0, 0)},
		{Rule: mustRule(t, "sign", 0, 40), Tolerance: 0.1},
		{Rule: mustRule(t, "ndls", 0, 0), Tolerance: 0.1, Keep: []int{3}},
		{Rule: mustRule(t, "ndls", 0, 0), Tolerance: 0.1, After: func(int) error { return nil }},
	} {
		if got := tc.Passes(40); got != 40 {
			t.Errorf("%+v takes %d passes", tc, got)
		}
	}
}

// TestTolerance compares every rule that adds hops up with its definition: rows of nodes with few hops up to rounding, columns within the
// tolerance.
func TestTolerance(t *testing.T) {
	const tolerance, hops = 0.002, 90
	g := testgraph.Path(120)
	n := len(g.Adj)
	x, k := input(n), make([]int, n)
	for i := range k {
		k[i] = i * 7919 % (hops + 1)
	}
	rules := map[string]Rule{"propagation": Propagation(0.95)}
	for _, name := range []string{"ndls", "ndls-reference", "sgc", "s2gc", "gbp", "appnp", "sgc" + byNode, "gbp" + byNode} {
		rules[name] = mustRule(t, name, 0.02, hops)
	}
	for name, rule := range rules {
		for _, c := range []config{
			{r: 0.5, threads: 2, columns: 48}, {r: 0, threads: 1, columns: 16, pruned: true}, {r: 1, threads: 2, columns: 32, precision: spmv.Float16},
		} {
			t.Run(fmt.Sprintf("%s %+v", name, c), func(t *testing.T) {
				near := c
				near.tolerance = tolerance
				exact := smoothed(t, g, c, rule, x, k)
				got, stats := smoothedStats(t, g, near, rule, x, k)
				s, free := engine(t, g, near, rule, k)
				defer free()
				if s.Hops() >= hops/2 || s.ends == nil || stats.Passes%s.Hops() != 0 {
					t.Fatalf("%d passes a block", s.Hops())
				}
				rounding, share := 3e-5, 3*tolerance
				if c.precision == spmv.Float16 {
					rounding, share = 5e-3, share+0.01
				}
				for col := range width {
					off, all := 0.0, 0.0
					for i := range n {
						a, b := float64(got[i*width+col]), float64(exact[i*width+col])
						d := math.Pow(float64(len(g.Adj[i])+1), 1-2*c.r)
						off, all = off+d*(a-b)*(a-b), all+d*x[i*width+col]*x[i*width+col]
						if rule.NodeDependent && k[i] <= s.Hops() && math.Abs(a-b) > rounding {
							t.Fatalf("row %d with K %d, column %d: %g, not %g", i, k[i], col, a, b)
						}
					}
					if math.Sqrt(off) > share*math.Sqrt(all) {
						t.Fatalf("column %d is off by %g of %g", col, math.Sqrt(off), math.Sqrt(all))
					}
				}
			})
		}
	}
}

// TestToleranceUnused: the bits equal those of hops if few polynomials save no pass.
func TestToleranceUnused(t *testing.T) {
	g := testgraph.Random(200, 400, 5)
	n := len(g.Adj)
	x, k, c := input(n), make([]int, n), config{r: 0.5, threads: 1, columns: 48}
	for i := range k {
		k[i] = i % 6
	}
	rule, want := mustRule(t, "ndls", 0, 0), []float32(nil)
	for _, c.tolerance = range []float64{0, 1e-9} {
		got := smoothed(t, g, c, rule, x, k)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Error("other bits")
		}
	}
}

// TestDepths compares the rows of every depth, all made of the polynomials of one run, with runs of nodes with so many hops at most.
func TestDepths(t *testing.T) {
	testkit.NotUnderRace(t, "TestKeptHopsDoNotShow and TestDepthByNodeEqualsTheDefinition start the same goroutines")
	const most, tolerance = 40, 0.002
	g := testgraph.Random(300, 500, 4)
	n := len(g.Adj)
	x, k, targets := input(n), make([]int, n), []int64{}
	for i := range k {
		k[i] = i * 7919 % (most + 1)
		if i%3 != 1 {
			targets = append(targets, int64(i))
		}
	}
	for name, rule := range map[string]Rule{
		"propagation": Propagation(0.9), "ndls": mustRule(t, "ndls", 0, 0), "ndls-reference": mustRule(t, "ndls-reference", defaultAlpha, 0),
	} {
		for _, c := range []config{
			{r: 0.5, threads: 2, columns: 48},
			{r: 0.5, threads: 1, columns: 48, place: spmv.External},
			{r: 0, threads: 3, columns: 48, pruned: true},
			{r: 0.5, threads: 2, columns: 48, place: spmv.Spilled, spilled: true},
		} {
			c.targets = targets
			few := c
			few.tolerance, few.depths = tolerance, most
			few.after = func(int) error { t.Error("After is called"); return nil }
			s, free := engine(t, g, few, rule, k)
			rows := columnsOf(x, n, 0, 48)
			if _, err := s.Run(t.Context(), rows); err != nil {
				t.Fatal(err)
			}
			if s.Hops() > 20 || s.Replaced() != rule.Hops(most) {
				t.Fatalf("%s: %d passes in place of %d hops", name, s.Hops(), s.Replaced())
			}
			for hop := range s.Replaced() + 1 {
				var got []float32
				if err := s.Prefix(hop, 0, width, func(target int64) []float32 {
					row := make([]float32, 48)
					for c, v := range x[targets[target]*width:][:width] {
						row[c] = float32(v)
					}
					return row
				}, func(part []float32) error {
					got = append(got, part...)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				fewer := make([]int, n)
				for i := range fewer {
					fewer[i] = min(k[i], rule.Depth(hop))
				}
				for i, want := range smoothed(t, g, c, rule, x, fewer) {
					bound := 3e-3
					if fewer[targets[i/width]] <= s.Hops() {
						bound = 1e-5
					}
					if math.Abs(float64(got[i]-want)) > bound {
						t.Fatalf("%s %+v, hop %d, node %d, column %d: %g, not %g", name, c, hop, targets[i/width], i%width, got[i], want)
					}
				}
			}
			free()
		}
	}
}
