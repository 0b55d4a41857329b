package table

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// parquetFile is a Parquet file. A column of lists counts as one column.
type parquetFile struct {
	f       *columnar.Parquet
	columns []title
	leaves  []int // the column of the file that holds the values
}

func openParquet(src *source.Source) (_ *parquetFile, err error) {
	f, err := columnar.OpenParquet(src)
	if err != nil {
		return nil, err
	}
	defer columnar.Recover(src.Name, &err)
	p := &parquetFile{f: f}
	s := f.Reader.MetaData().Schema
	for i := range s.NumColumns() {
		top := s.Column(i).ColumnPath()[0]
		if n := len(p.columns); n > 0 && p.columns[n-1].name == top { // a group of several columns
			p.columns[n-1].kind = otherKind
			continue
		}
		p.columns = append(p.columns, title{top, parquetKind(s.Column(i))})
		p.leaves = append(p.leaves, i)
	}
	return p, nil
}

// parquetKind is what a column holds.
func parquetKind(c *schema.Column) kind {
	k := otherKind
	switch c.PhysicalType() {
	case parquet.Types.Boolean, parquet.Types.Int32:
		k = intKind
	case parquet.Types.Int64:
		k = intKind
		if c.ConvertedType() == schema.ConvertedTypes.Uint64 {
			k = uintKind
		}
	case parquet.Types.Float, parquet.Types.Double:
		k = floatKind
	case parquet.Types.ByteArray:
		k = textKind
	}
	switch c.ConvertedType() {
	case schema.ConvertedTypes.Decimal, schema.ConvertedTypes.JSON, schema.ConvertedTypes.BSON:
		return otherKind
	}
	switch {
	case c.MaxRepetitionLevel() == 0 && len(c.ColumnPath()) == 1:
		return k
	case c.MaxRepetitionLevel() == 1 && (k == intKind || k == uintKind || k == floatKind):
		return listKind
	}
	return otherKind
}

func (p *parquetFile) titles() []title { return p.columns }
func (p *parquetFile) rows() int64     { return p.f.Rows }

// units is the number of row groups: a file that has none is one part without rows.
func (p *parquetFile) units() int { return max(p.f.Reader.NumRowGroups(), 1) }

// width divides the number of values by that of rows.
func (p *parquetFile) width(_ context.Context, f *tableFile, column int) (int, error) {
	values := int64(0)
	for g := range p.f.Reader.NumRowGroups() {
		chunk, err := p.f.Chunk(g, p.leaves[column])
		if err != nil {
			return 0, err
		}
		values += chunk.NumValues()
	}
	if p.f.Rows == 0 || values%p.f.Rows != 0 {
		return 0, graph.BadData(p.f.Name, "column %q has %d values in %d rows: every list must have the same length, without nulls", p.columns[column].name, values, p.f.Rows)
	}
	return int(min(values/p.f.Rows, graph.MaxFeatures+1)), nil
}

func (p *parquetFile) open(_ context.Context, f *tableFile, unit int, w want) (cursor, error) {
	c := &parquetCursor{p: p}
	for g := range unit {
		c.row += p.f.Reader.RowGroup(g).NumRows()
	}
	if unit >= p.f.Reader.NumRowGroups() {
		return c, nil
	}
	c.left = p.f.Reader.RowGroup(unit).NumRows()
	for i, column := range w.columns {
		chunk, err := p.openColumn(unit, column, w.widths[i])
		if err != nil {
			return nil, err
		}
		c.columns = append(c.columns, chunk)
	}
	return c, nil
}

// parquetCursor gives the rows of a row group.
type parquetCursor struct {
	p       *parquetFile
	columns []*parquetColumn
	row     int64
	left    int64
}

func (r *parquetCursor) close() error { return nil }

func (r *parquetCursor) next(b *batch) error {
	n := int(min(r.left, batchRows))
	if n == 0 {
		return io.EOF
	}
	b.part, b.first, b.n, b.lines = "", r.row, n, nil
	for i, c := range r.columns {
		if err := c.fill(b, &b.cols[i]); err != nil {
			return err
		}
	}
	r.row += int64(n)
	r.left -= int64(n)
	return nil
}

// parquetColumn reads a column of a row group.
type parquetColumn struct {
	f        *columnar.Parquet
	title    title
	descr    *schema.Column
	width    int
	chunk    file.ColumnChunkReader
	decode   func(n int) (levels int64, values int, err error)
	take     func(v *vector, i int) // appends value i of what was decoded last
	def, rep []int16
	arena    []byte
}

// batchReader is what the typed readers have in common.
type batchReader[T any] interface {
	ReadBatch(n int64, values []T, def, rep []int16) (int64, int, error)
}

func bind[T any, R batchReader[T]](c *parquetColumn, take func(v *vector, x T)) {
	values := make([]T, batchRows)
	c.decode = func(n int) (int64, int, error) {
		return c.chunk.(R).ReadBatch(int64(n), values[:n], c.def[:n], c.rep[:n])
	}
	c.take = func(v *vector, i int) { take(v, values[i]) }
}

