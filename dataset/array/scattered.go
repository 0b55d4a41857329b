package array

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"ndls/dataset/graph"
)

const (
	// spreadParts is the number of parts of rows whose entries are counted.
	spreadParts = 1 << 16
	// lotEntries is the number of entries that are put in order at a time, 16 bytes each.
	lotEntries = 1 << 20
)

// spread says where the entries of a matrix are that are not stored row by row.
type spread struct {
	// ascending says that the rows of entries ascend: one reading gives them in order.
	ascending bool
	// lots are the ends of parts of the rows, each with at most lotEntries entries.
	lots []int64
}

// entries walks over the entries of a matrix in the order in which they are stored.
type entries struct {
	m      *Sparse
	values *cursor[float64]
	// In compressed columns:
	columns *csrRows
	left    int64
	// Entry by entry:
	rows, cols *cursor[int64]
	number     int64
}

// openEntries opens a matrix in compressed columns or entry by entry.
func (m *Sparse) openEntries(ctx context.Context) (e *entries, err error) {
	e = &entries{m: m}
	defer func() {
		if err != nil {
			_ = e.Close()
		}
	}()
	if m.rows == nil {
		if e.columns, err = m.open(ctx); err != nil {
			return e, err
		}
	} else {
		if e.rows, err = m.rows.Integers(ctx, 0); err != nil {
			return e, err
		}
		if e.cols, err = m.indices.Integers(ctx, 0); err != nil {
			return e, err
		}
	}
	e.values, err = m.data.Doubles(ctx, 0)
	return e, err
}

// Close closes the arrays that are open.
func (e *entries) Close() (err error) {
	if e.columns != nil {
		err = e.columns.Close()
	}
	for _, c := range []*cursor[int64]{e.rows, e.cols} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if e.values != nil {
		err = errors.Join(err, e.values.Close())
	}
	return err
}

// next returns the next entry, or io.EOF.
func (e *entries) next() (x entry, err error) {
	if e.columns != nil {
		for e.left == 0 {
			if e.left, err = e.columns.next(); err != nil {
				return x, e.finish(err)
			}
		}
		e.left--
		x.column = uint32(e.columns.Row)
		if x.row, err = e.columns.column(); err != nil {
			return x, err
		}
	} else {
		row, err := e.rows.Next()
		if err == io.EOF {
			if _, err := e.cols.Next(); err != io.EOF {
				return x, err
			}
		}
		if err != nil {
			return x, e.finish(err)
		}
		column, err := e.cols.Next()
		if err != nil {
			return x, err
		}
		if row < 0 || row >= e.m.Rows || column < 0 || column >= e.m.Cols {
			return x, graph.BadData(e.m.Name, "entry %d is in row %d and column %d of shape (%d, %d): the matrix is inconsistent, save it again", e.number, row, column, e.m.Rows, e.m.Cols)
		}
		e.number++
		x.row, x.column = uint32(row), uint32(column)
	}
	if x.value, err = e.values.Next(); err == nil {
		err = e.m.checkValue(int64(x.row), int64(x.column), x.value)
	}
	return x, err
}

// finish reads what is behind the last value.
func (e *entries) finish(err error) error {
	if err == io.EOF {
		_, err = e.values.Next()
	}
	return err
}

// findSpread reads all entries once and finds out how their rows can be put in order.
func (m *Sparse) findSpread(ctx context.Context) (_ *spread, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spread != nil {
		return m.spread, nil
	}
	e, err := m.openEntries(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	width := max((m.Rows+spreadParts-1)/spreadParts, 1)
	counts := make([]int64, (m.Rows+width-1)/width)
	s, last := &spread{ascending: true}, uint32(0)
	for {
		x, err := e.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		s.ascending, last = s.ascending && last <= x.row, x.row
		counts[int64(x.row)/width]++
	}
	sum := int64(0)
	for i, n := range counts {
		if n > lotEntries {
			return nil, graph.BadData(m.Name, "has %d entries in rows %d to %d, too many to put in order: save it with scipy.sparse.save_npz(file, a.tocsr())", n, int64(i)*width, min(int64(i+1)*width, m.Rows)-1)
		}
		if sum+n > lotEntries {
			s.lots, sum = append(s.lots, int64(i)*width), 0
		}
		sum += n
	}
	s.lots = append(s.lots, m.Rows)
	if !s.ascending && len(s.lots) > mostReadings {
		return nil, graph.BadData(m.Name, "is not stored row by row, and its %d entries would be read %d times to put them in order: save it with scipy.sparse.save_npz(file, a.tocsr())", m.Entries, len(s.lots))
	}
	m.spread = s
	return s, nil
}

// scattered streams the rows of a matrix that is not stored in compressed rows: it reads the entries
// of a lot of rows and sorts them. Where rows do not ascend, it reads all entries for each lot.
func (m *Sparse) scattered(ctx context.Context) (graph.FeatureReader, error) {
	s, err := m.findSpread(ctx)
	if err != nil {
		return nil, err
	}
	return &scattered{ctx: ctx, m: m, lots: s.lots, ascending: s.ascending}, nil
}

type scattered struct {
	ctx       context.Context
	m         *Sparse
	lots      []int64 // ends of the lots that follow
	ascending bool
	e         *entries // nil where none are open
	ahead     *entry   // the first one of the next lot
	buf, lot  []entry
	row, end  int64 // the next row, and the end of the lot
	out       sparseRow
}

// Close implements [graph.FeatureReader].
func (r *scattered) Close() error {
	if r.e == nil {
		return nil
	}
	return r.e.Close()
}

// Next returns row i as that of node i.
func (r *scattered) Next() (graph.FeatureRow, error) {
	for r.row == r.end {
		if len(r.lots) == 0 {
			return graph.FeatureRow{}, io.EOF
		}
		if err := r.fill(); err != nil {
			return graph.FeatureRow{}, err
		}
	}
	n := 0
	for n < len(r.lot) && int64(r.lot[n].row) == r.row {
		n++
	}
	if err := r.m.checkRow(r.row, int64(n)); err != nil {
		return graph.FeatureRow{}, err
	}
	r.out.entries, r.lot = r.lot[:n], r.lot[n:]
	r.row++
	return r.out.emit(r.m, uint32(r.row-1))
}

// fill reads the next lot.
func (r *scattered) fill() (err error) {
	r.end, r.lots = r.lots[0], r.lots[1:]
	if r.buf == nil {
		r.buf = make([]entry, 0, min(lotEntries, r.m.Entries))
	}
	r.lot = r.buf[:0]
	if r.ahead != nil && int64(r.ahead.row) < r.end {
		r.lot, r.ahead = append(r.lot, *r.ahead), nil
	}
	if r.e == nil {
		if r.e, err = r.m.openEntries(r.ctx); err != nil {
			return err
		}
	}
	for r.ahead == nil {
		x, err := r.e.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch row := int64(x.row); {
		case row >= r.row && row < r.end:
			if len(r.lot) == lotEntries {
				return graph.BadData(r.m.Name, "it changed while it was being read: run again when nobody writes to it")
			}
			r.lot = append(r.lot, x)
		case r.ascending:
			r.ahead = &x
		}
	}
	if r.ascending {
		return nil
	}
	err = r.e.Close()
	r.e = nil
	slices.SortStableFunc(r.lot, func(a, b entry) int { return cmp.Compare(a.row, b.row) })
	return err
}
