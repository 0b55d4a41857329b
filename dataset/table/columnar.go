package table

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"ndls/dataset/columnar"
	"ndls/dataset/columnar/arrow"
	"ndls/dataset/columnar/parquet"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// columnarFile is a file of Parquet or Arrow.
type columnarFile struct {
	columnar.File
	isArrow bool
}

func openParquet(src *source.Source) (*columnarFile, error) {
	f, err := parquet.Open(src)
	if err != nil {
		return nil, err
	}
	return &columnarFile{File: f}, nil
}

func openArrow(src *source.Source) (*columnarFile, error) {
	f, err := arrow.Open(src)
	if err != nil {
		return nil, err
	}
	return &columnarFile{f, true}, nil
}

// kindsOf are the kinds of columns by those of package columnar.
var kindsOf = [...]kind{
	columnar.Other: otherKind, columnar.Null: nullKind, columnar.Bool: boolKind, columnar.Int: intKind, columnar.Uint: uintKind,
	columnar.Decimal: decimalKind,
	columnar.Float:   floatKind, columnar.Text: textKind, columnar.Time: timeKind, columnar.List: listKind, columnar.Vector: vectorKind,
}

func (c *columnarFile) titles() (titles []title) {
	for _, of := range c.Columns() {
		titles = append(titles, title{of.Name, kindsOf[of.Type.Kind]})
	}
	return titles
}

// units is the number of row groups or record batches: a file that has none is one part without
// rows.
func (c *columnarFile) units() int  { return max(c.Units(), 1) }
func (c *columnarFile) rows() int64 { return c.Rows() }

func (c *columnarFile) memory(columns []int) int64 { return c.Memory(columns) }

// width returns the length of the first list with numbers in it.
func (c *columnarFile) width(ctx context.Context, f *tableFile, column int) (int, error) {
	of := c.Columns()[column].Type
	if of.Width > 0 {
		return of.Width, nil
	}
	for unit := range c.Units() {
		width, err := c.widthIn(ctx, unit, column)
		if width > 0 || err != nil {
			return width, err
		}
	}
	return 0, nil
}

