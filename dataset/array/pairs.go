package array

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
)

// arrayEdges is an edge list as an integer array of shape (2, m) or (m, 2).
type Edges struct {
	v     Vector
	M     int64
	split bool // all sources are stored before all targets
	limit graph.IDLimit
}

// OpenEdges reads the header of a NumPy file of edges. Either order of storage
// is read: the transpose of an array in Fortran order is one in C order.
func OpenEdges(ctx context.Context, src *source.Source, limit graph.IDLimit) (*Edges, error) {
	v, h, err := openAnyOrder(ctx, src)
	if err != nil {
		return nil, err
	}
	return EdgesOf(v, h.Shape, h.Fortran, limit)
}

// EdgesOf takes a matrix in either order of storage for a list of edges.
func EdgesOf(v Vector, shape []int64, fortran bool, limit graph.IDLimit) (*Edges, error) {
	if !v.Type.IsInteger() || v.Type == npy.Bool {
		return nil, graph.BadData(v.Name, "dtype %s: node ids must be integers, save a.astype('<i8')", v.Type)
	}
	switch {
	case len(shape) == 2 && shape[0] == 2:
		return &Edges{v, shape[1], !fortran, limit}, nil
	case len(shape) == 2 && shape[1] == 2:
		return &Edges{v, shape[0], fortran, limit}, nil
	}
	return nil, graph.BadData(v.Name, "has shape %v: an edge list has shape (2, m) or (m, 2)", shape)
}

func (e *Edges) Open(ctx context.Context) (graph.EdgeReader, error) { return e.openRows(ctx, 0, e.M) }

// openRows reads rows [lo, hi).
func (e *Edges) openRows(ctx context.Context, lo, hi int64) (graph.EdgeReader, error) {
	if !e.split {
		u, err := e.v.Integers(ctx, 2*lo)
		return &edgeReader{Edges: e, u: u, v: u, row: lo, end: hi}, err
	}
	u, err := e.v.Integers(ctx, lo)
	if err != nil {
		return nil, err
	}
	v, err := e.v.Integers(ctx, e.M+lo)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return &edgeReader{Edges: e, u: u, v: v, row: lo, end: hi}, nil
}

type edgeReader struct {
	*Edges
	u, v     *cursor[int64] // the same where the ends of an edge are neighbours
	row, end int64
}

func (r *edgeReader) Read(batch []graph.Edge) (int, error) {
	n := int(min(int64(len(batch)), r.end-r.row))
	if n == 0 && len(batch) > 0 {
		if r.end < r.M {
			return 0, io.EOF
		}
		if _, err := r.v.Next(); err != io.EOF {
			return 0, err
		}
		return 0, io.EOF
	}
	for i := range n {
		u, err := r.u.Next()
		if err != nil {
			return 0, err
		}
		v, err := r.v.Next()
		if err != nil {
			return 0, err
		}
		for _, id := range [2]int64{u, v} {
			if id < 0 || id >= r.limit.N {
				return 0, graph.BadData(r.Edges.v.Name, "edge %d: %s", r.row, r.limit.Check(id, r.Edges.v.Type == npy.Uint64))
			}
		}
		batch[i] = graph.Edge{U: uint32(u), V: uint32(v)}
		r.row++
	}
	return n, nil
}

func (r *edgeReader) Close() error {
	if r.u == r.v {
		return r.u.Close()
	}
	return errors.Join(r.u.Close(), r.v.Close())
}

// CanCut implements cuttable.
func (e *Edges) CanCut() bool { return e.v.src.Unpack == nil && !e.v.latin1 }

// openShare implements cuttable.
func (e *Edges) OpenShare(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	lo, hi := s.Bounds(e.M)
	return e.openRows(ctx, lo, hi)
}

// OpenPairs takes a file of nothing but pairs of numbers.
func OpenPairs(src *source.Source, typ npy.Type, limit graph.IDLimit) (*Edges, error) {
	if src.Size < 0 {
		return nil, graph.BadData(src.Name, "is compressed: its length says how many edges it holds, unpack it first")
	}
	pair := 2 * typ.Size()
	if src.Size%pair != 0 {
		return nil, graph.BadData(src.Name, "has %d bytes, no whole number of pairs of %d bytes: it is truncated, or its numbers have another width (.u32 or .bin, .u64)",
			src.Size, pair)
	}
	v := Vector{src: src, N: src.Size / typ.Size(), Type: typ, Name: src.Name}
	return &Edges{v, src.Size / pair, false, limit}, nil
}

// OpenRawEdges opens an edge list that may lack its NumPy header: then it is pairs of
// numbers of type typ.
func OpenRawEdges(ctx context.Context, src *source.Source, typ npy.Type, limit graph.IDLimit) (*Edges, error) {
	v, shape, err := OpenRaw(ctx, src, typ)
	switch {
	case err == nil && shape == nil:
		if v.N%2 != 0 {
			return nil, graph.BadData(src.Name, "holds %d numbers, no whole number of pairs: it is truncated, fetch it again", v.N)
		}
		return &Edges{v, v.N / 2, false, limit}, nil
	case err == nil || shape != nil:
		return OpenEdges(ctx, src, limit)
	}
	return nil, err
}
