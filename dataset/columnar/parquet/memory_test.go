package parquet

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/memory"
	stored "github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"

	"ndls/dataset/columnar"
	"ndls/dataset/parquettest"
	"ndls/dataset/source"
)

// TestMemory: what a reader of many columns holds is at most what File.Memory says, and not much less.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		dictionary    bool
		columns, rows int64
		page          int64
	}{
		"with dictionaries": {true, 40, 20_000, 1 << 20},
		"plain":             {false, 40, 20_000, 1 << 20},
		"a page a chunk":    {false, 2, 5_000_000, 64 << 20}, // as DuckDB has it
	} {
		t.Run(name, func(t *testing.T) {
			columns, rows := c.columns, c.rows
			var fields []arrow.Field
			var arrays []arrow.Array
			for i := range columns {
				fields = append(fields, arrow.Field{Name: fmt.Sprint("f", i), Type: arrow.PrimitiveTypes.Float32})
				b := array.NewFloat32Builder(memory.DefaultAllocator)
				for range rows {
					b.Append(rand.Float32())
				}
				arrays = append(arrays, b.NewArray())
			}
			rec := array.NewRecord(arrow.NewSchema(fields, nil), arrays, rows)
			data, err := parquettest.Write(rec, stored.WithDictionaryDefault(c.dictionary), stored.WithDataPageSize(c.page), stored.WithMaxRowGroupLength(rows), stored.WithCompression(compress.Codecs.Snappy))
			if err != nil {
				t.Fatal(err)
			}
			f, err := Open(&source.Source{Name: "t", File: inMemory{bytes.NewReader(data)}, End: int64(len(data))})
			if err != nil {
				t.Fatal(err)
			}
			all := make([]int, columns)
			for i := range all {
				all[i] = i
			}
			said := f.Memory(all)
			r, err := f.Read(0, all, 1)
			if err != nil {
				t.Fatal(err)
			}
			held := int64(0)
			for values := make([]columnar.Values, columns); ; {
				_, err := r.Next(batch, values)
				held = max(held, r.(*reader).shared.Held)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Close(); err != nil || r.(*reader).shared.Held != 0 {
				t.Errorf("%d bytes are held after Close: %v", r.(*reader).shared.Held, err)
			}
			if held < columns*rows*4/2 || held > said || said > 4*held {
				t.Errorf("a reader holds %d bytes, and is said to hold %d", held, said)
			}
		})
	}
}

// inMemory is a file in memory.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (inMemory) Name() string { return "t" }
