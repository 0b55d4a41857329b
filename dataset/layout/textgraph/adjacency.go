package textgraph

import (
	"context"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// OpenAdjacencyList opens lines of a node and its neighbours, as NetworkX writes them. A
// line of one node gives a self-loop, so that a node without neighbours is a node.
func OpenAdjacencyList(ctx context.Context, src *source.Source, limit graph.IDLimit, weighted bool) (*List, error) {
	if weighted {
		return nil, graph.NoWeight(src.Name, "an adjacency list has no weights")
	}
	e := &List{src: src, Nodes: -1, Hint: -1}
	e.begin = func(l *source.Lines) (next, error) { return (&adjacency{lines: l, limit: &limit}).next, nil }
	return e.look(ctx)
}

type adjacency struct {
	lines *source.Lines
	limit *graph.IDLimit
	node  uint32
	line  []byte
	split source.Separator
	more  bool
}

func (a *adjacency) next(*float32) (edge graph.Edge, err error) {
	if !a.more {
		if a.line, err = a.lines.Data(); err != nil {
			return edge, err
		}
		a.split = source.SeparatorOf(a.line)
		if a.node, err = a.id(); err != nil {
			return edge, err
		}
		if !a.more {
			return graph.Edge{U: a.node, V: a.node}, nil
		}
	}
	other, err := a.id()
	return graph.Edge{U: a.node, V: other}, err
}

// id takes the next field of the line.
func (a *adjacency) id() (uint32, error) {
	field, rest, more := a.split.Cut(a.line)
	a.line, a.more = rest, more
	id, problem := a.limit.Parse(field)
	if problem != "" {
		return 0, graph.BadData(a.lines.Where(), "%s", problem)
	}
	return id, nil
}
