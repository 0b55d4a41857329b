package parquet

import (
	"testing"

	stored "github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"

	"ndls/dataset/columnar/columnartest"
	"ndls/dataset/parquettest"
)

// TestMemory: what a reader of many columns holds is at most what File.Memory says, and not much less.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		dictionary    bool
		columns, rows int
		page          int64
	}{
		"with dictionaries": {true, 40, 20_000, 1 << 20},
		"plain":             {false, 40, 20_000, 1 << 20},
		"a page a chunk":    {false, 2, 5_000_000, 64 << 20}, // as DuckDB has it
	} {
		t.Run(name, func(t *testing.T) {
			rec, want := columnartest.Floats(c.columns, c.rows)
			data, err := parquettest.Write(rec, stored.WithDictionaryDefault(c.dictionary), stored.WithDataPageSize(c.page),
				stored.WithMaxRowGroupLength(int64(c.rows)), stored.WithCompression(compress.Codecs.Snappy))
			if err != nil {
				t.Fatal(err)
			}
			f, err := Open(columnartest.Source(data))
			if err != nil {
				t.Fatal(err)
			}
			all := columnartest.All(c.columns)
			r, err := f.Read(0, all, 1)
			if err != nil {
				t.Fatal(err)
			}
			of := &r.(*reader).shared
			held, err := columnartest.ReadFloats(f, r, want, func() int64 { return of.Held })
			if err != nil {
				t.Error(err)
			}
			if said := f.Memory(all); held < int64(c.columns*c.rows*4/2) || held > said || said > 4*held {
				t.Errorf("a reader holds %d bytes, and is said to hold %d", held, said)
			}
			if err := r.Close(); err != nil || of.Held != 0 {
				t.Errorf("%d bytes are held after Close: %v", of.Held, err)
			}
		})
	}
}
