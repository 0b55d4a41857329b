package dataset

import (
	"context"

	"ndls/dataset/table"
	"ndls/internal/inputid"
)

// OpenRows opens one file of rows by input id, such as the soft labels of another model, in any form that features may
// have: Arrow, Parquet, .npy, CSV, text. The dataset that it gives has features alone.
func OpenRows(ctx context.Context, path string) (_ Dataset, err error) {
	d := &edgeFiles{}
	d.Known.NumNodes = -1
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	src, ext, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	return d, d.openFeatures(ctx, &edgesURI{}, src, ext)
}

// OpenKeyedRows opens a table of rows by ids of a type; rows have the numbers that find
// gives.
func OpenKeyedRows(ctx context.Context, path string, t inputid.Type, find func(key []byte) (uint32, bool)) (Dataset, error) {
	return table.OpenRows(ctx, path, t, find)
}
