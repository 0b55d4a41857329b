package arrow

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"

	"ndls/dataset/columnar"
	"ndls/dataset/source"
)

// TestMemory: record batches of many packed columns, as pandas writes them, are read. What a reader holds is at most what File.Memory says.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		columns, rows int
		packed        ipc.Option
	}{
		"lz4":             {150, 65_536, ipc.WithLZ4()},
		"zstd":            {150, 65_536, ipc.WithZstd()},
		"a few, in whole": {10, 65_536, ipc.WithLZ4()},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []arrow.Field
			var arrays []arrow.Array
			want := make([][]float32, c.columns)
			for i := range want {
				fields = append(fields, arrow.Field{Name: fmt.Sprint("f", i), Type: arrow.PrimitiveTypes.Float32})
				b := array.NewFloat32Builder(memory.DefaultAllocator)
				for range c.rows {
					want[i] = append(want[i], rand.Float32())
				}
				b.AppendValues(want[i], nil)
				arrays = append(arrays, b.NewArray())
			}
			rec := array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(c.rows))
			var data bytes.Buffer
			w := ipc.NewWriter(&data, ipc.WithSchema(rec.Schema()), c.packed)
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := Open(&source.Source{Name: "t", File: inMemory{bytes.NewReader(data.Bytes())}, End: int64(data.Len())})
			if err != nil {
				t.Fatal(err)
			}
			all := make([]int, c.columns)
			for i := range all {
				all[i] = i
			}
			said := f.Memory(all)
			r, err := f.Read(0, all, 1)
			if err != nil {
				t.Fatal(err)
			}
			held, at := int64(0), 0
			for values := make([]columnar.Values, c.columns); ; {
				n, err := r.Next(batch, values)
				held = max(held, r.(*reader).opener.room.Held)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range values {
					for k, x := range v.Floats[:n] {
						if math.Float32bits(float32(x)) != math.Float32bits(want[i][at+k]) {
							t.Fatalf("column %d, row %d: %v in place of %v", i, at+k, x, want[i][at+k])
						}
					}
				}
				at += n
			}
			if at != c.rows {
				t.Errorf("%d rows in place of %d", at, c.rows)
			}
			if err := r.Close(); err != nil || r.(*reader).opener.room.Held != 0 {
				t.Errorf("%d bytes are held after Close: %v", r.(*reader).opener.room.Held, err)
			}
			if want := int64(c.columns) * int64(c.rows) * 4; held < want || held > said || said > 2*held+2*bufferSize*int64(c.columns) {
				t.Errorf("a reader of %d bytes holds %d, and is said to hold %d", want, held, said)
			}
		})
	}
}

// inMemory is a file in memory.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (inMemory) Name() string { return "t" }
