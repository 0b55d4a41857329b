package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	arrays "github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"
)

// arrowFile writes batches of rows of two values, ids counting up from first.
func arrowFile(t testing.TB, schema *arrow.Schema, batches ...int) []byte {
	t.Helper()
	var buf seekBuffer
	w, err := ipc.NewFileWriter(&buf, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	id := int64(0)
	for _, n := range batches {
		b := arrays.NewRecordBuilder(memory.NewGoAllocator(), schema)
		for range n {
			b.Field(0).(*arrays.Int64Builder).Append(id)
			list := b.Field(1).(*arrays.FixedSizeListBuilder)
			list.Append(true)
			list.ValueBuilder().(*arrays.Float32Builder).AppendValues([]float32{float32(id), float32(id) / 2}, nil)
			id++
		}
		rec := b.NewRecord()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// seekBuffer is the io.WriteSeeker that arrow asks for and only appends to.
type seekBuffer struct{ bytes.Buffer }

func (b *seekBuffer) Seek(int64, int) (int64, error) { return int64(b.Len()), nil }

var rowsSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "probability", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)},
}, nil)

func readRows(path string) (ids []uint32, values []float32, err error) {
	r, err := OpenRows(context.Background(), path)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	f, err := r.Features(context.Background(), Whole)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	for {
		row, err := f.Next()
		if err == io.EOF {
			return ids, values, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if len(row.Dense) != r.Info().NumFeatures {
			return nil, nil, errors.New("a row of another width")
		}
		ids, values = append(ids, row.ID), append(values, row.Dense...)
	}
}

func TestArrowRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "soft.arrow")
	if err := os.WriteFile(path, arrowFile(t, rowsSchema, 3, 0, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	ids, values, err := readRows(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ids, []uint32{0, 1, 2, 3}) || !slices.Equal(values, []float32{0, 0, 1, .5, 2, 1, 3, 1.5}) {
		t.Errorf("ids %v, values %v", ids, values)
	}
}

// TestArrowDamage cuts and flips a file: an error of the right kind, or rows.
func TestArrowDamage(t *testing.T) {
	good := arrowFile(t, rowsSchema, 5)
	path := filepath.Join(t.TempDir(), "soft.arrow")
	try := func(what string, at int, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readRows(path); err != nil && !errors.Is(err, ErrData) {
			t.Errorf("%s %d: %v", what, at, err)
		}
	}
	for cut := 0; cut < len(good); cut += 23 {
		try("cut to", cut, good[:cut])
	}
	for at := 0; at < len(good); at += 7 {
		bad := bytes.Clone(good)
		bad[at] ^= 0x55
		try("byte", at, bad)
	}
	wrong := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "p", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64)}}, nil)
	var buf seekBuffer
	w, err := ipc.NewFileWriter(&buf, ipc.WithSchema(wrong))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readRows(path); !errors.Is(err, ErrData) {
		t.Errorf("float64 lists: %v", err)
	}
}

// TestArrowFooterOfLies gives a vector of columns, batches or children in the footer a
// length that no memory has room for: an error, before anything is allocated.
func TestArrowFooterOfLies(t *testing.T) {
	good := arrowFile(t, rowsSchema, 2)
	footer := len(good) - 10 - int(binary.LittleEndian.Uint32(good[len(good)-10:]))
	path := filepath.Join(t.TempDir(), "soft.arrow")
	refused := 0
	for at := footer; at < len(good)-10; at++ {
		bad := bytes.Clone(good)
		binary.LittleEndian.PutUint32(bad[at:], 0x7ffffff0)
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readRows(path); err != nil {
			refused++
			if !errors.Is(err, ErrData) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
	}
	if refused < 20 {
		t.Errorf("%d of %d lengths were refused", refused, len(good)-10-footer)
	}
}

func FuzzArrowRows(f *testing.F) {
	f.Add(arrowFile(f, rowsSchema, 2, 1))
	f.Add([]byte("ARROW1\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fuzz.arrow")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		ids, values, err := readRows(path)
		if err != nil && !errors.Is(err, ErrData) {
			t.Fatalf("%v is no error of the data", err)
		}
		if err == nil && len(ids) > 0 && len(values)%len(ids) != 0 {
			t.Fatalf("%d values in %d rows", len(values), len(ids))
		}
	})
}
