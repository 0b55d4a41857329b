package dataset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"
)

// weightedRows is the number of rows of a row group, which is held in memory: 12 MiB.
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
	r, err := WeightedEdgeRange(ctx, d, 0, 1, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	columns, err := weightedColumns()
	if err != nil {
		return err
	}
	f := file.NewParquetWriter(w, columns, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithDictionaryDefault(false), parquet.WithStats(false), parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithCreatedBy("ndls"))))
	g := newWeightedGroup()
	for {
		err := g.read(r)
		if err == io.EOF {
			return f.Close()
		}
		if err == nil {
			err = g.write(f.AppendRowGroup())
		}
		if err != nil {
			return err
		}
	}
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

// weightedGroup is a row group of edges with weights.
type weightedGroup struct {
	n       int
	edges   []Edge // a batch
	ends    [2][]int32
	weights []float32
}

func newWeightedGroup() *weightedGroup {
	g := &weightedGroup{edges: make([]Edge, 1<<12), weights: make([]float32, weightedRows)}
	for i := range g.ends {
		g.ends[i] = make([]int32, weightedRows)
	}
	return g
}

// read fills the group from a reader, or returns io.EOF where no row is left.
func (g *weightedGroup) read(r WeightedReader) error {
	for g.n = 0; g.n < weightedRows; {
		most := min(len(g.edges), weightedRows-g.n)
		n, err := r.ReadWeighted(g.edges[:most], g.weights[g.n:][:most])
		if err == io.EOF && g.n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for i, e := range g.edges[:n] {
			g.ends[0][g.n+i], g.ends[1][g.n+i] = int32(e.U), int32(e.V)
		}
		g.n += n
	}
	return nil
}

// write writes the group, column by column.
func (g *weightedGroup) write(to file.SerialRowGroupWriter) error {
	for i := range 3 {
		column, err := to.NextColumn()
		if err != nil {
			return err
		}
		switch c := column.(type) {
		case *file.Int32ColumnChunkWriter:
			_, err = c.WriteBatch(g.ends[i][:g.n], nil, nil)
		case *file.Float32ColumnChunkWriter:
			_, err = c.WriteBatch(g.weights[:g.n], nil, nil)
		}
		if err = errors.Join(err, column.Close()); err != nil {
			return err
		}
	}
	return to.Close()
}
