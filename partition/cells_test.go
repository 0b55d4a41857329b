package partition

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/shards"
)

// chunksInMemory is a file of cells.
type chunksInMemory struct{ *bytes.Reader }

func (chunksInMemory) done(_, _ int64) {}

// Close panics for a reader of no file: whoever could not open a file must not close it.
func (c chunksInMemory) Close() error {
	c.Len()
	return nil
}

// TestCells divides rows among files, some with float16 values, and loads panels of some rows of a cell from all of them.
func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cells{nodes: rapid.Int64Range(1, 2000).Draw(t, "nodes"), panels: rapid.IntRange(1, 6).Draw(t, "panels")}
		c.interval = rapid.Int64Range(c.nodes/4+1, c.nodes).Draw(t, "interval")
		c.rows = rapid.Int64Range(c.interval/3+1, c.interval).Draw(t, "rows")
		threads, b := rapid.IntRange(1, 3).Draw(t, "threads"), budget(t, 32<<20)
		width := c.panels * shards.TileColumns
		value := func(node, column int) float32 { return float32(rng.Hash(uint64(node), uint64(column)) % 2048) }

		c.half = true
		r := &cellReader{cells: c, budget: b}
		order, from := rng.New(uint64(c.nodes)).Perm(int(c.nodes)), 0
		count, damaged := rapid.IntRange(1, 4).Draw(t, "files"), rapid.Bool().Draw(t, "damaged")
		fails, errOpen := rapid.IntRange(0, 9).Draw(t, "fails") == 0, errors.New("the file cannot be opened")
		for i := range count {
			to := len(order) * (i + 1) / count
			of := c
			of.half = rapid.Bool().Draw(t, "half")
			r.half = r.half && of.half
			var file []byte
			w, err := newCellWriter(b, rapid.Int64Range(0, 64<<10).Draw(t, "bytes"), of, true, func(chunk []byte) error {
				file = append(file, chunk...)
				return nil
			})
			must(t, err)
			encoded := make([]byte, c.panels*int(of.rowBytes()))
			for _, node := range order[from:to] {
				values := make([]float32, width)
				for k := range values {
					values[k] = value(node, k)
				}
				must(t, w.put([]uint32{uint32(node)}, values, encoded))
			}
			must(t, w.seal())
			from = to
			open := func(context.Context) (chunkReader, error) { return chunksInMemory{bytes.NewReader(file)}, nil }
			if fails {
				open = func(context.Context) (chunkReader, error) { return chunksInMemory{}, errOpen }
			}
			r.files = append(r.files, cellFile{name: "file", index: w.index(), open: open})
			defer w.close()
			for at := range file {
				if damaged && i == 0 {
					file[at] ^= 1
				}
			}
		}
		defer r.close()
		first := rapid.IntRange(0, c.panels-1).Draw(t, "first")
		last := rapid.IntRange(first+1, c.panels).Draw(t, "last")
		must(t, r.alloc(last-first, threads))
		lo := rapid.Int64Range(0, (c.nodes-1)/c.interval).Draw(t, "interval of rows") * c.interval
		end := min(lo+min(c.rows, c.interval), c.nodes)
		lo += rapid.Int64Range(0, end-lo-1).Draw(t, "from")
		tiles, err := r.load(context.Background(), lo, end, first, last)
		if fails {
			if !errors.Is(err, errOpen) {
				t.Fatalf("files that cannot be opened: %v", err)
			}
			return
		}
		if damaged && err != nil { // else no row is from the damaged file
			if !errors.Is(err, seal.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		must(t, err)
		row := make([]float32, shards.TileColumns)
		for p, tile := range tiles {
			for node := lo; node < end; node++ {
				shards.DecodeTile(row, tile[(node-lo)*r.rowBytes():], r.half)
				for k, got := range row {
					if want := value(int(node), (first+p)*shards.TileColumns+k); got != want {
						t.Fatalf("node %d, panel %d, column %d: %v, not %v", node, first+p, k, got, want)
					}
				}
			}
		}
	})
}
