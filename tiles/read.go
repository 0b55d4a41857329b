package tiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/internal/ahead"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/shards"
)

const (
	// batchValues is the number of values that [Matrix.Rows] puts at a time, unless one row is longer.
	batchValues = 1 << 18
	// pieceBytes bounds the stored rows that are read at a time; pieces is the number of such pieces in memory.
	pieceBytes = 4 << 20
	pieces     = 3
	// leastRows is the number of rows of a panel that are read at a time, or fewer if fewer are requested. In wide matrices, a piece has
	// some of the panels.
	leastRows = 1 << 10
)

// Width returns the number of columns.
func (m *Matrix) Width() int { return m.Layout.Width }

// pages bounds the memory by which the budget rounds up the two arrays of Read.
const pages = 2 * 4096

// ReadBytes returns the least memory of Read for batches of rows of width columns. Read uses 4·width·batch bytes more if the budget has
// room and the caller has several threads.
func (m *Matrix) ReadBytes(width, batch int) int64 { return ReadBytes(width, batch, m.rowBytes()) }

// ReadBytes is [Matrix.ReadBytes] for tiles whose rows have row bytes.
func ReadBytes(width, batch int, row int64) int64 {
	return int64(batch)*4*int64(width) + 4096 + PiecesBytes(packed.Panels(width), batch, row)
}

// Batch returns the number of rows of width columns that Read can return at a time in this number of bytes, at least one.
func (m *Matrix) Batch(width int, bytes int64) int {
	row, panels := 4*int64(width), int64(packed.Panels(width))
	small := (bytes - pages) / (row + pieces*panels*m.rowBytes())
	large := (bytes - pages - pieces*pieceBytes) / row
	return int(max(small, large, 1))
}

