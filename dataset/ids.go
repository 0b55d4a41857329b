package dataset

import (
	"context"
	"errors"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
	"ndls/dataset/table"
	"ndls/internal/inputid"
)

// idFile is a list of input ids in a file.
type idFile struct {
	column.IDs
	files source.Files
}

// OpenIDs opens a list of ids in a file: a NumPy vector of integers, or text with
// one id a line, or a column id of text, Parquet or Arrow. Errors in the file are [ErrData] and name it.
func OpenIDs(ctx context.Context, path string) (_ IDs, err error) {
	l := &idFile{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.files.Close())
		}
	}()
	src, ext, err := l.files.Open(path)
	if err != nil {
		return nil, err
	}
	if ext == ".npy" {
		v, shape, err := array.Open(ctx, src)
		if err != nil {
			return nil, err
		}
		if v.Type == npy.Bool || len(shape) != 1 {
			return nil, graph.BadData(src.Name, "has shape %v: save a vector of integers", shape)
		}
		list, err := column.VectorList(graph.NoSplit, v, shape)
		if err != nil {
			return nil, err
		}
		l.IDs, err = list.Open(ctx)
		return l, err
	}
	n, err := table.OpenNumbered(ctx, ext, table.Text{Known: column.IDNames, Advice: table.QuoteValues}, graph.AnyID, src)
	if err != nil {
		return nil, err
	}
	l.IDs, err = n.IDs(ctx)
	return l, err
}

// Close closes the file.
func (l *idFile) Close() error { return errors.Join(l.IDs.Close(), l.files.Close()) }

// OpenKeyedIDs opens a list of ids of a type in a table, or in text with an id a line. It gives the numbers that find has for them.
func OpenKeyedIDs(ctx context.Context, path string, t inputid.Type, find func(key []byte) (uint32, bool)) (IDs, error) {
	return table.OpenIDs(ctx, path, t, find)
}
