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
// (colouring), and "p tw n m" with plain pairs (PACE).
func OpenDIMACS(ctx context.Context, src *source.Source, _ graph.IDLimit) (*List, error) {
	e := &List{src: src}
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
		e.Notes = []graph.Note{from1(src.Name)}
		if d.problem == "sp" {
			e.Notes = append(e.Notes, weights(src.Name, "the lengths of arcs are"))
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

func (d *dimacs) next() (edge graph.Edge, err error) {
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
		case d.problem == "sp" && kind == "a" && len(f) == 4, d.problem != "sp" && kind == "e" && len(f) == 3:
			f = f[1:]
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
		return edge, err
	}
}

// finish checks the number of edges. Files of colouring problems list an edge once or in
// both directions, and state either number.
func (d *dimacs) finish() error {
	colouring := d.problem != "sp" && d.problem != "tw"
	if d.found == d.Hint || colouring && (d.found == 2*d.Hint || 2*d.found == d.Hint) {
		return io.EOF
	}
	return fewer(d.lines, "edges", d.found, d.Hint)
}