func (c *columnarFile) widthIn(ctx context.Context, unit, column int) (width int, err error) {
	if err := c.Check(column); err != nil {
		return 0, err
	}
	r, err := c.Read(unit, []int{column}, graph.MaxFeatures+1)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	var v [1]columnar.Values
	for {
		n, err := r.Next(1, v[:])
		if err == io.EOF {
			return 0, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		for i := range n {
			start := 0
			if i > 0 {
				start = v[0].Ends[i-1]
			}
			if width = v[0].Ends[i] - start; len(v[0].Size) > 0 {
				width = v[0].Size[i]
			}
			if width > 0 {
				return width, nil
			}
		}
	}
}

func (c *columnarFile) open(_ context.Context, f *tableFile, unit int, w want) (cursor, error) {
	r := &columnarCursor{
		f: f, columns: w.columns, widths: w.widths, kinds: make([]kind, len(w.columns)),
		names: make([]string, len(w.columns)), perBatch: batchRows,
	}
	if unit >= c.Units() {
		return r, nil
	}
	titles := c.titles()
	for i, column := range w.columns {
		if err := c.Check(column); err != nil {
			return nil, err
		}
		r.kinds[i], r.names[i] = titles[column].kind, titles[column].name
		if r.kinds[i] == listKind {
			r.perBatch = max(1, min(r.perBatch, batchNumbers/max(w.widths[i], 1)))
		}
	}
	r.row, _ = c.Unit(unit)
	if c.isArrow && c.Units() > 1 {
		r.row, r.part = 0, fmt.Sprintf(" record batch %d", unit)
	}
	var err error
	r.r, err = c.Read(unit, w.columns, graph.MaxFeatures)
	r.values = make([]columnar.Values, len(w.columns))
	return r, err
}

// batchNumbers is about how many numbers of lists are read at a time.
const batchNumbers = 1 << 20

// columnarCursor gives the rows of a row group or a record batch.
type columnarCursor struct {
	f               *tableFile
	r               columnar.Reader // nil where there are no rows
	columns, widths []int
	kinds           []kind
	names           []string
	values          []columnar.Values
	row             int64
	part            string
	perBatch        int
}

func (r *columnarCursor) Close() error {
	if r.r == nil {
		return nil
	}
	return r.r.Close()
}

func (r *columnarCursor) next(b *batch) error {
	if r.r == nil {
		return io.EOF
	}
	n, err := r.r.Next(r.perBatch, r.values)
	if err != nil {
		return err
	}
	b.part, b.first, b.n, b.lines = r.part, r.row, n, nil
	r.row += int64(n)
	for i := range r.columns {
		if err := r.fill(b, i); err != nil {
			return err
		}
	}
	return nil
}

// fill gives a column of a batch its values.
func (r *columnarCursor) fill(b *batch, i int) error {
	v, got := &b.cols[i], &r.values[i]
	v.kind, v.null, v.ints, v.floats, v.text, v.width, v.values = r.kinds[i], got.Null, got.Ints, got.Floats, got.Text, r.widths[i], got
	if v.kind != textKind {
		return nil
	}
	for row, text := range v.text {
		if !utf8.Valid(text) {
			return graph.BadData(b.where(row), "column %q has bytes that are no UTF-8: write it as text, or as numbers", r.names[i])
		}
	}
	return nil
}

// bounds returns the place of the numbers of a row.
func (v *vector) bounds(row int) (start, end int) {
	if row > 0 {
		start = v.values.Ends[row-1]
	}
	return start, v.values.Ends[row]
}

// ragged fills to with the list of a row, which may be of another length.
func (v *vector) ragged(to []float32, row int, missing nulls) (problem string) {
	start, end := v.bounds(row)
	switch n := end - start; {
	case n == 0 && missing == zeros:
		clear(to)
		return ""
	case n == 0 && missing == unknown:
		unknowns(to)
		return ""
	case n == 0:
		return "has an empty list: " + noFeatures
	case n != len(to):
		return fmt.Sprintf("has a list of %d numbers, and %d before: every list must have the same length", n, len(to))
	}
	copy(to, v.values.List[start:end])
	for i := start; i < end && v.values.Hole != nil && missing != zeros; i++ {
		switch {
		case !v.values.Hole[i]:
		case missing == unknown:
			unknowns(to[i-start : i-start+1])
		default:
			return "has a list with a null: " + noFeatures
		}
	}
	return ""
}

// sparse appends the numbers of a vector that are not zero, and their places after first.
func (v *vector) sparse(to *graph.FeatureRow, row, first, width int, zero bool) (problem string) {
	start, end := v.bounds(row)
	switch size := v.values.Size[row]; {
	case v.isNull(row) && !zero:
		return "is null: " + noFeatures
	case v.isNull(row):
		return ""
	case size != width:
		return fmt.Sprintf("has a vector of %d numbers, and %d before: every vector must have the same length", size, width)
	}
	for i := start; i < end; i++ {
		switch x := v.values.List[i]; {
		case v.values.Hole != nil && v.values.Hole[i] && !zero:
			return "has a vector with a null: " + noFeatures
		case !graph.Finite(x):
			return notFinite(x)
		case x != 0:
			to.Indices, to.Values = append(to.Indices, uint32(first)+v.values.At[i]), append(to.Values, x)
		}
	}
	return ""
}

// typeOf is the type of a column of Parquet or Arrow as its file names it, and what a time counts.
func (t *table) typeOf(name string) (typ columnar.Type, ok bool) {
	if f, is := t.leading.rows.(*columnarFile); is {
		if at := find(f.titles(), name); at >= 0 {
			return f.Columns()[at].Type, true
		}
	}
	return typ, false
}

// isNested reports whether a column lies in a struct: then it is read where it is named.
func (t *table) isNested(i int) bool {
	f, ok := t.leading.rows.(*columnarFile)
	return ok && f.Columns()[i].Nested
}

// holds says in messages what a column holds.
func (t *table) holds(name string, k kind) string {
	typ, ok := t.typeOf(name)
	switch {
	case ok && k == otherKind:
		return "is of type " + typ.Name + ", which is not read"
	case ok && (k == timeKind || k == boolKind || k == decimalKind || k == vectorKind):
		return "is of type " + typ.Name
	}
	return "holds " + k.String()
}

// cast is the end of a message on a column that holds something else than is read from it.
func (k kind) cast() string {
	switch k {
	case timeKind:
		return "; cast it to a whole number or to text (in DuckDB epoch(c), in pandas c.astype('int64') or c.astype('str'))"
	case boolKind:
		return "; cast it to a whole number (in DuckDB c::int, in pandas c.astype('int64'))"
	case otherKind:
		return "; cast it to such a type"
	}
	return ""
}
