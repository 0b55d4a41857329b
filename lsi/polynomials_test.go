package lsi

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// path is a path of n nodes.
func path(n int) testgraph.Graph {
	edges := make([][2]int, n-1)
	for i := range edges {
		edges[i] = [2]int{i, i + 1}
	}
	return testgraph.New("path", n, edges)
}

// TestPolynomialsFindK compares K with that of all hops.
func TestPolynomialsFindK(t *testing.T) {
	for _, x := range []struct {
		g          testgraph.Graph
		epsilon    float64
		other, far float64 // largest shares of nodes with another K, and with one that is off by more than one
		fewer      bool
	}{
		{testgraph.Random(3000, 4500, 3), 0.01, 0.005, 0.001, true},
		{testgraph.Random(3000, 3300, 4), 0.05, 0.007, 0.001, true},
		{path(700), 0.1, 0.005, 0.005, false},
		{published(t, "cora", 2708), 0.05, 0.005, 0.001, true},
		{published(t, "cora", 2708), 0.03, 0.005, 0.001, true},
	} {
		n := len(x.g.Adj)
		s := setup{r: 0.5, component: true, precision: spmv.Float16}
		start := time.Now()
		want, all := run(t, x.g, s, Signs(5, ids(n), 64), x.epsilon, 200)
		s.tolerance = 0.001
		between := time.Now()
		got, few := run(t, x.g, s, Signs(5, ids(n), 64), x.epsilon, 200)
		other, far := 0, 0
		for i := range int64(n) {
			k, _ := want.K(i)
			l, _ := got.K(i)
			if k != l {
				other++
			}
			if l < k-1 || l > k+1 {
				far++
			}
		}
		t.Logf("%s, epsilon %g: %d passes in %.3f s, not %d in %.3f s; K of %d nodes of %d is other, of %d by more than one",
			x.g.Name, x.epsilon, few.Passes, time.Since(between).Seconds(), all.Passes, between.Sub(start).Seconds(), other, n, far)
		if float64(other) > x.other*float64(n) || float64(far) > x.far*float64(n) || x.fewer && few.Passes >= all.Passes {
			t.Errorf("%s, epsilon %g: K of %d nodes of %d is other, of %d by more than one, with %d passes, not %d", x.g.Name, x.epsilon, other, n, far, few.Passes, all.Passes)
		}
	}
}

// TestWaysToUsePolynomialsDoNotShow compares every way to compute one table.
func TestWaysToUsePolynomialsDoNotShow(t *testing.T) {
	testkit.NotUnderRace(t, "TestBlocksThreadsAndKernelsDoNotShow and TestPolynomialsFindK start the same goroutines")
	n := packed.StripRows + 1500
	if n > 10000 {
		n = 2500
	}
	g := testgraph.Random(n, n+n/4, 11)
	probe := Signs(5, ids(n), 48)
	for _, precision := range []spmv.Precision{spmv.Float32, spmv.Float16} {
		s := setup{r: 0.5, component: true, kernel: "go", threads: 1, tolerance: 0.01, precision: precision}
		want, stats := run(t, g, s, probe, 0.02, 40)
		if degree := (Options{Kmax: 40, Tolerance: 0.01}).series().degree; stats.Passes != plainHops+degree {
			t.Fatalf("%d passes, not %d and %d", stats.Passes, plainHops, degree)
		}
		for _, way := range []setup{
			{kernel: "auto", threads: 3},
			{kernel: "auto", threads: 2, columns: 16},
			{kernel: "go", threads: 2, columns: 32, place: spmv.External},
			{kernel: "auto", threads: 2, columns: 32, place: spmv.Spilled},
		} {
			way.r, way.component, way.tolerance, way.precision = s.r, true, s.tolerance, precision
			if got, _ := run(t, g, way, probe, 0.02, 40); !slices.Equal(got.k.S, want.k.S) || !reflect.DeepEqual(got.distances, want.distances) {
				t.Errorf("%s, %s", precision, fmt.Sprintf("%+v: another table", way))
			}
		}
	}
}

// TestPolynomialsThatDoNotPay reports no polynomials where they would save no pass, or where too many
// nodes are left for the edges.
func TestPolynomialsThatDoNotPay(t *testing.T) {
	for _, o := range []Options{{Kmax: 200}, {Kmax: 9, Tolerance: 0.1}, {Kmax: 10, Tolerance: 1e-6}} {
		if s := o.series(); s.degree != 0 || s.pays(1e6, 1e9, 1) {
			t.Errorf("%+v: %+v", o, s)
		}
	}
	s := Options{Kmax: 200, Tolerance: 0.001}.series()
	if s.degree != 46 || !s.pays(1e6, 28e6, 1e5) || s.pays(1e6, 2e6, 1e6) || s.pays(1e6, 28e6, 0) {
		t.Errorf("%+v", s)
	}
}
