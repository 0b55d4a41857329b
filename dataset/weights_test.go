package dataset

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
)

// weightsOf reads a dataset in so many parts.
func weightsOf(t testing.TB, ds Dataset, parts int) (list []string, err error) {
	t.Helper()
	batch, weights := make([]Edge, 3), make([]float32, 3)
	for p := range parts {
		r, err := ds.Edges(context.Background(), Share{First: p, Last: p + 1, Of: parts})
		if err != nil {
			return nil, err
		}
		for {
			n, err := r.Read(batch, weights)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, errors.Join(err, r.Close())
			}
			for i, e := range batch[:n] {
				list = append(list, fmt.Sprintf("%d %d %v", e.U, e.V, weights[i]))
			}
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// TestWeights reads weights from text with names, text without, and Parquet, whole and in
// parts; and the same of tables.
func TestWeights(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"named.csv": "from,to,since,amount\n0,1,1999,2.5\n2,1,2000,1e-3\n3,0,2001,\"7\"\n1,3,2002,16777217\n",
		"plain.txt": "# comment\n0 1 2.5\n2 1 1e-3\n3 0 7\n1 3 16777217\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"0 1 2.5", "2 1 0.001", "3 0 7", "1 3 1.6777216e+07"}
	for _, uri := range []string{
		"edges:" + dir + "/named.csv?src=from&dst=to&weight=amount", "edges:" + dir + "/plain.txt?src=1&dst=2&weight=3",
		"edges:" + dir + "/plain.txt?src=1&dst=2&weight=3&repeated=sum",
	} {
		ds := open(t, uri, Options{})
		info := ds.Info()
		if !info.Weighted || !IsWeighted(info.Identity) || info.AddRepeated != strings.Contains(uri, "sum") {
			t.Errorf("%s: %+v", uri, info)
		}
		for _, parts := range []int{1, 2, 7} {
			got, err := weightsOf(t, ds, parts)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s in %d parts: %v, %v", uri, parts, got, err)
			}
		}
	}
	for _, plain := range []string{"edges:" + dir + "/named.csv?src=from&dst=to", "synthetic:nodes=10,edges=5"} {
		if info := open(t, plain, Options{}).Info(); info.Weighted || IsWeighted(info.Identity) {
			t.Errorf("%s has weights", plain)
		}
	}
}

// weightedGraphs are path4 with weights 2.5, 0.001 and 7 in text forms of graphs.
var weightedGraphs = map[string]struct{ kind, text string }{
	"real.mtx":     {"mtx", "%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n2 1 2.5\n3 2 1e-3\n4 3 7.0E0\n"},
	"general.mtx":  {"edges", "%%MatrixMarket matrix coordinate real general\n4 4 6\n1 2 2.5\n2 1 2.5\n2 3 .001\n3 2 .001\n3 4 7\n4 3 7\n"},
	"edge.graph":   {"metis", "4 3 1\n2 2.5\n1 2.5 3 .001\n2 .001 4 7\n3 7\n"},
	"all.graph":    {"metis", "4 3 111 2\n9 1 1 2 2.5\n9 1 1 1 2.5 3 .001\n9 1 1 2 .001 4 7\n9 1 1 3 7\n"},
	"g.gr":         {"dimacs", "c roads\np sp 4 3\na 1 2 2.5\na 2 3 .001\na 4 3 7\n"},
	"weighted.col": {"dimacs", "p edge 4 3\nn 1 3\ne 2 1 2.5\ne 3 2 .001\ne 4 3 7\n"},
}

// TestWeightsOfTextGraphs reads the numbers of edges as their weights where the URI asks for it.
func TestWeightsOfTextGraphs(t *testing.T) {
	files := map[string][]byte{}
	for name, g := range weightedGraphs {
		files[name] = []byte(g.text)
	}
	dir := writeTree(t, files)
	for name, g := range weightedGraphs {
		for _, query := range []string{"?weight=value", "?weight=value&repeated=sum"} {
			d := open(t, g.kind+":"+dir+"/"+name+query, Options{})
			isPath4(t, d)
			info := d.Info()
			if !info.Weighted || info.Identity != g.kind+":"+name+query || !IsWeighted(info.Identity) || info.AddRepeated != strings.Contains(query, "sum") {
				t.Errorf("%s: %+v", name, info)
			}
			if slices.ContainsFunc(Notes(d), func(n Note) bool { return n.Ignored }) || !slices.ContainsFunc(Notes(d), func(n Note) bool { return strings.Contains(n.Text, "the weights of edges") }) {
				t.Errorf("%s: %v", name, Notes(d))
			}
			for _, parts := range []int{1, 3} {
				isWeightedPath4(t, name, d, parts)
			}
		}
	}
}

// isWeightedPath4 compares the weights of path4.
func isWeightedPath4(t *testing.T, name string, d Dataset, parts int) {
	t.Helper()
	if got := undirected(t, d, parts); !slices.Equal(got, []string{"0 1 2.5", "1 2 0.001", "2 3 7"}) {
		t.Errorf("%s in %d parts: %v", name, parts, got)
	}
}

// undirected are the edges with their weights, each once, sorted.
func undirected(t *testing.T, d Dataset, parts int) []string {
	t.Helper()
	list, err := weightsOf(t, d, parts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range list {
		var u, v int
		var w float32
		if _, err := fmt.Sscan(text, &u, &v, &w); err != nil {
			t.Fatal(err)
		}
		list[i] = fmt.Sprint(min(u, v), " ", max(u, v), " ", w)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestBadWeightsOfTextGraphs: a number that is no weight is refused with its line, and so is
// weight= where a file has no weights.
func TestBadWeightsOfTextGraphs(t *testing.T) {
	const mtx = "%%MatrixMarket matrix coordinate "
	for _, c := range []struct{ kind, text, want string }{
		{"mtx", mtx + "real symmetric\n2 2 1\n2 1 0\n", "line 3: the weight is 0: weights are above 0"},
		{"mtx", mtx + "real general\n2 2 1\n2 1 -2\n", "line 3: the weight is -2"},
		{"mtx", mtx + "real general\n2 2 1\n2 1 nan\n", "line 3: the weight is NaN"},
		{"mtx", mtx + "real general\n2 2 1\n2 1 1e39\n", "line 3: the weight is 1e+39"},
		{"mtx", mtx + "real general\n2 2 1\n2 1 1d0\n", `line 3: the weight "1d0" is no number`},
		{"mtx", mtx + "pattern general\n2 2 1\n2 1\n", "line 1: entries of type pattern have no values: leave weight= out"},
		{"mtx", mtx + "real skew-symmetric\n2 2 1\n2 1 1\n", "skew-symmetric matrix are no weights"},
		{"metis", "2 1\n2\n1\n", "line 1: the header states no weights of edges"},
		{"metis", "2 1 10\n1 2\n1 1\n", "the header states no weights of edges"},
		{"metis", "2 1 1\n2 4\n1 0\n", "line 3: the weight is 0"},
		{"dimacs", "p sp 2 1\na 1 2 0\n", "line 2: the weight is 0"},
		{"dimacs", "p edge 2 1\ne 1 2\n", "line 2: has no number behind the ends of the edge"},
		{"dimacs", "p tw 2 1\n1 2\n", "line 1: edges of the problem tw have no weights"},
		{"adjlist", "0 1\n", "an adjacency list has no weights: leave weight= out"},
	} {
		refuses(t, c.kind+":%s/f?weight=value", nil, []refusal{{"f", []byte(c.text), []string{c.want, "/f"}}})
	}
	refuses(t, "dimacs:%s/f", nil, []refusal{{"f", []byte("p edge 2 1\ne 1 2 3\n"), []string{"line 2", "weight=value in the URI reads it"}}})
	refuses(t, "dimacs:%s/f?weight=length", nil, []refusal{{"f", []byte("p sp 2 1\na 1 2 3\n"), []string{"/f", "weight=value reads that"}}})
	for _, name := range []string{"e.npy", "e.u32"} {
		refuses(t, "edges:%s/"+name+"?weight=value", nil, []refusal{{name, npyArray(npy.Int32, []int64{2, 1}, []int32{0, 1}), []string{name, "leave weight= out"}}})
	}
}

// TestBadWeights: every number that is no weight is refused, with file and line.
func TestBadWeights(t *testing.T) {
	for text, want := range map[string]string{
		"0": "weights are above 0", "-1.5": "the weight is -1.5: weights are above 0", "NaN": "the weight is NaN", "inf": "finite", "-Inf": "above 0",
		"1e39": "up to 3.4e38", "1e-60": "the smallest float32", "": "the weight is missing", "heavy": `the weight "heavy" is no number`, "1e999": "finite",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "e.csv")
		if err := os.WriteFile(file, []byte("u,v,w\n0,1,1\n1,2,"+text+"\n2,3,1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := weightsOf(t, open(t, "edges:"+file+"?weight=w", Options{}), 1)
		if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "e.csv line 3") {
			t.Errorf("%q: error %v, not %q in line 3", text, err, want)
		}
		// Tables: the ids are their own numbers.
		ds := open(t, "table:"+file+"?weight=w", Options{})
		ds.(Keyed).Number(4, func(key []byte) (uint32, bool) { return 0, true })
		if _, err := ds.(Keyed).KeyType(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = weightsOf(t, ds, 1)
		if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("table, %q: error %v, not %q in line 3", text, err, want)
		}
	}
	for uri, want := range map[string]string{
		"edges:e.csv?repeated=sum": "weight=", "edges:e.csv?weight=w&repeated=max": "repeated=sum", "table:e.csv?weight=src&src=src&dst=d": "ends of edges",
		"synthetic:weights=0.5": "weights=0.5", "synthetic:weights=41": "from 1 to 40", "papers100m:weights=x": "weights=x",
	} {
		if _, err := Open(t.Context(), uri, Options{}); !errors.Is(err, graph.ErrURI) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, not %q", uri, err, want)
		}
	}
}

// TestGenerateWeights writes generated graphs with weights to files, and reads the same
// streams back.
func TestGenerateWeights(t *testing.T) {
	for _, uri := range []string{
		"synthetic:nodes=1000,edges=5001,features=5,classes=3,seed=9,weights=6", "synthetic:nodes=10,edges=0,features=0,classes=2,weights=1", "papers100m:scale=1/4096,seed=3,weights=10",
	} {
		dir := filepath.Join(t.TempDir(), "a & b #1")
		written, err := Generate(t.Context(), uri, dir)
		if err != nil {
			t.Fatal(err)
		}
		a, b := open(t, uri, Options{}), open(t, written, Options{})
		if x, y := a.Info(), b.Info(); x.NumNodes != y.NumNodes || x.NumFeatures != y.NumFeatures || !y.Weighted || !IsWeighted(y.Identity) || x.EdgeHint != y.EdgeHint {
			t.Errorf("%+v and %+v", x, y)
		}
		aw, err1 := weightsOf(t, a, 1)
		bw, err2 := weightsOf(t, b, 3)
		if err1 != nil || err2 != nil || !slices.Equal(aw, bw) || int64(len(aw)) != a.Info().EdgeHint {
			t.Errorf("%s: %d and %d edges differ: %v, %v", uri, len(aw), len(bw), err1, err2)
		}
		al, err1 := readLabels(a)
		bl, err2 := readLabels(b)
		if err1 != nil || err2 != nil || len(al) != len(bl) {
			t.Errorf("%s: labels differ: %v, %v", uri, err1, err2)
		}
		for id, label := range al { // Classes that do not occur are not in the files.
			if a.Info().Classes[label] != b.Info().Classes[bl[id]] {
				t.Fatalf("%s: node %d has labels %s and %s", uri, id, a.Info().Classes[label], b.Info().Classes[bl[id]])
			}
		}
		as, err1 := readSplits(a)
		bs, err2 := readSplits(b)
		if err1 != nil || err2 != nil || !maps.Equal(as, bs) {
			t.Errorf("%s: splits differ: %v, %v", uri, err1, err2)
		}
		if a.Info().NumFeatures > 0 {
			af, err1 := readFeatures(a)
			bf, err2 := readFeatures(b)
			if err1 != nil || err2 != nil || !slices.EqualFunc(af, bf, equalRows) {
				t.Errorf("%s: features differ: %v, %v", uri, err1, err2)
			}
		}
	}
}

// TestGeneratedWeights: the weights of a generated graph lie in the range that is asked for,
// depend on the two ends alone, and leave the edges as they are.
func TestGeneratedWeights(t *testing.T) {
	for _, uri := range []string{"synthetic:nodes=40,edges=3000", "papers100m:scale=1/4096"} {
		sep := ","
		plain := open(t, uri, Options{})
		ds := open(t, uri+sep+"weights=6", Options{})
		if !IsWeighted(ds.Info().Identity) || plain.Info().Weighted {
			t.Errorf("%+v", ds.Info())
		}
		r, err := ds.Edges(t.Context(), Whole)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plain.Edges(t.Context(), Whole)
		if err != nil {
			t.Fatal(err)
		}
		edges, weights, same := make([]Edge, 3000), make([]float32, 3000), make([]Edge, 3000)
		n, err := r.Read(edges, weights)
		if _, err2 := p.Read(same, nil); err != nil || err2 != nil || n != 3000 || !slices.Equal(edges, same) {
			t.Fatal(n, err, err2)
		}
		seen := map[[2]uint32]float32{}
		least, most := weights[0], weights[0]
		for i, e := range edges {
			pair := [2]uint32{min(e.U, e.V), max(e.U, e.V)}
			if w, ok := seen[pair]; ok && w != weights[i] {
				t.Fatalf("edge %v has weights %v and %v", pair, w, weights[i])
			}
			seen[pair] = weights[i]
			least, most = min(least, weights[i]), max(most, weights[i])
		}
		if least < 0.125 || least > 0.13 || most >= 8 || most < 7.8 {
			t.Errorf("%s: weights from %v to %v", uri, least, most)
		}
		_, _ = r.Close(), p.Close()
	}
}

// TestWeightsOfMatrices reads the values of adjacency matrices, and an array beside a list of
// edges, as weights.
func TestWeightsOfMatrices(t *testing.T) {
	values := vec[float32](2.5, 2.5, .001, .001, 7, 7)
	dir := writeTree(t, map[string][]byte{
		"saint/adj_full.npz": saintMatrix("csr", values),
		"matrix.npz":         matrixNPZ(values),
		"list.npz":           heterophilous(member{"edge_weight.npy", vec[float64](2.5, .001, 7)}),
	})
	for _, uri := range []string{"graphsaint:saint?weight=value", "npz:matrix.npz?weight=value&repeated=sum", "npz:list.npz?split=1&weight=edge_weight"} {
		kind, name, _ := strings.Cut(uri, ":")
		d := open(t, kind+":"+dir+"/"+name, Options{})
		if info := d.Info(); !info.Weighted || info.Identity != uri || !IsWeighted(info.Identity) || info.AddRepeated != strings.Contains(uri, "sum") {
			t.Errorf("%s: %+v", uri, info)
		}
		if slices.ContainsFunc(Notes(d), func(n Note) bool { return n.Ignored }) {
			t.Errorf("%s: %v", uri, Notes(d))
		}
		for _, parts := range []int{1, 3} {
			isWeightedPath4(t, uri, d, parts)
		}
	}
	for _, uri := range []string{"graphsaint:saint", "npz:matrix.npz"} {
		kind, name, _ := strings.Cut(uri, ":")
		d := open(t, kind+":"+dir+"/"+name, Options{})
		if notes := Notes(d); d.Info().Weighted || len(notes) != 1 || !notes[0].Ignored || !strings.Contains(notes[0].Text, "weight=value") {
			t.Errorf("%s: %+v, %v", uri, d.Info(), notes)
		}
	}
	for i, c := range []struct {
		uri, want string
		data      []byte
	}{
		{"npz:%s/g.npz?weight=value", "edge 2: the weight is 0", matrixNPZ(vec[float32](1, 1, 0, 0, 1, 1))},
		{"npz:%s/g.npz?weight=data", "write weight=value", matrixNPZ(values)},
		{"npz:%s/g.npz?weight=w", `no array "w" for weight=`, heterophilous()},
		{"npz:%s/g.npz?weight=w", "there are 3 edges", heterophilous(member{"w.npy", vec[float32](1, 2)})},
		{"npz:%s/g.npz?weight=w", "edge 1: the weight is -1", heterophilous(member{"w.npy", vec[int32](1, -1, 2)})},
		{"npz:%s/g.npz?repeated=sum", "weight=", heterophilous()},
	} {
		dir := writeTree(t, map[string][]byte{"g.npz": c.data})
		d, err := Open(t.Context(), fmt.Sprintf(c.uri, dir), Options{})
		if err == nil {
			_, err = weightsOf(t, d, 1)
			err = errors.Join(err, d.Close())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("case %d: error %v, not %q", i, err, c.want)
		}
	}
}

// matrixNPZ is path4 as an adjacency matrix in an archive.
func matrixNPZ(values []byte) []byte {
	return zipped(zip.Deflate, member{"adj_indices.npy", vec[int32](1, 0, 2, 1, 3, 2)}, member{"adj_indptr.npy", vec[int32](0, 1, 3, 5, 6)},
		member{"adj_shape.npy", vec[int64](4, 4)}, member{"adj_data.npy", values})
}
