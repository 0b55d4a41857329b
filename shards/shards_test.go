package shards

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"ndls/catalog"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"

	"github.com/apache/arrow/go/v14/arrow/memory"
	"go.uber.org/goleak"

	"ndls/internal/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkAllocations makes the libraries allocate from a counting allocator until
// the end of the test.
func checkAllocations(t *testing.T) {
	t.Helper()
	counted := &countingAllocator{Allocator: memory.NewGoAllocator()}
	allocator = counted
	t.Cleanup(func() {
		allocator = memory.NewGoAllocator()
		if n := counted.bytes.Load(); n != 0 {
			t.Errorf("%d bytes were not freed", n)
		}
	})
}

// countingAllocator counts the bytes that are allocated and not freed. Arrow's own is left out of
// programs with the tag tinygo.
type countingAllocator struct {
	memory.Allocator
	bytes atomic.Int64
}

func (a *countingAllocator) Allocate(size int) []byte {
	a.bytes.Add(int64(size))
	return a.Allocator.Allocate(size)
}

func (a *countingAllocator) Reallocate(size int, b []byte) []byte {
	a.bytes.Add(int64(size - len(b)))
	return a.Allocator.Reallocate(size, b)
}

func (a *countingAllocator) Free(b []byte) {
	a.bytes.Add(-int64(len(b)))
	a.Allocator.Free(b)
}

// A sample is one of the formats with a small file of it and a way to read it
// back into something comparable.
type sample struct {
	name string
	file func(t testing.TB) []byte
	read func(r storage.Reader) (any, error)
}

func samples() []sample {
	return []sample{
		{"edges", sampleEdges, func(r storage.Reader) (any, error) { return readAllEdges(r) }},
		{"nodes", sampleNodes, func(r storage.Reader) (any, error) { return readAllNodes(r) }},
		{"lsi", sampleLSI, func(r storage.Reader) (any, error) { return readAllLSI(r) }},
		{"rows", func(t testing.TB) []byte { return sampleRows(t, RowSchema{Column: "feature", Width: 3}) }, func(r storage.Reader) (any, error) { return readAllRows(r) }},
		{"half rows", func(t testing.TB) []byte {
			return sampleRows(t, RowSchema{Column: "probability", Width: 5, Label: true, Half: true})
		}, func(r storage.Reader) (any, error) { return readAllRows(r) }},
		{"hops", func(t testing.TB) []byte { return sampleRows(t, HopSchema([]int{0, 1, 4}, 3, false)) }, func(r storage.Reader) (any, error) { return readAllRows(r) }},
	}
}

type edges struct {
	Meta     EdgeMeta
	Src, Dst []uint32
}

