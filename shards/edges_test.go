package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/seal"
	"ndls/internal/seal/sealtest"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"
	"pgregory.net/rapid"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

func TestEdgesRoundTrip(t *testing.T) {
	checkAllocations(t)
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.Int64Range(1, 1000).Draw(t, "nodes")
		lo := rapid.Int64Range(0, nodes-1).Draw(t, "lo")
		m := EdgeMeta{
			Interval: rapid.IntRange(0, 9).Draw(t, "interval"), Lo: lo, Hi: rapid.Int64Range(lo+1, nodes).Draw(t, "hi"),
			NumNodes: nodes, BlockRows: rapid.Int64Range(1, 300).Draw(t, "block rows"),
		}
		n := rapid.IntRange(0, 2000).Draw(t, "edges")
		want := randomEdges(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), n, m)
		var out, again bytes.Buffer
		rows, err := writeEdges(&out, want, 0)
		if err != nil || rows != int64(len(want.Src)) {
			t.Fatalf("%d rows, %v", rows, err)
		}
		got, err := readAllEdges(storagetest.NewBytesReader(out.Bytes()))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		if _, err := writeEdges(&again, want, rapid.IntRange(1, 100).Draw(t, "part")); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Fatalf("written in parts the bytes differ (%v)", err)
		}
	})
}

// Several row groups, and the largest ids.
func TestEdgesRowGroups(t *testing.T) {
	const top = 1<<32 - 2
	m := EdgeMeta{Lo: top - 1000, Hi: top + 1, NumNodes: top + 1, BlockRows: 1 << 20}
	want := edges{Meta: m}
	for s := uint32(top - 3000); len(want.Src) < 2*edgeGroupRows+7; s++ {
		for d := uint32(top - 999); d <= top; d++ {
			want.Src, want.Dst = append(want.Src, s), append(want.Dst, d)
		}
	}
	var out bytes.Buffer
	if _, err := writeEdges(&out, want, 0); err != nil {
		t.Fatal(err)
	}
	r := storagetest.NewBytesReader(out.Bytes())
	got, err := readAllEdges(r)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%d edges come back of %d: %v", len(got.Src), len(want.Src), err)
	}
	// Where pages end does not depend on how many edges come at a time.
	for _, part := range []int{999, 1<<15 + 1} {
		var again bytes.Buffer
		if _, err := writeEdges(&again, want, part); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("written in parts of %d the bytes differ (%v)", part, err)
		}
	}
	f := openRaw(t, out.Bytes())
	if n := f.NumRowGroups(); n != 3 {
		t.Errorf("%d row groups, want 3", n)
	}
}

func openRaw(t *testing.T, data []byte) *file.Reader {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The library reads DELTA pages wrongly and writes dictionaries by default:
// neither may come into our files.
func TestOnlyPlainEncodings(t *testing.T) {
	for _, s := range samples()[0:3] {
		t.Run(s.name, func(t *testing.T) {
			f := openRaw(t, s.file(t))
			columns := 0
			for g := range f.NumRowGroups() {
				rg := f.MetaData().RowGroup(g)
				for c := range rg.NumColumns() {
					chunk, err := rg.ColumnChunk(c)
					if err != nil {
						t.Fatal(err)
					}
					columns++
					for _, e := range chunk.EncodingStats() {
						if e.Encoding != parquet.Encodings.Plain {
							t.Errorf("column %s has pages encoded %s", chunk.PathInSchema(), e.Encoding)
						}
					}
					for _, e := range chunk.Encodings() {
						if e != parquet.Encodings.Plain && e != parquet.Encodings.RLE {
							t.Errorf("column %s is encoded %s", chunk.PathInSchema(), e)
						}
					}
					if chunk.HasDictionaryPage() {
						t.Errorf("column %s has a dictionary", chunk.PathInSchema())
					}
					if set, _ := chunk.StatsSet(); set {
						t.Errorf("column %s has statistics, whose distinct count would be false", chunk.PathInSchema())
					}
				}
			}
			if columns == 0 {
				t.Error("no columns were looked at")
			}
		})
	}
}

func TestDeltaEncodingIsRefused(t *testing.T) {
	for name, option := range map[string]parquet.WriterProperty{
		"DELTA_BINARY_PACKED": parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked),
		"RLE_DICTIONARY":      parquet.WithDictionaryDefault(true),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w, err := newParquetWriter(&out, catalog.KindEdges, edgeColumns, sampleMeta.pairs(), writerProperties(option))
			if err != nil {
				t.Fatal(err)
			}
			e := randomEdges(rand.New(rand.NewPCG(3, 4)), 500, sampleMeta)
			if err := writeGroup(w, 0, int64(len(e.Src)), func(p *parquetWriter, cols []file.ColumnChunkWriter, _ int64, _ int) error {
				return firstError(
					func() error { return writeColumn(p, cols[0], asInt32(e.Src)) },
					func() error { return writeColumn(p, cols[1], asInt32(e.Dst)) },
				)
			}); err != nil {
				t.Fatal(err)
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			unsealed := bytes.Replace(out.Bytes(), []byte("ndlsseal"), []byte("........"), 1)
			for what, data := range map[string][]byte{"our file": out.Bytes(), "another program's file": unsealed} {
				_, err := OpenEdges(storagetest.NewBytesReader(data), "part.parquet")
				if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "part.parquet") {
					t.Errorf("%s: %v, want a refusal that names %s and the file", what, err, name)
				}
			}
		})
	}
}

