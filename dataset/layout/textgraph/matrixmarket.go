package textgraph

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// OpenMatrixMarket opens a matrix in coordinate form (Boisvert, Pozo and Remington, NIST
// 5935): a banner, comments, the numbers of rows, columns and entries, and an entry a
// line. An entry is an edge, whatever its value, or else with its value as the weight.
func OpenMatrixMarket(ctx context.Context, src *source.Source, _ graph.IDLimit, weighted bool) (*List, error) {
	e := &List{src: src, weighted: weighted}
	e.begin = func(l *source.Lines) (next, error) {
		valued, mutual, err := e.banner(l)
		if err != nil {
			return nil, err
		}
		size, err := dataLine(l)
		if err != nil {
			return nil, headerEnds(l, err)
		}
		f := fields(size)
		if len(f) != 3 {
			return nil, graph.BadData(l.Where(), "has %d numbers: the line has the numbers of rows, columns and entries", len(f))
		}
		if err := e.nodes(l, f[0]); err != nil {
			return nil, err
		}
		if columns, err := number(l, f[1], "the number of columns"); err != nil {
			return nil, err
		} else if columns != e.Nodes {
			return nil, graph.BadData(l.Where(), "%d rows and %d columns: the adjacency matrix of a graph is square; for a graph of two kinds of nodes, number the columns behind the rows", e.Nodes, columns)
		}
		if e.Hint, err = number(l, f[2], "the number of entries"); err != nil {
			return nil, err
		}
		e.Mutual, e.Notes = mutual, []graph.Note{from1(src.Name)}
		if valued {
			e.Notes = append(e.Notes, e.weights(src.Name, "the values of the matrix are"))
		}
		return e.entries(l, valued), nil
	}
	return e.look(ctx)
}

// banner reads the first line; valued says that entries have a value, mutual that one stands for
// both directions.
func (e *List) banner(l *source.Lines) (valued, mutual bool, err error) {
	line, err := l.Next()
	if err != nil {
		return false, false, headerEnds(l, err)
	}
	f := strings.Fields(strings.ToLower(string(line)))
	if len(f) != 5 || f[0] != "%%matrixmarket" || f[1] != "matrix" {
		return false, false, graph.BadData(l.Where(), "is not the first line of a MatrixMarket file: it begins with %%%%MatrixMarket matrix coordinate")
	}
	switch {
	case f[2] != "coordinate":
		return false, false, graph.BadData(l.Where(), "the matrix is in %s form: write it in coordinate form, scipy.io.mmwrite(file, scipy.sparse.coo_matrix(a))", f[2])
	case !slices.Contains([]string{"pattern", "real", "integer"}, f[3]):
		return false, false, graph.BadData(l.Where(), "entries are %s: pattern, real and integer are read", f[3])
	case !slices.Contains([]string{"general", "symmetric", "skew-symmetric"}, f[4]):
		return false, false, graph.BadData(l.Where(), "the matrix is %s: general, symmetric and skew-symmetric are read", f[4])
	case e.weighted && f[3] == "pattern":
		return false, false, graph.NoWeight(l.Where(), "entries of type pattern have no values")
	case e.weighted && f[4] == "skew-symmetric":
		return false, false, graph.NoWeight(l.Where(), "the values of a skew-symmetric matrix are no weights: each stands for its negative in the other direction, too")
	}
	return f[3] != "pattern", f[4] != "general", nil
}

// dataLine returns the next line that is neither empty nor a comment.
func dataLine(l *source.Lines) ([]byte, error) {
	for {
		line, err := l.Next()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' {
			return line, nil
		}
	}
}

func (e *List) entries(l *source.Lines, valued bool) next {
	width := 2
	if valued {
		width = 3
	}
	found := int64(0)
	return func(weight *float32) (edge graph.Edge, err error) {
		line, err := dataLine(l)
		if err == io.EOF && found != e.Hint {
			return edge, fewer(l, "entries", found, e.Hint)
		}
		if err != nil {
			return edge, err
		}
		f := fields(line)
		if found++; found > e.Hint {
			return edge, graph.BadData(l.Where(), "is one more than the %d entries that the header states: fetch the file again", e.Hint)
		}
		if len(f) != width {
			return edge, graph.BadData(l.Where(), "has %d fields: an entry of this matrix has %d", len(f), width)
		}
		if edge.U, err = e.node(l, f[0]); err == nil {
			edge.V, err = e.node(l, f[1])
		}
		if err == nil && e.weighted {
			*weight, err = e.weight(l, f[2])
		}
		return edge, err
	}
}
