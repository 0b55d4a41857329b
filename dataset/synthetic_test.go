package dataset

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSyntheticGraph checks what the generator promises of its graph.
func TestSyntheticGraph(t *testing.T) {
	const nodes, rows = 20_000, 200_000
	d := open(t, "synthetic:nodes=20000,edges=200000,classes=8,features=0,homophily=0.7,train=0.2,valid=0.3", Options{})
	edges, err := readEdges(d, 1000)
	if err != nil || len(edges) != rows {
		t.Fatalf("%d edges, %v", len(edges), err)
	}
	labels, err := readLabels(d)
	if err != nil || len(labels) != nodes {
		t.Fatalf("%d labels, %v", len(labels), err)
	}
	for c, n := range histogram(labels, 8) {
		if n != nodes/8 {
			t.Errorf("class %d has %d nodes", c, n)
		}
	}
	same := 0
	degree := make([]float64, nodes)
	for _, e := range edges {
		if labels[e.U] == labels[e.V] {
			same++
		}
		degree[e.U]++
		degree[e.V]++
	}
	if share := float64(same) / rows; math.Abs(share-0.7) > 0.01 {
		t.Errorf("%.3f of the edges are inside a class, want 0.7", share)
	}
	// Weights (j+1)^-½ give P(degree ≥ d) ~ d^-2: four times fewer at twice the degree.
	above := func(d float64) (n float64) {
		for _, x := range degree {
			if x >= d {
				n++
			}
		}
		return n
	}
	if ratio := above(40) / above(80); ratio < 3 || ratio > 5 {
		t.Errorf("degree tail falls by %.1f at twice the degree, want about 4", ratio)
	}
	splits, err := readSplits(d)
	if err != nil {
		t.Fatal(err)
	}
	var count [4]float64
	for _, s := range splits {
		count[s] += 1.0 / nodes
	}
	if count[NoSplit] != 0 || math.Abs(count[Train]-0.2) > 0.02 || math.Abs(count[Valid]-0.3) > 0.02 || math.Abs(count[Test]-0.5) > 0.02 {
		t.Errorf("shares of the splits are %v", count)
	}
}

// TestSyntheticLearnable compares how well the nearest class mean is found from a
// node's own row and from the mean over its neighbours.
func TestSyntheticLearnable(t *testing.T) {
	const nodes, width, classes = 2000, 32, 4
	d := open(t, "synthetic:nodes=2000,edges=20000,features=32,classes=4", Options{})
	labels, err := readLabels(d)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readFeatures(d)
	if err != nil {
		t.Fatal(err)
	}
	edges, err := readEdges(d, 1000)
	if err != nil {
		t.Fatal(err)
	}
	own, smooth := make([][width]float64, nodes), make([][width]float64, nodes)
	for _, r := range rows {
		for i, c := range r.indices {
			own[r.id][c] = float64(r.values[i])
		}
	}
	degree := make([]float64, nodes)
	for _, e := range edges {
		degree[e.U]++
		degree[e.V]++
		for c := range width {
			smooth[e.U][c] += own[e.V][c]
			smooth[e.V][c] += own[e.U][c]
		}
	}
	for v := range smooth {
		for c := range width {
			smooth[v][c] = (smooth[v][c] + own[v][c]) / (degree[v] + 1)
		}
	}
	accuracy := func(x [][width]float64) float64 {
		var means [classes][width]float64
		for v, r := range x {
			for c := range r {
				means[labels[uint32(v)]][c] += r[c] / (nodes / classes)
			}
		}
		right := 0.0
		for v, r := range x {
			best, bestDistance := 0, math.Inf(1)
			for k, m := range means {
				distance := 0.0
				for c := range r {
					distance += (r[c] - m[c]) * (r[c] - m[c])
				}
				if distance < bestDistance {
					best, bestDistance = k, distance
				}
			}
			if int32(best) == labels[uint32(v)] {
				right += 1.0 / nodes
			}
		}
		return right
	}
	if a, b := accuracy(own), accuracy(smooth); a < 0.35 || a > 0.8 || b < 0.9 {
		t.Errorf("own rows %.2f, smoothed rows %.2f", a, b)
	}
}

// TestSyntheticPinned holds the first edges and values: results are quoted by the
// options of the generator.
func TestSyntheticPinned(t *testing.T) {
	d := open(t, "synthetic:", Options{})
	r, err := d.Edges(t.Context(), Whole)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]Edge, 3)
	if _, err := r.Read(got, nil); err != nil {
		t.Fatal(err)
	}
	f, err := d.Features(t.Context(), Whole)
	if err != nil {
		t.Fatal(err)
	}
	row, err := f.Next()
	if err != nil {
		t.Fatal(err)
	}
	wantEdges, wantBits := []Edge{{U: 93001, V: 73593}, {U: 63266, V: 71442}, {U: 13300, V: 66684}}, [2]uint32{0xbdfd7100, 0xbfca5a80}
	bits := [2]uint32{math.Float32bits(row.Dense[0]), math.Float32bits(row.Dense[63])}
	if !slices.Equal(got, wantEdges) || bits != wantBits {
		t.Errorf("edges %v, values %#x", got, bits)
	}
	if want := "synthetic:nodes=100000,edges=1000000,features=64,classes=8,seed=1,homophily=0.8,train=0.1,valid=0.1,noise=1"; d.Info().Identity != want {
		t.Errorf("identity %s", d.Info().Identity)
	}
}

