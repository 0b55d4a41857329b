package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrowarray "github.com/apache/arrow/go/v14/arrow/array"

	"ndls/dataset/graph"
)

// fuzzFile reads data as a file of a dataset: any answer is right that is no
// panic, and an error that says the data is wrong.
func fuzzFile(t *testing.T, name, uri string, data []byte) {
	dir := t.TempDir()
	for file, content := range map[string][]byte{"a.txt": []byte("0 1\n1 2\n"), name: data} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	if err := readAll(t, uri); err != nil && !errors.Is(err, ErrData) {
		t.Errorf("%v is no ErrData", err)
	}
}

func FuzzTextEdges(f *testing.F) {
	for _, s := range []string{"0 1\n", "# c\r\n1\t2\r\n", "src,dst\n1,2\n", "a;b\n\"1\";2\n", "1 -2\n", "1 2 3\n4\n", "\xef\xbb\xbf1,2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "e.csv", "edges:e.csv", data) })
}

func FuzzTextFeatures(f *testing.F) {
	f.Add([]byte("0 1 2\n1 0 .5\n"))
	f.Add([]byte("id,a\n3,nan\n"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "f.csv", "edges:a.txt?features=f.csv", data) })
}

func FuzzCSVLabels(f *testing.F) {
	f.Add([]byte("id,label\n0,a\n1,\"b,\n\"\n"))
	f.Add([]byte("x\ny\n"))
	f.Add([]byte("0\t1\n"))
	f.Add([]byte(" #x\n0,1\n")) // a comment here, a row of one column to encoding/csv
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "l.csv", "edges:a.txt?labels=l.csv", data) })
}

func FuzzJSONFeatures(f *testing.F) {
	f.Add([]byte(`{"1": [2, 3], "0": []}`))
	f.Add([]byte(`{}`))
	f.Add([]byte("{\"1\":\n[1 2]}"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "f.json", "edges:a.txt?features=f.json", data) })
}

func FuzzNPZ(f *testing.F) {
	f.Add(triangle())
	f.Add(zipped(0, member{"adj_matrix.npy", object("N.")}))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "g.npz", "npz:g.npz", data) })
}

func FuzzNPYEdges(f *testing.F) {
	f.Add(npyArray("<i8", []int64{2, 2}, []int64{0, 1, 2, 3}))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "e.npy", "edges:e.npy", data) })
}

func FuzzParquetEdges(f *testing.F) {
	f.Add(parquetOf(f, arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "dst", Type: arrow.PrimitiveTypes.Uint64}}, nil), func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Int32Builder).AppendValues([]int32{1, 2, 3}, nil)
		b.Field(1).(*arrowarray.Uint64Builder).AppendValues([]uint64{2, 3, 1}, nil)
	}))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "e.parquet", "edges:e.parquet", data) })
}

func FuzzParquetFeatures(f *testing.F) {
	f.Add(parquetOf(f, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32), Nullable: true}}, nil), func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Int64Builder).AppendValues([]int64{0, 1}, nil)
		l := b.Field(1).(*arrowarray.ListBuilder)
		for _, v := range []float32{1, 2} {
			l.Append(true)
			l.ValueBuilder().(*arrowarray.Float32Builder).AppendValues([]float32{v, 0}, nil)
		}
	}))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzFile(t, "f.parquet", "edges:a.txt?features=f.parquet", data) })
}

// FuzzNamedEnds reads a table whose columns the URI names.
func FuzzNamedEnds(f *testing.F) {
	f.Add("a", "c", []byte("a,b,c\n1,2,3\n"))
	f.Add("1", "3", []byte("1 2 3.0\n\"4\" 5 +6\n"))
	f.Add("x", "X", []byte("x,\"x,\"\"\"\n1,2,\n"))
	f.Fuzz(func(t *testing.T, src, dst string, data []byte) {
		u, err := parseEdgesURI("e.csv?src=" + graph.EscapePath(src) + "&dst=" + graph.EscapePath(dst))
		if err != nil {
			if !errors.Is(err, ErrURI) {
				t.Errorf("%v is no ErrURI", err)
			}
			return
		}
		if u.Ends != [2]string{src, dst} {
			t.Errorf("src=%q dst=%q became %+v", src, dst, u.Ends)
		}
		fuzzFile(t, "e.csv", u.identity(false), data)
	})
}

