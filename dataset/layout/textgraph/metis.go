package textgraph

import (
	"context"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// OpenMETIS opens a graph as METIS and KaHIP read it (the manual of METIS 5.1, section
// 4.1.1): the numbers of nodes and edges, and a line of neighbours for each node.
func OpenMETIS(ctx context.Context, src *source.Source, _ graph.IDLimit, weighted bool) (*List, error) {
	e := &List{src: src, weighted: weighted}
	e.Mutual = true
	e.begin = func(l *source.Lines) (next, error) {
		line, err := dataLine(l)
		if err != nil {
			return nil, headerEnds(l, err)
		}
		f := fields(line)
		if len(f) < 2 || len(f) > 4 {
			return nil, graph.BadData(l.Where(), "has %d numbers: a METIS file begins with the numbers of nodes and edges", len(f))
		}
		if err := e.nodes(l, f[0]); err != nil {
			return nil, err
		}
		if e.Hint, err = number(l, f[1], "the number of edges"); err != nil {
			return nil, err
		}
		m := metis{List: e, lines: l, stride: 1}
		if len(f) > 2 {
			if err := m.format(f[2:]); err != nil {
				return nil, err
			}
		}
		e.Notes = []graph.Note{from1(src.Name)}
		switch {
		case m.stride == 2:
			e.Notes = append(e.Notes, e.weights(src.Name, "the weights of edges are"))
		case weighted:
			return nil, graph.NoWeight(l.Where(), "the header states no weights of edges: its third number ends with 1 where they are")
		}
		e.Hint *= 2
		return m.next, nil
	}
	return e.look(ctx)
}

// metis reads the lines of neighbours.
type metis struct {
	*List
	lines  *source.Lines
	front  int // fields before the neighbours: size and weights of the node
	stride int // fields for each neighbour
	node   int64
	left   [][]byte
	found  int64
}

// format reads what the header says of weights: three digits for sizes of nodes, weights
// of nodes and weights of edges, and the number of weights of a node.
func (m *metis) format(f [][]byte) error {
	digits := string(f[0])
	for len(digits) < 3 {
		digits = "0" + digits
	}
	constraints := int64(1)
	if len(f) > 1 {
		var err error
		if constraints, err = number(m.lines, f[1], "the number of weights of a node"); err != nil {
			return err
		}
	}
	for i, c := range digits {
		if c != '0' && c != '1' || len(digits) != 3 || constraints > 1<<10 {
			return graph.BadData(m.lines.Where(), "the format is %s: three digits of 0 and 1 are needed", graph.Shorten(f[0]))
		}
		if c == '1' {
			m.front += []int{1, int(constraints), 0}[i]
			m.stride += i / 2
		}
	}
	return nil
}

func (m *metis) next(weight *float32) (edge graph.Edge, err error) {
	for len(m.left) == 0 {
		if m.node == m.Nodes {
			return edge, m.finish()
		}
		line, err := m.lines.Next()
		if err == io.EOF {
			return edge, fewer(m.lines, "lines of neighbours", m.node, m.Nodes)
		}
		if err != nil {
			return edge, err
		}
		if len(line) > 0 && line[0] == '%' {
			continue
		}
		m.node++
		f := fields(line)
		if len(f) < m.front || (len(f)-m.front)%m.stride != 0 {
			return edge, graph.BadData(m.lines.Where(), "has %d fields: a line has %d before the neighbours, and %d for each neighbour", len(f), m.front, m.stride)
		}
		m.left = f[m.front:]
	}
	edge.U = uint32(m.node - 1)
	if edge.V, err = m.List.node(m.lines, m.left[0]); err == nil && m.weighted {
		*weight, err = m.weight(m.lines, m.left[1])
	}
	m.left = m.left[m.stride:]
	m.found++
	return edge, err
}

// finish checks the number of edges, and that nothing follows.
func (m *metis) finish() error {
	line, err := dataLine(m.lines)
	switch {
	case err == nil:
		return graph.BadData(m.lines.Where(), "%s: it follows the lines of the %d nodes that the header states", graph.Shorten(line), m.Nodes)
	case err == io.EOF && m.found != m.Hint:
		return graph.BadData(m.lines.Name(), "holds %d neighbours, and the header states %d edges, each of which is in the lines of both ends: it is damaged, write it again", m.found, m.Hint/2)
	}
	return err
}