// TestSyntheticPermutation checks that rank and node are inverse to each other.
func TestSyntheticPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, MaxID+1).Draw(t, "nodes")
		g := &synthetic{nodes: n, classes: 1, seed: rapid.Uint64().Draw(t, "seed")}
		g.prepare()
		v := rapid.Int64Range(0, n-1).Draw(t, "node")
		if k := g.rank(v); k < 0 || k >= n || int64(g.node(uint64(k))) != v {
			t.Fatalf("node %d has rank %d, which is node %d", v, k, g.node(uint64(k)))
		}
		for i := range int64(10) {
			if e := g.edge(i); int64(e.U) >= n || int64(e.V) >= n {
				t.Fatalf("edge %v of %d nodes", e, n)
			}
		}
	})
}

// TestGenerate reads generated files back as the same streams.
func TestGenerate(t *testing.T) {
	for _, options := range []string{
		"synthetic:nodes=1000,edges=5001,features=5,classes=3,seed=9",
		"synthetic:nodes=10,edges=2,features=1,classes=1",
		"synthetic:nodes=10,edges=0,features=0,classes=2,train=0,valid=1",
	} {
		dir := filepath.Join(t.TempDir(), "a & b #1")
		uri, err := Generate(t.Context(), options, dir)
		if err != nil {
			t.Fatal(err)
		}
		a, b := open(t, options, Options{}), open(t, uri, Options{})
		ae, err1 := readEdges(a, 100)
		be, err2 := readEdges(b, 77)
		if err1 != nil || err2 != nil || !slices.Equal(ae, be) {
			t.Errorf("%s: edges differ: %v, %v", options, err1, err2)
		}
		if a.Info().NumFeatures > 0 {
			af, err1 := readFeatures(a)
			bf, err2 := readFeatures(b)
			if err1 != nil || err2 != nil || !slices.EqualFunc(af, bf, equalRows) {
				t.Errorf("%s: features differ: %v, %v", options, err1, err2)
			}
		}
		al, err1 := readLabels(a)
		bl, err2 := readLabels(b)
		if err1 != nil || err2 != nil || !maps.Equal(al, bl) || !slices.Equal(a.Info().Classes, b.Info().Classes) {
			t.Errorf("%s: labels differ: %v, %v", options, err1, err2)
		}
		as, err1 := readSplits(a)
		bs, err2 := readSplits(b)
		if err1 != nil || err2 != nil || !maps.Equal(as, bs) {
			t.Errorf("%s: splits differ: %v, %v", options, err1, err2)
		}
		if a.Info().NumNodes != b.Info().NumNodes || a.Info().NumFeatures != b.Info().NumFeatures {
			t.Errorf("%+v and %+v", a.Info(), b.Info())
		}
	}
	if _, err := Generate(t.Context(), "karate:", t.TempDir()); err == nil {
		t.Error("karate was generated")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Generate(t.Context(), "synthetic:nodes=10", file); err == nil {
		t.Error("generated into a file")
	}
}

func BenchmarkSynthetic(b *testing.B) {
	d := open(b, "synthetic:", Options{})
	batch := make([]Edge, 4096)
	b.Run("edges", func(b *testing.B) {
		n := 0
		for b.Loop() {
			r, _ := d.Edges(b.Context(), Whole)
			for {
				m, err := r.Read(batch, nil)
				if err != nil {
					break
				}
				n += m
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "edges/s")
	})
	b.Run("features", func(b *testing.B) {
		r, _ := d.Features(b.Context(), Whole)
		for i := range b.N {
			if i%100_000 == 0 {
				r, _ = d.Features(b.Context(), Whole)
			}
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestFeatureColumns compares parts of rows with whole ones.
func TestFeatureColumns(t *testing.T) {
	for _, uri := range []string{"synthetic:nodes=50,edges=60,features=40", "papers100m:scale=1/4096"} {
		d := open(t, uri, Options{})
		width := d.Info().NumFeatures
		for _, part := range [][2]int{{0, width}, {16, 32}, {width - 7, width}, {3, 4}, {5, 10}} {
			whole, err := d.Features(t.Context(), Whole)
			if err != nil {
				t.Fatal(err)
			}
			some, err := d.Features(t.Context(), Whole)
			if err != nil {
				t.Fatal(err)
			}
			some.(ColumnSelector).SelectColumns(part[0], part[1])
			for range 50 {
				want, err1 := whole.Next()
				got, err2 := some.Next()
				if err1 != nil || err2 != nil || got.ID != want.ID || !slices.Equal(got.Dense, want.Dense[part[0]:part[1]]) {
					t.Fatalf("%s, columns %v: %v, %v, %v, want %v", uri, part, got, err1, err2, want)
				}
			}
		}
	}
}
