package dataset

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
	"ndls/dataset/table"
	"ndls/internal/inputid"
)

// IDs is a list of input ids in a file: a NumPy vector of integers, or text with
// one id a line, or a column id of text, Parquet or Arrow.
type IDs struct {
	d    *edgeFiles
	next func() (int64, error)
	io.Closer
}

// OpenIDs opens a list of ids. Errors in the file are [ErrData] and name it.
func OpenIDs(ctx context.Context, path string) (_ *IDs, err error) {
	l := &IDs{d: &edgeFiles{}}
	defer func() {
		if err != nil {
			_ = l.d.Close()
		}
	}()
	src, ext, err := l.d.Open(path)
	if err != nil {
		return nil, err
	}
	if ext == ".npy" {
		return l, l.openVector(ctx, src)
	}
	n, err := table.OpenNumbered(ctx, ext, table.Text{Known: column.IDNames, Advice: table.QuoteValues}, graph.AnyID, src)
	if err != nil {
		return nil, err
	}
	ids, err := n.IDs(ctx)
	if err == nil {
		l.next, l.Closer = ids.Next, ids
	}
	return l, err
}

func (l *IDs) openVector(ctx context.Context, src *source.Source) error {
	v, shape, err := array.Open(ctx, src)
	if err != nil {
		return err
	}
	if v.Type == npy.Bool || len(shape) != 1 {
		return graph.BadData(src.Name, "has shape %v: save a vector of integers", shape)
	}
	ints, err := v.Integers(ctx, 0)
	if err != nil {
		return err
	}
	l.next, l.Closer = ints.Next, ints
	return nil
}

// OpenKeyedIDs opens a list of ids of a type in a table, or in text with an id a line.
func OpenKeyedIDs(ctx context.Context, path string, t inputid.Type) (*table.IDList, error) {
	return table.OpenIDs(ctx, path, t)
}

// Next returns the next id, or io.EOF.
func (l *IDs) Next() (int64, error) { return l.next() }

// Close closes the file.
func (l *IDs) Close() error { return errors.Join(l.Closer.Close(), l.d.Close()) }
