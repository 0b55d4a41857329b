package dataset

import (
	"context"
	"errors"
	"io"
	"slices"

	"ndls/dataset/pickle"
)

// csr is a sparse matrix in compressed rows, in a file.
type csr struct {
	name                  string
	rows, cols            int64
	indptr, indices, data vector
}

// check compares the sizes of the parts with each other.
func (m *csr) check() error {
	for _, v := range []vector{m.indptr, m.indices} {
		if !v.typ.IsInteger() {
			return badData(v.name, "dtype %s: indices must be integers, save a.astype('<i8')", v.typ)
		}
	}
	if m.rows < 0 || m.cols < 0 || m.rows > MaxID+1 || m.cols > MaxID+1 {
		return badData(m.name, "shape (%d, %d): at most %d rows and columns are read", m.rows, m.cols, int64(MaxID+1))
	}
	if m.indptr.n != m.rows+1 {
		return badData(m.indptr.name, "holds %d numbers, %d rows need %d: the matrix is inconsistent, save it again", m.indptr.n, m.rows, m.rows+1)
	}
	if m.indices.n != m.data.n {
		return badData(m.name, "%d column indices but %d values: the matrix is inconsistent, save it again", m.indices.n, m.data.n)
	}
	return nil
}

// weightedEntries is how many values of a matrix are looked at for weights.
const weightedEntries = 1 << 20

// weighted says whether one of the first values is not 1. A matrix with weights shows
// it there.
func (m *csr) weighted(ctx context.Context) (_ bool, err error) {
	values, err := m.data.numbers(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, values.Close()) }()
	for range min(m.data.n, weightedEntries) {
		v, err := values.next()
		if err != nil {
			return false, err
		}
		if v != 1 {
			return true, nil
		}
	}
	return false, nil
}

// pickledCSR takes the matrix out of an unpickled object.
func pickledCSR(src *source, base int64, value any) (*csr, error) {
	o, isObject := value.(*pickle.Object)
	if !isObject {
		return nil, badData(src.name, "holds a %T, not a SciPy CSR matrix: save it with scipy.sparse.csr_matrix", value)
	}
	state, isDict := o.State.(*pickle.Dict)
	if !isDict {
		return nil, badData(src.name, "the pickled CSR matrix has no content: write it again")
	}
	m := &csr{name: src.name}
	shape, ok := state.Get("_shape")
	if !ok {
		shape, _ = state.Get("shape")
	}
	dims, isTuple := shape.(pickle.Tuple)
	if !isTuple || len(dims) != 2 {
		return nil, badData(src.name, "the pickled CSR matrix has no shape: write it again")
	}
	rows, rowsOK := dims[0].(int64)
	cols, colsOK := dims[1].(int64)
	if !rowsOK || !colsOK {
		return nil, badData(src.name, "the shape of the pickled CSR matrix is no pair of numbers: write it again")
	}
	m.rows, m.cols = rows, cols
	for _, part := range []struct {
		key string
		v   *vector
	}{{"indptr", &m.indptr}, {"indices", &m.indices}, {"data", &m.data}} {
		array, _ := state.Get(part.key)
		v, dims, err := pickledVector(src, base, array, part.key)
		if err != nil {
			return nil, err
		}
		if len(dims) != 1 {
			return nil, badData(v.name, "has shape %v, a vector is needed: write the matrix again", dims)
		}
		*part.v = v
	}
	return m, m.check()
}

// csrRows walks over the rows: after next, the entries of the row follow in
// indices (and the values).
type csrRows struct {
	m       *csr
	indptr  *cursor[int64]
	indices *cursor[int64]
	row     int64
	last    int64 // end of the current row
}

