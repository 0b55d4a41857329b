package array

import (
	"context"
	"errors"
	"io"
	"slices"

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
	// weights, unless nil, has the weight of each edge.
	weights *Vector
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

// Open implements [graph.EdgeSource].
func (e *Edges) Open(ctx context.Context, s graph.Share) (_ graph.EdgeReader, err error) {
	if !e.canCut() {
		s = s.Uncut()
	}
	r := &edgeReader{Edges: e}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	r.row, r.end = s.Bounds(e.M)
	sources, targets, first := r.row, e.v, e.M+r.row
	switch {
	case e.targets != nil:
		targets, first = *e.targets, r.row
	case !e.split:
		sources *= 2
	}
	if r.u, err = e.v.Integers(ctx, sources); err != nil {
		return nil, err
	}
	if r.v = r.u; e.split || e.targets != nil {
		if r.v, err = targets.Integers(ctx, first); err != nil {
			return nil, err
		}
	}
	if e.weights != nil {
		r.w, err = e.weights.Numbers(ctx, r.row)
	}
	return r, err
}

// canCut reports whether edges can be read from the middle.
func (e *Edges) canCut() bool {
	return e.v.canCut() && (e.targets == nil || e.targets.canCut()) && (e.weights == nil || e.weights.canCut())
}

type edgeReader struct {
	*Edges
	u, v     *cursor[int64]   // the same where the ends of an edge are neighbours
	w        *cursor[float32] // nil without weights
	row, end int64
}

// Read implements [graph.EdgeReader].
func (r *edgeReader) Read(edges []graph.Edge, weights []float32) (int, error) {
	n := int(min(int64(len(edges)), r.end-r.row))
	if n == 0 && len(edges) > 0 {
		return 0, r.finish(weights != nil)
	}
	for at := 0; at < n; {
		u, v, step, err := r.some(n - at)
		if err != nil {
			return 0, err
		}
		for i := 0; i < len(v); i += step {
			if uint64(u[i]) >= uint64(r.limit.N) || uint64(v[i]) >= uint64(r.limit.N) {
				return 0, r.outside(u[i], v[i])
			}
			edges[at] = graph.Edge{U: uint32(u[i]), V: uint32(v[i])}
			if weights != nil {
				if weights[at], err = weightOf(r.w, r.row); err != nil {
					return 0, err
				}
			}
			r.row++
			at++
		}
	}
	return n, nil
}

// some returns the ends of 1 to n edges, step elements from one edge to the next: entry i of v belongs to entry i of u.
func (r *edgeReader) some(n int) (u, v []int64, step int, err error) {
	if r.u == r.v {
		// The vector has an even number of elements, and a cursor reads an even number of them at a time.
		if u, err = r.u.peek(2 * n); err != nil {
			return nil, nil, 0, err
		}
		r.u.pos += len(u)
		return u, u[1:], 2, nil
	}
	if u, err = r.u.peek(n); err == nil {
		v, err = r.v.peek(len(u))
	}
	r.u.pos += len(v)
	r.v.pos += len(v)
	return u, v, 1, err
}

// outside returns the error for an edge with an id that is not below the limit.
func (r *edgeReader) outside(ends ...int64) error {
	i := slices.IndexFunc(ends, func(id int64) bool { return uint64(id) >= uint64(r.limit.N) })
	return graph.BadData(r.Edges.v.Name, "edge %d: %s", r.row, r.limit.Check(ends[i], r.Edges.v.Type == npy.Uint64))
}

// finish returns io.EOF, once all arrays have been read to their ends, where the share ends with them.
func (r *edgeReader) finish(weighted bool) (err error) {
	if r.end < r.M {
		return io.EOF
	}
	// The cursor of v is asked first: in an array with all sources before all targets, targets follow the last source of u.
	if _, err = r.v.Next(); err == io.EOF && r.targets != nil {
		_, err = r.u.Next()
	}
	if err == io.EOF && weighted {
		_, err = r.w.Next()
	}
	return err
}

// weightOf reads the weight of an edge.
func weightOf(c *cursor[float32], edge int64) (float32, error) {
	w, err := c.Next()
	if err != nil {
		return 0, err
	}
	if _, problem := graph.Weight(float64(w)); problem != "" {
		return 0, graph.BadData(c.V.Name, "edge %d: %s", edge, problem)
	}
	return w, nil
}

// Close closes the arrays.
func (r *edgeReader) Close() (err error) {
	if r.u != nil {
		err = r.u.Close()
	}
	if r.v != nil && r.v != r.u {
		err = errors.Join(err, r.v.Close())
	}
	if r.w != nil {
		err = errors.Join(err, r.w.Close())
	}
	return err
}

// WithWeights takes entry i of a vector for the weight of edge i.
func (e *Edges) WithWeights(v Vector, shape []int64) (*Edges, error) {
	if v.N != e.M || len(shape) == 0 || shape[0] != e.M {
		return nil, graph.BadData(v.Name, "has shape %v, and there are %d edges: a vector with one weight for each edge is needed", shape, e.M)
	}
	if v.Type == npy.Bool {
		return nil, graph.BadData(v.Name, "is of booleans: weights are numbers")
	}
	weighted := *e
	weighted.weights = &v
	return &weighted, nil
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
