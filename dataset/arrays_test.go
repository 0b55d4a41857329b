package dataset

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/internal/testgraph"
)

// cooMatrix is a matrix entry by entry as scipy.sparse.save_npz writes it.
func cooMatrix(shape []int64, row, col, values []byte) []byte {
	return zipped(zip.Deflate, member{"data.npy", values}, member{"row.npy", row}, member{"col.npy", col},
		member{"format.npy", withDescr(npyArray(npy.Int8, nil, [3]byte([]byte("coo"))), "|i1", "|S3")}, member{"shape.npy", vec(shape...)})
}

// TestNotesOfArrays reads what leaves a choice, and finds a note that says how it was read.
func TestNotesOfArrays(t *testing.T) {
	without := zipped(zip.Store, member{"indices.npy", vec[int32](1, 0)}, member{"indptr.npy", vec[int32](0, 1, 2)}, member{"shape.npy", vec[int64](2, 2)}, member{"data.npy", vec[float32](1, 1)})
	turned := zipped(zip.Store, member{"indices.npy", vec[int32](1, 0)}, member{"indptr.npy", vec[int32](0, 1, 1, 2)}, member{"shape.npy", vec[int64](2, 3)}, member{"data.npy", vec[float32](1, 1)})
	dir := writeFiles(t, map[string][]byte{
		"a.txt": []byte("0 1\n"), "square.npy": npyArray(npy.Int64, []int64{2, 2}, []int64{0, 1, 2, 3}),
		"three.npy": npyArray(npy.Int64, []int64{2, 3}, []int64{0, 1, 2, 3, 4, 5}), "rows.npy": npyArray(npy.Int64, []int64{4, 3}, make([]int64, 12)),
		"nine.npy": npyArray(npy.Int64, []int64{3, 3}, []int64{0, 1, 1, 1, 2, 1, 2, 0, 1}), "without.npz": without, "turned.npz": turned,
		"weights.npz": saintMatrix("csr", vec[float32](1, 2, 1, 1, 0, 1)), "ones.npz": saintMatrix("csr", ones),
		"bare.npz": zipped(zip.Deflate, member{"edge_index", npyArray(npy.Int64, []int64{2, 1}, []int64{0, 1})}),
		"hot.npy":  npyArray(npy.Int64, []int64{2, 2}, []int64{0, 1, 1, 0}), "behind.npy": append(vec[int64](0, 1), 1, 2, 3),
	})
	for _, c := range []struct {
		uri  string
		want []string // words of one note each
	}{
		{"edges:%s/square.npy", []string{"shape (2, 2)"}},
		{"edges:%s/three.npy", nil},
		{"edges:%s/bare.npz", nil}, // a member without .npy
		{"edges:%s/rows.npy", []string{"third one is ignored; weight=3"}},
		{"edges:%s/nine.npy?weight=3", []string{"read as (m, 3)"}},
		{"edges:%s/without.npz", []string{"compressed rows"}},
		{"edges:%s/a.txt?features=%s/turned.npz", []string{"compressed columns"}},
		{"npz:%s/weights.npz", []string{"eliminate_zeros() removes them); weight=value"}},
		{"edges:%s/weights.npz", []string{"eliminate_zeros() removes them); weight=value"}},
		{"npz:%s/ones.npz", nil},
		{"edges:%s/a.txt?labels=%s/hot.npy", []string{"the class of a node is the column of the 1"}},
		{"edges:%s/a.txt?labels=%s/behind.npy", []string{"has 3 bytes behind the array"}},
	} {
		d, err := Open(t.Context(), strings.ReplaceAll(c.uri, "%s", dir), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.uri, err)
			continue
		}
		notes := Notes(d)
		if len(notes) != len(c.want) {
			t.Errorf("%s: %v", c.uri, notes)
		}
		for i, want := range c.want {
			if i < len(notes) && !strings.Contains(notes[i].Text, want) {
				t.Errorf("%s: %q lacks %q", c.uri, notes[i].Text, want)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEncryptedArchive refuses a member that is encrypted, which its part of the directory says.
func TestEncryptedArchive(t *testing.T) {
	data := saintMatrix("csr", ones)
	for at := 0; ; at += 4 {
		i := bytes.Index(data[at:], []byte("PK\x01\x02"))
		if i < 0 {
			break
		}
		at += i
		data[at+8] |= 1
	}
	dir := writeFiles(t, map[string][]byte{"a.npz": data})
	for _, kind := range []string{"npz:", "edges:"} {
		if err := readAll(t, kind+dir+"/a.npz"); err == nil || !strings.Contains(err.Error(), "is encrypted: unpack it first") {
			t.Errorf("%s %v", kind, err)
		}
	}
}

// TestCompressedColumns refuses to unpack a matrix in Fortran order again and again.
func TestCompressedColumns(t *testing.T) {
	head := withDescr(npyArray(npy.Float32, []int64{1 << 20, 4096}, []byte{}), "False", "True ")
	dir := writeFiles(t, map[string][]byte{"a.txt": []byte("0 1\n"), "f.npy.gz": gzipped(string(head))})
	err := readAll(t, "edges:"+dir+"/a.txt?features="+dir+"/f.npy.gz")
	if err == nil || !strings.Contains(err.Error(), "unpacked 2048 times") || !strings.Contains(err.Error(), "ascontiguousarray") {
		t.Error(err)
	}
}

// TestPublishedColumns reads the two published archives whose masks are stored column by column.
func TestPublishedColumns(t *testing.T) {
	for name, want := range map[string]struct {
		nodes, edges, features, classes int
		train, valid, test              int
	}{
		"chameleon_filtered": {890, 8854, 2325, 5, 412, 294, 184},
		"squirrel_filtered":  {2223, 46998, 2089, 5, 1060, 713, 450},
		"minesweeper":        {10000, 39402, 7, 2, 5000, 2500, 2500},
	} {
		path := testgraph.Published(t, "data/"+name+"/"+name+".npz")
		d := open(t, "npz:"+path+"?split=3", Options{})
		info := d.Info()
		edges, err := readEdges(d, 1000)
		if err != nil || len(edges) != want.edges || int(info.NumNodes) != want.nodes || info.NumFeatures != want.features || len(info.Classes) != want.classes {
			t.Errorf("%s: %d edges, %+v, %v", name, len(edges), info, err)
		}
		splits, err := readSplits(d)
		counts := map[Split]int{}
		for _, s := range splits {
			counts[s]++
		}
		if err != nil || counts[Train] != want.train || counts[Valid] != want.valid || counts[Test] != want.test {
			t.Errorf("%s: %v, %v", name, counts, err)
		}
	}
}

// TestMemoryOfArrays reads arrays that are not stored row by row, and that are far larger than what
// reading them may take.
func TestMemoryOfArrays(t *testing.T) {
	const rows, cols = 1 << 17, 128 // 64 MiB
	const most = 40 << 20
	column := make([]float32, rows)
	var matrix bytes.Buffer
	matrix.Write(withDescr(npyArray(npy.Float32, []int64{rows, cols}, []byte{}), "False", "True "))
	for c := range cols {
		for i := range column {
			column[i] = float32(i%1000*cols + c)
		}
		if err := binary.Write(&matrix, binary.LittleEndian, column); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", []byte("0 1\n"))
	write("f.npy", matrix.Bytes())
	write("stored.npz", zipped(zip.Store, member{"x.npy", matrix.Bytes()}))
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if _, err := z.Write(matrix.Bytes()); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	write("f.npy.gz", packed.Bytes())
	matrix, packed = bytes.Buffer{}, bytes.Buffer{}
	// 2.8 million columns, and five values in each row.
	const wide, n = 2_800_000, 600_000
	indptr, indices, values := make([]int32, wide+1), make([]int32, 5*n), make([]float32, 5*n)
	for k := range indices {
		indices[k] = int32(int64(k) * 7919 % n)
		values[k] = 1 + float32(k%5)
	}
	for c := range indptr {
		indptr[c] = int32(int64(len(indices)) * int64(c) / wide)
	}
	write("wide.npz", zipped(zip.Store, member{"data.npy", vec(values...)}, member{"indices.npy", vec(indices...)}, member{"indptr.npy", vec(indptr...)}, member{"shape.npy", vec[int64](n, wide)},
		member{"format.npy", withDescr(npyArray(npy.Int8, nil, [3]byte([]byte("csc"))), "|i1", "|S3")}))
	indptr, indices, values = nil, nil, nil
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, name := range []string{"f.npy", "f.npy.gz", "stored.npz", "wide.npz"} {
		d := open(t, "edges:"+dir+"/a.txt?features="+dir+"/"+name, Options{})
		before, peak := heap(), int64(0)
		r, err := d.Features(context.Background(), Whole)
		if err != nil {
			t.Fatal(err)
		}
		sum, count := 0.0, int64(0)
		for {
			f, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if count%(d.Info().NumNodes/8) == 3 {
				peak = max(peak, heap()-before)
			}
			if f.Dense != nil && (f.Dense[0] != float32(count%1000*cols) || f.Dense[cols-1] != f.Dense[0]+cols-1) {
				t.Fatalf("%s: row %d is %v", name, count, f.Dense)
			}
			if !slices.IsSorted(f.Indices) || int64(f.ID) != count {
				t.Fatalf("%s: row %d of %d has columns %v", name, f.ID, count, f.Indices)
			}
			for _, v := range f.Values {
				sum += float64(v)
			}
			count++
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if count != d.Info().NumNodes || name == "wide.npz" && sum != 3*5*n {
			t.Errorf("%s: %d rows, sum %v", name, count, sum)
		}
		if peak > most {
			t.Errorf("%s: %d bytes on the heap while it was read, at most %d are planned", name, peak, int64(most))
		}
	}
	if err := graph.CheckSparse("x", 10, graph.MaxSparse+1); err == nil {
		t.Error("there is no limit to sparse columns")
	}
}
