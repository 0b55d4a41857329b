package array

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
)

// Sparse is a sparse matrix in a file: in compressed rows (CSR), in compressed columns (CSC), or
// entry by entry (COO).
type Sparse struct {
	Name       string
	Rows, Cols int64
	// Entries is the number of stored entries.
	Entries int64
	// indptr says where the rows are in indices, which has columns, and in data. With byColumns it
	// says where the columns are, and indices has rows.
	indptr, indices, data Vector
	byColumns             bool
	// rows, unless nil, has the row of each entry; there is no indptr then, and entries come in
	// any order.
	rows *Vector

	// What [scattered] has found out about the order of the entries.
	mu     sync.Mutex
	spread *spread
}

// lines returns the number of compressed rows or columns, and width the number of their indices.
func (m *Sparse) lines() (n, width int64) {
	if m.byColumns {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// line returns the name of what is compressed.
func (m *Sparse) line() string {
	if m.byColumns {
		return "column"
	}
	return "row"
}

// check compares the sizes of the parts with each other.
func (m *Sparse) check() error {
	parts := []Vector{m.indices}
	if m.rows != nil {
		parts = append(parts, *m.rows)
	} else {
		parts = append(parts, m.indptr)
	}
	for _, v := range parts {
		if !v.Type.IsInteger() {
			return graph.BadData(v.Name, "dtype %s: indices must be integers, save a.astype('<i8')", v.Type)
		}
	}
	if m.Rows < 0 || m.Cols < 0 || m.Rows > graph.MaxID+1 || m.Cols > graph.MaxID+1 {
		return graph.BadData(m.Name, "shape (%d, %d): at most %d rows and columns are read", m.Rows, m.Cols, int64(graph.MaxID+1))
	}
	m.Entries = m.indices.N
	if m.Entries != m.data.N || m.rows != nil && m.rows.N != m.Entries {
		return graph.BadData(m.Name, "%d column indices but %d values: the matrix is inconsistent, save it again", m.Entries, m.data.N)
	}
	if n, _ := m.lines(); m.rows == nil && m.indptr.N != n+1 {
		return graph.BadData(m.indptr.Name, "holds %d numbers, %d %ss need %d: the matrix is inconsistent, save it again", m.indptr.N, n, m.line(), n+1)
	}
	return nil
}

// weightedEntries is the number of values of a matrix that are searched for weights.
const weightedEntries = 1 << 20

// Weighted reports whether one of the first values is not 1, and whether one is 0. A matrix with
// weights shows it there.
func (m *Sparse) Weighted(ctx context.Context) (weighted, zeros bool, err error) {
	values, err := m.data.Numbers(ctx, 0)
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, values.Close()) }()
	for range min(m.data.N, weightedEntries) {
		v, err := values.Next()
		if err != nil {
			return false, false, err
		}
		weighted, zeros = weighted || v != 1, zeros || v == 0
	}
	return weighted, zeros, nil
}

