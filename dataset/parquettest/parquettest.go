// Package parquettest writes and reads Parquet for tests, column chunk by column chunk. Arrow's own
// conversion of records (pqarrow) does the same, but it brings arrow/compute, which takes longer to
// compile than the program.
package parquettest

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"
)

// leafOf returns the physical and the logical type of values of an Arrow type.
func leafOf(t arrow.DataType) (parquet.Type, schema.LogicalType, error) {
	switch t.ID() {
	case arrow.INT64:
		return parquet.Types.Int64, schema.NewIntLogicalType(64, true), nil
	case arrow.UINT64:
		return parquet.Types.Int64, schema.NewIntLogicalType(64, false), nil
	case arrow.INT32:
		return parquet.Types.Int32, schema.NewIntLogicalType(32, true), nil
	case arrow.UINT32:
		return parquet.Types.Int32, schema.NewIntLogicalType(32, false), nil
	case arrow.FLOAT32:
		return parquet.Types.Float, schema.NoLogicalType{}, nil
	case arrow.FLOAT64:
		return parquet.Types.Double, schema.NoLogicalType{}, nil
	case arrow.BOOL:
		return parquet.Types.Boolean, schema.NoLogicalType{}, nil
	case arrow.STRING:
		return parquet.Types.ByteArray, schema.StringLogicalType{}, nil
	}
	return 0, nil, fmt.Errorf("parquettest: no column of %s", t)
}

func repetition(nullable bool) parquet.Repetition {
	if nullable {
		return parquet.Repetitions.Optional
	}
	return parquet.Repetitions.Required
}

// node declares a column. Lists have the three levels of the format's LIST type.
func node(f arrow.Field) (schema.Node, error) {
	list, isList := f.Type.(arrow.ListLikeType)
	if !isList {
		physical, logical, err := leafOf(f.Type)
		if err != nil {
			return nil, err
		}
		return schema.NewPrimitiveNodeLogical(f.Name, repetition(f.Nullable), logical, physical, 0, -1)
	}
	element := list.ElemField()
	element.Name = "element"
	leaf, err := node(element)
	if err != nil {
		return nil, err
	}
	repeated, err := schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{leaf}, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNodeLogical(f.Name, repetition(f.Nullable), schema.FieldList{repeated}, schema.ListLogicalType{}, -1)
}

// levels are the definition and repetition levels of a column, and the places of its values in
// the array of leaves.
type levels struct {
	defined, repeated []int16
	at                []int
}

func (l *levels) add(defined, repeated int16) {
	l.defined, l.repeated = append(l.defined, defined), append(l.repeated, repeated)
}

// flatten returns the leaves of a column with their levels.
func flatten(f arrow.Field, a arrow.Array) (arrow.Array, levels) {
	var l levels
	top := int16(0)
	if f.Nullable {
		top = 1
	}
	leaves, isList := a.(array.ListLike)
	if !isList {
		for i := range a.Len() {
			if f.Nullable && a.IsNull(i) {
				l.add(0, 0)
				continue
			}
			l.add(top, 0)
			l.at = append(l.at, i)
		}
		return a, l
	}
	values, nullable := leaves.ListValues(), f.Type.(arrow.ListLikeType).ElemField().Nullable
	for i := range a.Len() {
		if f.Nullable && a.IsNull(i) {
			l.add(0, 0)
			continue
		}
		from, to := leaves.ValueOffsets(i)
		if from == to {
			l.add(top, 0)
		}
		for k := from; k < to; k++ {
			repeated := int16(0)
			if k > from {
				repeated = 1
			}
			if nullable && values.IsNull(int(k)) {
				l.add(top+1, repeated)
				continue
			}
			if nullable {
				l.add(top+2, repeated)
			} else {
				l.add(top+1, repeated)
			}
			l.at = append(l.at, int(k))
		}
	}
	return values, l
}

func pick[T, P any](at []int, value func(int) T, as func(T) P) []P {
	picked := make([]P, len(at))
	for i, k := range at {
		picked[i] = as(value(k))
	}
	return picked
}

func same[T any](x T) T { return x }

func write(w file.ColumnChunkWriter, a arrow.Array, l levels) (err error) {
	switch a := a.(type) {
	case *array.Int64:
		_, err = w.(*file.Int64ColumnChunkWriter).WriteBatch(pick(l.at, a.Value, same), l.defined, l.repeated)
	case *array.Uint64:
		_, err = w.(*file.Int64ColumnChunkWriter).WriteBatch(pick(l.at, a.Value, func(x uint64) int64 { return int64(x) }), l.defined, l.repeated)
	case *array.Int32:
		_, err = w.(*file.Int32ColumnChunkWriter).WriteBatch(pick(l.at, a.Value, same), l.defined, l.repeated)
	case *array.Uint32:
		_, err = w.(*file.Int32ColumnChunkWriter).WriteBatch(pick(l.at, a.Value, func(x uint32) int32 { return int32(x) }), l.defined, l.repeated)
	case *array.Float32:
		_, err = w.(*file.Float32ColumnChunkWriter).WriteBatch(pick(l.at, a.Value, same), l.defined, l.repeated)
	case *array.Float64:
		_, err = w.(*file.Float64ColumnChunkWriter).WriteBatch(pick(l.at, a.Value, same), l.defined, l.repeated)
	case *array.Boolean:
		_, err = w.(*file.BooleanColumnChunkWriter).WriteBatch(pick(l.at, a.Value, same), l.defined, l.repeated)
	case *array.String:
		_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(pick(l.at, a.Value,
			func(s string) parquet.ByteArray { return parquet.ByteArray(s) }), l.defined, l.repeated)
	default:
		err = fmt.Errorf("parquettest: no column of %T", a)
	}
	return err
}