// Rows puts the caller's rows of columns [first, first+columns) in order, some at a time. The rows are row-major and valid during the call.
// first is a multiple of 16; columns past the width are zero.
func (m *Matrix) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	for i := range m.Intervals() {
		if lo, hi := m.Mine(i); lo == hi {
			continue
		}
		err := m.Read(ctx, i, first/packed.PanelColumns, columns, max(batchValues/columns, 1), func(_ int64, values []float32) error {
			return put(values)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Read visits the caller's rows of an interval, at most batch at a time: columns [0, width) of the panels from first on. values is
// row-major and valid during the call. Each file is read once; damage is found at its end. Each thread takes a panel. While visit uses
// rows, the next rows are read and decoded.
func (m *Matrix) Read(ctx context.Context, interval, first, width, batch int, visit func(row int64, values []float32) error) (err error) {
	lo, hi := m.Mine(interval)
	if lo == hi {
		return nil
	}
	panels := min(packed.Panels(width), m.Panels()-first) // columns past the width are zero
	batch = int(min(int64(batch), hi-lo))
	in, err := m.Pieces(ctx, interval, first, panels, batch)
	if err != nil {
		return err
	}
	defer in.Close()
	buffers, err := m.batches(batch * width)
	if err != nil {
		return err
	}
	defer func() {
		for _, b := range buffers {
			b.Free()
		}
	}()
	items := int((hi - lo + int64(batch) - 1) / int64(batch))
	rows := func(i int) (from int64, n int) {
		from = lo + int64(i)*int64(batch)
		return from, int(min(int64(batch), hi-from))
	}
	return ahead.Run(ctx, buffers, items,
		func(i int, values *mem.Array[float32]) error {
			from, n := rows(i)
			for end := from; end < from+int64(n); {
				p, err := in.Next()
				if err != nil {
					return err
				}
				m.decode(p, first, values.S[int(p.Row-from)*width:], width)
				if p.Last {
					end = p.Row + int64(p.Rows)
				}
			}
			return nil
		},
		func(i int, values *mem.Array[float32]) error {
			from, n := rows(i)
			return visit(from, values.S[:n*width])
		})
}

// batches allocates memory for this number of values, twice if there are several threads and the budget has room.
func (m *Matrix) batches(values int) (all []*mem.Array[float32], err error) {
	a, err := mem.Alloc[float32](m.budget, int64(values), "rows of tiles")
	if err != nil {
		return nil, err
	}
	all = append(all, a)
	if m.threads > 1 {
		if a, err := mem.Alloc[float32](m.budget, int64(values), "rows of tiles"); err == nil {
			all = append(all, a)
		}
	}
	return all, nil
}

// decode decodes the rows of a piece into values, which begins with the first row of the piece. Panel first is the first of width columns.
// Each thread decodes some rows of a panel.
func (m *Matrix) decode(p *Piece, first int, values []float32, width int) {
	parts := (p.Rows + leastRows - 1) / leastRows
	_ = share.Each(m.threads, p.Panels*parts, func(part int) error {
		k, from := part/parts, part%parts*leastRows
		at := (p.First + k - first) * packed.PanelColumns
		columns := min(packed.PanelColumns, width-at)
		stored, row := p.Panel(k), int(m.rowBytes())
		for i := from; i < min(from+leastRows, p.Rows); i++ {
			shards.DecodeTile(values[i*width+at:][:columns], stored[i*row:], m.Half)
		}
		return nil
	})
}

// meeting returns the files that hold rows of [lo, hi).
func meeting(list []catalog.Entry, lo, hi int64) []catalog.Entry {
	return slices.DeleteFunc(list, func(e catalog.Entry) bool { return e.Hi <= lo || e.Lo >= hi })
}

// PartReader reads rows of a fixed size from files that hold some rows each.
type PartReader struct {
	list []catalog.Entry
	open []*catalog.Verified
	size int64 // bytes of a row
}

// OpenParts opens files in order of their rows; a row has size bytes.
func OpenParts(ctx context.Context, cat *catalog.Catalog, list []catalog.Entry, size int64) (*PartReader, error) {
	p := &PartReader{list: list, size: size}
	for _, e := range list {
		v, err := cat.OpenVerified(ctx, e)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.open = append(p.open, v)
	}
	return p, nil
}

// Close closes the files. p may be nil.
func (p *PartReader) Close() {
	if p == nil {
		return
	}
	for _, r := range p.open {
		_ = r.Close()
	}
}

// Read fills buf with whole rows from row on. Rows should be read in ascending order.
func (p *PartReader) Read(buf []byte, row int64) error {
	return p.each(buf, row, func(v *catalog.Verified, part []byte, off int64) error {
		_, err := v.ReadAt(part, off)
		return err
	})
}

// fetch is Read for rows that the caller later passes to add, in ascending order.
func (p *PartReader) fetch(buf []byte, row int64) error {
	return p.each(buf, row, func(v *catalog.Verified, part []byte, off int64) error {
		_, err := v.Fetch(part, off)
		return err
	})
}

// add adds fetched rows to the checksums of their files. After the last rows it compares the checksums.
func (p *PartReader) add(rows []byte, row int64, last bool) error {
	if err := p.each(rows, row, (*catalog.Verified).Add); err != nil || !last {
		return err
	}
	return p.Finish()
}

// each calls do for each file with its part of buf, which has whole rows from row on, and the offset of that part in the file.
func (p *PartReader) each(buf []byte, row int64, do func(v *catalog.Verified, part []byte, off int64) error) error {
	for i, e := range p.list {
		if row < e.Lo || row >= e.Hi {
			continue
		}
		part := buf[:min(int64(len(buf)), (e.Hi-row)*p.size)]
		if err := do(p.open[i], part, (row-e.Lo)*p.size); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		buf, row = buf[len(part):], row+int64(len(part))/p.size
	}
	if len(buf) > 0 {
		return fmt.Errorf("no file has rows from %d on: %w", row, seal.ErrCorrupt)
	}
	return nil
}

// Finish compares the files with the catalogue; it reads the bytes that were left out.
func (p *PartReader) Finish() error {
	for _, r := range p.open {
		if err := r.Finish(); err != nil {
			return err
		}
	}
	return nil
}
