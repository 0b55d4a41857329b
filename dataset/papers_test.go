package dataset

import (
	"archive/zip"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/rng"
)

// TestPapersCounts compares the counts at full scale with the published ones.
func TestPapersCounts(t *testing.T) {
	d := open(t, "papers100m:scale=1", Options{}).(*papersDataset)
	info := d.Info()
	if info.NumNodes != 111_059_956 || d.rows != 1_615_685_872 || info.NumFeatures != 128 || len(info.Classes) != 172 {
		t.Errorf("%d nodes, %d edges, %d features, %d classes", info.NumNodes, d.rows, info.NumFeatures, len(info.Classes))
	}
	if want := "papers100m:scale=1,seed=1,tails=0.24,apart=0.001,classes=uneven"; info.Identity != want {
		t.Errorf("identity %s", info.Identity)
	}
	splits, last := [4]int64{}, int64(-1)
	for j := range d.g.labelled {
		splits[d.g.split(j)]++
		node := d.g.labelledNode(j)
		if node <= last || node >= d.nodes {
			t.Fatalf("labelled node %d is %d, the one before %d", j, node, last)
		}
		last = node
	}
	if want := [4]int64{0, 1_207_179, 125_265, 214_338}; splits != want {
		t.Errorf("splits %v, want %v", splits, want)
	}
	for i := int64(0); i < d.rows; i += d.rows / 1000 {
		if e := d.edge(i); int64(e.U) >= d.nodes || int64(e.V) >= d.nodes {
			t.Errorf("edge %d is %v", i, e)
		}
	}
}

// TestPapersGraph checks what the generator promises of its graph, without tails.
func TestPapersGraph(t *testing.T) {
	d := open(t, "papers100m:scale=1/1024,tails=0", Options{}).(*papersDataset)
	edges, err := readEdges(d, 4096)
	if err != nil || int64(len(edges)) != d.rows || d.rows != 1_577_818 {
		t.Fatalf("%d edges, %v", len(edges), err)
	}
	in, out := make([]float64, d.nodes), make([]float64, d.nodes)
	same, near := 0.0, 0.0
	seen := map[Edge]bool{}
	for _, e := range edges {
		in[e.V]++
		out[e.U]++
		if d.g.class(int64(e.U)) == d.g.class(int64(e.V)) {
			same++
		}
		if math.Abs(float64(e.U)-float64(e.V)) < float64(d.g.field) {
			near++
		}
		if e.U > e.V {
			e.U, e.V = e.V, e.U
		}
		if e.U != e.V {
			seen[e] = true
		}
	}
	rows := float64(d.rows)
	if same /= rows; same < 0.64 || same > 0.72 {
		t.Errorf("%.3f of the edges are inside a class", same)
	}
	if near /= rows; near < 0.65 {
		t.Errorf("%.3f of the edges join ids less than a field apart", near)
	}
	if mean := 2 * float64(len(seen)) / float64(d.nodes); mean < 26 || mean > 29.1 {
		t.Errorf("mean degree %.2f without repetitions", mean)
	}
	// The share of the most cited paper falls like n^-0.4.
	if top, want := slices.Max(in), 0.15/0.6*rows*math.Pow(float64(d.nodes), -0.4); math.Abs(top/want-1) > 0.1 {
		t.Errorf("largest in-degree %.0f, want %.0f", top, want)
	}
	above := func(degree []float64, d float64) (n float64) {
		for _, x := range degree {
			if x >= d {
				n++
			}
		}
		return n
	}
	// Tails of d^-2.7 and d^-3 fall by 2^1.7 = 3.2 and 2^2 at twice the degree.
	if ratio := above(in, 64) / above(in, 128); ratio < 3.2 || ratio > 4 {
		t.Errorf("in-degree tail falls by %.1f at twice the degree", ratio)
	}
	if none := 1 - above(in, 1)/float64(d.nodes); none < 0.05 || none > 0.3 {
		t.Errorf("%.2f of the papers are not cited", none)
	}
	if most := slices.Max(out); most > 300 {
		t.Errorf("a paper cites %.0f", most)
	}
}

