package dataset

import (
	"slices"
	"strings"
	"testing"

	"ndls/dataset/npy"
)

// textGraphs are path4 in text forms of graphs.
var textGraphs = map[string]struct{ kind, text string }{
	"g.mtx":      {"edges", "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n\n4 4 3\n2 1\n3 2\n4 3\n"},
	"g.txt":      {"mtx", "%%MatrixMarket MATRIX Coordinate real general\n4 4 6\n1 2 .5\n2 1 .5\n2 3 -1e3\r\n3 2 1\n3 4 1\n4 3 1"},
	"w.mtx":      {"mtx", "%%MatrixMarket matrix coordinate integer skew-symmetric\n4 4 3\n2 1 -3\n3 2 1\n4 3 1\n"},
	"g.graph":    {"metis", "% a comment\n4 3\n2\n1 3\n% another\n 2 4\n3\n"},
	"w.graph":    {"metis", "4 3 111 2\n9 1 1 2 5\n9 1 1 1 5 3 7\n9 1 1 2 7 4 1\n9 1 1 3 1\n"},
	"n.graph":    {"metis", "4 3 10\n1 2\n1 1 3\n1 2 4\n1 3\n"},
	"g.gr":       {"dimacs", "c roads\np sp 4 3\na 1 2 10\nc here\na 2 3 5\na 4 3 1\n"},
	"g.col":      {"dimacs", "c colours\np edge 4 3\nn 1 3\ne 2 1\ne 3 2\ne 4 3\n"},
	"both.col":   {"dimacs", "p col 4 3\ne 1 2\ne 2 1\ne 2 3\ne 3 2\ne 3 4\ne 4 3\n"},
	"pace.gr":    {"dimacs", "p tw 4 3\n1 2\n2 3\n3 4\n"},
	"g.adjlist":  {"adjlist", "# nodes\n0 1\n1 0 2\n2 3\n"},
	"commas.txt": {"adjlist", "0,1\n3;2\n"},
}

func TestTextGraphs(t *testing.T) {
	files := map[string][]byte{
		"x.npy": npyArray(npy.Float32, []int64{4, 2}, []float32{1, 0.5, 0, 2, -1, 0, 3, 4}), "y.csv": []byte("id,label\n3,a\n0,a\n1,b\n2,b\n"),
	}
	for name, g := range textGraphs {
		files[name] = []byte(g.text)
		files[name+".gz"] = gzipped(g.text)
	}
	dir := writeTree(t, files)
	for name, g := range textGraphs {
		if name == "commas.txt" {
			continue // one edge less
		}
		for _, name := range []string{name, name + ".gz"} {
			query := "?features=" + dir + "/x.npy&labels=" + dir + "/y.csv"
			d := open(t, g.kind+":"+dir+"/"+name+query, Options{})
			isPath4(t, d)
			if info := d.Info(); info.NumNodes != 4 || info.NumFeatures != 2 || info.Identity != g.kind+":"+name+"?features=x.npy&labels=y.csv" {
				t.Errorf("%s: %+v", name, info)
			}
		}
		d := open(t, g.kind+":"+dir+"/"+name, Options{})
		isPath4(t, d)
		warned := slices.ContainsFunc(Notes(d), func(n Note) bool { return n.Ignored && strings.Contains(n.Text, name) })
		if weighted := name == "g.txt" || name == "w.mtx" || name == "w.graph" || name == "g.gr"; warned != weighted {
			t.Errorf("%s: %v", name, Notes(d))
		}
	}
	edges, err := readEdges(open(t, "adjlist:"+dir+"/commas.txt", Options{}), 9)
	if want := []Edge{{U: 0, V: 1}, {U: 3, V: 2}}; err != nil || !slices.Equal(edges, want) {
		t.Errorf("%v, %v", edges, err)
	}
}

// TestLonelyNodes keeps nodes without neighbours.
func TestLonelyNodes(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"a.graph": []byte("3 1\n3\n\n1\n"), "a.adjlist": []byte("0 2\n1\n2 0\n")})
	d := open(t, "metis:"+dir+"/a.graph", Options{})
	if edges, err := readEdges(d, 2); err != nil || d.Info().NumNodes != 3 || !slices.Equal(edges, []Edge{{U: 0, V: 2}, {U: 2, V: 0}}) {
		t.Errorf("%v, %v", edges, err)
	}
	if edges, err := readEdges(open(t, "adjlist:"+dir+"/a.adjlist", Options{}), 2); err != nil || !slices.Contains(edges, Edge{U: 1, V: 1}) || len(edges) != 3 {
		t.Errorf("%v, %v", edges, err)
	}
}

