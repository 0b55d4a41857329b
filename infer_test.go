package ndls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls"
	"ndls/catalog"
	"ndls/internal/storage"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/shards"
)

// grown is a graph of which the last nodes are new.
type grown struct {
	n, old   int
	edges    [][2]int
	features [][]float64
	name     func(i int) string
	// weights is the text of the URI about weights: "", or the key of their column, which
	// repeated=sum may follow.
	weights string
}

func newGrown(name func(i int) string, weights string) grown {
	g := grown{n: 330, old: 300, name: name, weights: weights}
	random := rand.New(rand.NewPCG(4, 2))
	for i := range g.n {
		g.features = append(g.features, []float64{float64(float32(float64(i%3) + random.NormFloat64())), float64(float32(random.NormFloat64())), float64(float32(float64(i % 2)))})
		for range 3 {
			j := random.IntN(g.n)
			if random.IntN(4) > 0 {
				j = j/3*3 + i%3
			}
			if i != j && j < g.n && (i != 329) {
				g.edges = append(g.edges, [2]int{i, j})
			}
		}
	}
	g.edges = append(g.edges, [2]int{305, 310}, [2]int{310, 305}, [2]int{306, 306}, [2]int{0, 1}) // again, a loop, between old nodes
	g.edges = slices.DeleteFunc(g.edges, func(e [2]int) bool { return e[1] == 329 })              // it has no edge
	return g
}

// weight returns the weight of each row of an edge.
func (g grown) weight(i, j int) float64 {
	if g.weights == "" {
		return 1
	}
	w := float64(1+min(i, j)*7%11) / 4
	if i%3 == j%3 { // of a class
		w *= 3
	}
	return w
}

// rows counts the rows of each edge.
func (g grown) rows() map[[2]int]int {
	rows := map[[2]int]int{}
	for _, e := range g.edges {
		if e != [2]int{0, 1} {
			rows[[2]int{min(e[0], e[1]), max(e[0], e[1])}]++
		}
	}
	return rows
}

// write writes the old graph and the new nodes, and returns their URIs.
func (g grown) write(t *testing.T) (old, fresh string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]*strings.Builder{}
	for _, f := range []string{"old-edges.csv", "old-nodes.csv", "new-edges.csv", "new-nodes.csv"} {
		files[f] = &strings.Builder{}
		files[f].WriteString(map[bool]string{true: "from,to,amount\n", false: "key,x,y,z,topic,part\n"}[strings.HasSuffix(f, "edges.csv")])
	}
	for _, e := range g.edges {
		f := files["old-edges.csv"]
		if max(e[0], e[1]) >= g.old || e == [2]int{0, 1} {
			f = files["new-edges.csv"]
		}
		fmt.Fprintf(f, "%s,%s,%v\n", field(g.name(e[0])), field(g.name(e[1])), g.weight(e[0], e[1]))
	}
	// New nodes come in another order than that of their ids.
	for k := range g.n {
		i, f := k, files["old-nodes.csv"]
		if k >= g.old {
			i, f = g.n-1-(k-g.old), files["new-nodes.csv"]
		}
		x := g.features[i]
		fmt.Fprintf(f, "%s,%v,%v,%v,c%d,%s\n", field(g.name(i)), x[0], x[1], x[2], i%3, []string{"train", "valid", "test"}[i%5%3])
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	uri := func(kind string) string {
		return "table:" + dir + "/" + kind + "-edges.csv?src=from&dst=to&nodes=" + dir + "/" + kind + "-nodes.csv&id=key&features=x,y,z" + g.weights
	}
	return uri("old") + "&label=topic&split=part", uri("new")
}

