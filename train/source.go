package train

import (
	"context"
	"fmt"
	"iter"
	"sort"

	"ndls/catalog"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
)

// Source provides smoothed rows in stored order, in chunks of consecutive rows. It is safe for
// concurrent use.
type Source interface {
	NumRows() int64
	// Width returns the number of values of a row.
	Width() int
	NumChunks() int
	// Chunk returns the stored position of chunk i's first row, and the number of its rows.
	Chunk(i int) (first, rows int64)
	// ReadChunk reads and checks chunk i, as shards.RowReader.ReadBatch does. It sets dst.First to
	// the stored position of the first row.
	ReadChunk(i int, dst *shards.RowBatch) error
	// ReadRows reads the values of so many rows of chunk i, from its row at on, into space, which
	// is longer by shards.RowSlack, and returns the slice of the values. It does not check them.
	ReadRows(i int, at, rows int64, space []float32) ([]float32, error)
}

// Smoothed is the Source of the rows that a run has committed: its Arrow files in order of their
// interval, with one chunk for each record batch.
type Smoothed struct {
	parts []part
	rows  int64
	width int
}

// part is one file.
type part struct {
	name       string
	interval   int32
	file       storage.Reader
	rows       *shards.RowReader
	firstRow   int64
	firstChunk int
}

// OpenRows opens every row file of a kind: smoothed rows, or hops. A row of hops has the values of
// all lists of the files. Errors wrap [seal.ErrCorrupt] and name the file if it differs from the
// catalogue. Each ReadChunk checks values against their checksum.
func OpenRows(ctx context.Context, c *catalog.Catalog, kind string) (*Smoothed, error) {
	s := &Smoothed{}
	entries := c.Entries(kind)
	if len(entries) == 0 {
		return nil, fmt.Errorf("train: the run directory has no smoothed rows: run ndls smooth first")
	}
	for _, e := range entries {
		if err := s.open(ctx, c, e); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Smoothed) open(ctx context.Context, c *catalog.Catalog, e catalog.Entry) error {
	file, err := c.Open(ctx, e)
	if err != nil {
		return fmt.Errorf("train: smoothed rows: %w", err)
	}
	p := part{name: e.Path, interval: e.Interval, file: file, firstRow: s.rows, firstChunk: s.NumChunks()}
	if p.rows, err = shards.OpenRows(file, e.Path); err != nil {
		file.Close()
		return fmt.Errorf("train: smoothed rows: %w", err)
	}
	s.parts = append(s.parts, p)
	width := p.rows.Schema().Values()
	switch {
	case p.rows.NumRows() != e.Rows:
		return fmt.Errorf("train: %s has %d rows, the catalogue says %d: run ndls smooth again: %w",
			e.Path, p.rows.NumRows(), e.Rows, seal.ErrCorrupt)
	case len(s.parts) > 1 && width != s.width:
		return fmt.Errorf("train: the rows of %s have %d values, those before it %d: run ndls smooth again: %w",
			e.Path, width, s.width, seal.ErrCorrupt)
	}
	s.rows, s.width = s.rows+e.Rows, width
	return nil
}

// NumRows returns the number of rows of all files.
func (s *Smoothed) NumRows() int64 { return s.rows }

// Width returns the number of values of a row.
func (s *Smoothed) Width() int { return s.width }

// NumChunks returns the number of record batches of all files.
func (s *Smoothed) NumChunks() int {
	if len(s.parts) == 0 {
		return 0
	}
	last := s.parts[len(s.parts)-1]
	return last.firstChunk + last.rows.NumBatches()
}

// part finds the file that holds record batch i.
func (s *Smoothed) part(i int) part {
	after := sort.Search(len(s.parts), func(k int) bool { return s.parts[k].firstChunk > i })
	return s.parts[after-1]
}

// Chunk returns the first row of record batch i, and the number of its rows.
func (s *Smoothed) Chunk(i int) (first, rows int64) {
	p := s.part(i)
	first, rows = p.rows.BatchRows(i - p.firstChunk)
	return p.firstRow + first, rows
}

// ReadChunk reads record batch i.
func (s *Smoothed) ReadChunk(i int, dst *shards.RowBatch) error {
	p := s.part(i)
	if err := p.rows.ReadBatch(i-p.firstChunk, dst); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	dst.First += p.firstRow
	return nil
}

// ReadRows reads rows of record batch i.
func (s *Smoothed) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	p := s.part(i)
	values, err := p.rows.ReadValues(i-p.firstChunk, at, rows, space)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return values, nil
}

// Part is one file of smoothed rows: rows [First, First+Rows) in stored order.
type Part struct {
	Interval    int32
	First, Rows int64
}

// Parts lists the files in order.
func (s *Smoothed) Parts() []Part {
	var all []Part
	for _, p := range s.parts {
		all = append(all, Part{p.interval, p.firstRow, p.rows.NumRows()})
	}
	return all
}

// Of returns the Source of the rows of one file, by its number in Parts. Rows keep their positions
// among all rows.
func (s *Smoothed) Of(number int) Source {
	p := s.parts[number]
	return &ofPart{s, p.firstChunk, p.rows.NumBatches(), p.rows.NumRows()}
}

// ofPart holds consecutive record batches.
type ofPart struct {
	*Smoothed
	first, chunks int
	rows          int64
}

func (p *ofPart) NumRows() int64 { return p.rows }
func (p *ofPart) NumChunks() int { return p.chunks }

// Chunk implements Source.
func (p *ofPart) Chunk(i int) (first, rows int64) { return p.Smoothed.Chunk(p.first + i) }

// ReadChunk implements Source.
func (p *ofPart) ReadChunk(i int, dst *shards.RowBatch) error {
	return p.Smoothed.ReadChunk(p.first+i, dst)
}

// ReadRows implements Source.
func (p *ofPart) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	return p.Smoothed.ReadRows(p.first+i, at, rows, space)
}

// idPiece is the number of ids that are read at a time.
const idPiece = 1 << 15

// IDs yields the input ids in stored order, in pieces that must not be kept. It does not check them
// against the checksum of their record batch; ReadChunk does. It ends after the first error.
func (s *Smoothed) IDs() iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		buf := make([]int64, idPiece)
		for i := range s.NumChunks() {
			p := s.part(i)
			_, rows := s.Chunk(i)
			for at := int64(0); at < rows; at += idPiece {
				ids := buf[:min(idPiece, rows-at)]
				if err := p.rows.ReadIDs(i-p.firstChunk, at, ids); err != nil {
					yield(nil, fmt.Errorf("train: %w", err))
					return
				}
				if !yield(ids, nil) {
					return
				}
			}
		}
	}
}

// Close closes the files.
func (s *Smoothed) Close() error {
	var first error
	for _, p := range s.parts {
		if err := p.file.Close(); err != nil && first == nil {
			first = fmt.Errorf("train: close %s: %w", p.name, err)
		}
	}
	s.parts = nil
	return first
}
