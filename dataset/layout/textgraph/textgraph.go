package textgraph

import (
	"bytes"
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// List is an edge list in one of the forms.
type List struct {
	// Nodes is the number of nodes, -1 where the file does not state it.
	Nodes int64
	// Hint is the number of edges that the header states, -1 where there is none.
	Hint int64
	// Mutual says that a line of the file stands for both directions of an edge.
	Mutual bool
	Notes  []graph.Note
	src    *source.Source
	// weighted says that the numbers of edges are read as their weights.
	weighted bool
	// begin reads the header, and returns the function that reads an edge.
	begin func(l *source.Lines) (next, error)
}

// next returns the next edge, or io.EOF. In a weighted list it sets the weight of the edge.
type next func(weight *float32) (graph.Edge, error)

// Open implements [graph.EdgeSource].
func (e *List) Open(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	return graph.EdgeFunc(e.open).Open(ctx, s)
}

// open opens the whole list.
func (e *List) open(ctx context.Context) (graph.EdgeReader, error) {
	l, err := source.OpenLines(ctx, e.src)
	if err != nil {
		return nil, err
	}
	n, err := e.begin(l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &reader{l, n}, nil
}

// WeightName is the value of weight= in a URI: an edge has at most one number.
const WeightName = "value"

// Opener reads the header of a file. limit bounds the ids where the file does not state the
// number of nodes; weighted says that the numbers of edges are read as their weights.
type Opener func(ctx context.Context, src *source.Source, limit graph.IDLimit, weighted bool) (*List, error)

// Forms are the forms by the kind of their URI.
var Forms = map[string]Opener{
	"mtx": OpenMatrixMarket, "metis": OpenMETIS, "dimacs": OpenDIMACS, "adjlist": OpenAdjacencyList,
}

// reader gives edges in batches.
type reader struct {
	*source.Lines
	next next
}

// Read implements [graph.EdgeReader].
func (r *reader) Read(edges []graph.Edge, weights []float32) (int, error) {
	var weight float32
	for n := range edges {
		e, err := r.next(&weight)
		if err == io.EOF && n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		edges[n] = e
		if weights != nil {
			weights[n] = weight
		}
	}
	return len(edges), nil
}

// look opens the list once, so that its header is checked.
func (e *List) look(ctx context.Context) (*List, error) {
	r, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	return e, r.Close()
}

// headerEnds is the error for a file that ends within its header.
func headerEnds(l *source.Lines, err error) error {
	if err != io.EOF {
		return err
	}
	return graph.BadData(l.Name(), "the file ends within its header: it is truncated, fetch it again")
}

// number reads a count of the header.
func number(l *source.Lines, field []byte, what string) (int64, error) {
	limit := graph.IDLimit{N: 1 << 50}
	var v int64
	for _, c := range field {
		if c < '0' || c > '9' || v > limit.N {
			v = -1
			break
		}
		v = 10*v + int64(c-'0')
	}
	if v < 0 || len(field) == 0 || v > limit.N {
		return 0, graph.BadData(l.Where(), "%s is %s: a whole number is needed", what, graph.Shorten(field))
	}
	return v, nil
}

// nodes reads the number of nodes of the header.
func (e *List) nodes(l *source.Lines, field []byte) error {
	n, err := number(l, field, "the number of nodes")
	if err == nil && n > graph.MaxID+1 {
		err = graph.BadData(l.Where(), "states %d nodes: at most %d are read", n, int64(graph.MaxID+1))
	}
	e.Nodes = n
	return err
}

// node reads a node that is numbered from 1.
func (e *List) node(l *source.Lines, field []byte) (uint32, error) {
	var v int64
	for _, c := range field {
		if c < '0' || c > '9' || v > graph.MaxID {
			return 0, e.noNode(l, field)
		}
		v = 10*v + int64(c-'0')
	}
	if v < 1 || v > e.Nodes {
		return 0, e.noNode(l, field)
	}
	return uint32(v - 1), nil
}

func (e *List) noNode(l *source.Lines, field []byte) error {
	return graph.BadData(l.Where(), "node %s: nodes are numbered from 1 to %d, the number that the header states; correct one of the two", graph.Shorten(field), e.Nodes)
}

// fewer is the error for a file that holds another number of edges than its header says.
func fewer(l *source.Lines, what string, found, stated int64) error {
	return graph.BadData(l.Name(), "holds %d %s, its header states %d: it is damaged or truncated, fetch it again", found, what, stated)
}

// fields are the fields of a line between blanks.
func fields(line []byte) [][]byte { return bytes.Fields(line) }

func from1(name string) graph.Note {
	return graph.NoteOf(name, "nodes are numbered from 1 in the file, and from 0 in all results: node i of the file has id i-1")
}

// weights notes what becomes of the numbers of edges.
func (e *List) weights(name, what string) graph.Note {
	if e.weighted {
		return graph.NoteOf(name, "%s the weights of edges", what)
	}
	return graph.WarningOf(name, "%s ignored: an edge is two nodes, without weight; weight=%s in the URI reads weights", what, WeightName)
}

// weight reads the number of an edge.
func (e *List) weight(l *source.Lines, field []byte) (float32, error) {
	w, problem := graph.ParseWeight(string(field))
	if problem != "" {
		return 0, graph.BadData(l.Where(), "%s", problem)
	}
	return w, nil
}

func unknown(l *source.Lines, line []byte, form string) error {
	return graph.BadData(l.Where(), "%s is no line of a %s file: `ndls help datasets` describes the form", graph.Shorten(line), form)
}
