package dataset

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"

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
	if table.IsColumnar(ext) {
		return l, l.openColumnar(ctx, src, ext)
	}
	return l, l.openText(ctx, src)
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

func (l *IDs) openColumnar(ctx context.Context, src *source.Source, ext string) error {
	f, err := table.OpenNumbered(src, ext)
	if err != nil {
		return err
	}
	ids, err := f.IDs(ctx, graph.AnyID)
	if err != nil {
		return err
	}
	l.next, l.Closer = ids.Next, ids
	return nil
}

func (l *IDs) openText(ctx context.Context, src *source.Source) error {
	c, err := column.OpenText(ctx, src, source.Form{}, column.Wanted{Known: column.IDNames}, graph.IDLimit{N: math.MaxInt64})
	if err != nil {
		return err
	}
	r, err := c.Open(ctx)
	if err != nil {
		return err
	}
	l.Closer = r
	l.next = func() (int64, error) {
		_, value, err := r.NextValue()
		if err != nil {
			return 0, err
		}
		id, problem := graph.AnyID.Parse([]byte(strings.TrimSpace(value)))
		if problem != "" {
			return 0, graph.BadData(r.Position(), "%s", problem)
		}
		return int64(id), nil
	}
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