// TestPapersSmall checks that every class has a labelled node at the smallest
// scales. With tails fields are shorter than the distance of labelled nodes at 1/4096.
func TestPapersSmall(t *testing.T) {
	for _, uri := range []string{
		"papers100m:scale=1/4096,tails=0", "papers100m:scale=1/4096,seed=7,tails=0", "papers100m:scale=1/2048,seed=2",
		"papers100m:scale=1/2048,seed=3,mix=slow", "papers100m:scale=1/1024,seed=4",
	} {
		d := open(t, uri, Options{})
		labels, err := readLabels(d)
		if err != nil {
			t.Fatal(err)
		}
		if n := histogram(labels, papersClasses); slices.Min(n) == 0 {
			t.Errorf("%s: labelled nodes of the classes: %v", uri, n)
		}
	}
}

// TestPapersFeatures finds the nearest class mean of a node's own row, and of the
// mean over rows of its class; every value must be a float16.
func TestPapersFeatures(t *testing.T) {
	g := &papers{divisor: 1024, seed: 1}
	g.prepare()
	row := make([]float32, papersFeatures)
	nearest := func(x []float32) int32 {
		best, least := int32(-1), math.Inf(1)
		for c := range int32(papersClasses) {
			distance := 0.0
			for j, v := range x {
				delta := float64(v) - float64(g.means[int(c)*papersFeatures+j])*papersUnit
				distance += delta * delta
			}
			if distance < least {
				best, least = c, distance
			}
		}
		return best
	}
	const nodes = 2000
	own, squares := 0.0, 0.0
	for i := range uint64(nodes) {
		node := int64(rng.Below(rng.Hash(1, i), uint64(g.nodes)))
		g.feature(node, 0, row)
		for _, v := range row {
			if steps := v / papersUnit; steps != float32(int(steps)) || steps <= -2048 || steps >= 2048 {
				t.Fatalf("%v is no float16", v)
			}
			squares += float64(v) * float64(v)
		}
		if nearest(row) == g.class(node) {
			own++
		}
	}
	if share := own / nodes; share < 0.35 || share > 0.65 {
		t.Errorf("the own row tells the class for %.2f of the nodes", share)
	}
	if rms := math.Sqrt(squares / nodes / papersFeatures); rms < 0.1 || rms > 0.2 {
		t.Errorf("root mean square %.3f", rms)
	}
}

func TestPapersRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &papers{
			divisor: rapid.Int64Range(16, papersMaxScale).Draw(t, "divisor"), seed: rapid.Uint64().Draw(t, "seed"),
			tails: rapid.SampledFrom([]float64{0, usualTails, mostTails}).Draw(t, "tails"), apart: rapid.Float64Range(0, 1).Draw(t, "apart"),
			uneven: rapid.Bool().Draw(t, "uneven"), slow: rapid.Bool().Draw(t, "slow"),
		}
		g.prepare()
		if share := float64(g.labelled) / float64(g.nodes); math.Abs(share-0.0139) > 0.0002 {
			t.Errorf("%.4f of the nodes are labelled", share)
		}
		for _, x := range []uint64{0, rapid.Uint64().Draw(t, "x"), math.MaxUint64} {
			unit := int64(rng.Below(x, uint64(g.units)))
			if v := int64(g.paper(unit, x)); v >= g.papers || min(v/g.unit, g.units-1) != unit {
				t.Errorf("paper %d of unit %d", v, unit)
			}
			if u := g.related(unit, rng.Float64(rng.Hash(x, 1)), rng.Hash(x, 2)); u < 0 || u >= g.units {
				t.Errorf("group %d of %d", u, g.units)
			}
			if e := g.edge(int64(rng.Below(x, uint64(g.edges)))); int64(e.U) >= g.nodes || int64(e.V) >= g.nodes {
				t.Errorf("edge %v", e)
			}
			if v := g.famous(rng.Float64(x), rng.Float64(x)); int64(v) >= g.nodes {
				t.Errorf("famous paper %d of %d", v, g.nodes)
			}
			if c := g.class(int64(rng.Below(x, uint64(g.nodes)))); c < 0 || c >= papersClasses {
				t.Errorf("class %d", c)
			}
		}
	})
}