func FuzzPacked(f *testing.F) {
	f.Add(gzipped("0 1\n"))
	f.Add(append(gzipped("0 1\n"), gzipped("1 2\n")...))
	f.Add(append(gzipped("0 1\n"), "garbage"...))
	f.Add([]byte(bzip2Lines))
	f.Add([]byte(xz6Lines))
	f.Add(lz4ed("0 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, end := range []string{"gz", "zst", "xz", "bz2", "lz4"} {
			fuzzFile(t, "e."+end, "edges:e."+end, data)
		}
	})
}

func FuzzURI(f *testing.F) {
	f.Add("a%26b?features=c&labels=d#e&nodes=3&directed=true")
	f.Add("?")
	f.Add("a?src=b%26&dst=c")
	f.Fuzz(func(t *testing.T, rest string) {
		u, err := parseEdgesURI(rest)
		if err != nil {
			if !errors.Is(err, ErrURI) {
				t.Errorf("%v is no ErrURI", err)
			}
			return
		}
		// What the URI says of the run is said again by its identity.
		again, err := parseEdgesURI(u.identity(false)[len("edges:"):])
		if err != nil || again.identity(false) != u.identity(false) {
			t.Errorf("identity %s became %s, %v", u.identity(false), again.identity(false), err)
		}
	})
}

func FuzzSyntheticOptions(f *testing.F) {
	f.Add("nodes=10,edges=3,features=2,classes=2,seed=5,homophily=0.5,train=0.5,valid=0.5,noise=2")
	f.Fuzz(func(t *testing.T, rest string) {
		g, err := parseSynthetic(rest)
		if err != nil {
			if !errors.Is(err, ErrURI) {
				t.Errorf("%v is no ErrURI", err)
			}
			return
		}
		again, err := parseSynthetic(g.identity()[len("synthetic:"):])
		if err != nil || again.identity() != g.identity() {
			t.Errorf("%s became %v, %v", g.identity(), again, err)
		}
		c := g.dataset(Options{})
		if g.edges > 0 {
			if e := c.edge(g.edges - 1); int64(e.U) >= g.nodes || int64(e.V) >= g.nodes {
				t.Errorf("edge %v of %d nodes", e, g.nodes)
			}
		}
	})
}

func FuzzSparse(f *testing.F) {
	for _, format := range []string{"csr", "csc", "bsr"} {
		f.Add(saintMatrix(format, vec[float32](1, 2, 3, 4, 5, 6)))
	}
	f.Add(cooMatrix([]int64{3, 3}, vec[int64](0, 1, 2, 0), vec[int32](1, 1, 0, 1), vec[float64](1, 2, 3, 4)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzFile(t, "m.npz", "edges:m.npz?weight=value", data)
		fuzzFile(t, "m.npz", "npz:m.npz", data)
		fuzzFile(t, "m.npz", "edges:a.txt?features=m.npz", data)
	})
}

func FuzzNPY(f *testing.F) {
	f.Add(npyArray("<i8", []int64{2, 3}, []int64{0, 1, 0, 1, 0, 0}))
	f.Add(withDescr(npyArray("<f8", []int64{3, 2}, []float64{0, 1, 1, 2, 0.5, 3}), "False", "True "))
	f.Add(withDescr(npyArray("<f4", []int64{4}, []float32{0, 1, 1, 2}), "<f4", "<U1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, uri := range []string{"edges:x.npy", "edges:x.npy?weight=3", "edges:a.txt?features=x.npy", "edges:a.txt?labels=x.npy", "edges:a.txt?splits=x.npy&split=1"} {
			fuzzFile(t, "x.npy", uri, data)
		}
	})
}
