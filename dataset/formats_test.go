package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrowarray "github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"ndls/dataset/npy"
	"ndls/dataset/parquettest"
	"ndls/internal/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func zstded(data string) []byte {
	w, _ := zstd.NewWriter(nil)
	defer w.Close()
	return w.EncodeAll([]byte(data), nil)
}

// TestEdgeForms reads the edges 0-1, 1-2, 7-1 in every form they are published in.
func TestEdgeForms(t *testing.T) {
	want := []Edge{{U: 0, V: 1}, {U: 1, V: 2}, {U: 7, V: 1}}
	table := arrow.NewSchema([]arrow.Field{
		{Name: "weight", Type: arrow.PrimitiveTypes.Float64}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}, {Name: "src", Type: arrow.PrimitiveTypes.Uint32},
	}, nil)
	columns := func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Float64Builder).AppendValues([]float64{1, 1, 1}, nil)
		b.Field(1).(*arrowarray.Int64Builder).AppendValues([]int64{1, 2, 1}, nil)
		b.Field(2).(*arrowarray.Uint32Builder).AppendValues([]uint32{0, 1, 7}, nil)
	}
	for name, data := range map[string][]byte{
		"snap.txt":       []byte("# a comment\r\n% another\r\n\r\n0\t1\r\n1\t2\r\n7\t1\r\n"),
		"blanks.txt":     []byte("  0   1  \n1 2\n7 1"),
		"mark.csv":       []byte("\xef\xbb\xbf0,1\n1,2\n7,1\n"),
		"weights.txt":    []byte("0 1 0.5\n1 2 0.5\n7 1 2\n"),
		"musae.csv":      []byte("id_1,id_2\n0,1\n1,2\n7,1\n"),
		"named.csv":      []byte("weight,\"Target\",source\n1,1,0\n1,2,1\n1,1,7\n"),
		"unnamed.csv":    []byte("a;b;c\n0; 1;x\n1;2;y\n7;1;z\n"),
		"packed.txt.gz":  gzipped("0 1\n1 2\n7 1\n"),
		"packed.csv.zst": zstded("src,dst\n0,1\n1,2\n7,1\n"),
		"packed.zip":     zipped(zip.Deflate, member{"in.txt", []byte("0 1\n1 2\n7 1\n")}),
		"two.npy":        npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 7, 1, 2, 1}),
		"pairs.npy":      npyArray(npy.Uint32, []int64{3, 2}, []uint32{0, 1, 1, 2, 7, 1}),
		"bytes.npy":      npyArray(npy.Int8, []int64{3, 2}, []int8{0, 1, 1, 2, 7, 1}),
		"packed.npy.gz":  gzipped(string(npyArray(npy.Int32, []int64{2, 3}, []int32{0, 1, 7, 1, 2, 1}))),
		"ogb.npz":        zipped(zip.Store, member{"edge_index.npy", npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 7, 1, 2, 1})}),
		"ogbz.npz":       zipped(zip.Deflate, member{"x.npy", nil}, member{"edge_index.npy", npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 7, 1, 2, 1})}),
		"table.parquet":  parquetOf(t, table, columns),
		"pairs.bin":      mem.AsBytes([]uint32{0, 1, 1, 2, 7, 1}),
		"pairs.u32":      mem.AsBytes([]uint32{0, 1, 1, 2, 7, 1}),
		"pairs.u64":      mem.AsBytes([]uint64{0, 1, 1, 2, 7, 1}),
		"pairs.u64.zip":  zipped(zip.Deflate, member{"pairs.u64", mem.AsBytes([]uint64{0, 1, 1, 2, 7, 1})}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{name: data})
			d := open(t, "edges:"+dir+"/"+name, Options{})
			for _, batch := range []int{1, 2, 3, 100} {
				got, err := readEdges(d, batch)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("batches of %d: %v, %v", batch, got, err)
				}
			}
		})
	}
}

func TestPairsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"odd.u32":    {mem.AsBytes([]uint32{0, 1, 1}), "12 bytes, no whole number of pairs of 8 bytes"},
		"odd.u64":    {mem.AsBytes([]uint64{0, 1, 1}), "24 bytes, no whole number of pairs of 16 bytes"},
		"a.u32.gz":   {gzipped("12345678"), "compressed"},
		"large.u64":  {mem.AsBytes([]uint64{0, 1, 1 << 40, 2}), "edge 1"},
		"larger.u64": {mem.AsBytes([]uint64{0, 1 << 63}), "edge 0"},
		"none.bin":   {mem.AsBytes([]uint32{0, MaxID + 1}), "edge 0"},
	} {
		d, err := Open(t.Context(), "edges:"+writeFiles(t, map[string][]byte{name: c.data})+"/"+name, Options{})
		if err == nil {
			_, err = readEdges(d, 10)
			_ = d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestTwoPairs is not taken for a matrix of sources and targets.
func TestTwoPairs(t *testing.T) {
	d := open(t, "edges:"+writeFiles(t, map[string][]byte{"a.u32": mem.AsBytes([]uint32{0, 1, 2, 3})})+"/a.u32", Options{})
	if got, err := readEdges(d, 10); err != nil || !slices.Equal(got, []Edge{{U: 0, V: 1}, {U: 2, V: 3}}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestNoEdges(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte("# nothing\n")})
	got, err := readEdges(open(t, "edges:"+dir+"/a.txt?nodes=3", Options{}), 4)
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// parquetOf writes a table with options chosen by the caller.
func parquetOf(t testing.TB, s *arrow.Schema, fill func(*arrowarray.RecordBuilder), options ...parquet.WriterProperty) []byte {
	t.Helper()
	b := arrowarray.NewRecordBuilder(memory.NewGoAllocator(), s)
	defer b.Release()
	fill(b)
	record := b.NewRecord()
	defer record.Release()
	data, err := parquettest.Write(record, options...)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestParquetLong reads several row groups and pages.
func TestParquetLong(t *testing.T) {
	const rows = 50_000
	s := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Uint32, Nullable: true}, {Name: "b", Type: arrow.PrimitiveTypes.Int32}}, nil)
	data := parquetOf(t, s, func(b *arrowarray.RecordBuilder) {
		for i := range rows {
			b.Field(0).(*arrowarray.Uint32Builder).Append(uint32(MaxID - i))
			b.Field(1).(*arrowarray.Int32Builder).Append(int32(i))
		}
	}, parquet.WithMaxRowGroupLength(20_000), parquet.WithDataPageSize(4096))
	dir := writeFiles(t, map[string][]byte{"a.parquet": data})
	d := open(t, "edges:"+dir+"/a.parquet", Options{})
	edges, err := readEdges(d, 777)
	if err != nil || len(edges) != rows || d.Info().EdgeHint != rows {
		t.Fatalf("%d edges, %v", len(edges), err)
	}
	for i, e := range edges {
		if e != (Edge{U: uint32(MaxID - i), V: uint32(i)}) {
			t.Fatalf("edge %d is %v", i, e)
		}
	}
}

func TestParquetRefused(t *testing.T) {
	ints := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}}, nil)
	fill := func(src ...int64) func(b *arrowarray.RecordBuilder) {
		return func(b *arrowarray.RecordBuilder) {
			valid := make([]bool, len(src))
			for i, v := range src {
				valid[i] = v != -99
			}
			b.Field(0).(*arrowarray.Int64Builder).AppendValues(src, valid)
			b.Field(1).(*arrowarray.Int64Builder).AppendValues(make([]int64, len(src)), nil)
		}
	}
	good := parquetOf(t, ints, fill(1, 2, 3))
	for _, c := range []struct {
		name string
		data []byte
		want []string
	}{
		{"null", parquetOf(t, ints, fill(1, -99, 3)), []string{"row 1", `column "src"`, "null", "remove"}},
		{"negative", parquetOf(t, ints, fill(1, -2, 3)), []string{"row 1", `column "src"`, "-2 is negative"}},
		{"one column", parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil), func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.Int64Builder).Append(1)
		}), []string{"has one column, x", "two node ids"}},
		{"truncated", good[:len(good)-9], []string{"a.parquet", "damaged or no Parquet"}},
		{"text", []byte("0 1\n1 2\n3 4\n"), []string{"a.parquet", "damaged or no Parquet"}},
		{"empty", nil, []string{"a.parquet", "is empty (0 bytes)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"a.parquet": c.data})
			err := readAll(t, "edges:"+dir+"/a.parquet")
			for _, part := range c.want {
				if err == nil || !strings.Contains(err.Error(), part) || !errors.Is(err, ErrData) {
					t.Errorf("%v lacks %q", err, part)
				}
			}
		})
	}
}