func TestBadTextGraphs(t *testing.T) {
	const mtx = "%%MatrixMarket matrix coordinate pattern general\n"
	for _, c := range []struct{ kind, text, want string }{
		{"mtx", "1 2\n", "line 1: is not the first line of a MatrixMarket file"},
		{"mtx", "%%MatrixMarket matrix array real general\n", "array form"},
		{"mtx", "%%MatrixMarket matrix coordinate complex general\n", "complex"},
		{"mtx", "%%MatrixMarket matrix coordinate pattern hermitian\n", "hermitian"},
		{"mtx", mtx, "ends within its header"},
		{"mtx", mtx + "3 3\n", "line 2: has 2 numbers"},
		{"mtx", mtx + "3 4 1\n", "square"},
		{"mtx", mtx + "3 x 1\n", `"x"`},
		{"mtx", mtx + "4294967296 4294967296 1\n", "at most 4294967295"},
		{"mtx", mtx + "3 3 2\n1 2\n", "holds 1 entries, its header states 2"},
		{"mtx", mtx + "3 3 1\n1 2\n2 3\n", "line 4: is one more"},
		{"mtx", mtx + "3 3 1\n0 2\n", `line 3: node "0"`},
		{"mtx", mtx + "3 3 1\n1 4\n", `node "4"`},
		{"mtx", mtx + "3 3 1\n1 2 0.5\n", "has 3 fields"},
		{"metis", "", "is empty (0 bytes)"},
		{"metis", "3\n", "has 1 numbers"},
		{"metis", "2 1 5\n2\n1\n", "three digits"},
		{"metis", "2 1 1\n2\n1\n", "line 2: has 1 fields"},
		{"metis", "2 1\n2\n", "holds 1 lines of neighbours, its header states 2"},
		{"metis", "2 2\n2\n1\n", "holds 2 neighbours, and the header states 2 edges"},
		{"metis", "2 1\n2\n1\n1\n", "line 4"},
		{"metis", "2 1\n2\n3\n", `line 3: node "3"`},
		{"dimacs", "a 1 2 3\n", `"p sp NODES EDGES"`},
		{"dimacs", "p max 3 3\n", `"max"`},
		{"dimacs", "p sp 3 1\ne 1 2\n", `line 2: "e 1 2" is no line`},
		{"dimacs", "p sp 3 2\na 1 2 1\n", "holds 1 edges, its header states 2"},
		{"dimacs", "p edge 3 5\ne 1 2\n", "holds 1 edges, its header states 5"},
		{"dimacs", "p edge 3 1\ne 1 9\n", `node "9"`},
		{"adjlist", "0 1\n1 a\n", `line 2: node id "a"`},
	} {
		refuses(t, c.kind+":%s/f", nil, []refusal{{"f", []byte(c.text), []string{c.want, "/f"}}})
	}
	for uri, want := range map[string]string{"metis:a?src=x&dst=y": "columns of tables", "adjlist:": "needs a file"} {
		if err := readAll(t, uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	dir := writeTree(t, map[string][]byte{"g.graph": []byte("2 1\n2\n1\n"), "y.csv": []byte("id,label\n2,a\n"), "x.npy": npyArray(npy.Float32, []int64{3, 1}, []float32{1, 2, 3})})
	for query, want := range map[string]string{"labels=" + dir + "/y.csv": "header of g.graph states 2 nodes", "features=" + dir + "/x.npy": "header of g.graph states 2 nodes", "nodes=3": "nodes=3 in the URI"} {
		if err := readAll(t, "metis:"+dir+"/g.graph?"+query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func FuzzTextGraphs(f *testing.F) {
	for _, g := range textGraphs {
		f.Add([]byte(g.text))
	}
	for _, g := range weightedGraphs {
		f.Add([]byte(g.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{"mtx", "metis", "dimacs", "adjlist"} {
			fuzzFile(t, "g", kind+":g", data)
			fuzzFile(t, "g", kind+":g?weight=value", data)
		}
	})
}
