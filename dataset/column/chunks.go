package column

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
)

// Chunks are columns whose values belong to nodes that follow each other.
type Chunks []Vector

// Where implements [Column].
func (c Chunks) Where() string { return c[0].Where() }

// Open implements [Column].
func (c Chunks) Open(ctx context.Context) (Reader, error) {
	return &chunkReader{ctx: ctx, left: c}, nil
}

type chunkReader struct {
	ctx   context.Context
	left  Chunks
	now   Reader
	first int64
	at    string
}

func (r *chunkReader) Position() string {
	if r.now == nil {
		return r.at
	}
	return r.now.Position()
}

func (r *chunkReader) NextValue() (uint32, string, error) {
	for len(r.left) > 0 {
		if r.now == nil {
			now, err := r.left[0].Open(r.ctx)
			if err != nil {
				return 0, "", err
			}
			r.now = now
		}
		id, value, err := r.now.NextValue()
		if err != io.EOF {
			return id + uint32(r.first), value, err
		}
		r.at = r.now.Position()
		if err := r.now.Close(); err != nil {
			return 0, "", err
		}
		r.first += r.left[0].Values.N
		r.now, r.left = nil, r.left[1:]
	}
	return 0, "", io.EOF
}

func (r *chunkReader) Close() error {
	if r.now == nil {
		return nil
	}
	return r.now.Close()
}

// Pairs is a column of nodes and values in two vectors of the same length, or in several
// such pairs.
type Pairs struct {
	IDs, Values []array.Vector
	Limit       graph.IDLimit
}

// Where implements [Column].
func (p Pairs) Where() string { return p.Values[0].Name }

// Open implements [Column].
func (p Pairs) Open(ctx context.Context) (Reader, error) {
	return &pairReader{ctx: ctx, pairs: p, part: -1}, nil
}

type pairReader struct {
	ctx   context.Context
	pairs Pairs
	part  int
	ids   func() (int64, error)
	value Reader
	close func() error
	row   int64
}

func (r *pairReader) Position() string {
	if r.value == nil {
		return r.pairs.Where()
	}
	return r.value.Position()
}

func (r *pairReader) NextValue() (uint32, string, error) {
	for {
		if r.value == nil {
			if r.part++; r.part == len(r.pairs.IDs) {
				r.part--
				return 0, "", io.EOF
			}
			if err := r.open(); err != nil {
				return 0, "", err
			}
		}
		id, err := r.ids()
		if err == nil {
			var value string
			if _, value, err = r.value.NextValue(); err == nil {
				if problem := r.pairs.Limit.Check(id, r.pairs.IDs[r.part].Type == npy.Uint64); problem != "" {
					return 0, "", graph.BadData(graph.RowOf(r.pairs.IDs[r.part].Name, r.row), "%s", problem)
				}
				r.row++
				return uint32(id), value, nil
			}
		}
		if err != io.EOF {
			return 0, "", err
		}
		if err := r.Close(); err != nil {
			return 0, "", err
		}
	}
}

func (r *pairReader) open() error {
	ids, err := r.pairs.IDs[r.part].Integers(r.ctx, 0)
	if err != nil {
		return err
	}
	value, err := Vector{Values: r.pairs.Values[r.part]}.Open(r.ctx)
	if err != nil {
		return errors.Join(err, ids.Close())
	}
	r.ids, r.value, r.row = ids.Next, value, 0
	r.close = func() error { return errors.Join(ids.Close(), value.Close()) }
	return nil
}

func (r *pairReader) Close() error {
	if r.value == nil {
		return nil
	}
	r.value = nil
	return r.close()
}