// TestParquetDamaged flips bits all over a file, and writes over a few bytes at a time:
// there is an error or an answer, never a panic, and an end. Bit 5 makes a column
// without metadata of one with it; 0x22 in the header of a page one without its values.
func TestParquetDamaged(t *testing.T) {
	ends := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "dst", Type: arrow.PrimitiveTypes.Uint64}}, nil)
	edges := parquetOf(t, ends, func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Int32Builder).AppendValues([]int32{1, 2, 3}, nil)
		b.Field(1).(*arrowarray.Uint64Builder).AppendValues([]uint64{2, 3, 1}, nil)
	})
	list := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "feature", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), Nullable: true}}, nil)
	features := parquetOf(t, list, func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Int64Builder).AppendValues([]int64{0, 1}, nil)
		l := b.Field(1).(*arrowarray.FixedSizeListBuilder)
		l.AppendValues([]bool{true, true})
		l.ValueBuilder().(*arrowarray.Float32Builder).AppendValues([]float32{1, 0, 2, 0}, nil)
	})
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n")})
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		uri  string
		good []byte
	}{{"edges:%s/d.parquet", edges}, {"edges:%s/a.txt?features=%s/d.parquet", features}} {
		read := func(broken []byte) {
			if err := os.WriteFile(dir+"/d.parquet", broken, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := readAll(t, strings.ReplaceAll(c.uri, "%s", dir)); err != nil && !errors.Is(err, ErrData) {
				t.Fatalf("%v is no ErrData", err)
			}
		}
		for i := range c.good {
			for _, mask := range []byte{1 << (i % 8), 1 << 5} {
				broken := slices.Clone(c.good)
				broken[i] ^= mask
				read(broken)
			}
			broken := slices.Clone(c.good)
			broken[i] = 0x22
			read(broken)
		}
		for range 500 {
			broken := slices.Clone(c.good)
			for range 1 + random.IntN(3) {
				broken[random.IntN(len(broken))] = byte(random.Uint32())
			}
			read(broken)
		}
	}
}

