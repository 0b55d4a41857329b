package textgraph

import (
	"context"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// OpenPairs opens lines of two nodes, without a header, between commas, semicolons, tabs or
// blanks, or the delimiter that the caller knows.
func OpenPairs(ctx context.Context, src *source.Source, delimiter string, limit graph.IDLimit) (*List, error) {
	e := &List{src: src, Nodes: -1, Hint: -1}
	e.begin = func(l *source.Lines) (next, error) {
		return func(*float32) (edge graph.Edge, err error) {
			line, err := l.Data()
			if err != nil {
				return edge, err
			}
			f := SeparatorOf(delimiter, line).Fields(line)
			if len(f) != 2 {
				return edge, graph.BadData(l.Where(), "has %d columns: an edge is two node ids", len(f))
			}
			var problem string
			if edge.U, problem = limit.Parse(f[0]); problem == "" {
				edge.V, problem = limit.Parse(f[1])
			}
			if problem != "" {
				return edge, graph.BadData(l.Where(), "%s", problem)
			}
			return edge, nil
		}, nil
	}
	return e.look(ctx)
}

// SeparatorOf returns the separator of the fields of a line: the delimiter that the caller knows,
// or else the one that the line shows.
func SeparatorOf(delimiter string, line []byte) source.Separator {
	if len(delimiter) == 1 && delimiter != " " && delimiter != "\t" {
		return source.Separator(delimiter[0])
	}
	return source.SeparatorOf(line)
}
