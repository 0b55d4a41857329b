package array

import (
	"context"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// IsMatrix reports whether the archive has the arrays of one sparse matrix, as
// scipy.sparse.save_npz writes them.
func (a *Archive) IsMatrix() bool {
	has := func(name string) bool { return a.Has([]string{name}) > 0 }
	return has("shape") && has("data") && (has("format") || has("indptr") && has("indices"))
}

// plainMatrix reads the arrays of a matrix behind a prefix, as scipy.sparse.save_npz writes
// them, or without the array format: then compressed rows are meant, or columns where only that
// fits the shape.
func (a *Archive) plainMatrix(ctx context.Context, prefix string) (*Sparse, error) {
	m := &Sparse{Name: a.Name + " matrix " + strings.TrimRight(prefix, "._")}
	if prefix == "" {
		m.Name = a.Name
	}
	format, err := a.Text(ctx, prefix+"format")
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", "csr", "csc", "coo"}, format) {
		return nil, graph.BadData(a.Name, "is a SciPy matrix in %s form, and csr, csc and coo are read: save it with scipy.sparse.save_npz(file, a.tocsr())", graph.Shorten([]byte(format)))
	}
	for _, ignored := range []string{"_is_array", "has_canonical_format", "has_sorted_indices"} {
		a.used = append(a.used, prefix+ignored)
	}
	if err := a.matrixShape(ctx, prefix, m); err != nil {
		return nil, err
	}
	if m.data, err = a.vector(ctx, prefix, "data"); err != nil {
		return nil, err
	}
	switch format {
	case "coo":
		err = a.coordinates(ctx, prefix, m)
	default:
		if m.indices, err = a.vector(ctx, prefix, "indices"); err == nil {
			m.indptr, err = a.vector(ctx, prefix, "indptr")
		}
		m.byColumns = format == "csc"
	}
	if err != nil {
		return nil, err
	}
	if format == "" {
		if m.byColumns = m.indptr.N == m.Cols+1 && m.indptr.N != m.Rows+1; m.byColumns || prefix == "" {
			form := map[bool]string{false: "rows", true: "columns"}[m.byColumns]
			m.data.src.Note(graph.WarningOf(m.Name, "does not say in which form the matrix is: it is read as compressed %s; scipy.sparse.save_npz writes the form", form))
		}
	}
	return m, m.check()
}

// part is the source of an array of a matrix.
func (a *Archive) part(prefix, key string) (*source.Source, error) {
	src, err := a.Member(prefix + key)
	if err == nil && src == nil {
		err = graph.BadData(a.Name, "has no array %s%s: a matrix needs data, indices, indptr and shape, or data, row, col, shape and format; save it with scipy.sparse.save_npz", prefix, key)
	}
	return src, err
}

// vector is an array of a matrix.
func (a *Archive) vector(ctx context.Context, prefix, key string) (Vector, error) {
	src, err := a.part(prefix, key)
	if err != nil {
		return Vector{}, err
	}
	v, dims, err := Open(ctx, src)
	if err == nil && len(dims) != 1 {
		err = graph.BadData(src.Name, "has shape %v, a vector is needed: write the matrix again", dims)
	}
	return v, err
}

// matrixShape sets the number of rows and columns.
func (a *Archive) matrixShape(ctx context.Context, prefix string, m *Sparse) (err error) {
	shape, err := a.vector(ctx, prefix, "shape")
	if err != nil {
		return err
	}
	if shape.N != 2 || !shape.Type.IsInteger() {
		return graph.BadData(shape.Name, "dtype %s, %d numbers: a matrix has two dimensions, so its shape is two integers", shape.Type, shape.N)
	}
	dims, err := shape.Integers(ctx, 0)
	if err != nil {
		return err
	}
	defer dims.Close()
	for _, d := range []*int64{&m.Rows, &m.Cols} {
		if *d, err = dims.Next(); err != nil {
			return err
		}
	}
	return nil
}

// coordinates sets the rows and columns of entries: two arrays, or one with a row for each.
func (a *Archive) coordinates(ctx context.Context, prefix string, m *Sparse) error {
	if a.Has([]string{prefix + "coords"}) == 0 {
		rows, err := a.vector(ctx, prefix, "row")
		if err != nil {
			return err
		}
		m.rows = &rows
		m.indices, err = a.vector(ctx, prefix, "col")
		return err
	}
	src, err := a.part(prefix, "coords")
	if err != nil {
		return err
	}
	v, dims, err := Open(ctx, src)
	if err != nil {
		return err
	}
	if len(dims) != 2 || dims[0] != 2 {
		return graph.BadData(src.Name, "has shape %v: a matrix has a row and a column for each entry, shape (2, n)", dims)
	}
	rows := v.Part(0, dims[1])
	m.rows, m.indices = &rows, v.Part(dims[1], dims[1])
	return nil
}
