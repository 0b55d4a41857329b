package dgl

import (
	"bytes"
	"context"
	"io"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout/textgraph"
	"ndls/dataset/source"
)

// csvData is data of nodes in text without header: a row for each node, in files that follow
// each other.
type csvData struct {
	files     []*source.Source
	delimiter string
	width     int // fields of the first row
	nodes     int64
}

// openCSV looks at the first row.
func openCSV(ctx context.Context, files []*source.Source, delimiter string, nodes int64) (*csvData, error) {
	d := &csvData{files: files, delimiter: delimiter, nodes: nodes}
	r := d.open(ctx)
	line, err := r.next()
	if err == nil {
		d.width = len(textgraph.SeparatorOf(delimiter, line).Fields(line))
	}
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return d, r.Close()
}

// Features takes all columns as features.
func (d *csvData) Features(context.Context) (graph.FeatureSource, int, error) {
	return graph.FeatureFunc(func(ctx context.Context) (graph.FeatureReader, error) {
		return &csvFeatures{d.open(ctx), make([]float32, d.width)}, nil
	}), d.width, graph.CheckSize(d.Where(), d.nodes, int64(d.width))
}

// Column takes the only column as labels or as a mask.
func (d *csvData) Column() (column.Column, error) {
	if d.width != 1 {
		return nil, graph.BadData(d.Where(), "has %d columns: one is read, with a value for each node", d.width)
	}
	return csvColumn{d}, nil
}

// Where names the first file.
func (d *csvData) Where() string { return d.files[0].Name }

func (d *csvData) open(ctx context.Context) *csvRows {
	return &csvRows{d: d, ctx: ctx, left: d.files}
}

// csvRows goes over the rows.
type csvRows struct {
	d     *csvData
	ctx   context.Context
	left  []*source.Source
	lines *source.Lines
	row   int64 // the next
}

// Close implements [io.Closer].
func (r *csvRows) Close() error {
	if r.lines == nil {
		return nil
	}
	return r.lines.Close()
}

// Position names the row that next returned last.
func (r *csvRows) Position() string {
	if r.lines == nil {
		return r.d.Where()
	}
	return r.lines.Where()
}

// next returns the line of the next node, or io.EOF behind that of the last one.
func (r *csvRows) next() ([]byte, error) {
	for len(r.left) > 0 {
		if r.lines == nil {
			lines, err := source.OpenLines(r.ctx, r.left[0])
			if err != nil {
				return nil, err
			}
			r.lines = lines
		}
		line, err := r.lines.Next()
		switch {
		case err == nil && r.row == r.d.nodes:
			return nil, graph.BadData(r.Position(), "is one row more than there are nodes, %d by metadata.json: they do not belong together", r.d.nodes)
		case err == nil:
			r.row++
			return line, nil
		case err != io.EOF:
			return nil, err
		}
		err = r.lines.Close()
		r.lines, r.left = nil, r.left[1:]
		if err != nil {
			return nil, err
		}
	}
	if r.row < r.d.nodes {
		return nil, graph.BadData(r.d.Where(), "the files from this one on have %d rows, metadata.json states %d nodes: they do not belong together", r.row, r.d.nodes)
	}
	return nil, io.EOF
}

type csvFeatures struct {
	*csvRows
	values []float32
}

// Next implements graph.FeatureReader.
func (f *csvFeatures) Next() (graph.FeatureRow, error) {
	line, err := f.next()
	if err != nil {
		return graph.FeatureRow{}, err
	}
	separator, more, at := textgraph.SeparatorOf(f.d.delimiter, line), true, 0
	for ; more; at++ {
		var field []byte
		if field, line, more = separator.Cut(line); at >= len(f.values) {
			continue
		}
		v, ok := graph.Number(graph.Unquote(field), 32)
		if f.values[at] = float32(v); !ok || !graph.Finite(f.values[at]) {
			return graph.FeatureRow{}, graph.BadData(f.Position(), "column %d is %s: features are finite numbers, in files without header", at+1, graph.Shorten(field))
		}
	}
	if at != len(f.values) {
		return graph.FeatureRow{}, graph.BadData(f.Position(), "has %d columns, the first row has %d: write the file again", at, len(f.values))
	}
	return graph.FeatureRow{ID: uint32(f.row - 1), Dense: f.values}, nil
}

type csvColumn struct{ *csvData }

// Open implements column.Column.
func (c csvColumn) Open(ctx context.Context) (column.Reader, error) {
	return csvValues{c.open(ctx)}, nil
}

type csvValues struct{ *csvRows }

// NextValue implements column.Reader.
func (v csvValues) NextValue() (uint32, string, error) {
	line, err := v.next()
	if err != nil {
		return 0, "", err
	}
	return uint32(v.row - 1), string(graph.Unquote(bytes.TrimSpace(line))), nil
}
