package dataset

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrowarray "github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"

	"ndls/dataset/npy"
)

// notesOf returns the notes as text, warnings behind "!".
func notesOf(d Dataset) string {
	var text []string
	for _, n := range Notes(d) {
		mark := ""
		if n.Ignored {
			mark = "!"
		}
		text = append(text, mark+n.Text)
	}
	return strings.Join(text, "\n")
}

// integers is a Parquet table with rows 0, 1, 2 and others in columns of int64.
func integers(t testing.TB, names ...string) []byte {
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64}
	}
	return parquetOf(t, arrow.NewSchema(fields, nil), func(b *arrowarray.RecordBuilder) {
		for i := range names {
			b.Field(i).(*arrowarray.Int64Builder).AppendValues([]int64{int64(10 * i), int64(10*i + 1)}, nil)
		}
	})
}

// TestEdgeColumns chooses the ends of edges among several columns, and says which ones.
func TestEdgeColumns(t *testing.T) {
	for _, c := range []struct {
		name, file, keys string
		data             []byte
		want             []Edge
		notes            []string
	}{
		{"named in a header", "e.csv", "?src=paper&dst=cites", []byte("year,paper,cites\n1999,10,20\n2000,11,21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "paper" to the node in column "cites"`, `!`, `column "year" is ignored`}},
		{"other case", "e.csv", "?src=Paper&dst=CITES", []byte("year,paper,cites\n1999,10,20\n2000,11,21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, nil},
		{"pandas index", "e.csv", "?src=0&dst=1", []byte(",0,1\n0,10,20\n1,11,21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "0" to the node in column "1"`}},
		{"numbered", "e.txt", "?src=2&dst=3", []byte("1999 10 20\n2000 11 21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "2" to the node in column "3"`, `!`, `column "1" is ignored`}},
		{"well-known", "e.csv", "", []byte("weight,Source,Target\n5,10,20\n7,11,21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "Source"`, `!`, `column "weight" is ignored: an edge is two node ids, without weight`}},
		{"weights", "e.txt", "", []byte("10 20 1\n11 21 0.5\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "1" to the node in column "2"`, `!`, `column "3" is ignored`}},
		{"weights like ids", "e.txt", "", []byte("10 20 1.0\n11 21 2.0\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`!`, `column "3" is ignored`}},
		{"signs", "e.csv", "", []byte("a,b,c\n10,20,1\n11,21,-1\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "a" to the node in column "b"`, `column "c" is ignored`}},
		{"names first", "e.csv", "", []byte("what,a,b\ncites,10,20\ncites,11,21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "a" to the node in column "b"`, `column "what" is ignored`}},
		{"Parquet named", "e.parquet", "?src=paper&dst=cites", integers(t, "year", "paper", "cites"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "paper"`, `!`, `column "year" is ignored`}},
		{"Parquet well-known", "e.parquet", "", integers(t, "year", "FROM", "to"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{`column "FROM"`, `column "year" is ignored`}},
		{"trailing comma", "e.csv", "", []byte("10,20,\n11,21,\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, nil},
		{"nothing to say", "e.csv", "", []byte("10,20\n11,21\n"), []Edge{{U: 10, V: 20}, {U: 11, V: 21}}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{c.file: c.data})
			d := open(t, "edges:"+dir+"/"+c.file+c.keys, Options{})
			got, err := readEdges(d, 3)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v", got, err)
			}
			notes := notesOf(d)
			for _, part := range c.notes {
				if !strings.Contains(notes, part) {
					t.Errorf("%q lacks %q", notes, part)
				}
			}
			if c.notes != nil && len(c.notes) == 0 && notes != "" {
				t.Error(notes)
			}
			if want := "edges:" + c.file + c.keys; d.Info().Identity != want {
				t.Errorf("identity %s, want %s", d.Info().Identity, want)
			}
		})
	}
}

// TestEdgeColumnsRefused does not guess.
func TestEdgeColumnsRefused(t *testing.T) {
	text := arrow.NewSchema([]arrow.Field{
		{Name: "src", Type: arrow.BinaryTypes.String},
		{Name: "dst", Type: arrow.BinaryTypes.String},
		{Name: "year", Type: arrow.PrimitiveTypes.Int64},
		{Name: "weight", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	names := parquetOf(t, text, func(b *arrowarray.RecordBuilder) {
		for i := range 2 {
			b.Field(i).(*arrowarray.StringBuilder).Append("ann")
			b.Field(2 + i).(*arrowarray.Int64Builder).Append(1)
		}
	})
	for _, c := range []struct {
		name, file, keys string
		data             []byte
		want             []string
	}{
		{"unknown names", "e.csv", "", []byte("year,paper,cites\n1999,10,20\n"), []string{"e.csv", "which columns", "src=COLUMN&dst=COLUMN", "year, paper, cites"}},
		{"pandas index", "e.csv", "", []byte(",0,1\n0,10,20\n1,11,21\n"), []string{"which columns", `"", 0, 1`}},
		{"no names", "e.txt", "", []byte("1999 10 20\n2000 11 21\n"), []string{"e.txt", "src=COLUMN&dst=COLUMN", "no header", "numbers from 1 to 3"}},
		{"no such column", "e.csv", "?src=a&dst=cites", []byte("year,paper,cites\n1999,10,20\n"), []string{`no column "a" for src=`, "year, paper, cites"}},
		{"no such number", "e.txt", "?src=1&dst=4", []byte("1 2 3\n"), []string{`column "4" for dst=`, "no header", "from 1 to 3"}},
		{"name without header", "e.txt", "?src=a&dst=b", []byte("1 2 3\n"), []string{`column "a" for src=`, "no header", "number"}},
		{"Parquet", "e.parquet", "", integers(t, "year", "paper", "cites"), []string{"e.parquet", "which columns", "year, paper, cites"}},
		{"Parquet text ids", "e.parquet", "", names, []string{"e.parquet", `column "src" holds string`, "number the nodes"}},
		{"text ids by name", "e.parquet", "?src=src&dst=year", names, []string{`column "src" holds string`}},
		{"same column", "e.csv", "?src=a&dst=A", []byte("a,b\n1,2\n"), []string{"same column"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{c.file: c.data})
			err := readAll(t, "edges:"+dir+"/"+c.file+c.keys)
			for _, part := range c.want {
				if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), part) {
					t.Errorf("%v lacks %q", err, part)
				}
			}
		})
	}
	dir := writeFiles(t, map[string][]byte{"e.npy": npyArray(npy.Int64, []int64{2, 1}, []int64{0, 1}), "e.txt": []byte("0 1\n"), "y.csv": []byte("id,y\n0,a\n")})
	for uri, want := range map[string]string{
		"e.txt?src=1": "src= and dst= go together", "e.txt?dst=1": "src= and dst= go together", "e.txt?src=1&dst=1": "same column",
		"e.npy?src=1&dst=2": "e.npy has none", "e.txt?labels=" + dir + "/y.csv#": "labels=", "e.txt?labels=#y": "labels=",
	} {
		if _, err := Open(t.Context(), "edges:"+dir+"/"+uri, Options{}); !errors.Is(err, ErrURI) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestIDForms reads what other programs make of whole numbers.
func TestIDForms(t *testing.T) {
	column := func(values ...int64) []byte { return npyArray(npy.Int64, []int64{3, 2}, values) }
	for name, data := range map[string][]byte{
		"plus.txt":     []byte("+0 1\n1 +2\n+7 +1\n"),
		"floats.csv":   []byte("0.0,1.0\n1.0,2.0\n7.0,1.00\n"),
		"quoted.csv":   []byte("\"0\",\"1\"\n\"1\",\"2\"\n\"7\",\"1\"\n"),
		"R.csv":        []byte("\"from\",\"to\"\n\"0\",\"1\"\n\"1\",\"2\"\n\"7\",\"1\"\n"),
		"comment.csv":  []byte("src,dst,why\n0,1,\"a, \"\"b\"\"\"\n1,2,\"c\"\n7,1,d\n"),
		"fortran.npy":  withDescr(column(0, 1, 7, 1, 2, 1), "False", "True "),
		"fortran2.npy": withDescr(npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 1, 2, 7, 1}), "False", "True "),
	} {
		d := open(t, "edges:"+writeFiles(t, map[string][]byte{name: data})+"/"+name, Options{})
		if got, err := readEdges(d, 2); err != nil || !slices.Equal(got, []Edge{{U: 0, V: 1}, {U: 1, V: 2}, {U: 7, V: 1}}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// An array of shape (2, 2) is one of sources and targets, in either order.
	square := withDescr(npyArray(npy.Int64, []int64{2, 2}, []int64{0, 2, 1, 3}), "False", "True ")
	d := open(t, "edges:"+writeFiles(t, map[string][]byte{"s.npy": square})+"/s.npy", Options{})
	if got, err := readEdges(d, 2); err != nil || !slices.Equal(got, []Edge{{U: 0, V: 2}, {U: 1, V: 3}}) {
		t.Errorf("square: %v, %v", got, err)
	}
	// The ids of features and labels are read alike, and quoted features.
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n"), "f.csv": []byte("\"id\",\"x\"\n0.0,\"0.5\"\n\"1\",2\n"), "l.csv": []byte("id,label\n1.0,a\n\"+0\",b\n3,NaN\n4,-1.0\n")})
	d = open(t, "edges:"+dir+"/a.txt?features="+dir+"/f.csv&labels="+dir+"/l.csv", Options{})
	rows, err := readFeatures(d)
	if err != nil || !slices.EqualFunc(rows, []row{{0, []uint32{0}, []float32{0.5}}, {1, []uint32{0}, []float32{2}}}, equalRows) {
		t.Errorf("%v, %v", rows, err)
	}
	if labels, err := readLabels(d); err != nil || len(labels) != 2 || labels[1] != 0 || labels[0] != 1 || len(d.Info().Classes) != 2 {
		t.Errorf("%v of %v, %v", labels, d.Info().Classes, err)
	}
}

// TestRefused holds what was read wrongly, or refused without the way out.
func TestRefused(t *testing.T) {
	utf16 := []byte("\xff\xfe")
	for _, c := range "0 1\n" {
		utf16 = binary.LittleEndian.AppendUint16(utf16, uint16(c))
	}
	lz4 := parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int32}, {Name: "dst", Type: arrow.PrimitiveTypes.Int32}}, nil), func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Int32Builder).Append(1)
		b.Field(1).(*arrowarray.Int32Builder).Append(2)
	}, parquet.WithCompression(compress.Codecs.Uncompressed))
	unsigned := parquetOf(t, arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Uint64}, {Name: "dst", Type: arrow.PrimitiveTypes.Uint64}}, nil), func(b *arrowarray.RecordBuilder) {
		b.Field(0).(*arrowarray.Uint64Builder).Append(1 << 63)
		b.Field(1).(*arrowarray.Uint64Builder).Append(2)
	})
	tar := append(append(make([]byte, 257), "ustar"...), make([]byte, 250)...)
	flipped := []byte(gzipped(strings.Repeat("0 1\n", 99)))
	flipped[len(flipped)-8] ^= 1
	for _, c := range []struct {
		name string
		data []byte
		uri  string
		want []string
		not  string
	}{
		{"e.xz.txt", []byte("\xfd7zXZ\x00\x00\x04"), "", []string{"xz data", "ends in .xz"}, "one column"},
		{"e.txt", []byte("BZh91AY&SY\x12\x34"), "", []string{"bzip2 data", "ends in .bz2"}, "one column"},
		{"e.txt", gzipped("0 1\n"), "", []string{"gzip data", "ends in .gz"}, ""},
		{"e.csv", zstded("0 1\n"), "", []string{"zstd data", "ends in .zst"}, ""},
		{"e.txt", utf16, "", []string{"UTF-16", "UTF-8"}, ""},
		{"e.txt", npyArray(npy.Int64, []int64{2, 1}, []int64{0, 1}), "", []string{"NumPy array", "ends in .npy"}, ""},
		{"e.txt", lz4, "", []string{"Parquet file", "ends in .parquet"}, ""},
		{"e.txt", []byte("0 1\n\x00\x01"), "", []string{"line 2", "holds a byte of 0"}, ""},
		{"e.tar.gz", gzipped(string(tar)), "", []string{"tar archive", "unpack"}, ""},
		{"f.json", []byte("\xff\xfe{\x00"), "edges:%s/a.txt?features=%s/f.json", []string{"UTF-16"}, ""},
		{"l.csv", utf16, "edges:%s/a.txt?labels=%s/l.csv", []string{"UTF-16"}, ""},
		{"y.parquet", lz4, "edges:%s/a.txt?labels=%s/y.parquet", []string{"which column is meant", "labels=", "src, dst"}, "quote"},
		{"s.parquet", lz4, "edges:%s/a.txt?splits=%s/s.parquet", []string{"which column is meant", "src, dst"}, "quote"},
		{"e.arrow", []byte("ARROW1"), "", []string{".arrow", "damaged or no Arrow IPC file"}, ""},
		{"e.gz", append(gzipped("0 1\n"), "garbage"...), "", []string{"other bytes follow", "fetch it again"}, "truncated"},
		{"e.gz", gzipped(strings.Repeat("0 1\n", 99))[:20], "", []string{"truncated"}, "\n"},
		{"e.gz", flipped, "", []string{"checksum", "damaged, fetch it again"}, ""},
		{"e.zst", []byte("0 1\n"), "", []string{"not zstd", "rename"}, "magic number"},
		{"e.zst", append(zstded("0 1\n"), "garbage"...), "", []string{"damaged, fetch it again"}, ""},
		{"e.npy", npyArray(npy.Uint64, []int64{2, 1}, []uint64{1 << 63, 1}), "", []string{"9223372036854775808 is too large"}, "negative"},
		{"e.u64", npyArray(npy.Uint64, []int64{2, 1}, []uint64{1 << 63, 1})[64:], "", []string{"too large"}, "negative"},
		{"e.parquet", unsigned, "", []string{"9223372036854775808 is too large"}, "negative"},
		{"l.npy", vec[uint64](1, 1<<63), "edges:%s/a.txt?labels=%s/l.npy", []string{"row 1", "2^63"}, ""},
		{"b.npy", npyArray(npy.Bool, []int64{2, 1}, []uint8{0, 1}), "", []string{"|b1", "integers"}, ""},
		{"f.npy", npyArray(npy.Float32, []int64{1, 1}, []float32{1}), "edges:%s/a.txt?features=%s/f.npy", []string{"a.txt line 1", "f.npy has 1 rows", "number of nodes, 1"}, "nodes="},
		{"e.txt", nil, "", []string{"e.txt", "is empty (0 bytes)"}, ""},
		{"e.txt", []byte("# nothing\n"), "", []string{"holds no edge"}, ""},
		{"e.npy", npyArray(npy.Int64, []int64{2, 0}, []int64{}), "", []string{"holds no edge"}, ""},
		{"f.csv", []byte(",id,x\n0,0,1\n1,1,2\n"), "edges:%s/a.txt?features=%s/f.csv", []string{"column 2 is named id", "first"}, ""},
		{"l.csv", []byte("row,paper,label\n0,1,a\n"), "edges:%s/a.txt?labels=%s/l.csv", []string{"which column holds the node ids", "row, paper, label"}, ""},
	} {
		t.Run(c.name+" "+c.want[0], func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n"), c.name: c.data})
			if c.uri == "" {
				c.uri = "edges:%s/" + c.name
			}
			err := readAll(t, strings.ReplaceAll(c.uri, "%s", dir))
			for _, part := range append(c.want, c.name) {
				if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), part) {
					t.Errorf("%v lacks %q", err, part)
				}
			}
			if err != nil && c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("%v has %q", err, c.not)
			}
		})
	}
}

// TestLZO names the way out of a compression that is not read. The codec is the fourth byte of the
// structure of a column: 0 is none, 3 is LZO.
func TestLZO(t *testing.T) {
	data := integers(t, "src", "dst")
	var changed bool
	for i := range data {
		broken := slices.Clone(data)
		broken[i] = 6 // zigzag of 3
		dir := writeFiles(t, map[string][]byte{"e.parquet": broken})
		if err := readAll(t, "edges:"+dir+"/e.parquet"); err != nil && strings.Contains(err.Error(), "as LZO,") {
			changed = true
			if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "compression='zstd'") || strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
		}
	}
	if !changed {
		t.Error("no byte made it LZO")
	}
}

// TestGzipMembers reads a file of several members, as bgzip and cat write it.
func TestGzipMembers(t *testing.T) {
	data := append(append(gzipped("0 1\n1 "), gzipped("2\n")...), gzipped("")...)
	d := open(t, "edges:"+writeFiles(t, map[string][]byte{"e.gz": data})+"/e.gz", Options{})
	if got, err := readEdges(d, 2); err != nil || !slices.Equal(got, []Edge{{U: 0, V: 1}, {U: 1, V: 2}}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNotes says what was read as what, and warns of weights.
func TestNotes(t *testing.T) {
	weighted := triangle(member{"adj_data.npy", vec[float32](1, 0.5, 1)})
	extra := zipped(zip.Store,
		member{"adj_data.npy", vec[float32](1, 1, 1)}, member{"adj_indices.npy", vec[int64](2, 1, 0)},
		member{"adj_indptr.npy", vec[int64](0, 2, 3, 3)}, member{"adj_shape.npy", vec[int64](3, 3)}, member{"names.npy", vec[int64](1)})
	dir := writeFiles(t, map[string][]byte{
		"a.txt": []byte("0 1\n"), "l.csv": []byte("node,faction,community\n0,a,b\n"), "l2.csv": []byte("id,label\n0,a\n"), "f.csv": []byte("paper,x,y\n0,1,2\n"),
		"e.npz":      zipped(zip.Store, member{"edge_index.npy", npyArray(npy.Int64, []int64{2, 1}, []int64{0, 1})}, member{"weights.npy", vec[int64](1)}),
		"weight.npz": weighted, "plain.npz": triangle(), "extra.npz": extra,
		"f.parquet": integers(t, "id", "x", "y"),
	})
	for uri, want := range map[string]string{
		"edges:%s/a.txt?labels=%s/l.csv":         `%s/l.csv: node ids are in column "node", labels in column "community"; column "faction" is not read (to take another one, write labels=l.csv#COLUMN)`,
		"edges:%s/a.txt?labels=%s/l.csv#faction": `%s/l.csv: node ids are in column "node", labels in column "faction"; column "community" is not read (to take another one, write labels=l.csv#COLUMN)`,
		"edges:%s/a.txt?labels=%s/l2.csv":        `%s/l2.csv: node ids are in column "id", labels in column "label"`,
		"edges:%s/a.txt?features=%s/f.csv":       `%s/f.csv: node ids are in column "paper", features in the 2 others`,
		"edges:%s/a.txt?features=%s/f.parquet":   `%s/f.parquet: node ids are in column "id", features in the 2 others`,
		"edges:%s/e.npz":                         `!%s/e.npz: array "weights" is not read`,
		"npz:%s/weight.npz":                      `!%s/weight.npz matrix adj: its values are ignored, and not all of them are 1: every stored entry is an edge, without weight; weight=value in the URI reads weights`,
		"npz:%s/plain.npz":                       ``,
		"npz:%s/extra.npz":                       `%s/extra.npz: array "names" is not read`,
		"karate:":                                ``,
	} {
		d := open(t, strings.ReplaceAll(uri, "%s", dir), Options{})
		if got := notesOf(d); got != strings.ReplaceAll(want, "%s", dir) {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}
