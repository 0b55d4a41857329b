package train

import (
	"context"
	"fmt"

	"ndls/internal/mem"
	"ndls/shards"
)

// The splits of a row, numbered as in the node table.
const (
	NoSplit uint8 = iota
	Train
	Valid
	Test
	numSplits
)

// Problem is what a model is trained on: rows and what is known of each.
type Problem struct {
	Source Source
	// Labels holds the class of each row in stored order, -1 for none, and
	// Splits its split: Train, Valid, Test or NoSplit.
	Labels []int32
	Splits []uint8
	// Classes is the number of classes.
	Classes int
}

// Validate checks sizes, and that every training and validation row has a
// label and there is a training row.
func (p Problem) Validate() error {
	n := p.Source.NumRows()
	if int64(len(p.Labels)) != n || int64(len(p.Splits)) != n {
		return fmt.Errorf("train: %d smoothed rows, but %d labels and %d splits: run ndls smooth again: %w",
			n, len(p.Labels), len(p.Splits), shards.ErrCorrupt)
	}
	if w := p.Source.Width(); w < 1 || w > maxDim || p.Classes < 2 || p.Classes > maxDim {
		return fmt.Errorf("train: rows of %d values in %d classes: training needs at least one value and two classes", w, p.Classes)
	}
	training := false
	for i, split := range p.Splits {
		label := p.Labels[i]
		if label < -1 || int(label) >= p.Classes || split >= numSplits {
			return fmt.Errorf("train: row %d has label %d and split %d of %d classes: %w", i, label, split, p.Classes, shards.ErrCorrupt)
		}
		if label < 0 && (split == Train || split == Valid) {
			return fmt.Errorf("train: row %d is to be trained or validated on and has no label: give it one, or take it out of the split", i)
		}
		training = training || split == Train
	}
	if !training {
		return fmt.Errorf("train: no row is in the training split: give a dataset with splits, or --split random:TRAIN,VALID")
	}
	return nil
}

// rowSet is the rows of one split, in stored order: kept in memory, or read
// from the source each time.
type rowSet struct {
	problem Problem
	src     Source
	split   uint8

	perChunk []int64 // number of rows in each chunk
	count    int64

	values *mem.Array[float32] // nil unless kept in memory
	labels *mem.Array[int32]
}

func newRowSet(p Problem, split uint8) *rowSet {
	s := &rowSet{problem: p, src: p.Source, split: split}
	for i := range p.Source.NumChunks() {
		first, rows := p.Source.Chunk(i)
		var n int64
		for _, is := range p.Splits[first : first+rows] {
			if is == split {
				n++
			}
		}
		s.perChunk = append(s.perChunk, n)
		s.count += n
	}
	return s
}

// bytes is what keeping the set in memory takes.
func (s *rowSet) bytes() int64 { return s.count * (4*int64(s.src.Width()) + 4) }

// chunkBuffer is memory for one chunk, off the heap.
type chunkBuffer struct {
	batch  shards.RowBatch
	id     *mem.Array[int64]
	label  *mem.Array[int32]
	values *mem.Array[float32]
}

// largestChunk is the number of rows of the largest chunk.
func largestChunk(src Source) int64 {
	var most int64
	for i := range src.NumChunks() {
		_, rows := src.Chunk(i)
		most = max(most, rows)
	}
	return most
}

func chunkBufferBytes(src Source) int64 {
	return largestChunk(src)*(4*int64(src.Width())+12) + 3*4096
}

func newChunkBuffer(b *mem.Budget, src Source) (_ *chunkBuffer, err error) {
	rows := largestChunk(src)
	c := &chunkBuffer{}
	defer func() {
		if err != nil {
			c.free()
			err = fmt.Errorf("train: %w", err)
		}
	}()
	if c.id, err = mem.Alloc[int64](b, rows, "the ids of a chunk of rows"); err != nil {
		return nil, err
	}
	if c.label, err = mem.Alloc[int32](b, rows, "the labels of a chunk of rows"); err != nil {
		return nil, err
	}
	if c.values, err = mem.Alloc[float32](b, rows*int64(src.Width()), "a chunk of rows"); err != nil {
		return nil, err
	}
	c.batch = shards.RowBatch{ID: c.id.S[:0], Label: c.label.S[:0], Values: c.values.S[:0]}
	return c, nil
}

func (c *chunkBuffer) free() {
	if c != nil {
		c.id.Free()
		c.label.Free()
		c.values.Free()
	}
}

// read reads chunk i and returns its values and the position of its first row.
func (c *chunkBuffer) read(src Source, i int) (values []float32, first int64, err error) {
	first, rows := src.Chunk(i)
	if err := src.ReadChunk(i, &c.batch); err != nil {
		return nil, 0, err
	}
	if c.batch.First != first || int64(len(c.batch.Values)) != rows*int64(src.Width()) || int64(len(c.batch.ID)) != rows {
		return nil, 0, fmt.Errorf("train: chunk %d is not the %d rows from %d on: %w", i, rows, first, shards.ErrCorrupt)
	}
	return c.batch.Values, first, nil
}

// load brings the set into memory.
func (s *rowSet) load(ctx context.Context, b *mem.Budget) (err error) {
	width := int64(s.src.Width())
	if s.values, err = mem.Alloc[float32](b, s.count*width, "training and validation rows"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if s.labels, err = mem.Alloc[int32](b, s.count, "training and validation labels"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	buf, err := newChunkBuffer(b, s.src)
	if err != nil {
		return err
	}
	defer buf.free()
	var at int64
	return s.stream(ctx, buf, func(x []float32, y []int32) error {
		copy(s.values.S[at*width:], x)
		copy(s.labels.S[at:], y)
		at += int64(len(y))
		return nil
	})
}

func (s *rowSet) free() {
	s.values.Free()
	s.labels.Free()
}

// visitor takes consecutive samples: at most microRows rows and their labels,
// neither of which it may keep or change.
type visitor func(x []float32, y []int32) error

// inOrder visits the set in stored order. buf is not used when the set is in
// memory.
func (s *rowSet) inOrder(ctx context.Context, buf *chunkBuffer, visit visitor) error {
	if s.values == nil {
		return s.stream(ctx, buf, visit)
	}
	return s.pieces(ctx, s.values.S, s.labels.S, visit)
}

func (s *rowSet) stream(ctx context.Context, buf *chunkBuffer, visit visitor) error {
	for i, n := range s.perChunk {
		if n == 0 {
			continue
		}
		values, first, err := buf.read(s.src, i)
		if err != nil {
			return err
		}
		// The rows that are wanted move to the front of the buffer.
		x, y := values[:0], buf.label.S[:0]
		s.each(i, func(row int64) {
			x = append(x, s.row(values, row-first)...)
			y = append(y, s.problem.Labels[row])
		})
		if err := s.pieces(ctx, x, y, visit); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with the stored position of every row of the set in chunk i.
func (s *rowSet) each(i int, f func(row int64)) {
	first, rows := s.src.Chunk(i)
	for row := first; row < first+rows; row++ {
		if s.problem.Splits[row] == s.split {
			f(row)
		}
	}
}

func (s *rowSet) row(values []float32, i int64) []float32 {
	width := int64(s.src.Width())
	return values[i*width : (i+1)*width]
}

func (s *rowSet) pieces(ctx context.Context, x []float32, y []int32, visit visitor) error {
	width := s.src.Width()
	step := microRows(width)
	for lo := 0; lo < len(y); lo += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+step, len(y))
		if err := visit(x[lo*width:hi*width], y[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}