func (m *csr) open(ctx context.Context) (*csrRows, error) {
	indptr, err := m.indptr.integers(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &csrRows{m: m, indptr: indptr, row: -1}
	if r.indices, err = m.indices.integers(ctx, 0); err != nil {
		return nil, errors.Join(err, indptr.Close())
	}
	first, err := indptr.next()
	if err == nil && first != 0 {
		err = badData(m.indptr.name, "starts with %d, not 0: the matrix is inconsistent, save it again", first)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *csrRows) Close() error { return errors.Join(r.indptr.Close(), r.indices.Close()) }

// next moves to the next row and returns its number of entries, or io.EOF.
func (r *csrRows) next() (int64, error) {
	r.row++
	if r.row == r.m.rows {
		return 0, r.finish()
	}
	end, err := r.indptr.next()
	if err != nil {
		return 0, err
	}
	n := end - r.last
	if n < 0 || end > r.m.indices.n {
		return 0, badData(r.m.indptr.name, "row %d runs from entry %d to %d of %d: the matrix is inconsistent, save it again",
			r.row, r.last, end, r.m.indices.n)
	}
	r.last = end
	return n, nil
}

// finish checks that nothing is left over.
func (r *csrRows) finish() error {
	if r.last != r.m.indices.n {
		return badData(r.m.indptr.name, "ends at entry %d of %d: the matrix is inconsistent, save it again", r.last, r.m.indices.n)
	}
	for _, c := range []*cursor[int64]{r.indptr, r.indices} {
		if _, err := c.next(); err != io.EOF {
			return err
		}
	}
	return io.EOF
}

// column reads the next column index of the row.
func (r *csrRows) column() (uint32, error) {
	c, err := r.indices.next()
	if err == nil && (c < 0 || c >= r.m.cols) {
		err = badData(r.m.indices.name, "row %d has column %d of %d: the matrix is inconsistent, save it again", r.row, c, r.m.cols)
	}
	return uint32(c), err
}

// csrEdges streams the stored entries of an adjacency matrix; values are not
// looked at.
type csrEdges struct {
	rows *csrRows
	left int64
}

func (m *csr) edges(ctx context.Context) (EdgeReader, error) {
	rows, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	return &csrEdges{rows: rows}, nil
}

func (e *csrEdges) Read(batch []Edge) (int, error) {
	for n := range batch {
		for e.left == 0 {
			left, err := e.rows.next()
			if err == io.EOF && n > 0 {
				e.rows.row-- // The end comes alone, with the next call.
				return n, nil
			}
			if err != nil {
				return 0, err
			}
			e.left = left
		}
		c, err := e.rows.column()
		if err != nil {
			return 0, err
		}
		e.left--
		batch[n] = Edge{uint32(e.rows.row), c}
	}
	return len(batch), nil
}

func (e *csrEdges) Close() error { return e.rows.Close() }

// csrFeatures streams the rows of a feature matrix, sorted by column.
type csrFeatures struct {
	rows   *csrRows
	values *cursor[float32]
	buf    []entry
	row    FeatureRow
}

type entry struct {
	column uint32
	value  float32
}

func (m *csr) features(ctx context.Context) (*csrFeatures, error) {
	rows, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	values, err := m.data.numbers(ctx)
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return &csrFeatures{rows: rows, values: values}, nil
}

func (f *csrFeatures) Close() error { return errors.Join(f.rows.Close(), f.values.Close()) }

// Next returns row i as that of node i.
func (f *csrFeatures) Next() (FeatureRow, error) {
	n, err := f.rows.next()
	if err == io.EOF {
		if _, err := f.values.next(); err != io.EOF {
			return FeatureRow{}, err
		}
	}
	if err != nil {
		return FeatureRow{}, err
	}
	m := f.rows.m
	if n > m.cols {
		return FeatureRow{}, badData(m.name, "row %d has %d entries in %d columns: call sum_duplicates() and save it again", f.rows.row, n, m.cols)
	}
	f.buf = f.buf[:0]
	sorted := true
	for range n {
		c, err := f.rows.column()
		if err != nil {
			return FeatureRow{}, err
		}
		v, err := f.values.next()
		if err != nil {
			return FeatureRow{}, err
		}
		if !finite(v) {
			return FeatureRow{}, notFinite(m.name, f.rows.row, int64(c), v)
		}
		sorted = sorted && (len(f.buf) == 0 || f.buf[len(f.buf)-1].column < c)
		f.buf = append(f.buf, entry{c, v})
	}
	if !sorted {
		slices.SortFunc(f.buf, func(a, b entry) int { return int(a.column) - int(b.column) })
	}
	return f.emit()
}

// emit turns the sorted entries into a row of the non-zero ones.
func (f *csrFeatures) emit() (FeatureRow, error) {
	r := &f.row
	r.ID, r.Indices, r.Values = uint32(f.rows.row), r.Indices[:0], r.Values[:0]
	for i, e := range f.buf {
		if i > 0 && f.buf[i-1].column == e.column {
			return FeatureRow{}, badData(f.rows.m.name, "row %d has column %d twice: call sum_duplicates() and save it again", r.ID, e.column)
		}
		if e.value != 0 {
			r.Indices, r.Values = append(r.Indices, e.column), append(r.Values, e.value)
		}
	}
	return *r, nil
}
