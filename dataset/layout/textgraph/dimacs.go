package textgraph

import (
	"bytes"
	"context"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// OpenDIMACS opens a graph in one of the forms of the DIMACS challenges: "p sp n m" with
// arcs "a u v w" (shortest paths), "p edge n m" or "p col n m" with edges "e u v"
// (colouring) or "e u v w", and "p tw n m" with plain pairs (PACE).
func OpenDIMACS(ctx context.Context, src *source.Source, _ graph.IDLimit, weighted bool) (*List, error) {
	e := &List{src: src, weighted: weighted}
	e.begin = func(l *source.Lines) (next, error) {
		d := &dimacs{List: e, lines: l}
		for d.problem == "" {
			line, err := l.Next()
			if err != nil {
				return nil, headerEnds(l, err)
			}
			if err := d.header(fields(line)); err != nil {
				return nil, err
			}
		}
		e.Mutual, e.Notes = d.problem != "sp", []graph.Note{from1(src.Name)}
		switch {
		case d.problem == "sp":
			e.Notes = append(e.Notes, e.weights(src.Name, "the lengths of arcs are"))
		case weighted && d.problem == "tw":
			return nil, graph.NoWeight(l.Where(), "edges of the problem tw have no weights")
		case weighted:
			e.Notes = append(e.Notes, e.weights(src.Name, "the numbers behind the ends of edges are"))
		}
		return d.next, nil
	}
	return e.look(ctx)
}

type dimacs struct {
	*List
	lines   *source.Lines
	problem string // sp, edge, col or tw
	found   int64
}

// header reads a line in front of the edges.
func (d *dimacs) header(f [][]byte) (err error) {
	switch {
	case len(f) == 0 || f[0][0] == 'c' || f[0][0] == '%' || f[0][0] == '#':
		return nil
	case len(f) != 4 || string(f[0]) != "p":
		return graph.BadData(d.lines.Where(), "is not the line \"p sp NODES EDGES\" (or edge, col, tw) that begins a DIMACS file")
	}
	d.problem = string(f[1])
	switch d.problem {
	case "sp", "edge", "edges", "col", "tw":
	default:
		return graph.BadData(d.lines.Where(), "problem %s: files of the problems sp, edge, col and tw are read", graph.Shorten(f[1]))
	}
	if err := d.nodes(d.lines, f[2]); err != nil {
		return err
	}
	d.Hint, err = number(d.lines, f[3], "the number of edges")
	return err
}

func (d *dimacs) next(weight *float32) (edge graph.Edge, err error) {
	for {
		line, err := d.lines.Next()
		if err == io.EOF {
			return edge, d.finish()
		}
		if err != nil {
			return edge, err
		}
		f := fields(line)
		if len(f) == 0 {
			continue
		}
		switch kind := string(f[0]); {
		case kind == "c" || bytes.HasPrefix(f[0], []byte("#")):
			continue
		case d.problem == "sp" && kind == "a" && len(f) == 4, d.colouring() && kind == "e" && len(f) == d.width():
			f = f[1:]
		case d.colouring() && kind == "e" && len(f) == 4:
			return edge, graph.BadData(d.lines.Where(), "has a number behind the ends of the edge: weight=%s in the URI reads it as the weight; or remove it", WeightName)
		case d.colouring() && kind == "e" && len(f) == 3:
			return edge, graph.BadData(d.lines.Where(), "has no number behind the ends of the edge: give each edge its weight, or leave weight= out of the URI")
		case d.problem == "tw" && len(f) == 2:
		case d.problem != "sp" && (kind == "n" || kind == "d" || kind == "v" || kind == "x"):
			continue // values and places of nodes
		default:
			return edge, unknown(d.lines, line, "DIMACS")
		}
		d.found++
		if edge.U, err = d.node(d.lines, f[0]); err == nil {
			edge.V, err = d.node(d.lines, f[1])
		}
		if err == nil && d.weighted {
			*weight, err = d.weight(d.lines, f[2])
		}
		return edge, err
	}
}

// colouring reports whether lines of edges begin with an e.
func (d *dimacs) colouring() bool { return d.problem != "sp" && d.problem != "tw" }

// width is the number of fields of such a line.
func (d *dimacs) width() int {
	if d.weighted {
		return 4
	}
	return 3
}

// finish checks the number of edges. Files of colouring problems list an edge once or in
// both directions, and state either number.
func (d *dimacs) finish() error {
	if d.found == d.Hint || d.colouring() && (d.found == 2*d.Hint || 2*d.found == d.Hint) {
		return io.EOF
	}
	return fewer(d.lines, "edges", d.found, d.Hint)
}
