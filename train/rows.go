package train

import (
	"context"
	"fmt"

	"ndls/internal/ahead"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// These are the splits of a row, numbered as in the node table.
const (
	NoSplit uint8 = iota
	Train
	Valid
	Test
	numSplits
)

// Problem holds the rows on which a model is trained, and their labels and splits.
type Problem struct {
	Source Source
	// Labels holds the class of each row in stored order, -1 for none, and
	// Splits its split: Train, Valid, Test or NoSplit.
	Labels []int32
	Splits []uint8
	// Classes is the number of classes, or of the numbers of a row.
	Classes int
	// Answers holds, unless the task is [Classify], Classes numbers of each row, NaN for one that is not known:
	// labels of 0 and 1, or numbers of any size. A row without any has the class -1.
	Answers []float32
}

// answersOf returns the numbers of a row.
func (p *Problem) answersOf(row int64) []float32 {
	return p.Answers[row*int64(p.Classes) : (row+1)*int64(p.Classes)]
}

// validate checks that sizes agree, that every training and validation row has a label, and that
// there is a training row.
func (p Problem) validate(task Task) error {
	n := p.Source.NumRows()
	if int64(len(p.Labels)) != n || int64(len(p.Splits)) != n || task != Classify && int64(len(p.Answers)) != n*int64(p.Classes) {
		return fmt.Errorf("train: there are %d smoothed rows, but %d labels and %d splits: run ndls smooth again: %w",
			n, len(p.Labels), len(p.Splits), seal.ErrCorrupt)
	}
	least := 2
	if task != Classify {
		least = 1
	}
	if w := p.Source.Width(); w < 1 || w > maxDim || p.Classes < least || p.Classes > maxDim {
		return fmt.Errorf("train: rows of %d values in %d classes: training needs at least one value and two classes", w, p.Classes)
	}
	training := false
	for i, split := range p.Splits {
		label := p.Labels[i]
		if label < -1 || int(label) >= p.Classes || split >= numSplits {
			return fmt.Errorf("train: row %d has label %d and split %d of %d classes: %w", i, label, split, p.Classes, seal.ErrCorrupt)
		}
		if label < 0 && (split == Train || split == Valid) {
			return fmt.Errorf("train: row %d of the training or validation split has no label: give it one, or take it out of the split", i)
		}
		training = training || split == Train
	}
	if !training {
		return fmt.Errorf("train: no row is in the training split: give a dataset with splits, or --split random:TRAIN,VALID")
	}
	return nil
}

// rowSet holds the rows of one split, in stored order: in memory, or read from the source each
// time.
type rowSet struct {
	problem Problem
	src     Source
	split   uint8
	from    int64 // only rows [from, to) of the source are in the set
	to      int64
	blocks  []block
	count   int64

	values *mem.Array[float32] // nil unless kept in memory
	places *mem.Array[uint32]  // of the rows among those of the source
}

// block is a range of rows of one chunk, some or all of which are in the set.
type block struct {
	chunk    int
	from, to int64 // rows of the chunk: the first in the set, and the end of the last
	first    int64 // rows of the set before the block
	count    int64 // rows of the set in the block
}

// newRowSet cuts the rows of a split into blocks, so that a full window holds at least windowBlocks
// of them.
func newRowSet(p Problem, split uint8) *rowSet { return rowsWithin(p, split, 0, p.Source.NumRows()) }

// rowsWithin is newRowSet for rows [from, to) of the source alone.
func rowsWithin(p Problem, split uint8, from, to int64) *rowSet {
	s := &rowSet{problem: p, src: p.Source, split: split, from: from, to: to}
	limit := windowRows(p.Source.Width()) / windowBlocks
	for i := range p.Source.NumChunks() {
		first, rows := p.Source.Chunk(i)
		last := -1 // block of this chunk
		for row, is := range p.Splits[first : first+rows] {
			if is != split || !s.within(first+int64(row)) {
				continue
			}
			if last < 0 || s.blocks[last].count == limit {
				last = len(s.blocks)
				s.blocks = append(s.blocks, block{chunk: i, from: int64(row), first: s.count})
			}
			s.blocks[last].to = int64(row) + 1
			s.blocks[last].count++
			s.count++
		}
	}
	return s
}

// within reports whether a row of the source is between from and to.
func (s *rowSet) within(row int64) bool { return s.from <= row && row < s.to }

// some returns the set of rows [lo, hi) of s.
func (s *rowSet) some(lo, hi int64) *rowSet {
	at := func(number int64) int64 {
		for row, is := range s.problem.Splits {
			if is != s.split {
				continue
			}
			if number == 0 {
				return int64(row)
			}
			number--
		}
		return s.to
	}
	return rowsWithin(s.problem, s.split, at(lo), at(hi))
}

// bytes returns the memory of the set.
func (s *rowSet) bytes() int64 { return s.count * (4*int64(s.src.Width()) + 4) }

func (s *rowSet) allocate(b *mem.Budget) (err error) {
	if s.values, err = mem.Alloc[float32](b, s.count*int64(s.src.Width()), "training and validation rows"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if s.places, err = mem.Alloc[uint32](b, s.count, "places of training and validation rows"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

func (s *rowSet) free() {
	s.values.Free()
	s.places.Free()
}

// take copies the rows of the set among consecutive rows to x, and their places to at, and returns
// their number. The first row is row first of the source.
func (s *rowSet) take(values []float32, first int64, x []float32, at []uint32) (n int64) {
	width := int64(s.src.Width())
	for i := range int64(len(values)) / width {
		if s.problem.Splits[first+i] != s.split || !s.within(first+i) {
			continue
		}
		copy(x[n*width:(n+1)*width], values[i*width:])
		at[n] = uint32(first + i)
		n++
	}
	return n
}

// readBlock reads the rows of a block to x and their places to at, through space
// for some rows and shards.RowSlack.
func (s *rowSet) readBlock(b block, x []float32, at []uint32, space []float32) error {
	first, _ := s.src.Chunk(b.chunk)
	width := int64(s.src.Width())
	step := int64(len(space)-shards.RowSlack) / width
	for from := b.from; from < b.to; from += step {
		values, err := s.src.ReadRows(b.chunk, from, min(step, b.to-from), space)
		if err != nil {
			return err
		}
		n := s.take(values, first+from, x, at)
		x, at = x[n*width:], at[n:]
	}
	return nil
}

// check reads every chunk that holds rows of the sets, once, and compares it with its checksum. It
// stores the rows of sets that have memory.
func check(ctx context.Context, b *mem.Budget, src Source, sets ...*rowSet) error {
	held := make([]bool, src.NumChunks())
	for _, s := range sets {
		for _, b := range s.blocks {
			held[b.chunk] = true
		}
	}
	var chunks []int
	for i := range held {
		if held[i] {
			chunks = append(chunks, i)
		}
	}
	taken := make([]int64, len(sets))
	return scan(ctx, b, src, chunks, func(c *chunkBuffer) error {
		for k, s := range sets {
			if s.values != nil {
				taken[k] += s.take(c.batch.Values, c.batch.First, s.values.S[taken[k]*int64(src.Width()):], s.places.S[taken[k]:])
			}
		}
		return nil
	})
}

// chunkBuffer holds memory for one chunk, off the heap.
type chunkBuffer struct {
	batch  shards.RowBatch
	id     *mem.Array[int64]
	label  *mem.Array[int32]
	values *mem.Array[float32]
}

// largestChunk returns the number of rows of the largest chunk.
func largestChunk(src Source) int64 {
	var most int64
	for i := range src.NumChunks() {
		_, rows := src.Chunk(i)
		most = max(most, rows)
	}
	return most
}

func chunkBufferBytes(src Source) int64 {
	return largestChunk(src)*(4*int64(src.Width())+12) + 4*shards.RowSlack + 3*4096
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
	if c.values, err = mem.Alloc[float32](b, rows*int64(src.Width())+shards.RowSlack, "a chunk of rows"); err != nil {
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

// read reads chunk i.
func (c *chunkBuffer) read(src Source, i int) error {
	first, rows := src.Chunk(i)
	c.batch.Values = c.values.S[:0]
	if err := src.ReadChunk(i, &c.batch); err != nil {
		return err
	}
	if c.batch.First != first || int64(len(c.batch.Values)) != rows*int64(src.Width()) || int64(len(c.batch.ID)) != rows {
		return fmt.Errorf("train: chunk %d does not hold the expected %d rows from row %d on: %w", i, rows, first, seal.ErrCorrupt)
	}
	return nil
}

// scan calls use with chunks of the source, in their order. If the budget has room for a second
// buffer, it reads the next chunk meanwhile.
func scan(ctx context.Context, b *mem.Budget, src Source, chunks []int, use func(*chunkBuffer) error) error {
	buffers, err := upTo(readAhead, func() (*chunkBuffer, error) { return newChunkBuffer(b, src) })
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range buffers {
			c.free()
		}
	}()
	return ahead.Run(ctx, buffers, len(chunks),
		func(k int, c *chunkBuffer) error { return c.read(src, chunks[k]) },
		func(_ int, c *chunkBuffer) error { return use(c) })
}
