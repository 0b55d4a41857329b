package lsi

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// fewAlways makes polynomials for any number of nodes.
func fewAlways(t testing.TB) {
	before := openShare
	openShare = 1
	t.Cleanup(func() { openShare = before })
}

// TestPolynomialsFindK compares K with that of all hops, and the distances: they are off by no more than the bound says. No node has another
// K unless its K is uncertain.
func TestPolynomialsFindK(t *testing.T) {
	fewAlways(t)
	for _, x := range []struct {
		g         testgraph.Graph
		r         float64
		precision spmv.Precision
		epsilon   float64
		other     float64 // largest share of nodes with another K
	}{
		{testgraph.Random(3000, 6000, 3), 0.5, spmv.Float16, 0.003, 0.005},
		{published(t, "cora", 2708), 0.5, spmv.Float16, 0.03, 0.005},
		{published(t, "cora", 2708), 0.5, spmv.Float32, 0.03, 0.005},
		{published(t, "cora", 2708), 0, spmv.Float32, 0.03, 0.005},
		{published(t, "citeseer", 3327), 0.5, spmv.Float16, 0.03, 0.015},
		{published(t, "citeseer", 3327), 0.5, spmv.Float32, 0.03, 0.005},
		{published(t, "citeseer", 3327), 0.3, spmv.Float32, 0.03, 0.006},
	} {
		n, columns := len(x.g.Adj), 64
		s := setup{r: x.r, component: true, precision: x.precision}
		for i := range int64(n) {
			s.sample = append(s.sample, i)
		}
		start := time.Now()
		want, all := run(t, x.g, s, Signs(5, ids(n), columns), x.epsilon, 200)
		s.tolerance = 0.001
		between := time.Now()
		got, few := run(t, x.g, s, Signs(5, ids(n), columns), x.epsilon, 200)
		series := Options{Kmax: 200, Tolerance: s.tolerance}.most()
		allowed, largest := rounding(x.precision, columns/packed.PanelColumns), 0.0
		other, wrong := 0, 0
		for i := range int64(n) {
			k, _ := want.K(i)
			l, _ := got.K(i)
			if k != l {
				other++
				if !got.Uncertain(i) {
					wrong++
				}
			}
			d, e := want.Distances()[i], got.Distances()[i]
			for h := plainHops; h < min(len(d), len(e)) && x.r == 0.5; h++ {
				largest = max(largest, math.Abs(d[h]-e[h])/d[plainHops]-series.off[h-plainHops])
			}
		}
		name := fmt.Sprintf("%s, %v, r %g, epsilon %g", x.g.Name, x.precision, x.r, x.epsilon)
		t.Logf("%s: %d passes in %.3f s, not %d in %.3f s; K of %d nodes of %d is other, of %d uncertain; distances are off by %.2g of the first and what is cut", name,
			few.Passes, time.Since(between).Seconds(), all.Passes, between.Sub(start).Seconds(), other, n, got.CountUncertain(), largest)
		if float64(other) > x.other*float64(n) || wrong > 0 || largest > allowed || few.Passes >= all.Passes {
			t.Errorf("%s: K of %d nodes of %d is other, of %d although it is certain, with %d passes, not %d; distances are off by %g, not %g",
				name, other, n, wrong, few.Passes, all.Passes, largest, allowed)
		}
	}
}

// uncertain lists the nodes of uncertain K.
func uncertain(x *Table) (list []int64) {
	for i := range int64(len(x.k.S)) {
		if x.Uncertain(i) {
			list = append(list, i)
		}
	}
	return list
}

// withPath returns a graph whose rows come to stand after about eleven hops, but for those of a path that is joined to it.
func withPath(n, path int) testgraph.Graph {
	var edges [][2]int
	for i, adj := range testgraph.Random(n, 4*n, 11).Adj {
		for _, j := range adj {
			if i < int(j) {
				edges = append(edges, [2]int{i, int(j)})
			}
		}
	}
	for i := n; i < n+path; i++ {
		edges = append(edges, [2]int{i - 1, i})
	}
	return testgraph.New(fmt.Sprintf("random n=%d with a path of %d", n, path), n+path, edges)
}

// TestMovingFindsK leaves out rows that stand: K of no node is another one by more than a hop, and of none if its K is certain.
func TestMovingFindsK(t *testing.T) {
	const epsilon, kmax, columns = 0.15, 200, 64
	for _, precision := range []spmv.Precision{spmv.Float32, spmv.Float16} {
		g := withPath(2000, 60)
		probe := Signs(5, ids(len(g.Adj)), columns)
		s := setup{r: 0.5, component: true, precision: precision}
		want, _ := run(t, g, s, probe, epsilon, kmax)
		s.tolerance, s.standing = 0.001, 0.05*epsilon
		got, stats := run(t, g, s, probe, epsilon, kmax)
		if plain := stats.Plain - plainHops; plain < 1 || plain > laterPlain || stats.Moving == 0 || stats.Share > 0.5 {
			t.Errorf("%s: %d rows move after %d further hops", precision, stats.Moving, plain)
		}
		other := 0
		for i := range int64(len(g.Adj)) {
			k, _ := want.K(i)
			l, _ := got.K(i)
			if k != l {
				other++
			}
			if k-l > 1 || l-k > 1 || k != l && !got.Uncertain(i) {
				t.Errorf("%s: K of node %d is %d, not %d, and uncertain: %v", precision, i, l, k, got.Uncertain(i))
			}
		}
		t.Logf("%s: %d of %d rows move, K of %d nodes is another one, of %d uncertain", precision, stats.Moving, len(g.Adj), other, got.CountUncertain())
	}
}

