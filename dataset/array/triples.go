package array

import (
	"context"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
)

// ThirdColumn is the name of the weights in a list of edges of three columns.
const ThirdColumn = "3"

// OpenList opens a list of edges of shape (m, 2) or (2, m), or with a third column or row of
// weights, which weight= may name. rows is the number of edges.
func OpenList(ctx context.Context, src *source.Source, weight string, limit graph.IDLimit) (list graph.EdgeSource, rows int64, err error) {
	v, h, err := openAnyOrder(ctx, src)
	if err != nil {
		return nil, 0, err
	}
	three := len(h.Shape) == 2 && h.Shape[0] != 2 && h.Shape[1] != 2 && (h.Shape[0] == 3 || h.Shape[1] == 3)
	switch {
	case !three && weight != "":
		return nil, 0, graph.NoWeight(src.Name, "holds the ends of edges alone; weights are a third column of the array, or an array of their own in an .npz archive")
	case !three:
		e, err := EdgesOf(v, h.Shape, h.Fortran, limit)
		if err != nil {
			return nil, 0, err
		}
		return e, e.M, nil
	case weight != "" && weight != ThirdColumn:
		return nil, 0, graph.BadData(src.Name, "has shape %v, and weight=%s names none of its columns: weight=%s reads the third one", h.Shape, weight, ThirdColumn)
	}
	if err := checkIDs(v); err != nil {
		return nil, 0, err
	}
	lying := h.Shape[1] != 3 // three rows
	if h.Shape[0] == 3 && h.Shape[1] == 3 {
		src.Note(graph.NoteOf(src.Name, "has shape (3, 3), which is read as (m, 3): a row is an edge"))
	}
	if weight == "" {
		src.Note(graph.WarningOf(src.Name, "the first two columns of the array are read as the ends of edges, and the third one is ignored; weight=%s in the URI reads it as weights", ThirdColumn))
	}
	rows = h.Shape[0]
	if lying {
		rows = h.Shape[1]
	}
	if lying == h.Fortran {
		return &triples{v: v, m: rows, limit: limit}, rows, nil
	}
	e, err := EdgesBetween(v.Part(0, rows), v.Part(rows, rows), limit)
	if err == nil && weight != "" {
		e, err = e.WithWeights(v.Part(2*rows, rows), []int64{rows})
	}
	return e, rows, err
}

// triples is a list of edges whose ends and weight follow each other.
type triples struct {
	v     Vector
	m     int64
	limit graph.IDLimit
}

// Open implements [graph.EdgeSource].
func (t *triples) Open(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	if !t.v.canCut() {
		s = s.Uncut()
	}
	lo, hi := s.Bounds(t.m)
	c, err := t.v.Doubles(ctx, 3*lo)
	if err != nil {
		return nil, err
	}
	return &tripleReader{cursor: c, t: t, row: lo, end: hi}, nil
}

type tripleReader struct {
	*cursor[float64]
	t        *triples
	row, end int64
}

// Read implements [graph.EdgeReader].
func (r *tripleReader) Read(edges []graph.Edge, weights []float32) (int, error) {
	n := int(min(int64(len(edges)), r.end-r.row))
	if n == 0 && len(edges) > 0 {
		if r.end < r.t.m {
			return 0, io.EOF
		}
		_, err := r.Next()
		return 0, err
	}
	for i := range n {
		var row [3]float64
		for c := range row {
			var err error
			if row[c], err = r.Next(); err != nil {
				return 0, err
			}
		}
		var ids [2]uint32
		for c := range ids {
			problem := notWhole(r.V.Type, row[c])
			if problem == "" {
				problem = r.t.limit.Check(int64(row[c]), r.V.Type == npy.Uint64)
			}
			if problem != "" {
				return 0, graph.BadData(r.V.Name, "edge %d: column %d is %v: %s", r.row, c+1, row[c], problem)
			}
			ids[c] = uint32(row[c])
		}
		edges[i] = graph.Edge{U: ids[0], V: ids[1]}
		if weights != nil {
			var problem string
			if weights[i], problem = graph.Weight(row[2]); problem != "" {
				return 0, graph.BadData(r.V.Name, "edge %d: %s", r.row, problem)
			}
		}
		r.row++
	}
	return n, nil
}
