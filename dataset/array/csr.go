package array

import (
	"context"
	"errors"
	"io"
	"slices"

	"ndls/dataset/graph"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
)

// CSR is a sparse matrix in compressed rows, in a file.
type CSR struct {
	Name                  string
	Rows, Cols            int64
	indptr, Indices, data Vector
}

// check compares the sizes of the parts with each other.
func (m *CSR) check() error {
	for _, v := range []Vector{m.indptr, m.Indices} {
		if !v.Type.IsInteger() {
			return graph.BadData(v.Name, "dtype %s: indices must be integers, save a.astype('<i8')", v.Type)
		}
	}
	if m.Rows < 0 || m.Cols < 0 || m.Rows > graph.MaxID+1 || m.Cols > graph.MaxID+1 {
		return graph.BadData(m.Name, "shape (%d, %d): at most %d rows and columns are read", m.Rows, m.Cols, int64(graph.MaxID+1))
	}
	if m.indptr.N != m.Rows+1 {
		return graph.BadData(m.indptr.Name, "holds %d numbers, %d rows need %d: the matrix is inconsistent, save it again", m.indptr.N, m.Rows, m.Rows+1)
	}
	if m.Indices.N != m.data.N {
		return graph.BadData(m.Name, "%d column indices but %d values: the matrix is inconsistent, save it again", m.Indices.N, m.data.N)
	}
	return nil
}

// weightedEntries is how many values of a matrix are looked at for weights.
const weightedEntries = 1 << 20

// Weighted says whether one of the first values is not 1. A matrix with weights shows
// it there.
func (m *CSR) Weighted(ctx context.Context) (_ bool, err error) {
	values, err := m.data.Numbers(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, values.Close()) }()
	for range min(m.data.N, weightedEntries) {
		v, err := values.Next()
		if err != nil {
			return false, err
		}
		if v != 1 {
			return true, nil
		}
	}
	return false, nil
}

// PickledCSR takes the matrix out of an unpickled object.
func PickledCSR(src *source.Source, base int64, value any) (*CSR, error) {
	o, isObject := value.(*pickle.Object)
	if !isObject {
		return nil, graph.BadData(src.Name, "holds a %T, not a SciPy CSR matrix: save it with scipy.sparse.csr_matrix", value)
	}
	state, isDict := o.State.(*pickle.Dict)
	if !isDict {
		return nil, graph.BadData(src.Name, "the pickled CSR matrix has no content: write it again")
	}
	m := &CSR{Name: src.Name}
	shape, ok := state.Get("_shape")
	if !ok {
		shape, _ = state.Get("shape")
	}
	dims, isTuple := shape.(pickle.Tuple)
	if !isTuple || len(dims) != 2 {
		return nil, graph.BadData(src.Name, "the pickled CSR matrix has no shape: write it again")
	}
	rows, rowsOK := dims[0].(int64)
	cols, colsOK := dims[1].(int64)
	if !rowsOK || !colsOK {
		return nil, graph.BadData(src.Name, "the shape of the pickled CSR matrix is no pair of numbers: write it again")
	}
	m.Rows, m.Cols = rows, cols
	for _, part := range []struct {
		key string
		v   *Vector
	}{{"indptr", &m.indptr}, {"indices", &m.Indices}, {"data", &m.data}} {
		array, _ := state.Get(part.key)
		v, dims, err := PickledVector(src, base, array, part.key)
		if err != nil {
			return nil, err
		}
		if len(dims) != 1 {
			return nil, graph.BadData(v.Name, "has shape %v, a vector is needed: write the matrix again", dims)
		}
		*part.v = v
	}
	return m, m.check()
}

// csrRows walks over the rows: after next, the entries of the row follow in
// indices (and the values).
type csrRows struct {
	m       *CSR
	indptr  *cursor[int64]
	indices *cursor[int64]
	Row     int64
	last    int64 // end of the current row
}