// Write returns a Parquet file with the rows of a record. Option MaxRowGroupLength bounds the rows
// of a row group.
func Write(rec arrow.Record, options ...parquet.WriterProperty) ([]byte, error) {
	props := parquet.NewWriterProperties(options...)
	var fields schema.FieldList
	for _, f := range rec.Schema().Fields() {
		column, err := node(f)
		if err != nil {
			return nil, err
		}
		fields = append(fields, column)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root, file.WithWriterProps(props))
	rows := props.MaxRowGroupLength()
	for lo := int64(0); lo < rec.NumRows(); lo += rows {
		if err := writeGroup(w.AppendRowGroup(), rec, lo, min(lo+rows, rec.NumRows())); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func writeGroup(group file.SerialRowGroupWriter, rec arrow.Record, lo, hi int64) error {
	part := rec.NewSlice(lo, hi)
	defer part.Release()
	for i, f := range rec.Schema().Fields() {
		w, err := group.NextColumn()
		if err != nil {
			return err
		}
		leaves, l := flatten(f, part.Column(i))
		if err := write(w, leaves, l); err != nil {
			return fmt.Errorf("column %s: %w", f.Name, err)
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return group.Close()
}

// Rows returns the cells of each row of a file whose columns have no nulls: one cell for a plain
// column, one cell for each element of a list.
func Rows(data []byte) ([][]string, error) {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var rows [][]string
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		first := len(rows)
		rows = append(rows, make([][]string, group.NumRows())...)
		for c := range r.MetaData().Schema.NumColumns() {
			if err := readColumn(group, c, rows[first:]); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// readColumn appends the cells of a column to rows.
func readColumn(group *file.RowGroupReader, c int, rows [][]string) error {
	column, err := group.Column(c)
	if err != nil {
		return err
	}
	count := group.MetaData().NumRows()
	if chunk, err := group.MetaData().ColumnChunk(c); err == nil {
		count = chunk.NumValues()
	}
	unsigned := false
	if t, ok := column.Descriptor().LogicalType().(schema.IntLogicalType); ok {
		unsigned = !t.IsSigned()
	}
	defined, repeated := make([]int16, count), make([]int16, count)
	cells, err := read(column, count, defined, repeated, unsigned)
	if err != nil {
		return err
	}
	if int64(len(cells)) != count {
		return fmt.Errorf("parquettest: column %d has %d values of %d", c, len(cells), count)
	}
	row := -1
	for i, cell := range cells {
		if repeated[i] == 0 {
			row++
		}
		rows[row] = append(rows[row], cell)
	}
	return nil
}

// all reads what a column has. read is the ReadBatch of its reader.
func all[T any](count int64, defined, repeated []int16, read func(int64, []T, []int16, []int16) (int64, int, error),
	text func(T) string,
) ([]string, error) {
	var cells []string
	values := make([]T, count)
	for at := int64(0); at < count; {
		levels, got, err := read(count-at, values, defined[at:], repeated[at:])
		if err != nil {
			return nil, err
		}
		if levels == 0 {
			break
		}
		for _, v := range values[:got] {
			cells = append(cells, text(v))
		}
		at += levels
	}
	return cells, nil
}

func read(column file.ColumnChunkReader, count int64, defined, repeated []int16, unsigned bool) ([]string, error) {
	switch r := column.(type) {
	case *file.Int64ColumnChunkReader:
		return all(count, defined, repeated, r.ReadBatch, func(x int64) string {
			if unsigned {
				return strconv.FormatUint(uint64(x), 10)
			}
			return strconv.FormatInt(x, 10)
		})
	case *file.Int32ColumnChunkReader:
		return all(count, defined, repeated, r.ReadBatch, func(x int32) string {
			if unsigned {
				return strconv.FormatUint(uint64(uint32(x)), 10)
			}
			return strconv.FormatInt(int64(x), 10)
		})
	case *file.Float32ColumnChunkReader:
		return all(count, defined, repeated, r.ReadBatch, func(x float32) string { return fmt.Sprint(x) })
	case *file.BooleanColumnChunkReader:
		return all(count, defined, repeated, r.ReadBatch, strconv.FormatBool)
	case *file.ByteArrayColumnChunkReader:
		return all(count, defined, repeated, r.ReadBatch, func(b parquet.ByteArray) string { return string(b) })
	}
	return nil, fmt.Errorf("parquettest: no reader of %T", column)
}
