package dataset

import (
	"context"

	"ndls/dataset/table"
	"ndls/internal/inputid"
)

// Rows is one file of rows by input id, such as the soft labels of another
// model, in any form that features may have: Arrow, Parquet, .npy, CSV, text.
type Rows struct {
	Dataset
	open func(ctx context.Context) (FeatureReader, error)
}

// OpenRows opens a file of rows.
func OpenRows(ctx context.Context, path string) (_ *Rows, err error) {
	d := &edgeFiles{}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	src, ext, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Rows{Dataset: d, open: func(ctx context.Context) (FeatureReader, error) { return d.features.Open(ctx) }}
	return r, d.openFeatures(ctx, &edgesURI{nodes: -1}, src, ext)
}

// OpenKeyedRows opens a table of rows by ids of a type; rows have the numbers that find
// gives.
func OpenKeyedRows(ctx context.Context, path string, t inputid.Type, find func(key []byte) (uint32, bool)) (*Rows, error) {
	g, err := table.OpenRows(ctx, path, t, find)
	if err != nil {
		return nil, err
	}
	return &Rows{Dataset: g, open: g.Features}, nil
}

// Width is the number of values of a row.
func (r *Rows) Width() int { return r.Info().NumFeatures }

// Read streams the rows.
func (r *Rows) Read(ctx context.Context) (FeatureReader, error) { return r.open(ctx) }