func (m *CSR) open(ctx context.Context) (*csrRows, error) {
	indptr, err := m.indptr.Integers(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &csrRows{m: m, indptr: indptr, Row: -1}
	if r.indices, err = m.Indices.Integers(ctx, 0); err != nil {
		return nil, errors.Join(err, indptr.Close())
	}
	first, err := indptr.Next()
	if err == nil && first != 0 {
		err = graph.BadData(m.indptr.Name, "starts with %d, not 0: the matrix is inconsistent, save it again", first)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *csrRows) Close() error { return errors.Join(r.indptr.Close(), r.indices.Close()) }

// next moves to the next row and returns its number of entries, or io.EOF.
func (r *csrRows) next() (int64, error) {
	r.Row++
	if r.Row == r.m.Rows {
		return 0, r.finish()
	}
	end, err := r.indptr.Next()
	if err != nil {
		return 0, err
	}
	n := end - r.last
	if n < 0 || end > r.m.Indices.N {
		return 0, graph.BadData(r.m.indptr.Name, "row %d runs from entry %d to %d of %d: the matrix is inconsistent, save it again",
			r.Row, r.last, end, r.m.Indices.N)
	}
	r.last = end
	return n, nil
}

// finish checks that nothing is left over.
func (r *csrRows) finish() error {
	if r.last != r.m.Indices.N {
		return graph.BadData(r.m.indptr.Name, "ends at entry %d of %d: the matrix is inconsistent, save it again", r.last, r.m.Indices.N)
	}
	for _, c := range []*cursor[int64]{r.indptr, r.indices} {
		if _, err := c.Next(); err != io.EOF {
			return err
		}
	}
	return io.EOF
}

// column reads the next column index of the row.
func (r *csrRows) column() (uint32, error) {
	c, err := r.indices.Next()
	if err == nil && (c < 0 || c >= r.m.Cols) {
		err = graph.BadData(r.m.Indices.Name, "row %d has column %d of %d: the matrix is inconsistent, save it again", r.Row, c, r.m.Cols)
	}
	return uint32(c), err
}

// csrEdges streams the stored entries of an adjacency matrix; values are not
// looked at.
type csrEdges struct {
	rows *csrRows
	left int64
}

// Edges reads the stored entries as edges.
func (m *CSR) Edges(ctx context.Context) (graph.EdgeReader, error) {
	rows, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	return &csrEdges{rows: rows}, nil
}

// WeightedEdges reads the stored entries as edges whose weights are the values.
func (m *CSR) WeightedEdges(ctx context.Context) (graph.EdgeReader, error) {
	edges, err := m.Edges(ctx)
	if err != nil {
		return nil, err
	}
	weights, err := m.data.Numbers(ctx)
	if err != nil {
		return nil, errors.Join(err, edges.Close())
	}
	return &weightedReader{EdgeReader: edges, weights: weights, last: true}, nil
}

func (e *csrEdges) Read(batch []graph.Edge) (int, error) {
	for n := range batch {
		for e.left == 0 {
			left, err := e.rows.next()
			if err == io.EOF && n > 0 {
				e.rows.Row-- // The end comes alone, with the next call.
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
		batch[n] = graph.Edge{U: uint32(e.rows.Row), V: c}
	}
	return len(batch), nil
}

func (e *csrEdges) Close() error { return e.rows.Close() }

// CSRFeatures streams the rows of a feature matrix, sorted by column.
type CSRFeatures struct {
	Rows   *csrRows
	values *cursor[float32]
	buf    []entry
	row    graph.FeatureRow
}

type entry struct {
	column uint32
	value  float32
}

func (m *CSR) Features(ctx context.Context) (*CSRFeatures, error) {
	rows, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	values, err := m.data.Numbers(ctx)
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return &CSRFeatures{Rows: rows, values: values}, nil
}

func (f *CSRFeatures) Close() error { return errors.Join(f.Rows.Close(), f.values.Close()) }

// Next returns row i as that of node i.
func (f *CSRFeatures) Next() (graph.FeatureRow, error) {
	n, err := f.Rows.next()
	if err == io.EOF {
		if _, err := f.values.Next(); err != io.EOF {
			return graph.FeatureRow{}, err
		}
	}
	if err != nil {
		return graph.FeatureRow{}, err
	}
	m := f.Rows.m
	if n > m.Cols {
		return graph.FeatureRow{}, graph.BadData(m.Name, "row %d has %d entries in %d columns: call sum_duplicates() and save it again", f.Rows.Row, n, m.Cols)
	}
	f.buf = f.buf[:0]
	sorted := true
	for range n {
		c, err := f.Rows.column()
		if err != nil {
			return graph.FeatureRow{}, err
		}
		v, err := f.values.Next()
		if err != nil {
			return graph.FeatureRow{}, err
		}
		if !graph.Finite(v) {
			return graph.FeatureRow{}, graph.NotFinite(m.Name, f.Rows.Row, int64(c), v)
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
func (f *CSRFeatures) emit() (graph.FeatureRow, error) {
	r := &f.row
	r.ID, r.Indices, r.Values = uint32(f.Rows.Row), r.Indices[:0], r.Values[:0]
	for i, e := range f.buf {
		if i > 0 && f.buf[i-1].column == e.column {
			return graph.FeatureRow{}, graph.BadData(f.Rows.m.Name, "row %d has column %d twice: call sum_duplicates() and save it again", r.ID, e.column)
		}
		if e.value != 0 {
			r.Indices, r.Values = append(r.Indices, e.column), append(r.Values, e.value)
		}
	}
	return *r, nil
}