func TestEdgesOfAnotherVersion(t *testing.T) {
	data := sampleEdges(t)
	at := bytes.LastIndex(data, []byte(keyVersion)) + len(keyVersion)
	at += bytes.IndexByte(data[at:], formatVersion[0])
	data[at] = '2'
	sealtest.Reseal(data, seal.Parquet)
	if _, err := OpenEdges(storagetest.NewBytesReader(data), "part.parquet"); !errors.Is(err, seal.ErrVersion) || !strings.Contains(err.Error(), "part.parquet") {
		t.Errorf("got %v, want seal.ErrVersion and the name", err)
	}
}

func TestEdgeWriterRefusesWhatReadersDoNotExpect(t *testing.T) {
	m := EdgeMeta{Lo: 10, Hi: 30, NumNodes: 40, BlockRows: 10}
	for name, c := range map[string]struct{ src, dst []uint32 }{
		"destination below":     {[]uint32{1}, []uint32{9}},
		"destination above":     {[]uint32{1}, []uint32{30}},
		"source above":          {[]uint32{40}, []uint32{10}},
		"twice":                 {[]uint32{1, 1}, []uint32{10, 10}},
		"source descends":       {[]uint32{2, 1}, []uint32{10, 11}},
		"destination descends":  {[]uint32{2, 2}, []uint32{11, 10}},
		"block descends":        {[]uint32{1, 2}, []uint32{20, 10}},
		"lengths differ":        {[]uint32{1, 2}, []uint32{10}},
		"descends across calls": {[]uint32{5, 0, 4}, []uint32{10, 20, 19}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := NewEdgeWriter(io.Discard, m)
			if err != nil {
				t.Fatal(err)
			}
			p := EdgePage{Src: c.src, Dst: c.dst}
			if err := p.Encode(m); err == nil && w.WritePage(&p) == nil {
				t.Error("written")
			}
		})
	}
	t.Run("pages", func(t *testing.T) {
		m := EdgeMeta{Hi: 1 << 20, NumNodes: 1 << 20, BlockRows: 1 << 20}
		w, err := NewEdgeWriter(io.Discard, m)
		if err != nil {
			t.Fatal(err)
		}
		put := func(n, src, dst int) error {
			p := NewEdgePage()
			for i := range n {
				p.Src, p.Dst = append(p.Src, uint32(src)), append(p.Dst, uint32(dst+i))
			}
			return errors.Join(p.Encode(m), w.WritePage(&p))
		}
		if err := put(EdgePageRows, 5, 1); err != nil {
			t.Fatal(err)
		}
		if put(1, 5, EdgePageRows) == nil || put(1, 4, EdgePageRows+1) == nil {
			t.Error("a page that begins before the end of the last one is written")
		}
		if err := put(1, 5, EdgePageRows+1); err != nil {
			t.Fatal(err)
		}
		if put(1, 6, 0) == nil {
			t.Error("a page follows one that is not full")
		}
	})
	for name, m := range map[string]EdgeMeta{
		"no block":         {Hi: 1, NumNodes: 1},
		"beyond the nodes": {Hi: 2, NumNodes: 1, BlockRows: 1},
		"upside down":      {Lo: 2, Hi: 1, NumNodes: 3, BlockRows: 1},
		"too many nodes":   {Hi: 1, NumNodes: 1 << 32, BlockRows: 1},
	} {
		if _, err := NewEdgeWriter(io.Discard, m); err == nil {
			t.Errorf("%s: %+v is accepted", name, m)
		}
	}
}