// PickledMatrix takes the matrix out of an unpickled object.
func PickledMatrix(src *source.Source, base int64, value any) (*Sparse, error) {
	o, isObject := value.(*pickle.Object)
	if !isObject {
		return nil, graph.BadData(src.Name, "holds a %T, not a SciPy CSR matrix: save it with scipy.sparse.csr_matrix", value)
	}
	state, isDict := o.State.(*pickle.Dict)
	if !isDict {
		return nil, graph.BadData(src.Name, "the pickled CSR matrix has no content: write it again")
	}
	m := &Sparse{Name: src.Name}
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
	}{{"indptr", &m.indptr}, {"indices", &m.indices}, {"data", &m.data}} {
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

// csrRows walks over the rows, or over the columns where these are compressed: after next, the
// entries of the row follow in indices (and the values).
type csrRows struct {
	m       *Sparse
	indptr  *cursor[int64]
	indices *cursor[int64]
	Row     int64
	last    int64 // end of the current row
}

func (m *Sparse) open(ctx context.Context) (*csrRows, error) {
	indptr, err := m.indptr.Integers(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &csrRows{m: m, indptr: indptr, Row: -1}
	if r.indices, err = m.indices.Integers(ctx, 0); err != nil {
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
	if n, _ := r.m.lines(); r.Row == n {
		return 0, r.finish()
	}
	end, err := r.indptr.Next()
	if err != nil {
		return 0, err
	}
	n := end - r.last
	if n < 0 || end > r.m.indices.N {
		return 0, graph.BadData(r.m.indptr.Name, "%s %d runs from entry %d to %d of %d: the matrix is inconsistent, save it again",
			r.m.line(), r.Row, r.last, end, r.m.indices.N)
	}
	r.last = end
	return n, nil
}

// finish checks that nothing is left over.
func (r *csrRows) finish() error {
	if r.last != r.m.indices.N {
		return graph.BadData(r.m.indptr.Name, "ends at entry %d of %d: the matrix is inconsistent, save it again", r.last, r.m.indices.N)
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
	if err != nil {
		return 0, err
	}
	if _, width := r.m.lines(); c < 0 || c >= width {
		what := "row %d has column %d of %d"
		if r.m.byColumns {
			what = "column %d has row %d of %d"
		}
		return 0, graph.BadData(r.m.indices.Name, what+": the matrix is inconsistent, save it again", r.Row, c, width)
	}
	return uint32(c), nil
}

// Edges reads the stored entries as edges from the node of the row to that of the column, where weighted with their values as
// weights.
func (m *Sparse) Edges(weighted bool) graph.EdgeSource {
	if m.rows == nil {
		return graph.EdgeFunc(func(ctx context.Context) (graph.EdgeReader, error) { return m.openEdges(ctx, weighted) })
	}
	limit := graph.IDLimit{N: m.Rows, Stated: fmt.Sprintf("the matrix has %d rows", m.Rows)}
	list := &Edges{v: *m.rows, M: m.Entries, limit: limit, targets: &m.indices}
	if weighted {
		list.weights = &m.data
	}
	return list
}

func (m *Sparse) openEdges(ctx context.Context, weighted bool) (graph.EdgeReader, error) {
	rows, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	e := &csrEdges{rows: rows}
	if weighted {
		if e.weights, err = m.data.Numbers(ctx, 0); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
	}
	return e, nil
}

// csrEdges streams the stored entries of an adjacency matrix.
type csrEdges struct {
	rows    *csrRows
	weights *cursor[float32] // nil where values are not looked at
	left    int64            // in the row
	number  int64            // of the next edge
}

// Read implements [graph.EdgeReader].
func (e *csrEdges) Read(edges []graph.Edge, weights []float32) (int, error) {
	for n := range edges {
		for e.left == 0 {
			left, err := e.rows.next()
			if err == io.EOF && n > 0 {
				e.rows.Row-- // The end comes alone, with the next call.
				return n, nil
			}
			if err == io.EOF && weights != nil {
				_, err = e.weights.Next()
			}
			if err != nil {
				return 0, err
			}
			e.left = left
		}
		c, err := e.rows.column()
		if err == nil && weights != nil {
			weights[n], err = weightOf(e.weights, e.number)
		}
		if err != nil {
			return 0, err
		}
		e.left--
		e.number++
		if edges[n] = (graph.Edge{U: uint32(e.rows.Row), V: c}); e.rows.m.byColumns {
			edges[n].U, edges[n].V = c, uint32(e.rows.Row)
		}
	}
	return len(edges), nil
}

// Close closes the arrays.
func (e *csrEdges) Close() (err error) {
	if e.weights != nil {
		err = e.weights.Close()
	}
	return errors.Join(err, e.rows.Close())
}

// rowFeatures streams the rows of a feature matrix in compressed rows, sorted by column.
type rowFeatures struct {
	rows   *csrRows
	values *cursor[float64]
	row    sparseRow
}

// MaxEntries is the largest number of entries that a row of sparse features has.
const MaxEntries = graph.MaxFeatures

// CheckFeatures checks the size of a matrix of features.
func (m *Sparse) CheckFeatures() error {
	return graph.CheckSparse(m.Name, m.Rows, m.Cols)
}

// Features streams the rows of a feature matrix, whatever its form.
func (m *Sparse) Features(ctx context.Context) (graph.FeatureReader, error) {
	if m.byColumns || m.rows != nil {
		return m.scattered(ctx)
	}
	rows, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	values, err := m.data.Doubles(ctx, 0)
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return &rowFeatures{rows: rows, values: values}, nil
}

// Close implements [graph.FeatureReader].
func (f *rowFeatures) Close() error { return errors.Join(f.rows.Close(), f.values.Close()) }

// Next returns row i as that of node i.
func (f *rowFeatures) Next() (graph.FeatureRow, error) {
	n, err := f.rows.next()
	if err == io.EOF {
		if _, err := f.values.Next(); err != io.EOF {
			return graph.FeatureRow{}, err
		}
	}
	if err != nil {
		return graph.FeatureRow{}, err
	}
	m := f.rows.m
	if err := m.checkRow(f.rows.Row, n); err != nil {
		return graph.FeatureRow{}, err
	}
	f.row.entries = f.row.entries[:0]
	for range n {
		c, err := f.rows.column()
		if err != nil {
			return graph.FeatureRow{}, err
		}
		v, err := f.values.Next()
		if err == nil {
			err = m.checkValue(f.rows.Row, int64(c), v)
		}
		if err != nil {
			return graph.FeatureRow{}, err
		}
		f.row.entries = append(f.row.entries, entry{column: c, value: v})
	}
	return f.row.emit(m, uint32(f.rows.Row))
}

// checkRow refuses a row with too many entries.
func (m *Sparse) checkRow(row, entries int64) error {
	if entries > MaxEntries {
		return graph.BadData(m.Name, "row %d has %d entries: up to %d are read; call sum_duplicates() if they repeat columns, and save it again", row, entries, MaxEntries)
	}
	return nil
}

// checkValue refuses a value that is not finite.
func (m *Sparse) checkValue(row, column int64, v float64) error {
	if !graph.Finite(float32(v)) {
		return graph.NotFinite(m.Name, row, column, float32(v))
	}
	return nil
}

// entry is a stored entry of a matrix.
type entry struct {
	row, column uint32
	value       float64
}

// sparseRow puts the entries of a row in order.
type sparseRow struct {
	entries []entry
	row     graph.FeatureRow
}

// emit turns the entries into a row of those that are not zero, in ascending order of column.
// Entries of the same column are added up as SciPy does: in the order in which they are stored, and
// with the precision of the matrix.
func (r *sparseRow) emit(m *Sparse, id uint32) (graph.FeatureRow, error) {
	byColumn := func(a, b entry) int { return cmp.Compare(a.column, b.column) }
	if !slices.IsSortedFunc(r.entries, byColumn) {
		slices.SortStableFunc(r.entries, byColumn)
	}
	row := &r.row
	row.ID, row.Indices, row.Values = id, row.Indices[:0], row.Values[:0]
	for i := 0; i < len(r.entries); {
		c, sum := r.entries[i].column, r.entries[i].value
		for i++; i < len(r.entries) && r.entries[i].column == c; i++ {
			switch v := r.entries[i].value; m.data.Type {
			case npy.Float32:
				sum = float64(float32(sum) + float32(v))
			case npy.Bool:
				sum = max(sum, v)
			default:
				sum += v
			}
		}
		if err := m.checkValue(int64(id), int64(c), sum); err != nil {
			return graph.FeatureRow{}, err
		}
		if v := float32(sum); v != 0 {
			row.Indices, row.Values = append(row.Indices, c), append(row.Values, v)
		}
	}
	return *row, nil
}
