package array

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
)

// Edges is an edge list as an integer array of shape (2, m) or (m, 2).
type Edges struct {
	v     Vector
	M     int64
	split bool // all sources are stored before all targets
	limit graph.IDLimit
	// targets, unless nil, is where the targets are; v then has the sources alone.
	targets *Vector
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
	if err := checkIDs(v); err != nil {
		return nil, err
	}
	switch {
	case len(shape) == 2 && shape[0] == 2:
		if shape[1] == 2 {
			v.src.Note(graph.NoteOf(v.Name, "has shape (2, 2), which is read as (2, m): the sources of two edges, then their targets; write (m, 2) with a third edge, or as text"))
		}
		return &Edges{v: v, M: shape[1], split: !fortran, limit: limit}, nil
	case len(shape) == 2 && shape[1] == 2:
		return &Edges{v: v, M: shape[0], split: fortran, limit: limit}, nil
	}
	return nil, graph.BadData(v.Name, "has shape %v: an edge list has shape (2, m) or (m, 2)", shape)
}

// checkIDs refuses what is no vector of node ids. Floats that are whole are ids, as their reader
// checks.
func checkIDs(v Vector) error {
	if v.Type == npy.Bool {
		return graph.BadData(v.Name, "dtype %s: node ids must be integers, save a.astype('<i8')", v.Type)
	}
	return nil
}

// EdgesBetween takes edge i from entry i of a vector of sources to entry i of a vector of
// targets.
func EdgesBetween(sources, targets Vector, limit graph.IDLimit) (*Edges, error) {
	for _, v := range []Vector{sources, targets} {
		if err := checkIDs(v); err != nil {
			return nil, err
		}
	}
	if sources.N != targets.N {
		return nil, graph.BadData(targets.Name, "has %d targets, and there are %d sources: each edge has one of both", targets.N, sources.N)
	}
	return &Edges{v: sources, M: sources.N, limit: limit, targets: &targets}, nil
}

func (e *Edges) Open(ctx context.Context) (graph.EdgeReader, error) { return e.openRows(ctx, 0, e.M) }

// openRows reads rows [lo, hi).
func (e *Edges) openRows(ctx context.Context, lo, hi int64) (graph.EdgeReader, error) {
	targets, first := e.v, e.M+lo
	switch {
	case e.targets != nil:
		targets, first = *e.targets, lo
	case !e.split:
		u, err := e.v.Integers(ctx, 2*lo)
		return &edgeReader{Edges: e, u: u, v: u, row: lo, end: hi}, err
	}
	u, err := e.v.Integers(ctx, lo)
	if err != nil {
		return nil, err
	}
	v, err := targets.Integers(ctx, first)
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
		if r.targets != nil {
			if _, err := r.u.Next(); err != io.EOF {
				return 0, err
			}
		}
		_, err := r.v.Next()
		return 0, err
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

// Weighted is a list of edges with a vector of their weights.
type Weighted struct {
	*Edges
	weights Vector
}

// WithWeights takes entry i of a vector for the weight of edge i.
func (e *Edges) WithWeights(v Vector, shape []int64) (*Weighted, error) {
	if v.N != e.M || len(shape) == 0 || shape[0] != e.M {
		return nil, graph.BadData(v.Name, "has shape %v, and there are %d edges: a vector with one weight for each edge is needed", shape, e.M)
	}
	if v.Type == npy.Bool {
		return nil, graph.BadData(v.Name, "is of booleans: weights are numbers")
	}
	return &Weighted{e, v}, nil
}

// Open implements [graph.EdgeSource].
func (w *Weighted) Open(ctx context.Context) (graph.EdgeReader, error) {
	return w.openRows(ctx, 0, w.M)
}

// CanCut reports whether ends and weights can be read from the middle.
func (w *Weighted) CanCut() bool { return w.Edges.CanCut() && w.weights.canCut() }

// OpenShare opens some of the rows.
func (w *Weighted) OpenShare(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	lo, hi := s.Bounds(w.M)
	return w.openRows(ctx, lo, hi)
}

func (w *Weighted) openRows(ctx context.Context, lo, hi int64) (graph.EdgeReader, error) {
	edges, err := w.Edges.openRows(ctx, lo, hi)
	if err != nil {
		return nil, err
	}
	weights, err := w.weights.numbersFrom(ctx, lo)
	if err != nil {
		return nil, errors.Join(err, edges.Close())
	}
	return &weightedReader{EdgeReader: edges, weights: weights, row: lo, last: hi == w.M}, nil
}

type weightedReader struct {
	graph.EdgeReader
	weights *cursor[float32]
	row     int64
	last    bool // the edges of the list end with those of the reader
}

// ReadWeighted implements [graph.WeightedReader].
func (r *weightedReader) ReadWeighted(batch []graph.Edge, weights []float32) (int, error) {
	n, err := r.Read(batch)
	if err == io.EOF && r.last {
		_, err = r.weights.Next()
	}
	if err != nil {
		return 0, err
	}
	for i := range n {
		if weights[i], err = r.weights.Next(); err != nil {
			return 0, err
		}
		if _, problem := graph.Weight(float64(weights[i])); problem != "" {
			return 0, graph.BadData(r.weights.V.Name, "edge %d: %s", r.row, problem)
		}
		r.row++
	}
	return n, nil
}

func (r *weightedReader) Close() error { return errors.Join(r.EdgeReader.Close(), r.weights.Close()) }

// CanCut implements cuttable.
func (e *Edges) CanCut() bool { return e.v.canCut() && (e.targets == nil || e.targets.canCut()) }

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
	return &Edges{v: v, M: src.Size / pair, limit: limit}, nil
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
		return &Edges{v: v, M: v.N / 2, limit: limit}, nil
	case err == nil || shape != nil:
		return OpenEdges(ctx, src, limit)
	}
	return nil, err
}
