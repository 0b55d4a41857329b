package lsi

import (
	"math"
	"testing"

	"ndls/hops"
	"ndls/internal/rng"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// directionsOf returns the probe of a graph, found in blocks of so many columns.
func directionsOf(t *testing.T, g testgraph.Graph, s setup, random, directions int) (*Directions, hops.Graph) {
	t.Helper()
	h := prepare(t, g, s, budget(t))
	columns := s.columns
	if columns == 0 {
		columns = directions
	}
	l := layout(columns, s.place)
	l.Precision = spmv.Float32
	p, stats, err := NewDirections(t.Context(), h, 5, ids(int(h.Source.NumNodes())), random, directions, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if want := DirectionHops * hops.Blocks(directions, l); stats.Passes != want {
		t.Errorf("%d passes, expected %d", stats.Passes, want)
	}
	return p, h
}

// TestDirectionsAreOrthonormal adds up the products of all columns of the probe: the directions are orthonormal, and no
// random column has anything of them.
func TestDirectionsAreOrthonormal(t *testing.T) {
	for _, g := range []testgraph.Graph{testgraph.Random(700, 1200, 3), testgraph.Path(300), testgraph.Random(400, 900, 4).RandomWeights(10, 12), testgraph.Path(20)} {
		for _, r := range []float64{0, 0.5, 1} {
			const random, directions = 24, 32
			p, h := directionsOf(t, g, setup{r: r, component: true, threads: 2}, random, directions)
			b, err := h.NewBlock(layout(64, spmv.Resident))
			if err != nil {
				t.Fatal(err)
			}
			rows := make([][]float64, 0, p.n)
			if err := p.chunks(t.Context(), false, func(x *someRows) error {
				for i := range x.n {
					row, rest := make([]float32, directions+random), make([]float64, directions+random)
					p.row(x, i, 0, 1, rest, row)
					wide := make([]float64, len(row))
					for c, v := range row {
						wide[c] = float64(v)
					}
					rows = append(rows, wide)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			b.Free()
			for a := range directions {
				for c := range directions + random {
					sum := 0.0
					for _, row := range rows {
						sum += row[a] * row[c]
					}
					want := 0.0
					if a == c && math.Abs(sum) > 0.5 { // a column that was a combination of others is zero
						want = 1
					}
					if math.Abs(sum-want) > 2e-6 {
						t.Fatalf("%s, r %g: columns %d and %d have the product %g", g.Name, r, a, c, sum)
					}
				}
			}
		}
	}
}

// TestDirectionsAreBetter compares K with that of the definition, on a ring of groups that few edges join: beside the slow
// directions, 32 random columns find what 256 do not find alone.
func TestDirectionsAreBetter(t *testing.T) {
	const n, epsilon, kmax, groups = 600, 0.1, 3000, 10
	var edges [][2]int
	random := rng.New(7)
	for i := range n {
		first := i / (n / groups) * (n / groups)
		for range 2 {
			edges = append(edges, [2]int{i, first + random.Intn(n/groups)})
		}
		if i == first {
			edges = append(edges, [2]int{i, (i + n/groups + 3) % n})
		}
	}
	g := testgraph.New("ring of groups", n, edges)
	want, _ := run(t, g, setup{r: 0.5, component: true}, Identity(n), epsilon, kmax)
	right := func(p Probe) (share float64) {
		got, _ := run(t, g, setup{r: 0.5, component: true, precision: spmv.Float16}, p, epsilon, kmax)
		for i := range int64(n) {
			a, _ := got.K(i)
			b, _ := want.K(i)
			if a-b <= 1 && b-a <= 1 {
				share += 1.0 / n
			}
		}
		return share
	}
	alone := right(Signs(5, ids(n), 256))
	p, _ := directionsOf(t, g, setup{r: 0.5, component: true, threads: 2}, 32, 32)
	beside := right(p)
	t.Logf("K is within one hop of the definition for %.3f of the nodes with 256 random columns, %.3f with 32 beside 32 directions", alone, beside)
	if beside <= alone || beside < 0.9 {
		t.Errorf("32 random columns beside 32 directions find K within one hop for %.3f of the nodes, 256 alone for %.3f", beside, alone)
	}
}

// TestDirectionsDoNotShow finds K with directions that were found in every way.
func TestDirectionsDoNotShow(t *testing.T) {
	g := testgraph.Random(2500, 4000, 11)
	find := func(s setup) *Table {
		found := s
		found.columns = min(found.columns, 48)
		p, _ := directionsOf(t, g, found, 32, 48)
		s.precision = spmv.Float16
		table, _ := run(t, g, s, p, 0.02, 50)
		return table
	}
	want := find(setup{r: 0.5, component: true, kernel: "go", threads: 1})
	for _, s := range []setup{
		{threads: 3, kernel: "auto"}, {threads: 2, columns: 16}, {threads: 5, columns: 32, place: spmv.Spilled}, {threads: 2, columns: 16, place: spmv.External},
	} {
		s.r, s.component = 0.5, true
		got := find(s)
		for i := range g.Source().NumNodes() {
			a, _ := want.K(i)
			if b, _ := got.K(i); a != b {
				t.Fatalf("%+v: node %d has K %d, with one thread and all columns at a time %d", s, i, b, a)
			}
		}
	}
}
