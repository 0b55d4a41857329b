package lsi

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ndls/internal/testgraph"
	"ndls/spmv"
)

// denseLambda2 is the second largest eigenvalue in absolute value of the nodes of a component.
func denseLambda2(t *testing.T, g testgraph.Graph, component []uint32, number uint32) float64 {
	t.Helper()
	var nodes []int
	place := map[int]int{}
	for i, c := range component {
		if c == number {
			place[i] = len(nodes)
			nodes = append(nodes, i)
		}
	}
	mass := func(i int) float64 {
		if g.Weights != nil {
			return float64(g.Strength1()[i])
		}
		return float64(len(g.Adj[i])) + 1
	}
	s := mat.NewSymDense(len(nodes), nil)
	for a, i := range nodes {
		s.SetSym(a, a, 1/mass(i))
		for k, j := range g.Adj[i] {
			w := 1.0
			if g.Weights != nil {
				w = float64(g.Weights[i][k])
			}
			s.SetSym(a, place[int(j)], w/math.Sqrt(mass(i)*mass(int(j))))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(s, false) {
		t.Fatal("no eigenvalues")
	}
	values := eigen.Values(nil)
	for k := range values {
		values[k] = math.Abs(values[k])
	}
	slices.Sort(values)
	if len(values) == 1 {
		return 0
	}
	return values[len(values)-2]
}

// largestComponent is the number of the component with most nodes.
func largestComponent(component []uint32, count int) (number uint32) {
	sizes := make([]int, count)
	for _, c := range component {
		sizes[c]++
	}
	for c, n := range sizes {
		if n > sizes[number] {
			number = uint32(c)
		}
	}
	return number
}

// TestSecondEigenvalue compares with dense eigenvalues, and with itself on other threads.
func TestSecondEigenvalue(t *testing.T) {
	graphs := append(testgraph.Small(), testgraph.SmallWeighted()...)
	for _, g := range append(graphs, testgraph.Random(400, 900, 3), testgraph.Random(300, 400, 4), testgraph.Path(150)) {
		component, count := g.Components()
		number := largestComponent(component, count)
		want := denseLambda2(t, g, component, number)
		var first Spectrum
		for k, place := range []spmv.Residency{spmv.Resident, spmv.External} {
			threads := 1 + 2*k
			b := budget(t)
			hg := prepare(t, g, setup{r: 0.5, component: true, kernel: "auto", threads: threads}, b)
			got, stats, err := SecondEigenvalue(t.Context(), hg, component, number, 1, layout(16, place))
			if err != nil {
				t.Fatalf("%s: %v", g.Name, err)
			}
			if d := math.Abs(got.Lambda2 - want); d > 3e-5 || d > got.Error+1e-6 || got.Error > 2e-5 {
				t.Errorf("%s: %.8f ± %.1e after %d hops, want %.8f", g.Name, got.Lambda2, got.Error, got.Hops, want)
			}
			if stats.Passes != got.Hops {
				t.Errorf("%s: %d passes for %d hops", g.Name, stats.Passes, got.Hops)
			}
			if k > 0 && got != first {
				t.Errorf("%s: %+v on %d threads, %+v on one", g.Name, got, threads, first)
			}
			first = got
		}
	}
}