// randomEdges returns at most n different edges in the order of a shard.
func randomEdges(rng *rand.Rand, n int, m EdgeMeta) edges {
	type key struct{ block, src, dst uint32 }
	var keys []key
	for range n {
		dst := uint32(m.Lo + rng.Int64N(m.Hi-m.Lo))
		keys = append(keys, key{dst / uint32(m.BlockRows), uint32(rng.Int64N(m.NumNodes)), dst})
	}
	slices.SortFunc(keys, func(a, b key) int {
		for _, d := range []int{int(a.block) - int(b.block), int(a.src) - int(b.src), int(a.dst) - int(b.dst)} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	keys = slices.Compact(keys)
	e := edges{Meta: m}
	for _, k := range keys {
		e.Src, e.Dst = append(e.Src, k.src), append(e.Dst, k.dst)
	}
	return e
}

// writeEdges fills one page after the other, with parts of the given size, 0 for all at once.
func writeEdges(w io.Writer, e edges, part int) (int64, error) {
	out, err := NewEdgeWriter(w, e.Meta)
	if err != nil {
		return 0, err
	}
	if part == 0 {
		part = len(e.Src) + 1
	}
	page := NewEdgePage()
	put := func() error {
		if len(page.Src) == 0 {
			return nil
		}
		err := errors.Join(page.Encode(e.Meta), out.WritePage(&page))
		page.Clear()
		return err
	}
	for src, dst := range zipChunks(e.Src, e.Dst, part) {
		for len(src) > 0 {
			n := min(len(src), EdgePageRows-len(page.Src))
			page.Src, page.Dst = append(page.Src, src[:n]...), append(page.Dst, dst[:n]...)
			if src, dst = src[n:], dst[n:]; len(page.Src) == EdgePageRows {
				if err := put(); err != nil {
					return 0, err
				}
			}
		}
	}
	if err := put(); err != nil {
		return 0, err
	}
	return out.Close()
}

func zipChunks(a, b []uint32, n int) func(func(x, y []uint32) bool) {
	return func(yield func(x, y []uint32) bool) {
		for len(a) > 0 {
			k := min(n, len(a))
			if !yield(a[:k], b[:k]) {
				return
			}
			a, b = a[k:], b[k:]
		}
	}
}

func readAllEdges(r storage.Reader) (edges, error) {
	in, err := OpenEdges(r, "edges")
	if err != nil {
		return edges{}, err
	}
	e := edges{Meta: in.Meta()}
	src, dst := make([]uint32, 1000), make([]uint32, 1000)
	for {
		n, err := in.Read(src, dst)
		if err == io.EOF {
			return e, nil
		}
		if err != nil {
			return edges{}, err
		}
		e.Src, e.Dst = append(e.Src, src[:n]...), append(e.Dst, dst[:n]...)
	}
}

var sampleMeta = EdgeMeta{Interval: 3, Lo: 40, Hi: 120, NumNodes: 200, BlockRows: 16}

func sampleEdges(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := writeEdges(&out, randomEdges(rand.New(rand.NewPCG(1, 2)), 3000, sampleMeta), 0); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func appendNodes(to *NodeBatch, b NodeBatch) {
	to.ID, to.Degree = append(to.ID, b.ID...), append(to.Degree, b.Degree...)
	to.Component, to.Label = append(to.Component, b.Component...), append(to.Label, b.Label...)
	to.Split = append(to.Split, b.Split...)
}

// fillNodes gives every node values that depend on its number alone.
func fillNodes(first int64, b NodeBatch) error {
	for i := range b.ID {
		n := first + int64(i)
		b.ID[i], b.Degree[i], b.Component[i] = n*n-5, uint32(n*7919), uint32(1<<32-1-n)
		b.Label[i], b.Split[i] = int32(n%5)-1, uint8(n%4)
	}
	return nil
}

func readAllNodes(r storage.Reader) (NodeBatch, error) {
	var all NodeBatch
	err := ReadNodes(r, "nodes", Readers{}, func(first int64, b NodeBatch) error {
		if first != int64(len(all.ID)) {
			return errors.New("batches out of order")
		}
		appendNodes(&all, b)
		return nil
	})
	return all, err
}

func sampleNodes(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteNodes(&out, 0, 500, IDs{}, 0, 1, fillNodes); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func fillLSI(first int64, b LSIBatch) error {
	for i := range b.ID {
		n := first + int64(i)
		b.ID[i], b.K[i], b.Capped[i] = -n, int32(n%201), n%201 == 200
	}
	return nil
}

func readAllLSI(r storage.Reader) (LSIBatch, error) {
	var all LSIBatch
	err := ReadLSI(r, "lsi", Readers{}, func(first int64, b LSIBatch) error {
		if first != int64(len(all.ID)) {
			return errors.New("batches out of order")
		}
		all.ID, all.K = append(all.ID, b.ID...), append(all.K, b.K...)
		all.Capped = append(all.Capped, b.Capped...)
		return nil
	})
	return all, err
}

func sampleLSI(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteLSI(&out, 500, nil, 1, fillLSI); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type rowFile struct {
	Schema  RowSchema
	Batches []RowBatch
}

func readAllRows(r storage.Reader) (rowFile, error) {
	in, err := OpenRows(r, "rows")
	if err != nil {
		return rowFile{}, err
	}
	f := rowFile{Schema: in.Schema()}
	var rows int64
	for i := range in.NumBatches() {
		var b RowBatch
		if err := in.ReadBatch(i, &b); err != nil {
			return rowFile{}, err
		}
		f.Batches = append(f.Batches, b)
		rows += int64(len(b.ID))
	}
	if rows != in.NumRows() {
		return rowFile{}, errors.New("number of rows differs from NumRows")
	}
	return f, nil
}

// sampleBatch fills n rows with values that float16 represents exactly.
func sampleBatch(s RowSchema, first int64, n int) RowBatch {
	b := RowBatch{First: first}
	for i := range n {
		b.ID = append(b.ID, 1_000_000_007*(first+int64(i)))
		if s.Label {
			b.Label = append(b.Label, int32(i%7)-1)
		}
		for c := range s.Values() {
			b.Values = append(b.Values, float32((i*s.Values()+c)%2048)/64-3)
		}
	}
	return b
}

func writeRows(w io.Writer, f rowFile) (int64, error) {
	out, err := NewRowWriter(w, f.Schema, nil)
	if err != nil {
		return 0, err
	}
	for _, b := range f.Batches {
		if err := out.Write(b.ID, b.Label, byList(f.Schema, b.Values)); err != nil {
			return 0, err
		}
	}
	return out.Close()
}

// byList turns values, one row after the other, into one list after the other.
func byList(s RowSchema, values []float32) (lists []float32) {
	for first := 0; first < s.Values(); first += s.Width {
		for at := first; at < len(values); at += s.Values() {
			lists = append(lists, values[at:at+s.Width]...)
		}
	}
	return lists
}

func sampleRows(t testing.TB, s RowSchema) []byte {
	t.Helper()
	f := rowFile{Schema: s}
	var first int64
	for _, n := range []int{64, 1, 130} {
		f.Batches = append(f.Batches, sampleBatch(s, first, n))
		first += int64(n)
	}
	var out bytes.Buffer
	if rows, err := writeRows(&out, f); err != nil || rows != first {
		t.Fatalf("%d rows, %v", rows, err)
	}
	return out.Bytes()
}

func TestBytesAreDeterministic(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			first, second := sha256.Sum256(s.file(t)), sha256.Sum256(s.file(t))
			if first != second {
				t.Error("the same input gives other bytes")
			}
		})
	}
}

func TestReadersReportStorageErrors(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			store := storagetest.NewMem()
			storagetest.Write(t, store, "f", s.file(t))
			for at := int64(2); ; at++ { // operation 1 is Open
				faulty := storagetest.NewFaulty(store, at)
				r, err := faulty.Open(context.Background(), "f")
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.read(r)
				if faulty.Ops() < at {
					if err != nil || at < 4 {
						t.Errorf("%d reads without a fault: %v", at-2, err)
					}
					return
				}
				if !errors.Is(err, storage.ErrDisk) || errors.Is(err, seal.ErrCorrupt) {
					t.Fatalf("fault in read %d gives %v, want ErrDisk and not seal.ErrCorrupt", at-1, err)
				}
			}
		})
	}
}