// want is K and the rows of the new nodes by the definition, in float64.
func (g grown) want(r, epsilon float64, last int) (ks []int, rows [][]float64) {
	var old [][2]int
	rowsOf := g.rows()
	weight := func(i, j int) float64 {
		if strings.Contains(g.weights, "repeated=sum") {
			return g.weight(i, j) * float64(rowsOf[[2]int{min(i, j), max(i, j)}])
		}
		return g.weight(i, j)
	}
	neighbours := make([]map[int]float64, g.n)
	for i := range neighbours {
		neighbours[i] = map[int]float64{}
	}
	for _, e := range g.edges {
		if max(e[0], e[1]) < g.old {
			if e != [2]int{0, 1} {
				old = append(old, e)
			}
		} else if e[0] != e[1] {
			w := weight(e[0], e[1])
			neighbours[e[0]][e[1]], neighbours[e[1]][e[0]] = w, w
		}
	}
	graph := testgraph.New("old", g.old, old).Weighted(func(lo, hi uint32) float32 { return float32(weight(int(lo), int(hi))) })
	oracle := testgraph.NewOracle(graph, r, true)
	const f = 3
	var x []float64
	for _, row := range g.features[:g.old] {
		x = append(x, row...)
	}
	component, count := graph.Components()
	if count != 1 {
		panic("the old graph is not connected")
	}
	_ = component
	// Z of all nodes: of old ones by the walk among them, of new ones beside them.
	degree := func(i int) float64 {
		sum := 1.0
		if i < g.old {
			for _, w := range graph.Weights[i] {
				sum += float64(w)
			}
			return sum
		}
		for _, w := range neighbours[i] {
			sum += w
		}
		return sum
	}
	mean, volume := make([]float64, f), 0.0
	for i := range g.old {
		volume += degree(i)
		for c := range f {
			mean[c] += math.Pow(degree(i), 1-r) * x[i*f+c]
		}
	}
	for c := range mean {
		mean[c] /= volume
	}
	z := make([][][]float64, last+1)
	for k := range z {
		z[k] = make([][]float64, g.n)
		for i := range g.old {
			for c := range f {
				z[k][i] = append(z[k][i], x[i*f+c]*math.Pow(degree(i), -r))
			}
		}
		for i := g.old; i < g.n; i++ {
			for c := range f {
				if k == 0 {
					z[0][i] = append(z[0][i], g.features[i][c]*math.Pow(degree(i), -r))
					continue
				}
				sum := z[k-1][i][c]
				for j, w := range neighbours[i] {
					sum += w * z[k-1][j][c]
				}
				z[k][i] = append(z[k][i], sum/degree(i))
			}
		}
		x = oracle.Apply(x, f)
	}
	for i := g.old; i < g.n; i++ {
		zbar := mean
		if len(neighbours[i]) == 0 {
			zbar = z[0][i] // a graph of its own
		}
		k := 0
		for ; k < last; k++ {
			square := 0.0
			for c := range f {
				square += math.Pow(z[k][i][c]-zbar[c], 2)
			}
			if math.Pow(degree(i), r)*math.Sqrt(square) < epsilon {
				break
			}
		}
		row := make([]float64, f)
		for hop := range k + 1 {
			for c := range row {
				row[c] += math.Pow(degree(i), r) * z[hop][i][c] / float64(k+1)
			}
		}
		ks, rows = append(ks, k), append(rows, row)
	}
	return ks, rows
}

