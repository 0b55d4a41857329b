package dataset

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"
)

// weightedRows is the number of rows of a row group, which is held in memory: 16 MiB.
const weightedRows = 1 << 20

// writeWeightedEdges writes edges as Parquet, with the columns src, dst and weight.
func writeWeightedEdges(ctx context.Context, w *bufio.Writer, d Dataset) (err error) {
	defer func() {
		if p := recover(); p != nil { // The library panics where the disk fails.
			err = fmt.Errorf("writing Parquet: %v", p)
		}
		if failed := w.Flush(); failed != nil {
			err = failed
		}
	}()
	columns, err := weightedColumns()
	if err != nil {
		return err
	}
	f := file.NewParquetWriter(w, columns, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithDictionaryDefault(false), parquet.WithStats(false), parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithCreatedBy("ndls"))))
	ends := make([]int32, weightedRows)
	if err := ReadEdges(ctx, d, Whole, make([]Edge, weightedRows), make([]float32, weightedRows), func(edges []Edge, weights []float32) error {
		return writeWeightedGroup(f.AppendRowGroup(), edges, weights, ends)
	}); err != nil {
		return err
	}
	return f.Close()
}

func weightedColumns() (*schema.GroupNode, error) {
	var columns schema.FieldList
	for _, name := range []string{"src", "dst"} {
		node, err := schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Required, schema.NewIntLogicalType(32, false),
			parquet.Types.Int32, 0, -1)
		if err != nil {
			return nil, err
		}
		columns = append(columns, node)
	}
	columns = append(columns, schema.NewFloat32Node("weight", parquet.Repetitions.Required, -1))
	return schema.NewGroupNode("schema", parquet.Repetitions.Required, columns, -1)
}

// writeWeightedGroup writes a row group, column by column. ends is as long as edges, or longer.
func writeWeightedGroup(to file.SerialRowGroupWriter, edges []Edge, weights []float32, ends []int32) error {
	ends = ends[:len(edges)]
	for i := range 3 {
		column, err := to.NextColumn()
		if err != nil {
			return err
		}
		switch c := column.(type) {
		case *file.Int32ColumnChunkWriter:
			for k, e := range edges {
				ends[k] = int32([]uint32{e.U, e.V}[i])
			}
			_, err = c.WriteBatch(ends, nil, nil)
		case *file.Float32ColumnChunkWriter:
			_, err = c.WriteBatch(weights, nil, nil)
		}
		if err = errors.Join(err, column.Close()); err != nil {
			return err
		}
	}
	return to.Close()
}
