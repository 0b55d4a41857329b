package export

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"testing"

	"ndls/internal/mem"
)

// Text has the same bytes on one thread and on five.
func TestTextOnAllThreads(t *testing.T) {
	const rows = 20_000
	columns := []column{idColumn, {"x", float32Kind, 3}}
	ids, values := make([]int64, rows), make([]float32, 3*rows)
	for i := range ids {
		ids[i] = int64(i)
		values[3*i], values[3*i+1], values[3*i+2] = float32(i)/7, -float32(i), 1e-30*float32(i)
	}
	text := func(threads int) []byte {
		var out bytes.Buffer
		w, err := newCSV(&out, columns, &names{})
		if err != nil {
			t.Fatal(err)
		}
		w.lines = make([][]byte, threads)
		if err := w.write([][]byte{mem.AsBytes(ids), mem.AsBytes(values)}, rows); err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	one := text(1)
	if n := bytes.Count(one, []byte("\n")); n != rows+1 {
		t.Fatalf("%d lines, want %d", n, rows+1)
	}
	if !bytes.Equal(one, text(5)) {
		t.Error("five threads write other text than one")
	}
}

// TestListsDoNotGrow: what a writer of lists holds does not grow with the rows that it has written.
func TestListsDoNotGrow(t *testing.T) {
	const rows, width = 60_000, 8
	columns := []column{idColumn, {"x", float32Kind, width}}
	ids, values := make([]int64, rows), make([]float32, width*rows)
	w, err := newParquet(io.Discard, columns, &names{})
	if err != nil {
		t.Fatal(err)
	}
	held := func() uint64 {
		runtime.GC() // one leaves what is in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for range 8 {
		if err := w.write([][]byte{mem.AsBytes(ids), mem.AsBytes(values)}, rows); err != nil {
			t.Fatal(err)
		}
	}
	if n := int64(held()) - int64(before); n > 4<<20 {
		t.Errorf("the writer holds %d KiB after %d rows", n>>10, 8*rows)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}

// TestEdgesKeepTheirWeights sorts the edges of a node.
func TestEdgesKeepTheirWeights(t *testing.T) {
	l := edgeList{ends: []uint32{7, 3, 9, 1}, weights: []float32{70, 30, 90, 10}}
	l.sort()
	if !slices.Equal(l.ends, []uint32{1, 3, 7, 9}) || !slices.Equal(l.weights, []float32{10, 30, 70, 90}) {
		t.Errorf("edges to %d with weights %v", l.ends, l.weights)
	}
}

// sizes is a writer that notes how many rows it gets at a time.
type sizes []int

func (s *sizes) write(_ [][]byte, n int) error { *s = append(*s, n); return nil }
func (s *sizes) close() error                  { return nil }

// TestBatches: a writer gets whole batches, and what is left in the end.
func TestBatches(t *testing.T) {
	var got sizes
	b := &batched{writer: &got, columns: []column{idColumn}, size: 4, held: make([][]byte, 1)}
	for _, n := range []int{3, 6, 1, 9} {
		must(t, b.write([][]byte{make([]byte, 8*n)}, n))
	}
	must(t, b.close())
	if !slices.Equal(got, []int{4, 4, 4, 4, 3}) {
		t.Errorf("batches of %d rows", got)
	}
}