// inferred reads what infer has written: K, smoothed rows and labels by id.
func inferred(t *testing.T, out string) (ks map[string]int, rows map[string][]float32, labels map[string]int32) {
	t.Helper()
	store, err := storage.OpenURI(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	open := func(kind string) (storage.Reader, catalog.Entry) {
		e := cat.Entries(kind)[0]
		if err := cat.Verify(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		r, err := cat.Open(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r, e
	}
	r, e := open(catalog.KindIDs)
	table, err := shards.OpenIDs(r, e.Path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	if err := table.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			ids = append(ids, string(table.IDs().Type.AppendText(nil, key)))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ks, rows, labels = map[string]int{}, map[string][]float32{}, map[string]int32{}
	r, e = open(catalog.KindLSI)
	if err := shards.ReadLSI(r, e.Path, shards.Readers{}, func(_ int64, b shards.LSIBatch) error {
		for i, number := range b.ID {
			ks[ids[number]] = int(b.K[i])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{catalog.KindSmoothed, catalog.KindPredictions} {
		r, e = open(kind)
		file, err := shards.OpenRows(r, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range file.NumBatches() {
			var b shards.RowBatch
			if err := file.ReadBatch(i, &b); err != nil {
				t.Fatal(err)
			}
			for k, number := range b.ID {
				if kind == catalog.KindSmoothed {
					rows[ids[number]] = b.Values[k*3 : k*3+3]
				} else {
					labels[ids[number]] = b.Label[k]
				}
			}
		}
	}
	return ks, rows, labels
}

// TestInfer compares new nodes with the definition, from the tables to the files: ids of any
// type, edges again, loops and edges between old nodes, a node without edges, weights of edges.
func TestInfer(t *testing.T) {
	var bytesOf []byte
	text := func(i int) string { return fmt.Sprintf("user %04d, \"ü\"", i) }
	for kind, g := range map[string]grown{
		"text":    newGrown(text, ""),
		"numbers": newGrown(func(i int) string { return fmt.Sprint(i * 7) }, ""),
		"dense":   newGrown(func(i int) string { return fmt.Sprint(i) }, ""),
		"weights": newGrown(func(i int) string { return fmt.Sprint(i * 7) }, "&weight=amount"),
		"sums":    newGrown(text, "&weight=amount&repeated=sum"),
	} {
		name := g.name
		old, fresh := g.write(t)
		c := quick(filepath.Join(t.TempDir(), "run"))
		c.Dataset = old
		c.Options = func(o *ndls.Options) {
			o.Smooth.KeepHops, o.Train.Epochs, o.Train.Runs, o.LSI.R = "0..7", 30, 2, 0.3
			switch kind {
			case "dense":
				o.Train.Model, o.Train.InputNorm = plan.Ridge, plan.Standard
			case "sums":
				o.Train.HiddenNorm, o.Train.InputNorm = plan.LayerNorm, plan.Standard
			}
		}
		d, err := ndls.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		const epsilon = 0.618
		ks, want := g.want(0.3, epsilon, 7)
		for _, threads := range []int{1, 3} {
			out := filepath.Join(t.TempDir(), "out")
			r, err := d.Infer(t.Context(), ndls.InferOptions{Dataset: fresh, Out: out, Epsilon: epsilon, Resources: ndls.Resources{Memory: 256 << 20, Threads: threads}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Nodes != 30 || r.SelfLoops != 1 || r.OldEdges != 1 || r.Repeated < 1 || r.Hops != 7 || !r.Predicted || r.MeanK <= 0 || r.MeanK >= 7 {
				t.Errorf("%s: %+v", kind, r)
			}
			gotK, got, labels := inferred(t, out)
			right := 0
			for i, row := range want {
				id := name(g.old + i)
				if gotK[id] != ks[i] {
					t.Errorf("%s: K of %s is %d, want %d", kind, id, gotK[id], ks[i])
				}
				off, length := 0.0, 0.0
				for c, x := range row {
					off += math.Pow(float64(got[id][c])-x, 2)
					length += x * x
				}
				if !(math.Sqrt(off/length) <= 1e-5) {
					t.Errorf("%s: row of %s is %v, want %v", kind, id, got[id], row)
				}
				if int(labels[id]) == (g.old+i)%3 {
					right++
				}
			}
			if right < 18 {
				t.Errorf("%s: %d of 30 classes are right", kind, right)
			}
			file, err := os.ReadFile(filepath.Join(out, "smoothed", "part-00000.arrow"))
			if err != nil {
				t.Fatal(err)
			}
			if threads == 1 {
				bytesOf = file
			} else if !bytes.Equal(file, bytesOf) {
				t.Errorf("%s: threads change the bytes", kind)
			}
		}
		// The threshold that fits the run gives about the mean K of the run.
		r, err := d.Infer(t.Context(), ndls.InferOptions{Dataset: fresh, Out: filepath.Join(t.TempDir(), "out"), Resources: ndls.Resources{Memory: 256 << 20}})
		if err != nil || !(r.Epsilon > 0) {
			t.Fatal(r, err)
		}
		report, err := d.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		capped := 0.0
		for _, h := range report.LSI.Histogram {
			capped += float64(min(h[0], 7)*h[1]) / 300
		}
		if math.Abs(r.MeanK-capped) > 1.5 {
			t.Errorf("%s: mean K is %g, that of the run up to hop 7 %g", kind, r.MeanK, capped)
		}
	}
}

// TestInferRefuses shows what cannot be done, and why.
func TestInferRefuses(t *testing.T) {
	name := func(i int) string { return fmt.Sprint(i) }
	g := newGrown(name, "")
	old, fresh := g.write(t)
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Dataset = old
	d, err := ndls.Run(t.Context(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth)
	if err != nil {
		t.Fatal(err)
	}
	attempt := func(uri, out string) error {
		_, err := d.Infer(context.Background(), ndls.InferOptions{Dataset: uri, Out: out, Resources: ndls.Resources{Memory: 256 << 20}})
		if left, _ := os.ReadDir(out); out != filepath.Dir(c.Run) && len(left) > 0 {
			t.Errorf("after %v the folder holds %s", err, left[0].Name())
		}
		return err
	}
	refused := func(err, is error, want string) {
		t.Helper()
		if !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	out := func() string { return filepath.Join(t.TempDir(), "out") }
	refused(attempt(fresh, out()), ndls.ErrOption, "the run has kept no hops: make a run with --keep-hops")
	c.Options = func(o *ndls.Options) { o.Smooth.KeepHops = "0..4" }
	c.Run = filepath.Join(t.TempDir(), "run")
	if d, err = ndls.Run(t.Context(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth); err != nil {
		t.Fatal(err)
	}
	refused(attempt(old, out()), ndls.ErrData, "is a node of the run: leave out its row")
	refused(attempt("karate:", out()), ndls.ErrOption, "new nodes come as tables")
	refused(attempt(strings.Replace(fresh, "x,y,z", "x,y", 1), out()), ndls.ErrData, "the new nodes have 2 features, the nodes of the run 3")
	refused(attempt(fresh+"&weight=amount", out()), ndls.ErrOption, "the edges of the dataset have weights, and those of the run have none")
	if err := attempt(fresh, filepath.Dir(c.Run)); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a folder with files: %v", err)
	}
	edges := strings.TrimPrefix(fresh[:strings.Index(fresh, "?")], "table:")
	text, err := os.ReadFile(edges)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edges, append(text, "305,4711,1\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(attempt(fresh, out()), ndls.ErrData, "4711")
	for _, other := range []struct{ rule, depth, want string }{
		{"nafs", "", "make a run that has the new nodes"},
		{"sign", "node", "make a run without --depth"},
	} {
		c.Options = func(o *ndls.Options) { o.Smooth.Rule, o.Smooth.Hops, o.Smooth.Depth = other.rule, 3, other.depth }
		c.Run = filepath.Join(t.TempDir(), "run")
		if d, err = ndls.Run(t.Context(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth); err != nil {
			t.Fatal(err)
		}
		refused(attempt(fresh, out()), ndls.ErrOption, other.want)
	}
}

// TestInferRefusesWeights: rows of an edge have one weight, unless they are to be added up, and
// all edges have weights or none.
func TestInferRefusesWeights(t *testing.T) {
	g := newGrown(func(i int) string { return fmt.Sprintf("u%d", i) }, "&weight=amount")
	old, fresh := g.write(t)
	c := quick(filepath.Join(t.TempDir(), "run"))
	c.Dataset = old
	c.Options = func(o *ndls.Options) { o.Smooth.KeepHops = "0..4" }
	d, err := ndls.Run(t.Context(), c, ndls.StagePartition, ndls.StageLSI, ndls.StageSmooth)
	if err != nil {
		t.Fatal(err)
	}
	edges := strings.TrimPrefix(fresh[:strings.Index(fresh, "?")], "table:")
	text, err := os.ReadFile(edges)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rows, more, want string
		is               error
	}{
		{"", "", "the edges of the run have weights, and those of the dataset have none", ndls.ErrOption},
		{"u301,u302,0\n", "&weight=amount", "the weight is 0", ndls.ErrData},
		{"u301,u329,2\nu329,u301,3\n", "&weight=amount", `the edge between nodes "u301" and "u329": of its 2 rows, in either direction, one has weight 2 and another one 3`, ndls.ErrData},
		{"u7,u329,2\nu329,u7,3\n", "&weight=amount", `the edge between nodes "u329" and "u7": of its 2 rows`, ndls.ErrData},
		{"u329,u7,3e38\nu329,u7,3e38\n", "&weight=amount&repeated=sum", `the edge between nodes "u329" and "u7": its weights add up to more than 3.4e38`, ndls.ErrData},
		{"u329,u7,3e38\nu329,u9,3e38\n", "&weight=amount", "with it, the weights of the edges of one node add up to more", ndls.ErrData},
	} {
		if err := os.WriteFile(edges, append(slices.Clone(text), c.rows...), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := d.Infer(t.Context(), ndls.InferOptions{
			Dataset: strings.TrimSuffix(fresh, "&weight=amount") + c.more, Out: filepath.Join(t.TempDir(), "out"), Resources: ndls.Resources{Memory: 256 << 20},
		})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.rows, err, c.want)
		}
	}
}