// TestPapersPinned holds the first edges and values: results are quoted by scale
// and seed.
func TestPapersPinned(t *testing.T) {
	d := open(t, "papers100m:tails=0", Options{}).(*papersDataset)
	row := make([]float32, papersFeatures)
	d.feature(0, 0, row)
	got := []Edge{d.edge(0), d.edge(1), d.edge(d.rows - 1)}
	want := []Edge{{U: 136686, V: 344571}, {U: 65424, V: 65035}, {U: 403133, V: 422852}}
	if values := [2]float32{row[0], row[127]}; !slices.Equal(got, want) || values != [2]float32{0.029296875, -0.05078125} {
		t.Errorf("edges %v, values %v", got, values)
	}
	if want := "papers100m:scale=1/256,seed=1,tails=0"; d.Info().Identity != want {
		t.Errorf("identity %s", d.Info().Identity)
	}
}

// TestPapersFiles reads generated files back as the same streams.
func TestPapersFiles(t *testing.T) {
	const uri = "papers100m:scale=1/4096,seed=3"
	dir := filepath.Join(t.TempDir(), "a & b")
	files, err := Generate(t.Context(), uri, dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b := open(t, uri, Options{}), open(t, files, Options{})
	if x, y := a.Info(), b.Info(); x.NumNodes != y.NumNodes || x.NumFeatures != y.NumFeatures || x.EdgeHint != y.EdgeHint || !slices.Equal(x.Classes, y.Classes) {
		t.Errorf("%+v and %+v", x, y)
	}
	ae, err1 := readEdges(a, 4096)
	be, err2 := readEdges(b, 1000)
	if err1 != nil || err2 != nil || !slices.Equal(ae, be) {
		t.Errorf("edges differ: %v, %v", err1, err2)
	}
	al, err1 := readLabels(a)
	bl, err2 := readLabels(b)
	if err1 != nil || err2 != nil || !maps.Equal(al, bl) {
		t.Errorf("labels differ: %v, %v", err1, err2)
	}
	as, err1 := readSplits(a)
	bs, err2 := readSplits(b)
	if err1 != nil || err2 != nil || !maps.Equal(as, bs) {
		t.Errorf("splits differ: %v, %v", err1, err2)
	}
	af, err1 := a.Features(t.Context(), Whole)
	bf, err2 := b.Features(t.Context(), Whole)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer bf.Close()
	for {
		x, err1 := af.Next()
		y, err2 := bf.Next()
		if x.ID != y.ID || !slices.Equal(x.Dense, y.Dense) || err1 != err2 {
			t.Fatalf("rows of %d and %d differ: %v, %v", x.ID, y.ID, err1, err2)
		}
		if err1 != nil {
			break
		}
	}
	// Any reader of archives finds the arrays.
	z, err := zip.OpenReader(filepath.Join(dir, "raw", "data.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, m := range z.File {
		if m.Method != zip.Store || m.CompressedSize64 != m.UncompressedSize64 {
			t.Errorf("%s is packed", m.Name)
		}
	}
}

func TestPapersFilesFail(t *testing.T) {
	if _, err := Generate(t.Context(), "papers100m:scale=2", t.TempDir()); !errors.Is(err, ErrURI) {
		t.Errorf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Generate(t.Context(), "papers100m:scale=1/4096", file); err == nil {
		t.Error("generated into a file")
	}
}

func FuzzPapersOptions(f *testing.F) {
	for _, s := range []string{"", "scale=1", "scale=1/64,seed=9", "scale=1/0", "scale=1/4097", "scale=0.5", "seed=-1", "nodes=3", "tails=0", "tails=0.3,apart=0", "classes=even,mix=slow", "apart=-0,mix=fast"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		g, err := parsePapers(rest)
		if err != nil {
			if !errors.Is(err, ErrURI) {
				t.Errorf("%v is no ErrURI", err)
			}
			return
		}
		again, err := parsePapers(g.identity()[len("papers100m:"):])
		if err != nil || again.identity() != g.identity() || g.divisor < 1 || g.divisor > papersMaxScale {
			t.Errorf("%s became %v, %v", g.identity(), again, err)
		}
	})
}

func BenchmarkPapers(b *testing.B) {
	d := open(b, "papers100m:scale=1", Options{}).(*papersDataset)
	b.Run("edges", func(b *testing.B) {
		for i := range b.N {
			d.edge(int64(i) * 997)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "edges/s")
	})
	b.Run("features", func(b *testing.B) {
		row := make([]float32, papersFeatures)
		for i := range b.N {
			d.feature(int64(i), 0, row)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// TestPapersTails checks what tails are: so many nodes in chains, the same numbers of nodes and
// edges as without, and a class that equals that of the paper a chain hangs on.
func TestPapersTails(t *testing.T) {
	const uri = "papers100m:scale=1/1024,seed=1,tails=0.2"
	d := open(t, uri, Options{}).(*papersDataset)
	plain := open(t, "papers100m:scale=1/1024,seed=1,tails=0", Options{}).(*papersDataset)
	if info := d.Info(); info.Identity != uri || info.NumNodes != plain.Info().NumNodes || d.rows != plain.rows {
		t.Fatalf("%s: %d nodes, %d edges", info.Identity, info.NumNodes, d.rows)
	}
	g := d.g
	hanging := g.nodes - g.papers
	if share := float64(hanging) / float64(g.nodes); math.Abs(share-0.2) > 1e-4 {
		t.Errorf("%.4f of the nodes are in tails", share)
	}
	degree := make([]int, g.nodes)
	var roots, onPapers, longest, length int64
	for i := range d.rows {
		e := d.edge(i)
		if i < g.cited {
			if int64(e.U) >= g.papers || int64(e.V) >= g.papers {
				t.Fatalf("edge %v of %d papers", e, g.papers)
			}
			continue
		}
		if want := g.papers + i - g.cited; int64(e.U) != want || e.V > e.U {
			t.Fatalf("edge %d of the tails is %v", i, e)
		}
		switch {
		case e.U == e.V:
			roots, length = roots+1, 1
		case int64(e.V) < g.papers:
			onPapers, length = onPapers+1, 1
		case e.V == e.U-1:
			length++
			if g.class(int64(e.U)) != g.class(int64(e.V)) {
				t.Fatalf("classes of a chain: edge %v", e)
			}
		default:
			t.Fatalf("edge %v is of no chain", e)
		}
		longest = max(longest, length)
		if e.U != e.V {
			degree[e.U]++
			degree[e.V]++
		}
	}
	ones := 0
	for _, x := range degree[g.papers:] {
		if x == 1 {
			ones++
		}
	}
	heads := float64(roots + onPapers)
	if begin, on := heads/float64(hanging), float64(onPapers)/heads; math.Abs(begin-0.5) > 0.02 || math.Abs(on-0.75) > 0.02 || longest < 8 {
		t.Errorf("%.3f of the nodes begin a chain, %.3f of the chains hang on a paper, the longest has %d", begin, on, longest)
	}
	if share := float64(ones) / float64(hanging); share < 0.4 || share > 0.6 {
		t.Errorf("%.3f of the nodes of tails have degree 1", share)
	}
	for _, bad := range []string{
		"papers100m:tails=1", "papers100m:tails=-0.1", "papers100m:tails=x", "papers100m:tails=NaN", "papers100m:apart=1.1", "papers100m:apart=NaN",
		"papers100m:classes=odd", "papers100m:mix=medium",
	} {
		if _, err := Open(t.Context(), bad, Options{}); !errors.Is(err, ErrURI) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestPapersShape holds the calibration of the graph, and of the one in which rows come to stand
// late: degrees without repeated edges and self-loops, components, and classes.
func TestPapersShape(t *testing.T) {
	for _, c := range []struct {
		uri         string
		least, most float64 // mean degree
	}{
		{"papers100m:scale=1/1024", 24.5, 27},
		{"papers100m:scale=1/1024,mix=slow", 18.5, 21},
	} {
		d := open(t, c.uri, Options{}).(*papersDataset)
		n := int(d.nodes)
		degree, parent := make([]int, n), make([]int, n)
		for i := range parent {
			parent[i] = i
		}
		find := func(i int) int {
			for parent[i] != i {
				parent[i] = parent[parent[i]]
				i = parent[i]
			}
			return i
		}
		seen := map[Edge]bool{}
		inside := 0.0
		for i := range d.rows {
			e := d.edge(i)
			if d.g.class(int64(e.U)) == d.g.class(int64(e.V)) {
				inside++
			}
			if e.U > e.V {
				e.U, e.V = e.V, e.U
			}
			if e.U != e.V && !seen[e] {
				seen[e] = true
				degree[e.U]++
				degree[e.V]++
				parent[find(int(e.U))] = find(int(e.V))
			}
		}
		if mean := 2 * float64(len(seen)) / float64(n); mean < c.least || mean > c.most {
			t.Errorf("%s: mean degree %.2f", c.uri, mean)
		}
		ones, above := 0, [2]int{}
		for _, x := range degree {
			if x == 1 {
				ones++
			}
			for k, least := range []int{50, 100} {
				if x >= least {
					above[k]++
				}
			}
		}
		// A real graph of few nodes of degree 1, facebook, has 11.9 %.
		if share := float64(ones) / float64(n); share < 0.115 || share > 0.127 {
			t.Errorf("%s: %.3f of the nodes have degree 1", c.uri, share)
		}
		if fifty, hundred := float64(above[0])/float64(n), float64(above[1])/float64(n); fifty < 0.05 || fifty > 0.2 || hundred < 0.003 || hundred > 0.05 {
			t.Errorf("%s: %.3f of the nodes have 50 neighbours and more, %.4f have 100", c.uri, fifty, hundred)
		}
		sizes := map[int]int{}
		for i := range n {
			sizes[find(i)]++
		}
		largest := slices.Max(slices.Collect(maps.Values(sizes)))
		if apart := 1 - float64(largest)/float64(n); apart > 0.0005 || len(sizes) < 5 {
			t.Errorf("%s: %.5f of the nodes are outside the largest of %d components", c.uri, apart, len(sizes))
		}
		if share := inside / float64(d.rows); share < 0.64 || share > 0.99 {
			t.Errorf("%s: %.3f of the edges are inside a class", c.uri, share)
		}
	}
}

// TestPapersClasses compares the sizes of classes at full scale with those of Coauthor CS, whose
// largest class is 35 times the smallest: 4136 and 118 nodes.
func TestPapersClasses(t *testing.T) {
	g := open(t, "papers100m:scale=1", Options{}).(*papersDataset).g
	sizes := make([]int64, papersClasses)
	for field := range g.fields {
		sizes[g.class(field*g.field)]++
	}
	slices.Sort(sizes)
	if ratio := float64(sizes[papersClasses-1]) / float64(sizes[0]); ratio < 30 || ratio > 40 {
		t.Errorf("classes have from %d to %d fields", sizes[0], sizes[papersClasses-1])
	}
	if share := float64(sizes[papersClasses-1]) / float64(g.fields); share < 0.03 || share > 0.04 {
		t.Errorf("the largest class has %.3f of the fields", share)
	}
}