// failingWriter takes n bytes.
type failingWriter struct{ n int }

var errFull = errors.New("no more room")

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.n {
		n := w.n
		w.n = 0
		return n, errFull
	}
	w.n -= len(p)
	return len(p), nil
}

func TestWritersReportErrorsBelow(t *testing.T) {
	e := randomEdges(rand.New(rand.NewPCG(1, 2)), 3000, sampleMeta)
	schema := RowSchema{Column: "feature", Width: 3}
	rows := rowFile{Schema: schema, Batches: []RowBatch{sampleBatch(schema, 0, 100)}}
	writers := map[string]func(w io.Writer) error{
		"edges": func(w io.Writer) error { _, err := writeEdges(w, e, 0); return err },
		"nodes": func(w io.Writer) error { return WriteNodes(w, 0, 500, IDs{}, 0, 1, fillNodes) },
		"lsi":   func(w io.Writer) error { return WriteLSI(w, 500, nil, 1, fillLSI) },
		"rows":  func(w io.Writer) error { _, err := writeRows(w, rows); return err },
	}
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			var whole bytes.Buffer
			if err := write(&whole); err != nil {
				t.Fatal(err)
			}
			for room := 0; room < whole.Len(); room += 1 + room/20 {
				if err := write(&failingWriter{room}); !errors.Is(err, errFull) {
					t.Fatalf("room for %d of %d bytes: %v, want the error of the writer", room, whole.Len(), err)
				}
			}
			if err := write(&failingWriter{whole.Len()}); err != nil {
				t.Errorf("room for all: %v", err)
			}
		})
	}
}

func openCatalog(t testing.TB, s storage.Store) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