// TestWaysToUsePolynomialsDoNotShow compares every way to compute one table.
func TestWaysToUsePolynomialsDoNotShow(t *testing.T) {
	testkit.NotUnderRace(t, "TestBlocksThreadsAndKernelsDoNotShow and TestPolynomialsFindK start the same goroutines")
	fewAlways(t)
	const kmax = 100
	n := packed.StripRows + 1500
	if n > 10000 {
		n = 2500
	}
	for number, s := range []setup{
		{precision: spmv.Float32}, {precision: spmv.Float16}, {precision: spmv.Float32, standing: 0.0075}, {precision: spmv.Float16},
	} {
		g, precision, later := testgraph.Random(n, 2*n, 11), s.precision, number == 3
		if openShare = 1; later {
			openShare = 5
		}
		epsilon := 0.005
		if s.standing > 0 {
			g, epsilon = withPath(n-60, 60), 0.15
		}
		probe := Signs(5, ids(n), 48)
		s.r, s.component, s.kernel, s.threads, s.tolerance = 0.3, true, "go", 1, 0.01
		want, stats := run(t, g, s, probe, epsilon, kmax)
		if (stats.Moving > 0) != (s.standing > 0) || (stats.Plain > plainHops) != (later || s.standing > 0) {
			t.Fatalf("polynomials after %d hops, %d rows move", stats.Plain, stats.Moving)
		}
		if len(uncertain(want)) == 0 {
			t.Error("K of no node is uncertain")
		}
		for _, way := range []setup{
			{kernel: "auto", threads: 3},
			{kernel: "auto", threads: 2, columns: 16},
			{kernel: "auto", threads: 2, columns: 16, memory: 9 << 20},
			{kernel: "auto", threads: 2, room: 1},
			{kernel: "auto", threads: 2, columns: 32, room: 3 << 20},
			{kernel: "go", threads: 2, columns: 32, place: spmv.External},
			{kernel: "auto", threads: 2, columns: 32, place: spmv.Spilled},
		} {
			way.r, way.component, way.tolerance, way.standing, way.precision = s.r, true, s.tolerance, s.standing, precision
			got, _ := run(t, g, way, probe, epsilon, kmax)
			if !slices.Equal(got.k.S, want.k.S) || !reflect.DeepEqual(got.distances, want.distances) || !slices.Equal(uncertain(got), uncertain(want)) {
				t.Errorf("%s, %s", precision, fmt.Sprintf("%+v: another table", way))
			}
		}
	}
}

// BenchmarkFewPasses finds K of a published graph with and without polynomials.
func BenchmarkFewPasses(b *testing.B) {
	fewAlways(b)
	g := published(b, "cora", 2708)
	for _, tolerance := range []float64{0, 0.001} {
		b.Run(fmt.Sprintf("tolerance=%g", tolerance), func(b *testing.B) {
			s := setup{r: 0.5, component: true, precision: spmv.Float16, tolerance: tolerance, columns: 64}
			for range b.N {
				run(b, g, s, Signs(5, ids(2708), 64), 0.03, 200)
			}
		})
	}
}

// TestPolynomialsThatDoNotPay reports no polynomials where they would save no pass, or where more than an eighth of the nodes is left.
func TestPolynomialsThatDoNotPay(t *testing.T) {
	for _, o := range []Options{{Kmax: 200}, {Kmax: 9, Tolerance: 0.1}, {Kmax: 10, Tolerance: 1e-6}} {
		if s := o.most(); s.degree != 0 || o.Few(8, 1e6, 1, 1) || o.Few(16, 1e6, 1, 1) || o.NextPlain(8) != o.Kmax {
			t.Errorf("%+v: %+v", o, s)
		}
	}
	o := Options{Kmax: 200, Tolerance: 0.001}
	for _, from := range []int{8, 16, 48} {
		if !o.Few(from, 1e6, 1e5, 1e5) || o.Few(from+1, 1e6, 1e5, 1e5) || o.Few(from, 1e6, 200_001, 200_001) || o.Few(from, 1e6, 10, 0) ||
			o.Few(from, 1e6, 2e5, 1e5) {
			t.Errorf("after hop %d polynomials are used where they do not pay, or not where they do", from)
		}
	}
	if o.most().degree != 46 || o.series(96).degree >= 46 || o.Few(192, 1e6, 1e5, 1e5) {
		t.Errorf("%d passes after 8 hops, %d after 96, for 8 hops after 192: %v", o.most().degree, o.series(96).degree, o.Few(192, 1e6, 1e5, 1e5))
	}
}

// TestMoreThan: of 64 nodes, half as many as one hop before, one is left after six hops.
func TestMoreThan(t *testing.T) {
	for hops, want := range map[int]bool{5: true, 7: false} {
		if MoreThan(hops, 128, 64) != want {
			t.Errorf("more than %d hops: %v", hops, !want)
		}
	}
	if !MoreThan(1000, 64, 64) {
		t.Error("nodes whose number does not fall are found")
	}
}
