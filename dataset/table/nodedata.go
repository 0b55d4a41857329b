package table

import (
	"context"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// NodeData is data of nodes in Parquet files, of which row i belongs to node i.
type NodeData struct{ t *table }

// OpenNodeData opens such files. Each states how many rows it has.
func OpenNodeData(ctx context.Context, files *source.Files, paths []string) (*NodeData, error) {
	t, err := openTable(ctx, files, place{paths}, &source.Form{}, "")
	if err != nil {
		return nil, err
	}
	for _, f := range t.files {
		if f.format != parquetFormat {
			return nil, graph.BadData(f.name, "is no Parquet file by the end of its name")
		}
	}
	return &NodeData{t}, nil
}

// Rows returns the number of rows of all files.
func (d *NodeData) Rows() int64 { return d.t.numRows() }

// Features takes all columns as features: numbers, or lists of numbers of equal length.
func (d *NodeData) Features(ctx context.Context) (source graph.FeatureSource, width int, err error) {
	var names []string
	widths := make([]int, len(d.t.titles))
	for i, c := range d.t.titles {
		if widths[i], err = d.t.featureWidth(ctx, "features", c.name, kind.holdsNumbers); err != nil {
			return nil, 0, err
		}
		names = append(names, c.name)
		width += max(widths[i], 1)
	}
	return graph.FeatureFunc(func(ctx context.Context) (graph.FeatureReader, error) {
		rows := d.t.all(ctx, names, widths)
		return &nodeDataFeatures{nodeDataRows{rows: rows, next: -1}, newFeatures(rows, 0, width)}, nil
	}), width, graph.CheckSize(d.t.place.String(), d.Rows(), int64(width))
}

// Column takes the one column that there is as labels, or as a mask.
func (d *NodeData) Column() (column.Column, error) {
	if len(d.t.titles) != 1 || !d.t.titles[0].kind.holdsValues() {
		return nil, graph.BadData(d.t.files[0].name, "has the columns %s: one column of numbers or text is read, with a value for each node", list(d.t.titles))
	}
	if _, err := d.t.need("data", d.t.titles[0].name, kind.holdsValues, "labels are whole numbers or text"); err != nil {
		return nil, err
	}
	return nodeDataColumn{d.t}, nil
}

// nodeDataRows goes over the rows.
type nodeDataRows struct {
	rows *rows
	b    *batch
	at   int
	next int64 // node of the row that move went to
}

func (r *nodeDataRows) Close() error { return r.rows.close() }

// Position names the row.
func (r *nodeDataRows) Position() string {
	if r.b == nil {
		return r.ReadsFrom()
	}
	return r.b.where(r.at)
}

// ReadsFrom names the files.
func (r *nodeDataRows) ReadsFrom() string { return r.rows.t.place.String() }

// move goes to the next row, or returns io.EOF.
func (r *nodeDataRows) move() (err error) {
	if r.at++; r.b == nil || r.at >= r.b.n {
		if r.b, err = r.rows.next(); err != nil {
			r.b = nil
			return err
		}
		r.at = 0
	}
	r.next++
	return nil
}

type nodeDataFeatures struct {
	nodeDataRows
	features *features
}

// Next implements graph.FeatureReader.
func (r *nodeDataFeatures) Next() (graph.FeatureRow, error) {
	if err := r.move(); err != nil {
		return graph.FeatureRow{}, err
	}
	return r.features.of(uint32(r.next), r.b, r.at)
}

type nodeDataColumn struct{ t *table }

// Where implements column.Column.
func (c nodeDataColumn) Where() string { return c.t.place.String() }

// Open implements column.Column.
func (c nodeDataColumn) Open(ctx context.Context) (column.Reader, error) {
	return &nodeDataValues{nodeDataRows{rows: c.t.all(ctx, []string{c.t.titles[0].name}, nil), next: -1}}, nil
}

type nodeDataValues struct{ nodeDataRows }

// NextValue implements column.Reader.
func (r *nodeDataValues) NextValue() (uint32, string, error) {
	if err := r.move(); err != nil {
		return 0, "", err
	}
	return uint32(r.next), r.b.cols[0].value(r.at), nil
}