// Memory of reading and writing does not grow with the number of row groups.
func TestEdgeMemoryIsFlat(t *testing.T) {
	store, err := storage.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	w, err := store.Create(ctx, "edges")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	const groups = 12
	m := EdgeMeta{Hi: 1 << 20, NumNodes: 1 << 20, BlockRows: 1 << 20}
	out, err := NewEdgeWriter(w, m)
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]uint32, EdgePageRows), make([]uint32, EdgePageRows)
	p := EdgePage{Src: src, Dst: dst}
	var peak uint64
	for part := range uint32(groups * edgeGroupRows / EdgePageRows) {
		for i := range src {
			src[i], dst[i] = part, uint32(i)*16
		}
		if err := errors.Join(p.Encode(m), out.WritePage(&p)); err != nil {
			t.Fatal(err)
		}
		peak = max(peak, liveHeap(part))
	}
	if _, err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(ctx, "edges")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, err := OpenEdges(r, "edges")
	if err != nil {
		t.Fatal(err)
	}
	for part := uint32(0); ; part++ {
		if _, err := in.Read(src, dst); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		peak = max(peak, liveHeap(part))
	}
	if peak > 32<<20 {
		t.Errorf("%d bytes of live heap", peak)
	}
}

// liveHeap collects garbage now and then and returns what is left.
func liveHeap(part uint32) uint64 {
	if part%16 != 0 {
		return 0
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func ExampleNewEdgeWriter() {
	var f bytes.Buffer
	m := EdgeMeta{Interval: 0, Lo: 0, Hi: 3, NumNodes: 3, BlockRows: 1 << 20}
	w, err := NewEdgeWriter(&f, m)
	if err != nil {
		panic(err)
	}
	// The path 0 - 1 - 2, both directions, by source.
	p := EdgePage{Src: []uint32{0, 1, 1, 2}, Dst: []uint32{1, 0, 2, 1}}
	if err := errors.Join(p.Encode(m), w.WritePage(&p)); err != nil {
		panic(err)
	}
	rows, err := w.Close()
	fmt.Println(rows, err)

	r, err := OpenEdges(storagetest.NewBytesReader(f.Bytes()), "part-00000.parquet")
	if err != nil {
		panic(err)
	}
	src, dst := make([]uint32, 10), make([]uint32, 10)
	n, err := r.Read(src, dst)
	fmt.Println(src[:n], dst[:n], err)
	// Output:
	// 4 <nil>
	// [0 1 1 2] [1 0 2 1] <nil>
}

func benchmarkEdges(b *testing.B) (storage.Store, edges) {
	b.Helper()
	store, err := storage.NewLocal(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	m := EdgeMeta{Hi: 1 << 20, NumNodes: 1 << 22, BlockRows: 1 << 20}
	return store, randomEdges(rand.New(rand.NewPCG(1, 1)), 4<<20, m)
}

func BenchmarkEdgeWrite(b *testing.B) {
	store, e := benchmarkEdges(b)
	var bytes int64
	for b.Loop() {
		w, err := store.Create(context.Background(), "edges")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := writeEdges(w, e, 1<<16); err != nil {
			b.Fatal(err)
		}
		d, err := w.Commit(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		bytes = d.Bytes
	}
	b.SetBytes(bytes)
	b.ReportMetric(float64(len(e.Src))*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
	b.ReportMetric(float64(bytes)/float64(len(e.Src)), "B/edge")
}

func BenchmarkEdgeRead(b *testing.B) {
	store, e := benchmarkEdges(b)
	w, err := store.Create(context.Background(), "edges")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := writeEdges(w, e, 1<<16); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Commit(context.Background()); err != nil {
		b.Fatal(err)
	}
	src, dst := make([]uint32, 1<<16), make([]uint32, 1<<16)
	for b.Loop() {
		r, err := store.Open(context.Background(), "edges")
		if err != nil {
			b.Fatal(err)
		}
		in, err := OpenEdges(r, "edges")
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = in.Read(src, dst)
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		r.Close()
	}
	b.ReportMetric(float64(len(e.Src))*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
}