func (p *parquetFile) openColumn(group, column, width int) (c *parquetColumn, err error) {
	defer columnar.Recover(p.f.Name, &err)
	leaf := p.leaves[column]
	if err := p.f.Check(leaf); err != nil {
		return nil, err
	}
	c = &parquetColumn{f: p.f, title: p.columns[column], descr: p.f.Column(leaf), width: width, def: make([]int16, batchRows), rep: make([]int16, batchRows)}
	meta, err := p.f.Chunk(group, leaf)
	if err != nil {
		return nil, err
	}
	if rows := p.f.Reader.RowGroup(group).NumRows(); c.title.kind != listKind && meta.NumValues() != rows {
		return nil, graph.BadData(p.f.Name, "column %q has %d values in a row group of %d rows: the file is damaged, write it again", c.title.name, meta.NumValues(), rows)
	}
	if c.chunk, err = p.f.OpenChunk(group, leaf); err != nil {
		return nil, err
	}
	whole := func(v *vector, x int64) { v.ints = append(v.ints, x) }
	float := func(v *vector, x float64) { v.floats = append(v.floats, x) }
	if c.title.kind == listKind {
		unsigned := c.descr.ConvertedType() == schema.ConvertedTypes.Uint64
		whole = func(v *vector, x int64) {
			if unsigned {
				v.list = append(v.list, float32(uint64(x)))
			} else {
				v.list = append(v.list, float32(x))
			}
		}
		float = func(v *vector, x float64) { v.list = append(v.list, float32(x)) }
	}
	switch c.descr.PhysicalType() {
	case parquet.Types.Boolean:
		bind[bool, *file.BooleanColumnChunkReader](c, func(v *vector, x bool) {
			if x {
				whole(v, 1)
			} else {
				whole(v, 0)
			}
		})
	case parquet.Types.Int32:
		unsigned := c.descr.ConvertedType() == schema.ConvertedTypes.Uint32
		bind[int32, *file.Int32ColumnChunkReader](c, func(v *vector, x int32) {
			if unsigned {
				whole(v, int64(uint32(x)))
			} else {
				whole(v, int64(x))
			}
		})
	case parquet.Types.Int64:
		bind[int64, *file.Int64ColumnChunkReader](c, whole)
	case parquet.Types.Float:
		bind[float32, *file.Float32ColumnChunkReader](c, func(v *vector, x float32) { float(v, float64(x)) })
	case parquet.Types.Double:
		bind[float64, *file.Float64ColumnChunkReader](c, float)
	case parquet.Types.ByteArray:
		// The bytes are valid until the next page.
		bind[parquet.ByteArray, *file.ByteArrayColumnChunkReader](c, func(v *vector, x parquet.ByteArray) {
			start := len(c.arena)
			c.arena = append(c.arena, x...)
			v.text = append(v.text, c.arena[start:])
		})
	default:
		return nil, graph.BadData(p.f.Name, "column %q holds %s, which is not read here", c.title.name, p.f.TypeName(leaf))
	}
	return c, nil
}

// fill reads the rows of a batch.
func (c *parquetColumn) fill(b *batch, v *vector) (err error) {
	defer columnar.Recover(c.f.Name, &err)
	v.kind, v.ints, v.floats, v.text, v.list, v.null, v.width = c.title.kind, v.ints[:0], v.floats[:0], v.text[:0], v.list[:0], nil, c.width
	c.arena = c.arena[:0]
	of := 1 // values of a row
	if v.kind == listKind {
		of = c.width
	}
	for at, want := 0, b.n*of; at < want; {
		levels, values, err := c.decode(min(want-at, batchRows))
		switch {
		case err != nil:
			return graph.Damaged(c.f.Name, fmt.Errorf("%w: it is damaged, write it again", err))
		case c.chunk.Err() != nil:
			return graph.Damaged(c.f.Name, fmt.Errorf("%w: it is damaged, write it again", c.chunk.Err()))
		case levels == 0 && values == 0:
			return graph.BadData(b.where(at/of), "column %q ends too early: the file is damaged, or its lists differ in length, write it again", c.title.name)
		}
		if v.kind == listKind {
			err = c.takeList(b, v, at, int(levels), values)
		} else {
			err = c.takeFlat(b, v, at, int(levels), values)
		}
		if err != nil {
			return err
		}
		at += max(int(levels), values)
	}
	return nil
}

// takeFlat takes values of a column without lists, of rows from at on.
func (c *parquetColumn) takeFlat(b *batch, v *vector, at, levels, values int) error {
	if c.descr.MaxDefinitionLevel() == 0 {
		levels = values
	}
	for i, value := 0, 0; i < levels; i++ {
		isNull := c.descr.MaxDefinitionLevel() > 0 && c.def[i] < c.descr.MaxDefinitionLevel()
		if isNull && v.null == nil {
			v.null = make([]bool, b.n)
		}
		switch {
		case isNull:
			v.null[at+i] = true
			v.zero()
		case value == values:
			return graph.BadData(b.where(at+i), "column %q has fewer values than it says: the file is damaged, write it again", c.title.name)
		default:
			c.take(v, value)
			value++
		}
	}
	return nil
}

// takeList takes values of lists of equal length, from value at of the batch on.
func (c *parquetColumn) takeList(b *batch, v *vector, at, levels, values int) error {
	for i := range levels {
		switch row := (at + i) / c.width; {
		case c.def[i] < c.descr.MaxDefinitionLevel():
			return graph.BadData(b.where(row), "column %q has a null, or a list without values: every row needs a list of %d numbers", c.title.name, c.width)
		case (c.rep[i] == 0) != ((at+i)%c.width == 0):
			return graph.BadData(b.where(row), "column %q has no list of %d numbers: every list must have the same length", c.title.name, c.width)
		case i >= values:
			return graph.BadData(b.where(row), "column %q has fewer values than it says: the file is damaged, write it again", c.title.name)
		}
		c.take(v, i)
	}
	return nil
}

// zero appends a value that stands for null.
func (v *vector) zero() {
	switch v.kind {
	case textKind:
		v.text = append(v.text, nil)
	case floatKind:
		v.floats = append(v.floats, 0)
	default:
		v.ints = append(v.ints, 0)
	}
}
