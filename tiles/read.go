package tiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
)

// batchValues is how many values [Matrix.Rows] gives at a time, or one row.
const batchValues = 1 << 18

// Width is the number of columns.
func (m *Matrix) Width() int { return m.Layout.Width }

// pages is what the budget takes at most for rounding the two arrays of Read up.
const pages = 2 * 4096

// ReadBytes is the most memory that Read takes for batches of rows of some columns.
func (m *Matrix) ReadBytes(width, batch int) int64 {
	return int64(batch)*(4*int64(width)+m.rowBytes()) + pages
}

// Batch is how many rows of some columns Read can give at a time in so many bytes, at
// least one.
func (m *Matrix) Batch(width int, bytes int64) int {
	return int(max((bytes-pages)/(4*int64(width)+m.rowBytes()), 1))
}

// Rows gives the caller's rows of columns [first, first+columns) in order, some at a time:
// values are row-major, and valid during the call. first is a multiple of 16; columns past
// the width are zero.
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

// Read gives the caller's rows of an interval, batch rows or fewer at a time: columns
// [0, width) of the panels from first on. values is row-major, and valid during the call.
// Each file is read once; one that is damaged is found at its end.
func (m *Matrix) Read(ctx context.Context, interval, first, width, batch int, visit func(row int64, values []float32) error) (err error) {
	lo, hi := m.Mine(interval)
	if lo == hi {
		return nil
	}
	panels := make([]*PartReader, min(packed.Panels(width), m.Panels()-first)) // what is past the width is zero
	defer func() {
		for _, r := range panels {
			r.Close()
		}
	}()
	for p := range panels {
		list, err := m.files(interval, first+p)
		if err != nil {
			return err
		}
		if panels[p], err = OpenParts(ctx, m.cat, meeting(list, lo, hi), m.rowBytes()); err != nil {
			return err
		}
	}
	batch = int(min(int64(batch), hi-lo))
	values, err := mem.Alloc[float32](m.budget, int64(batch)*int64(width), "rows of tiles")
	if err != nil {
		return err
	}
	defer values.Free()
	column, err := mem.Alloc[byte](m.budget, int64(batch)*m.rowBytes(), "tile rows")
	if err != nil {
		return err
	}
	defer column.Free()
	for row := lo; row < hi; {
		n := int(min(int64(batch), hi-row))
		for p, r := range panels {
			part := column.S[:int64(n)*m.rowBytes()]
			if err := r.Read(part, row); err != nil {
				return err
			}
			at := p * packed.PanelColumns
			columns := min(packed.PanelColumns, width-at)
			for i := range n {
				shards.DecodeTile(values.S[i*width+at:][:columns], part[int64(i)*m.rowBytes():], m.Half)
			}
		}
		if row += int64(n); row == hi {
			// The last rows are given once all of them are known to be right.
			for _, r := range panels {
				if err := r.Finish(); err != nil {
					return err
				}
			}
		}
		if err := visit(row-int64(n), values.S[:n*width]); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Panel opens the stored rows of one panel and interval, which the caller reads from the
// first to the last, finishes and closes.
func (m *Matrix) Panel(ctx context.Context, interval, panel int) (*PartReader, error) {
	list, err := m.files(interval, panel)
	if err != nil {
		return nil, err
	}
	return OpenParts(ctx, m.cat, list, m.rowBytes())
}

// meeting are the files that hold rows of [lo, hi).
func meeting(list []catalog.Entry, lo, hi int64) []catalog.Entry {
	return slices.DeleteFunc(list, func(e catalog.Entry) bool { return e.Hi <= lo || e.Lo >= hi })
}

// PartReader reads rows of a fixed size from files that hold some rows each.
type PartReader struct {
	list []catalog.Entry
	open []*catalog.Verified
	size int64 // of a row
}

// OpenParts opens files in order of their rows, each of size bytes.
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

// Close closes the files. A nil PartReader has none.
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
	for i, e := range p.list {
		if row < e.Lo || row >= e.Hi {
			continue
		}
		part := buf[:min(int64(len(buf)), (e.Hi-row)*p.size)]
		if _, err := p.open[i].ReadAt(part, (row-e.Lo)*p.size); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		buf, row = buf[len(part):], row+int64(len(part))/p.size
	}
	if len(buf) > 0 {
		return fmt.Errorf("no file has rows from %d on: %w", row, seal.ErrCorrupt)
	}
	return nil
}

// Finish compares the files with the catalogue, and reads for that what was left out of
// them.
func (p *PartReader) Finish() error {
	for _, r := range p.open {
		if err := r.Finish(); err != nil {
			return err
		}
	}
	return nil
}
