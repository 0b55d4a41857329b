package export

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"
)

// parquetWriter writes a row group a batch. It goes below arrow's own record
// writer, whose fixed-size lists come back as zeros in v14.
type parquetWriter struct {
	columns []column
	names   *names
	file    *file.Writer
}

// parquetNode declares a column: lists with the three levels of the format's
// LIST type, everything required.
func parquetNode(c column) (schema.Node, error) {
	types := []struct {
		physical parquet.Type
		logical  schema.LogicalType
	}{
		int64Kind:   {parquet.Types.Int64, schema.NewIntLogicalType(64, true)},
		int32Kind:   {parquet.Types.Int32, schema.NewIntLogicalType(32, true)},
		uint32Kind:  {parquet.Types.Int32, schema.NewIntLogicalType(32, false)},
		boolKind:    {parquet.Types.Boolean, schema.NoLogicalType{}},
		splitKind:   {parquet.Types.ByteArray, schema.StringLogicalType{}},
		classKind:   {parquet.Types.ByteArray, schema.StringLogicalType{}},
		float32Kind: {parquet.Types.Float, schema.NoLogicalType{}},

		int64IDKind:  {parquet.Types.Int64, schema.NewIntLogicalType(64, true)},
		uint64IDKind: {parquet.Types.Int64, schema.NewIntLogicalType(64, false)},
		textIDKind:   {parquet.Types.ByteArray, schema.StringLogicalType{}},
	}
	t, name := types[c.kind], c.name
	if c.list > 0 {
		name = "element"
	}
	leaf, err := schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Required, t.logical, t.physical, 0, -1)
	if err != nil || c.list == 0 {
		return leaf, err
	}
	repeated, err := schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{leaf}, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNodeLogical(c.name, parquet.Repetitions.Required, schema.FieldList{repeated}, schema.ListLogicalType{}, -1)
}

func newParquet(out io.Writer, columns []column, names *names) (*parquetWriter, error) {
	var fields schema.FieldList
	for _, c := range columns {
		node, err := parquetNode(c)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
		fields = append(fields, node)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return nil, err
	}
	// As in package shards: no dictionary and no statistics, a required root.
	props := parquet.NewWriterProperties(
		parquet.WithDictionaryDefault(false), parquet.WithStats(false), parquet.WithCreatedBy("ndls"),
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithRootRepetition(parquet.Repetitions.Required))
	return &parquetWriter{columns, names, file.NewParquetWriter(out, root, file.WithWriterProps(props))}, nil
}

func (w *parquetWriter) write(cols [][]byte, n int) (err error) {
	// The library panics where the file below fails.
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("writing Parquet: %v", x)
		}
	}()
	keys, err := w.names.find(w.columns, cols)
	if err != nil {
		return err
	}
	group := w.file.AppendRowGroup()
	for i, c := range w.columns {
		chunk, err := group.NextColumn()
		if err != nil {
			return err
		}
		if c.isID() {
			err = w.names.write(chunk, keys[i])
		} else {
			err = writeChunk(chunk, c, cols[i], n, w.names)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		if err := chunk.Close(); err != nil {
			return err
		}
	}
	if err := group.Close(); err != nil {
		return err
	}
	// The library writes the levels of lists into buffers of a pool, which it lets grow by 64 bytes whenever it writes to
	// them (arrow v14, PooledBufferWriter.Reserve with an offset): over two million rows to 50 MiB. Two collections empty
	// the pool.
	if slices.ContainsFunc(w.columns, func(c column) bool { return c.list > 0 }) {
		runtime.GC()
		runtime.GC()
	}
	return nil
}

func writeChunk(chunk file.ColumnChunkWriter, c column, values []byte, n int, names *names) error {
	var defined, repeated []int16
	if c.list > 0 {
		// Every list is there and has values; a value repeats the list
		// unless it is the first.
		defined = slices.Repeat([]int16{1}, n*c.list)
		repeated = slices.Repeat(append([]int16{0}, slices.Repeat([]int16{1}, c.list-1)...), n)
	}
	var err error
	switch w := chunk.(type) {
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(view[int64](values), defined, repeated)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(view[int32](values), defined, repeated)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(view[float32](values), defined, repeated)
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(view[bool](values), defined, repeated)
	case *file.ByteArrayColumnChunkWriter:
		text := make([]parquet.ByteArray, 0, n)
		for value := range slices.Chunk(values, c.size()) {
			text = append(text, parquet.ByteArray(names.textOf(c, value)))
		}
		_, err = w.WriteBatch(text, defined, repeated)
	default:
		err = errors.New("no writer for its type")
	}
	return err
}

func (w *parquetWriter) close() error { return w.file.Close() }