// TestFeatureForms reads the rows [1 0 2] of node 0 and [0 0.5 0] of node 1 in
// every dense form.
func TestFeatureForms(t *testing.T) {
	want := []row{{0, []uint32{0, 2}, []float32{1, 2}}, {1, []uint32{1}, []float32{0.5}}}
	list := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "feature", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), Nullable: true}}, nil)
	wide := arrow.NewSchema([]arrow.Field{
		{Name: "f0", Type: arrow.PrimitiveTypes.Float32},
		{Name: "node", Type: arrow.PrimitiveTypes.Int32},
		{Name: "f1", Type: arrow.PrimitiveTypes.Float64},
		{Name: "f2", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	for name, data := range map[string][]byte{
		"f.csv":     []byte("id,a,b,c\n0,1,0,2\n1,0,0.5,0\n"),
		"f.txt.gz":  gzipped("0 1 0 2\n1 0 5e-1 0\n"),
		"f32.npy":   npyArray(npy.Float32, []int64{2, 3}, []float32{1, 0, 2, 0, 0.5, 0}),
		"f64.npy":   npyArray(npy.Float64, []int64{2, 3}, []float64{1, 0, 2, 0, 0.5, 0}),
		"f16.npy":   npyArray(npy.Float16, []int64{2, 3}, []uint16{0x3c00, 0, 0x4000, 0, 0x3800, 0}),
		"f.npy.zst": zstded(string(npyArray(npy.Float32, []int64{2, 3}, []float32{1, 0, 2, 0, 0.5, 0}))),
		"l.parquet": parquetOf(t, list, func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.Int64Builder).AppendValues([]int64{0, 1}, nil)
			l := b.Field(1).(*arrowarray.FixedSizeListBuilder)
			l.AppendValues([]bool{true, true})
			l.ValueBuilder().(*arrowarray.Float32Builder).AppendValues([]float32{1, 0, 2, 0, 0.5, 0}, nil)
		}),
		"w.parquet": parquetOf(t, wide, func(b *arrowarray.RecordBuilder) {
			b.Field(0).(*arrowarray.Float32Builder).AppendValues([]float32{1, 0}, nil)
			b.Field(1).(*arrowarray.Int32Builder).AppendValues([]int32{0, 1}, nil)
			b.Field(2).(*arrowarray.Float64Builder).AppendValues([]float64{0, 0.5}, nil)
			b.Field(3).(*arrowarray.Int64Builder).AppendValues([]int64{2, 0}, nil)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n"), name: data})
			d := open(t, "edges:"+dir+"/a.txt?features="+dir+"/"+name, Options{})
			got, err := readFeatures(d)
			if err != nil || !slices.EqualFunc(got, want, equalRows) || d.Info().NumFeatures != 3 || d.Info().SparseFeatures {
				t.Errorf("%v, %v, %+v", got, err, d.Info())
			}
			if states := strings.Contains(name, ".npy"); (d.Info().NumNodes == 2) != states {
				t.Errorf("%d nodes stated", d.Info().NumNodes)
			}
			without, err := Open(t.Context(), "edges:"+dir+"/a.txt?features="+dir+"/none", Options{NoFeatures: true})
			if err != nil || without.Info().NumFeatures != 0 {
				t.Fatalf("without features: %v", err)
			}
			if err := without.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTorchParts reads tensors that torch.save has written, as parts of a graph.
func TestTorchParts(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n1 2\n2 3\n"), "x.pt": readFile(t, pygFiles+"tensor.pt")})
	d := open(t, "edges:"+dir+"/a.txt?features="+dir+"/x.pt", Options{})
	got, err := readFeatures(d)
	want := []row{{0, []uint32{0, 1}, []float32{1, 0.5}}, {1, []uint32{1}, []float32{2}}, {2, []uint32{0}, []float32{-1}}, {3, []uint32{0, 1}, []float32{3, 4}}}
	if err != nil || !slices.EqualFunc(got, want, equalRows) || d.Info().NumFeatures != 2 || d.Info().NumNodes != 4 {
		t.Errorf("%v, %v, %+v", got, err, d.Info())
	}
	if _, err := Open(t.Context(), "edges:"+dir+"/a.txt?labels="+dir+"/x.pt", Options{}); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "row 0: holds another number than 0 and 1") {
		t.Errorf("a matrix of labels: %v", err)
	}
}

func TestLabelAndSplitForms(t *testing.T) {
	for _, c := range []struct {
		name, file, content, column string
		classes                     []string
		labels                      map[uint32]int32
		nodes                       int64
	}{
		{"csv", "l.csv", "id,label\n3,10\n1,9\n2,\n0,-1\n", "", []string{"9", "10"}, map[uint32]int32{3: 1, 1: 0}, -1},
		{"no header", "l.csv", "3,b\n1,a\n", "", []string{"a", "b"}, map[uint32]int32{3: 1, 1: 0}, -1},
		{"quoted", "l.csv", "id,name,page_type\n3,\"x, \"\"y\"\"\nz\",b\n1,k,a\n", "", []string{"a", "b"}, map[uint32]int32{3: 1, 1: 0}, -1},
		{"named", "l.csv", "kind,node,other\nb,3,1\na,1,2\n", "#kind", []string{"a", "b"}, map[uint32]int32{3: 1, 1: 0}, -1},
		{"tabs", "l.tsv", "3\tb\n1\ta\n", "", []string{"a", "b"}, map[uint32]int32{3: 1, 1: 0}, -1},
		{"lines", "l.txt", "b\n10\nb\n9\n", "", []string{"10", "9", "b"}, map[uint32]int32{0: 2, 1: 0, 2: 2, 3: 1}, 4},
		{"npy", "l.npy", string(vec[int64](10, -1, 9, 9)), "", []string{"9", "10"}, map[uint32]int32{0: 1, 2: 0, 3: 0}, 4},
		{"npy floats", "l.npy", string(vec[float64](10, nan(), 9, 9)), "", []string{"9", "10"}, map[uint32]int32{0: 1, 2: 0, 3: 0}, 4},
		{"npy column", "l.npy", string(npyArray(npy.Int32, []int64{4, 1}, []int32{10, -1, 9, 9})), "", []string{"9", "10"}, map[uint32]int32{0: 1, 2: 0, 3: 0}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n2 3\n"), c.file: []byte(c.content)})
			d := open(t, "edges:"+dir+"/a.txt?labels="+dir+"/"+c.file+c.column, Options{})
			labels, err := readLabels(d)
			if err != nil || fmt.Sprint(labels) != fmt.Sprint(c.labels) || !slices.Equal(d.Info().Classes, c.classes) || d.Info().NumNodes != c.nodes {
				t.Errorf("%v, %v, %+v", labels, err, d.Info())
			}
		})
	}
	for name, content := range map[string]string{
		"s.csv": "id,split\n0,train\n3,test\n1,val\n2,\n",
		"s.txt": "train\nvalid\nnone\ntest\n",
		"s.npy": string(vec[int64](1, 2, 0, 3)),
	} {
		dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n"), name: []byte(content)})
		splits, err := readSplits(open(t, "edges:"+dir+"/a.txt?splits="+dir+"/"+name, Options{}))
		if want := map[uint32]Split{0: Train, 1: Valid, 3: Test}; err != nil || fmt.Sprint(splits) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v", name, splits, err)
		}
	}
}

func nan() float64 { var z float64; return z / z }

func TestIdentity(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"a&b.txt": []byte("0 1\n"), "l.csv": []byte("id,x,y\n0,a,b\n")})
	d := open(t, "edges:"+dir+"/a%26b.txt?nodes=5&labels="+dir+"/l.csv#x&directed=true", Options{})
	info := d.Info()
	if want := "edges:a%26b.txt?labels=l.csv#x&nodes=5&directed=true"; info.Identity != want {
		t.Errorf("identity is %s, want %s", info.Identity, want)
	}
	if info.Name != "a&b" || !info.Directed || info.NumNodes != 5 {
		t.Errorf("%+v", info)
	}
	// Parts that a dataset has not are errors, not empty streams.
	if _, err := d.Features(t.Context(), Whole); err == nil {
		t.Error("features without features")
	}
	if _, err := d.Splits(t.Context(), 0); err == nil {
		t.Error("splits without splits")
	}
}

