package train

import (
	"context"
	"fmt"

	"ndls/internal/mem"
	"ndls/shards"
)

// Held holds some rows of a source in memory. It is a Source with as many chunks; each has the held
// rows of the source's chunk. The order of samples depends on chunks, so that models trained on
// Held equal models trained on the whole source.
type Held struct {
	first  []int64 // of each chunk, then of the end
	width  int
	id     *mem.Array[int64]
	values *mem.Array[float32]
}

// HeldBytes returns the memory of so many rows.
func HeldBytes(rows int64, width int) int64 { return rows*(4*int64(width)+8) + 2*4096 }

// NewHeld allocates memory for rows of width values, which [Held.Put] fills. first lists the first
// row of each chunk, and then the number of rows. The caller frees the result.
func NewHeld(b *mem.Budget, first []int64, width int) (h *Held, err error) {
	h = &Held{width: width, first: first}
	if h.id, err = mem.Alloc[int64](b, h.NumRows(), "ids of rows"); err == nil {
		h.values, err = mem.Alloc[float32](b, h.NumRows()*int64(width), "training and validation rows")
	}
	if err != nil {
		h.Free()
		return nil, fmt.Errorf("train: %w", err)
	}
	return h, nil
}

// SetID sets the input id of a row.
func (h *Held) SetID(row, id int64) { h.id.S[row] = id }

// Put sets values of consecutive rows. values holds so many columns for each. The first of them
// goes to column at; columns past the width are dropped.
func (h *Held) Put(row int64, at, columns int, values []float32) {
	n := min(columns, h.width-at)
	for ; len(values) > 0; values = values[columns:] {
		copy(h.values.S[row*int64(h.width)+int64(at):][:n], values)
		row++
	}
}

// Hold reads and checks the rows of src for which keep returns true; rows is their number. The
// caller frees the result.
func Hold(ctx context.Context, src Source, rows int64, keep func(row int64) bool, b *mem.Budget) (_ *Held, err error) {
	h, err := NewHeld(b, []int64{rows}, src.Width())
	if err != nil {
		return nil, err
	}
	h.first = make([]int64, 1, src.NumChunks()+1)
	defer func() {
		if err != nil {
			h.Free()
			err = fmt.Errorf("train: %w", err)
		}
	}()
	chunks := make([]int, src.NumChunks())
	for i := range chunks {
		chunks[i] = i
	}
	at := int64(0)
	err = scan(ctx, b, src, chunks, func(c *chunkBuffer) error {
		for r, id := range c.batch.ID {
			if keep(c.batch.First + int64(r)) {
				h.id.S[at] = id
				copy(h.values.S[at*int64(h.width):][:h.width], c.batch.Values[r*h.width:])
				at++
			}
		}
		h.first = append(h.first, at)
		return nil
	})
	return h, err
}

// Free returns the memory. It may be called on nil.
func (h *Held) Free() {
	if h != nil {
		h.id.Free()
		h.values.Free()
	}
}

// NumRows implements Source.
func (h *Held) NumRows() int64 { return h.first[len(h.first)-1] }

// Width implements Source.
func (h *Held) Width() int { return h.width }

// NumChunks implements Source.
func (h *Held) NumChunks() int { return len(h.first) - 1 }

// Chunk implements Source.
func (h *Held) Chunk(i int) (first, rows int64) { return h.first[i], h.first[i+1] - h.first[i] }

// ReadChunk implements Source.
func (h *Held) ReadChunk(i int, dst *shards.RowBatch) error {
	first, rows := h.Chunk(i)
	dst.First = first
	dst.ID, dst.Label = append(dst.ID[:0], h.id.S[first:first+rows]...), dst.Label[:0]
	dst.Values = append(dst.Values[:0], h.part(first, rows)...)
	return nil
}

// ReadRows implements Source: the values stay where they are.
func (h *Held) ReadRows(i int, at, rows int64, _ []float32) ([]float32, error) {
	return h.part(h.first[i]+at, rows), nil
}

// part returns the values of rows.
func (h *Held) part(first, rows int64) []float32 {
	return h.values.S[first*int64(h.width) : (first+rows)*int64(h.width)]
}
