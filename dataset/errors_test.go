package dataset

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls/dataset/npy"
)

// array is the bytes of a NumPy file.
func npyArray(t npy.Type, shape []int64, values any) []byte {
	var b bytes.Buffer
	if err := npy.Write(&b, t, shape...); err != nil {
		panic(err)
	}
	if err := binary.Write(&b, binary.LittleEndian, values); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// vec is a vector.
func vec[T int32 | int64 | float32 | float64 | uint64](values ...T) []byte {
	t := map[string]npy.Type{"int32": npy.Int32, "int64": npy.Int64, "float32": npy.Float32, "float64": npy.Float64, "uint64": npy.Uint64}
	return npyArray(t[fmt.Sprintf("%T", *new(T))], []int64{int64(len(values))}, values)
}

// withDescr is an array whose header claims another type or order.
func withDescr(data []byte, from, to string) []byte {
	return bytes.Replace(data, []byte(from), []byte(to), 1)
}

type member struct {
	name string
	data []byte
}

func zipped(method uint16, members ...member) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err == nil {
			_, err = f.Write(m.data)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func gzipped(data string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(data))
	_ = w.Close()
	return b.Bytes()
}

// triangle is a small graph in the gnn-benchmark layout; a changed part replaces
// its own.
func triangle(changed ...member) []byte {
	parts := []member{
		{"adj_data.npy", vec[float32](1, 1, 1)},
		{"adj_indices.npy", vec[int32](2, 1, 0)}, // unsorted in row 0
		{"adj_indptr.npy", vec[int32](0, 2, 3, 3)},
		{"adj_shape.npy", vec[int64](3, 3)},
		{"attr_data.npy", vec[float32](3, 2, 1, 0)},
		{"attr_indices.npy", vec[int32](1, 0, 1, 0)},
		{"attr_indptr.npy", vec[int32](0, 2, 3, 4)},
		{"attr_shape.npy", vec[int64](3, 2)},
		{"labels.npy", vec[int64](1, 0, 1)},
	}
	for _, c := range changed {
		for i := range parts {
			if parts[i].name == c.name {
				parts[i] = c
			}
		}
	}
	return zipped(zip.Deflate, parts...)
}

// files writes files into a folder and returns it.
func writeFiles(t testing.TB, contents map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readAll opens a dataset and reads all of its streams.
func readAll(t testing.TB, uri string) error {
	t.Helper()
	d, err := Open(t.Context(), uri, Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = readEdges(d, 3)
	if err == nil && d.Info().Weighted {
		_, err = weightsOf(t, d, 2)
	}
	if err == nil && d.Info().NumFeatures > 0 {
		_, err = readFeatures(d)
	}
	if err == nil && d.Info().HasLabels {
		_, err = readLabels(d)
	}
	if err == nil && d.Info().HasSplits {
		_, err = readSplits(d)
	}
	return err
}

// TestBadInput holds every kind of input that is refused, with the parts that its
// message must have: where, what, and the way out.
func TestBadInput(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name     string
		contents map[string][]byte
		uri      string // the folder stands for %s
		want     []string
	}{
		{"text: negative id", text("a.txt", "# c\n0 1\n2\t-3\n"), "edges:%s/a.txt", []string{"a.txt line 3", "-3 is negative", "renumber"}},
		{"text: fractional id", text("a.txt", "0 1\r\n2.5 3\r\n"), "edges:%s/a.txt", []string{"line 2", `"2.5" is not a whole number`}},
		{"text: large id", text("a.txt", "0 4294967294\n1 4294967295\n"), "edges:%s/a.txt", []string{"line 2", "4294967295", "go up to 4294967294", "renumber"}},
		{"text: huge id", text("a.txt", "0 99999999999999999999999\n"), "edges:%s/a.txt", []string{"line 1", "too large"}},
		{"text: name as id", text("a.txt", "0 1\nann bob\n"), "edges:%s/a.txt", []string{"line 2", `"ann" is not a number`}},
		{"text: id above nodes=", text("a.txt", "0 1\n1 7\n"), "edges:%s/a.txt?nodes=7", []string{"line 2", "7 is not below the number of nodes, 7", "nodes="}},
		{"text: one column", text("a.txt", "5\n6\n"), "edges:%s/a.txt", []string{"a.txt", "one column"}},
		{"text: missing column", text("a.csv", "src,dst\n1,2\n3\n"), "edges:%s/a.csv", []string{"a.csv line 3", "the number of columns is 1"}},
		{"text: empty field", text("a.csv", "src,dst\n1,\n"), "edges:%s/a.csv", []string{"line 2", "id is missing"}},
		{"text: adjacency list", text("a.txt", "1 2 3 4\n2 1 5\n"), "edges:%s/a.txt", []string{"line 2", "the number of columns is 3", "adjacency lists"}},
		{"text: MatrixMarket", text("a.txt", "%%MatrixMarket matrix coordinate\n3 3 1\n1 2\n"), "edges:%s/a.txt", []string{"line 1", "mtx:FILE"}},
		{"gz: not gzip", text("a.txt.gz", "0 1\n"), "edges:%s/a.txt.gz", []string{"a.txt.gz", "not gzip", "rename"}},
		{"gz: truncated", map[string][]byte{"a.txt.gz": gzipped(strings.Repeat("0 1\n", 99))[:20]}, "edges:%s/a.txt.gz", []string{"a.txt.gz", "truncated", "fetch"}},
		{"gz: empty", text("a.txt.gz", ""), "edges:%s/a.txt.gz", []string{"a.txt.gz", "is empty (0 bytes)"}},
		{"zst: not zstd", text("a.txt.zst", "0 1\n"), "edges:%s/a.txt.zst", []string{"a.txt.zst"}},
		{"zip: two files", map[string][]byte{"a.zip": zipped(zip.Store, member{"x.txt", nil}, member{"y.txt", nil})}, "edges:%s/a.zip", []string{"a.zip", "2 files", "unpack"}},
		{"zip: no zip", text("a.zip", "0 1\n"), "edges:%s/a.zip", []string{"a.zip", "no zip archive"}},
		{"no file", nil, "edges:%s/none.txt", []string{"none.txt", "no such file"}},
		{"npy: floats as ids", map[string][]byte{"a.npy": npyArray(npy.Float32, []int64{2, 1}, []float32{0, 1.5})}, "edges:%s/a.npy", []string{"a.npy", "number 1 is 1.5", "whole numbers"}},
		{"npy: floats that may be rounded", map[string][]byte{"a.npy": npyArray(npy.Float32, []int64{2, 1}, []float32{0, 1 << 25})}, "edges:%s/a.npy", []string{"a.npy", "number 1", "rounded", "save integers"}},
		{"npy: booleans as ids", map[string][]byte{"a.npy": npyArray(npy.Bool, []int64{2, 1}, []byte{0, 1})}, "edges:%s/a.npy", []string{"a.npy", "|b1", "integers"}},
		{"npy: shape", map[string][]byte{"a.npy": vec[int64](0, 1)}, "edges:%s/a.npy", []string{"a.npy", "shape [2]", "(2, m)"}},
		{"npy: negative id", map[string][]byte{"a.npy": npyArray(npy.Int64, []int64{2, 2}, []int64{0, 1, 2, -3})}, "edges:%s/a.npy", []string{"a.npy", "edge 1", "-3 is negative"}},
		{"npy: truncated", map[string][]byte{"a.npy": npyArray(npy.Int64, []int64{2, 2}, []int64{0, 1, 2})}, "edges:%s/a.npy", []string{"a.npy", "bytes", "truncated"}},
		{"npy: Fortran order", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": withDescr(npyArray(npy.Float32, []int64{2, 2, 1}, []float32{0, 1, 2, 3}), "False", "True ")}, "edges:%s/a.txt?features=%s/f.npy", []string{"f.npy", "[2 2 1]", "Fortran", "ascontiguousarray"}},
		{"npy: text as ids", map[string][]byte{"a.npy": withDescr(npyArray(npy.Int64, []int64{2, 1}, []int64{0, 1}), "<i8", "<U2")}, "edges:%s/a.npy", []string{"a.npy", "<U2", "holds text"}},
		{"npy: text as features", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": withDescr(npyArray(npy.Int64, []int64{2, 1}, []int64{0, 1}), "<i8", "<U2")}, "edges:%s/a.txt?features=%s/f.npy", []string{"f.npy", "<U2", "holds text"}},
		{"npy: objects as labels", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npy": withDescr(npyArray(npy.Int64, []int64{2}, []int64{0, 1}), "<i8", "|O8")}, "edges:%s/a.txt?labels=%s/l.npy", []string{"l.npy", "|O8", "astype(str)"}},
		{"npy: four columns", map[string][]byte{"a.npy": npyArray(npy.Int64, []int64{5, 4}, make([]int64, 20))}, "edges:%s/a.npy", []string{"a.npy", "shape [5 4]"}},
		{"npy: another column of weights", map[string][]byte{"a.npy": npyArray(npy.Int64, []int64{5, 3}, make([]int64, 15))}, "edges:%s/a.npy?weight=w", []string{"a.npy", "weight=3"}},
		{"npy: a weight of 0", map[string][]byte{"a.npy": npyArray(npy.Int64, []int64{1, 3}, []int64{0, 1, 0})}, "edges:%s/a.npy?weight=3", []string{"a.npy", "edge 0", "weight is 0"}},
		{"npy: a fraction among three", map[string][]byte{"a.npy": npyArray(npy.Float64, []int64{1, 3}, []float64{0, 1.5, 1})}, "edges:%s/a.npy?weight=3", []string{"a.npy", "edge 0", "column 2 is 1.5"}},
		{"npy: an archive", map[string][]byte{"a.npy": triangle()}, "edges:%s/a.npy", []string{"a.npy", "is a zip archive", ".npz"}},
		{"npy: a pickle", text("a.npy", "\x80\x04N."), "edges:%s/a.npy", []string{"a.npy", "is a Python pickle", "save_npz"}},
		{"npz: an array", map[string][]byte{"a.npz": vec[int64](0, 1)}, "npz:%s/a.npz", []string{"a.npz", "is a NumPy array"}},
		{"npz: packed again", map[string][]byte{"a.npz.gz": gzipped(string(triangle()))}, "edges:%s/a.npz.gz", []string{"a.npz.gz", "packed once more"}},
		{"matlab", text("a.mat", "MATLAB 5.0 MAT-file, Platform: GLNXA64"), "edges:%s/a.mat", []string{"a.mat", "MATLAB", "loadmat", "save_npz"}},
		{"hdf5", text("a.h5", "\x89HDF\r\n\x1a\n"), "edges:%s/a.h5", []string{"a.h5", "HDF5", "h5py"}},
		{"features: MatrixMarket", with("f.mtx", "%%MatrixMarket matrix coordinate real general\n"), "edges:%s/a.txt?features=%s/f.mtx", []string{"f.mtx", "save_npz"}},
		{"npy: empty", text("a.npy", ""), "edges:%s/a.npy", []string{"a.npy", "is empty (0 bytes)"}},
		{"npz: empty", text("a.npz", ""), "npz:%s/a.npz", []string{"a.npz", "is empty (0 bytes)"}},
		{"json: empty", with("f.json", ""), "edges:%s/a.txt?features=%s/f.json", []string{"f.json", "is empty (0 bytes)"}},
		{"splits: a mask", map[string][]byte{"a.txt": []byte("0 1\n"), "s.npy": npyArray(npy.Bool, []int64{2}, []byte{0, 1})}, "edges:%s/a.txt?splits=%s/s.npy", []string{"s.npy", "mask", "train_mask="}},
		{"labels: two classes", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npy": npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 0, 1, 0, 1})}, "edges:%s/a.txt?labels=%s/l.npy", []string{"l.npy row 1", "more than one 1"}},
		{"labels: probabilities", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npy": npyArray(npy.Float64, []int64{1, 2}, []float64{.5, .5})}, "edges:%s/a.txt?labels=%s/l.npy", []string{"l.npy row 0", "no whole number"}},
		{"labels: three dimensions", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npy": npyArray(npy.Int64, []int64{2, 2, 1}, make([]int64, 4))}, "edges:%s/a.txt?labels=%s/l.npy", []string{"l.npy", "shape [2 2 1]", "vector"}},
		{"labels: which array", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npz": zipped(zip.Store, member{"a.npy", vec[int64](0, 1)}, member{"b.npy", vec[int64](0, 1)})}, "edges:%s/a.txt?labels=%s/l.npz", []string{"l.npz", "#", "a, b"}},
		{"features: which array", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npz": zipped(zip.Store, member{"a.npy", vec[int64](0, 1)}, member{"b.npy", vec[int64](0, 1)})}, "edges:%s/a.txt?features=%s/f.npz", []string{"f.npz", "save_npz", "it has a, b"}},
		{"npz: an array twice", map[string][]byte{"a.npz": zipped(zip.Store, member{"x.npy", vec[int64](0, 1)}, member{"x.npy", vec[int64](0, 1)})}, "npz:%s/a.npz", []string{"a.npz", "x twice"}},
		{"scipy: other nodes", map[string][]byte{"a.npz": saintMatrix("csr", ones), "y.npy": vec[int64](0, 1)}, "edges:%s/a.npz?labels=%s/y.npy", []string{"y.npy", "2 rows", "4 nodes", "a.npz"}},
		{"scipy: NaN", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npz": saintMatrix("csr", vec[float64](1, math.NaN(), 1, 1, 1, 1))}, "edges:%s/a.txt?features=%s/f.npz", []string{"f.npz", "row 1, column 0 is NaN"}},
		{"scipy: NaN by columns", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npz": saintMatrix("csc", vec[float64](1, math.NaN(), 1, 1, 1, 1))}, "edges:%s/a.txt?features=%s/f.npz", []string{"f.npz", "row 0, column 1 is NaN"}},
		{"npy: not NumPy", text("a.npy", "hello there"), "edges:%s/a.npy", []string{"a.npy", "not a NumPy"}},
		{"npz: no edge_index", map[string][]byte{"a.npz": triangle()}, "edges:%s/a.npz", []string{"a.npz", "edge_index", "adj_data", "npz:"}},
		{"features: NaN", with("f.csv", "0,1,2\n1,NaN,3\n"), "edges:%s/a.txt?features=%s/f.csv", []string{"f.csv line 2", `column "2"`, "NaN", "--fill mean"}},
		{"features: overflow", with("f.csv", "0,1e39,2\n"), "edges:%s/a.txt?features=%s/f.csv", []string{"f.csv line 1", "1e39"}},
		{"features: columns", with("f.csv", "0,1,2\n1,1\n"), "edges:%s/a.txt?features=%s/f.csv", []string{"f.csv line 2", "the number of columns is 2", "3"}},
		{"features: only ids", with("f.csv", "0\n1\n"), "edges:%s/a.txt?features=%s/f.csv", []string{"f.csv", "no column beside the ids"}},
		{"features: empty", with("f.csv", ""), "edges:%s/a.txt?features=%s/f.csv", []string{"f.csv", "is empty (0 bytes)"}},
		{"features: bad id", with("f.csv", "-1,1,2\n"), "edges:%s/a.txt?features=%s/f.csv", []string{"f.csv line 1", "negative"}},
		{"features npy: vector", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": vec[float32](1)}, "edges:%s/a.txt?features=%s/f.npy", []string{"f.npy", "shape [1]", "matrix"}},
		{"features npy: Inf", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": npyArray(npy.Float32, []int64{2, 2}, []float32{1, 2, 3, inf})}, "edges:%s/a.txt?features=%s/f.npy", []string{"f.npy", "row 1, column 1", "+Inf", "replace"}},
		{"features npy: double overflow", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": npyArray(npy.Float64, []int64{2, 1}, []float64{1, 1e300})}, "edges:%s/a.txt?features=%s/f.npy", []string{"f.npy", "row 1, column 0", "float32"}},
		{"features npy: objects", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": withDescr(npyArray(npy.Float32, []int64{2, 1}, []float32{1, 2}), "'<f4'", "'|O' ")}, "edges:%s/a.txt?features=%s/f.npy", []string{"f.npy", "|O", "objects", "astype"}},
		{"features npy: rows and nodes=", map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy": npyArray(npy.Float32, []int64{2, 1}, []float32{1, 2})}, "edges:%s/a.txt?features=%s/f.npy&nodes=3", []string{"f.npy", "2 rows", "3 nodes", "nodes="}},
		{"features npy: edge out of range", map[string][]byte{"a.txt": []byte("0 1\n1 2\n"), "f.npy": npyArray(npy.Float32, []int64{2, 1}, []float32{1, 2})}, "edges:%s/a.txt?features=%s/f.npy", []string{"a.txt line 2", "not below the number of nodes, 2"}},
		{"json: twice", with("f.json", `{"0": [1, 2],`+"\n"+`"1": [3, 3]}`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 2", "node 1", "feature 3 twice"}},
		{"json: truncated", with("f.json", `{"0": [1, 2`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 1", "truncated"}},
		{"json: text id", with("f.json", `{"bob": [1]}`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 1 byte", "bob", "not a number"}},
		{"json: split number", with("f.json", `{"0": [1 2]}`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 1", "'2' after array element"}},
		{"json: floats", with("f.json", `{"0": [1.5]}`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 1", "1.5", "whole numbers"}},
		{"json: list", with("f.json", `[1]`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 1 byte 1", `found [`, "object of node id"}},
		{"json: text behind", with("f.json", `{"0": [1]} x`), "edges:%s/a.txt?features=%s/f.json", []string{"f.json line 1", "no JSON file"}},
		{"labels: which column", with("l.csv", "id,name,kind\n0,a,b\n"), "edges:%s/a.txt?labels=%s/l.csv", []string{"l.csv", "which column", "id, name, kind", "l.csv#kind"}},
		{"labels: no such column", with("l.csv", "id,name,kind\n0,a,b\n"), "edges:%s/a.txt?labels=%s/l.csv#type", []string{"l.csv", `no column "type"`, "id, name, kind"}},
		{"labels: quotes", with("l.csv", "id,label\n0,a\n1,\"b\n"), "edges:%s/a.txt?labels=%s/l.csv", []string{"l.csv line", "quotes"}},
		{"labels: columns", with("l.csv", "id,label\n0,a\n1,b,c\n"), "edges:%s/a.txt?labels=%s/l.csv", []string{"l.csv line 3", "the number of columns is 3"}},
		{"labels: bad id", with("l.csv", "id,label\nx,a\n"), "edges:%s/a.txt?labels=%s/l.csv", []string{"l.csv line 2", "not a number"}},
		{"labels: none", with("l.csv", "id,label\n0,\n"), "edges:%s/a.txt?labels=%s/l.csv", []string{"l.csv", "no label"}},
		{"labels npy: fraction", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npy": vec[float32](0, 0.5)}, "edges:%s/a.txt?labels=%s/l.npy", []string{"l.npy row 1", "no whole number"}},
		{"labels npy: matrix", map[string][]byte{"a.txt": []byte("0 1\n"), "l.npy": npyArray(npy.Int64, []int64{2, 2}, []int64{0, 1, 2, 3})}, "edges:%s/a.txt?labels=%s/l.npy", []string{"l.npy row 1", "vector of classes", "argmax"}},
		{"labels text: too many", with("l.txt", "a\nb\nc\n"), "edges:%s/a.txt?labels=%s/l.txt&nodes=2", []string{"l.txt line 3", "one more than there are nodes"}},
		{"splits: unknown", with("s.csv", "id,split\n0,train\n1,holdout\n"), "edges:%s/a.txt?splits=%s/s.csv", []string{"s.csv line 3", "holdout", "train, valid, test"}},
		{"npz: not monotone", npzFile(member{"adj_indptr.npy", vec[int32](0, 2, 1, 3)}), "npz:%s/g.npz", []string{"g.npz member adj_indptr.npy", "row 1", "from entry 2 to 1", "inconsistent"}},
		{"npz: start", npzFile(member{"adj_indptr.npy", vec[int32](1, 2, 3, 3)}), "npz:%s/g.npz", []string{"adj_indptr.npy", "starts with 1"}},
		{"npz: end", npzFile(member{"adj_indptr.npy", vec[int32](0, 1, 2, 2)}), "npz:%s/g.npz", []string{"adj_indptr.npy", "ends at entry 2 of 3"}},
		{"npz: column out of range", npzFile(member{"adj_indices.npy", vec[int32](0, 3, 0)}), "npz:%s/g.npz", []string{"adj_indices.npy", "row 0", "column 3 of 3"}},
		{"npz: negative column", npzFile(member{"adj_indices.npy", vec[int32](0, -1, 0)}), "npz:%s/g.npz", []string{"adj_indices.npy", "row 0", "column -1"}},
		{"npz: rows", npzFile(member{"adj_shape.npy", vec[int64](4, 4)}), "npz:%s/g.npz", []string{"adj_indptr.npy", "4 rows need 5"}},
		{"npz: not square", npzFile(member{"adj_shape.npy", vec[int64](3, 4)}), "npz:%s/g.npz", []string{"g.npz", "(3, 4)", "square"}},
		{"npz: attribute rows", npzFile(member{"attr_indptr.npy", vec[int32](0, 2, 4)}, member{"attr_shape.npy", vec[int64](2, 2)}), "npz:%s/g.npz", []string{"g.npz matrix attr", "2 rows", "3 nodes"}},
		{"npz: counts", npzFile(member{"adj_data.npy", vec[float32](1)}), "npz:%s/g.npz", []string{"3 column indices but 1 values"}},
		{"npz: double column", npzFile(member{"attr_data.npy", vec[float32](3e38, 3e38, 1, 0)}, member{"attr_indices.npy", vec[int32](1, 1, 1, 0)}), "npz:%s/g.npz", []string{"row 0, column 1 is +Inf"}},
		{"npz: NaN", npzFile(member{"attr_data.npy", vec[float32](1, 1, float32(math.NaN()), 1)}), "npz:%s/g.npz", []string{"attr", "row 1, column 1", "NaN"}},
		{"npz: float indices", npzFile(member{"adj_indices.npy", vec[float32](2, 1, 0)}), "npz:%s/g.npz", []string{"adj_indices.npy", "<f4", "integers"}},
		{"npz: objects", npzFile(member{"labels.npy", withDescr(vec[int64](1, 0, 1), "'<i8'", "'|O' ")}), "npz:%s/g.npz", []string{"labels.npy", "|O", "objects"}},
		{"npz: labels", npzFile(member{"labels.npy", vec[int64](1, 0)}), "npz:%s/g.npz", []string{"labels.npy", "2 rows", "3 nodes"}},
		{"npz: no graph", map[string][]byte{"g.npz": zipped(zip.Store, member{"x.npy", vec[int64](1)})}, "npz:%s/g.npz", []string{"g.npz", "no adjacency matrix", "it has x"}},
		{"npz: checksum", map[string][]byte{"g.npz": bytes.Replace(zipped(zip.Store,
			member{"adj_data.npy", vec[float32](1, 1, 1)}, member{"adj_indices.npy", vec[int32](2, 1, 0)},
			member{"adj_indptr.npy", vec[int32](0, 2, 3, 3)}, member{"adj_shape.npy", vec[int64](3, 3)}),
			[]byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1)}, "npz:%s/g.npz", []string{"adj_indices.npy", "checksum", "fetch"}},
		{"npz: pickle", map[string][]byte{"g.npz": zipped(zip.Deflate, member{"adj_matrix.npy", object("cos\nsystem\n.")})}, "npz:%s/g.npz", []string{"adj_matrix.npy", "os.system", "nothing is executed", "plain arrays"}},
		{"planetoid: no files", nil, "planetoid:%s/cora", []string{"ind.cora.ally", "no such file", "test.index"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeFiles(t, c.contents)
			err := readAll(t, strings.ReplaceAll(c.uri, "%s", dir))
			if err == nil {
				t.Fatal("it was read without an error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if !errors.Is(err, ErrData) && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%q is no ErrData", err)
			}
		})
	}
}

func text(name, content string) map[string][]byte { return map[string][]byte{name: []byte(content)} }

// with is a file beside a good edge list.
func with(name, content string) map[string][]byte {
	return map[string][]byte{"a.txt": []byte("0 1\n"), name: []byte(content)}
}

func npzFile(changed ...member) map[string][]byte {
	return map[string][]byte{"g.npz": triangle(changed...)}
}

// object is an array of one Python object.
func object(program string) []byte {
	var b bytes.Buffer
	_ = npy.Write(&b, "|O")
	return append(b.Bytes(), "\x80\x02"+program...)
}

func TestBadURI(t *testing.T) {
	for _, c := range []struct {
		uri  string
		want []string
	}{
		{"cora", []string{`"cora"`, "karate", "synthetic", "planetoid", "npz", "edges:FILE", "table:FILE"}},
		{"graphchi:dir", []string{"graphchi:dir", "the kinds are"}},
		{"graphsaint:", []string{"graphsaint:DIR", "path is missing"}},
		{"mag240m:dir?split=1", []string{"no options", "%3F"}},
		{"npz:a?split=-1", []string{"split=-1", "whole number"}},
		{"", []string{"the kinds are"}},
		{"karate:x", []string{"no options"}},
		{"npz:", []string{"npz:FILE"}},
		{"edges:", []string{"edges:FILE"}},
		{"edges:a?colour=red", []string{"colour", "directed, nulls, header", "features, labels, splits, nodes, split"}},
		{"edges:a?splits=b.csv#part", []string{"splits=b.csv#part", "split, set, part", "%23"}},
		{"edges:a?nodes=many", []string{"nodes=many", "whole number"}},
		{"edges:a?nodes=0", []string{"nodes=0", "from 1"}},
		{"edges:a?nodes=1&nodes=2", []string{"nodes", "twice"}},
		{"edges:a?features=", []string{"features", "needs a value"}},
		{"edges:a?directed=maybe", []string{"directed=maybe", "true or false"}},
		{"edges:a%zz", []string{"%zz", "%25"}},
		{"planetoid:dir/", []string{"name of the set", "ind.cora"}},
		{"synthetic:node=3", []string{`"node"`, "nodes, edges, features, classes, seed, homophily, train, valid, noise"}},
		{"synthetic:nodes=-3", []string{"nodes=-3"}},
		{"synthetic:nodes=4294967296", []string{"4294967296", "4294967295"}},
		{"synthetic:nodes=3,classes=4", []string{"classes=4", "3 nodes"}},
		{"synthetic:homophily=2", []string{"homophily=2", "from 0 to 1"}},
		{"synthetic:homophily=NaN", []string{"homophily=NaN"}},
		{"synthetic:train=0.7,valid=0.7", []string{"more than all"}},
		{"synthetic:seed=-1", []string{"seed=-1"}},
		{"synthetic:nodes=100000,classes=60000,features=1000", []string{"60000", "1000", "more than"}},
	} {
		_, err := Open(t.Context(), c.uri, Options{})
		if !errors.Is(err, ErrURI) {
			t.Errorf("%s: %v is no ErrURI", c.uri, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", c.uri, err, part)
			}
		}
	}
}

// TestDamagedNPZ flips bytes all over an archive: there is an error that says the
// data is wrong, or an answer where the byte does not matter.
func TestDamagedNPZ(t *testing.T) {
	for name, good := range map[string][]byte{"plain": triangle(), "pickled": zipped(zip.Store, member{"adj_matrix.npy", object("N.")})} {
		for i := 0; i < len(good); i += 13 {
			broken := bytes.Clone(good)
			broken[i] ^= 0xff
			dir := writeFiles(t, map[string][]byte{"g.npz": broken})
			if err := readAll(t, "npz:"+dir+"/g.npz"); err != nil && !errors.Is(err, ErrData) {
				t.Errorf("%s, byte %d: %v is no ErrData", name, i, err)
			}
		}
	}
}