func TestCancel(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte(strings.Repeat("1 2\n", 1<<20)), "f.npy": npyArray(npy.Float32, []int64{3, 2}, make([]float32, 6))})
	for _, uri := range []string{"edges:" + dir + "/a.txt?features=" + dir + "/f.npy", "synthetic:nodes=10"} {
		d := open(t, uri, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		r, err := d.Edges(ctx, Whole)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for err == nil {
			_, err = r.Read(make([]Edge, 100), nil)
		}
		if !errors.Is(err, context.Canceled) || err == io.EOF {
			t.Errorf("%s: %v", uri, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestNPZLayouts(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"g.npz": triangle(), "d.npz": zipped(zip.Store,
		member{"adj_data.npy", vec[float32](1, 1, 1)}, member{"adj_indices.npy", vec[int64](2, 1, 0)},
		member{"adj_indptr.npy", vec[int64](0, 2, 3, 3)}, member{"adj_shape.npy", vec[int64](3, 3)},
		member{"attr_matrix.npy", npyArray(npy.Float32, []int64{3, 2}, []float32{2, 3, 0, 1, 0, 0})})})
	for _, name := range []string{"g", "d"} {
		d := open(t, "npz:"+dir+"/"+name+".npz", Options{})
		edges, err := readEdges(d, 2)
		if err != nil || !slices.Equal(edges, []Edge{{U: 0, V: 2}, {U: 0, V: 1}, {U: 1, V: 0}}) {
			t.Errorf("%s: %v, %v", name, edges, err)
		}
		rows, err := readFeatures(d)
		want := []row{{0, []uint32{0, 1}, []float32{2, 3}}, {1, []uint32{1}, []float32{1}}, {2, nil, nil}}
		if err != nil || !slices.EqualFunc(rows, want, equalRows) || d.Info().SparseFeatures != (name == "g") {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
		none := open(t, "npz:"+dir+"/"+name+".npz", Options{NoFeatures: true})
		if none.Info().NumFeatures != 0 {
			t.Error("features that were left out")
		}
	}
}

// BenchmarkEdges reads the same edges from files of every usual form.
func BenchmarkEdges(b *testing.B) {
	const rows = 1 << 20
	var text bytes.Buffer
	pairs := make([]uint32, 0, 2*rows)
	wide, split := make([]uint64, 2*rows), make([]int64, 2*rows)
	for i := range rows {
		u, v := i*7919%300000, i*104729%300000
		fmt.Fprintf(&text, "%d\t%d\n", u, v)
		pairs = append(pairs, uint32(u), uint32(v))
		wide[2*i], wide[2*i+1] = uint64(u), uint64(v)
		split[i], split[rows+i] = int64(u), int64(v)
	}
	s := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Uint32}, {Name: "dst", Type: arrow.PrimitiveTypes.Uint32}}, nil)
	table := parquetOf(b, s, func(r *arrowarray.RecordBuilder) {
		for i := range rows {
			r.Field(0).(*arrowarray.Uint32Builder).Append(pairs[2*i])
			r.Field(1).(*arrowarray.Uint32Builder).Append(pairs[2*i+1])
		}
	}, parquet.WithCompression(compress.Codecs.Snappy))
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"a.txt", text.Bytes()},
		{"a.txt.gz", gzipped(text.String())},
		{"a.parquet", table},
		{"a.u32", mem.AsBytes(pairs)},
		{"a.u64", mem.AsBytes(wide)},
		{"a.npy", npyArray(npy.Int64, []int64{2, rows}, split)},
	} {
		b.Run(f.name, func(b *testing.B) {
			dir := writeFiles(b, map[string][]byte{f.name: f.data})
			d := open(b, "edges:"+dir+"/"+f.name, Options{})
			batch := make([]Edge, 1<<15)
			b.SetBytes(int64(len(f.data)))
			for b.Loop() {
				r, err := d.Edges(b.Context(), Whole)
				for err == nil {
					_, err = r.Read(batch, nil)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				_ = r.Close()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
