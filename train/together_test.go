package train

import (
	"testing"

	"ndls/shards"
)

// numbered has rows of one value, which is the number of the row, in chunks of two rows.
type numbered struct{ from, rows int64 }

func (n numbered) NumRows() int64 { return n.rows }
func (n numbered) Width() int     { return 1 }
func (n numbered) NumChunks() int { return int(n.rows+1) / 2 }

func (n numbered) Chunk(i int) (first, rows int64) {
	return int64(2 * i), min(2, n.rows-int64(2*i))
}

func (n numbered) ReadChunk(i int, dst *shards.RowBatch) error {
	first, rows := n.Chunk(i)
	dst.First, dst.ID = first, nil
	for row := first; row < first+rows; row++ {
		dst.ID = append(dst.ID, n.from+row)
	}
	return nil
}

func (n numbered) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	first, _ := n.Chunk(i)
	for r := range rows {
		space[r] = float32(n.from + first + at + r)
	}
	return space[:rows], nil
}

// TestTogether reads the rows of three sources, one of them empty, as those of one.
func TestTogether(t *testing.T) {
	all, err := Together(numbered{0, 3}, numbered{3, 0}, numbered{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	if all.NumRows() != 7 || all.Width() != 1 || all.NumChunks() != 4 {
		t.Fatalf("%d rows of %d values in %d chunks", all.NumRows(), all.Width(), all.NumChunks())
	}
	next := int64(0)
	for i := range all.NumChunks() {
		first, rows := all.Chunk(i)
		var b shards.RowBatch
		if err := all.ReadChunk(i, &b); err != nil {
			t.Fatal(err)
		}
		values, err := all.ReadRows(i, 0, rows, make([]float32, 10))
		if err != nil || first != next || b.First != next || int64(len(b.ID)) != rows {
			t.Fatalf("chunk %d: rows from %d and %d, %d of %d: %v", i, first, b.First, len(b.ID), rows, err)
		}
		for k, id := range b.ID {
			if id != next+int64(k) || values[k] != float32(id) {
				t.Fatalf("chunk %d has row %d with %v", i, id, values[k])
			}
		}
		next += rows
	}
	if _, err := Together(numbered{0, 1}, wide{}); err == nil {
		t.Error("rows of two widths together")
	}
}

// wide has rows of two values.
type wide struct{ numbered }

func (wide) Width() int { return 2 }
