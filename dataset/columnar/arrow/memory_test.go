package arrow

import (
	"bytes"
	"testing"

	"github.com/apache/arrow/go/v14/arrow/ipc"

	"ndls/dataset/columnar/columnartest"
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
			rec, want := columnartest.Floats(c.columns, c.rows)
			var data bytes.Buffer
			w := ipc.NewWriter(&data, ipc.WithSchema(rec.Schema()), c.packed)
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := Open(columnartest.Source(data.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			all := columnartest.All(c.columns)
			r, err := f.Read(0, all, 1)
			if err != nil {
				t.Fatal(err)
			}
			room := &r.(*reader).opener.room
			held, err := columnartest.ReadFloats(f, r, want, func() int64 { return room.Held })
			if err != nil {
				t.Error(err)
			}
			said := f.Memory(all)
			if unpacked := int64(c.columns * c.rows * 4); held < unpacked || held > said || said > 2*held+2*bufferSize*int64(c.columns) {
				t.Errorf("a reader of %d bytes holds %d, and is said to hold %d", unpacked, held, said)
			}
			if err := r.Close(); err != nil || room.Held != 0 {
				t.Errorf("%d bytes are held after Close: %v", room.Held, err)
			}
		})
	}
}
