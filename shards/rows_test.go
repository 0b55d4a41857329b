package shards

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"ndls/internal/seal"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"pgregory.net/rapid"

	"ndls/internal/storage/storagetest"
)

func drawSchema(t *rapid.T) RowSchema {
	return RowSchema{
		Column: rapid.SampledFrom([]string{"feature", "probability", "hop_0,hop_1", "hop_2,hop_0,hop_19"}).Draw(t, "column"),
		Width:  rapid.IntRange(1, 70).Draw(t, "width"),
		Label:  rapid.Bool().Draw(t, "label"), Half: rapid.Bool().Draw(t, "half"),
	}
}

func TestRowsRoundTrip(t *testing.T) {
	checkAllocations(t)
	rapid.Check(t, func(t *rapid.T) {
		want := rowFile{Schema: drawSchema(t)}
		var rows int64
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 200), 0, 5).Draw(t, "batches") {
			want.Batches = append(want.Batches, sampleBatch(want.Schema, rows, n))
			rows += int64(n)
		}
		var out bytes.Buffer
		if got, err := writeRows(&out, want); err != nil || got != rows {
			t.Fatalf("%d rows, %v, want %d", got, err, rows)
		}
		got, err := readAllRows(storagetest.NewBytesReader(out.Bytes()))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		checkWithLibrary(t, out.Bytes(), want)
	})
}

// checkWithLibrary reads with arrow's own reader, as others would.
func checkWithLibrary(t *rapid.T, data []byte, want rowFile) {
	f, err := ipc.NewFileReader(bytes.NewReader(data), ipc.WithAllocator(allocator))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.NumRecords() != len(want.Batches) {
		t.Fatalf("%d records, want %d", f.NumRecords(), len(want.Batches))
	}
	for i, b := range want.Batches {
		rec, err := f.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		if got := rec.Column(0).(*array.Int64).Int64Values(); !reflect.DeepEqual(got, b.ID) {
			t.Fatalf("batch %d: ids %v, want %v", i, got, b.ID)
		}
		names, rows := want.Schema.Lists(), byList(want.Schema, b.Values)
		for k, name := range names {
			at := int(rec.NumCols()) - len(names) + k
			list := rec.Column(at).(*array.FixedSizeList)
			if rec.ColumnName(at) != name {
				t.Fatalf("column %d is %s, not %s", at, rec.ColumnName(at), name)
			}
			for j := range len(b.ID) * want.Schema.Width {
				var got float32
				switch values := list.ListValues().(type) {
				case *array.Float16:
					got = values.Value(j).Float32()
				case *array.Float32:
					got = values.Value(j)
				}
				if v := rows[k*len(b.ID)*want.Schema.Width+j]; got != v {
					t.Fatalf("batch %d: value %d of %s is %v, want %v", i, j, name, got, v)
				}
			}
		}
	}
}

// The same bytes are an Arrow stream from the first message on, and buffers
// start on lines: the bodies are found in the stream by their values.
func TestRowBuffersAreAligned(t *testing.T) {
	for _, s := range []RowSchema{
		{Column: "feature", Width: 1},
		{Column: "feature", Width: 7, Half: true},
		{Column: "probability", Width: 3, Label: true},
		{Column: "probability", Width: 172, Label: true, Half: true},
		HopSchema([]int{0, 1, 3}, 7, true),
	} {
		var out bytes.Buffer
		w, err := NewRowWriter(&out, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		const batches, rows = 3, 5
		for range batches {
			ids, labels, values := make([]int64, rows), make([]int32, rows), make([]float32, rows*s.Values())
			ids[0], labels[0], values[0] = 0x1122334455667788, 0x55443322, 1.5
			if err := w.Write(ids, labels, values); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		marks := map[string][]byte{"id": {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}}
		if s.Label {
			marks["label"] = []byte{0x22, 0x33, 0x44, 0x55}
		}
		for name, m := range marks {
			found := 0
			for at := 0; ; found++ {
				next := bytes.Index(out.Bytes()[at:], m)
				if next < 0 {
					break
				}
				if at += next; at%rowAlign != 0 {
					t.Errorf("%+v: column %s starts at byte %d", s, name, at)
				}
				at++
			}
			if found != batches {
				t.Errorf("%+v: %d batches of column %s found, want %d", s, found, name, batches)
			}
		}
		stream, err := ipc.NewReader(bytes.NewReader(out.Bytes()[fileHead:]))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for stream.Next() {
			n++
		}
		stream.Release()
		if stream.Err() != nil || n != batches {
			t.Errorf("%+v: as a stream %d batches, %v", s, n, stream.Err())
		}
	}
}

func TestRowReaderReusesSlices(t *testing.T) {
	data := sampleRows(t, RowSchema{Column: "feature", Width: 3})
	in, err := OpenRows(storagetest.NewBytesReader(data), "rows")
	if err != nil {
		t.Fatal(err)
	}
	b := RowBatch{ID: make([]int64, 0, 200), Values: make([]float32, 0, 600)}
	id, values := &b.ID[:1][0], &b.Values[:1][0]
	for i := range in.NumBatches() {
		if err := in.ReadBatch(i, &b); err != nil {
			t.Fatal(err)
		}
		if first, rows := in.BatchRows(i); first != b.First || rows != int64(len(b.ID)) {
			t.Errorf("batch %d: %d rows at %d, BatchRows says %d at %d", i, len(b.ID), b.First, rows, first)
		}
		if &b.ID[0] != id || &b.Values[0] != values {
			t.Errorf("batch %d: other slices", i)
		}
	}
}

func TestRowWriterRefusesBadBatches(t *testing.T) {
	w, err := NewRowWriter(io.Discard, RowSchema{Column: "feature", Width: 2, Label: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"no rows":         w.Write(nil, nil, nil),
		"too few values":  w.Write(make([]int64, 2), make([]int32, 2), make([]float32, 3)),
		"too many values": w.Write(make([]int64, 2), make([]int32, 2), make([]float32, 5)),
		"no labels":       w.Write(make([]int64, 2), nil, make([]float32, 4)),
	} {
		if err == nil {
			t.Errorf("%s: written", name)
		}
	}
	for _, s := range []RowSchema{{}, {Column: "feature"}, {Column: "id", Width: 1}, {Column: "feature", Width: -1}, {Column: "feature", Width: MaxValues + 1}, {Column: "hop_1,hop_1", Width: 1}, {Column: "hop_1,", Width: 1}, HopSchema([]int{0, 1, 2}, MaxValues/2, false)} {
		if _, err := NewRowWriter(io.Discard, s, nil); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}

func TestRowsOfOtherProgramsAreRefused(t *testing.T) {
	var out bytes.Buffer
	w := newAligner(&out)
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	f, err := ipc.NewFileWriter(w, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRows(storagetest.NewBytesReader(out.Bytes()), "x.arrow"); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("got %v, want seal.ErrCorrupt", err)
	}
}

func TestBatchRows(t *testing.T) {
	for width, want := range map[int]int{1: 4 << 20, 100: 41920, 128: 32768, 172: 24384, 1000: 4160, 65537: 63, 1 << 20: 4, 8 << 20: 1} {
		if got := BatchRows(width); got != want {
			t.Errorf("width %d: %d rows, want %d", width, got, want)
		}
	}
}
