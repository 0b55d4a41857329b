package dataset

import (
	"context"
	"errors"
	"io"
	"regexp"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// textEdges is an edge list as text: SNAP or CSV.
type textEdges struct {
	src       *source.Source
	separator source.Separator
	stated    bool // by a line before the first one
	header    bool
	begin     int64 // where the first line begins, after header and mark
	columns   int
	u, v      int
	w         int // column of weights, below 0 for none
	limit     graph.IDLimit
	empty     bool // not one line
	notes     []graph.Note
}

// openTextEdges looks at the first data lines.
func openTextEdges(ctx context.Context, src *source.Source, form *source.Form, limit graph.IDLimit, named ends,
	weight string,
) (_ *textEdges, err error) {
	e := &textEdges{src: src, v: 1, w: -1, limit: limit}
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	line, s, stated, err := l.First()
	if err == io.EOF {
		e.empty = true
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.separator, e.stated, e.begin = s, stated, l.Begin
	if withData.Match(line) {
		return nil, attributes(l)
	}
	first := e.separator.Fields(line)
	e.columns = len(first)
	if e.columns < 2 {
		return nil, graph.BadData(l.Where(), "has one column: an edge is two node ids, separated by a comma, a tab or blanks")
	}
	c := edgeColumns{file: src.Name, width: e.columns}
	if e.header, stated = form.Header("edges"); !stated {
		e.header = !s.StartsLikeNumber(line)
	}
	if e.header {
		e.begin = l.At + int64(l.Pos)
		c.titles = e.separator.Titles(line)
		first = nil
		switch line, err = l.Data(); {
		case err == io.EOF:
			e.empty = true
		case err != nil:
			return nil, err
		default:
			if first = e.separator.Fields(line); len(first) != e.columns {
				return nil, e.wrongWidth(l, line, len(first))
			}
		}
	}
	kinds := make([]holds, e.columns)
	c.candidates = func() ([]int, error) {
		if e.empty {
			return nil, nil
		}
		if err := e.sample(l, first, kinds); err != nil {
			return nil, err
		}
		return idColumns(kinds), nil
	}
	if e.u, e.v, err = c.find(named); err != nil {
		return nil, err
	}
	if e.w, err = c.weight(weight, e.u, e.v); err != nil {
		return nil, err
	}
	e.notes = c.notes(e.u, e.v, e.w, func(i int) bool { return len(c.titles) > 0 && c.titles[i] == "" && kinds[i] == holdsNothing })
	return e, nil
}

// textPairs opens an edge list whose columns are not named.
func textPairs(ctx context.Context, src *source.Source, limit graph.IDLimit) (graph.EdgeSource, error) {
	e, err := openTextEdges(ctx, src, &source.Form{}, limit, ends{}, "")
	if err != nil {
		return nil, err
	}
	return e, nil
}

// sampledLines is the number of lines of an edge list that tell which columns hold node ids if
// their names do not.
const sampledLines = 1000

// sample looks at the fields of the first line, if it is no header, and of lines
// behind it.
func (e *textEdges) sample(l *source.Lines, fields [][]byte, kinds []holds) error {
	for range sampledLines {
		for i, field := range fields {
			kinds[i] = max(kinds[i], holdsOf(field))
		}
		line, err := l.Data()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if fields = e.separator.Fields(line); len(fields) != e.columns {
			return e.wrongWidth(l, line, len(fields))
		}
	}
	return nil
}

// withData is a line of NetworkX with the attributes of an edge, of which {} are none.
var withData = regexp.MustCompile(`^\S+\s+\S+\s+\{\s*['"]`)

// attributes is the error for such a line.
func attributes(l *source.Lines) error {
	return graph.BadData(l.Where(), "has the attributes of an edge, as networkx.write_edgelist writes them: write the list with data=False, or with data=[\"weight\"] and weight=3 in the URI")
}

func (e *textEdges) wrongWidth(l *source.Lines, line []byte, width int) error {
	if withData.Match(line) {
		return attributes(l)
	}
	return graph.BadData(l.Where(), "has %d columns, the first line has %d: an edge list has one edge a line (write adjacency lists as pairs)", width, e.columns)
}

func (e *textEdges) Open(ctx context.Context) (EdgeReader, error) {
	l, err := source.OpenLines(ctx, e.src)
	if err != nil {
		return nil, err
	}
	if err := l.Pass(e.stated, e.header); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &textEdgeReader{textEdges: e, lines: l}, nil
}

type textEdgeReader struct {
	*textEdges
	lines *source.Lines
}

func (r *textEdgeReader) Close() error { return r.lines.Close() }

func (r *textEdgeReader) Read(batch []Edge) (int, error) { return r.ReadWeighted(batch, nil) }

// ReadWeighted implements WeightedReader; weights may be nil.
func (r *textEdgeReader) ReadWeighted(batch []Edge, weights []float32) (int, error) {
	var weight float32
	for n := range batch {
		line, err := r.lines.Data()
		if err == io.EOF && n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		if batch[n], err = r.edge(line, &weight); err != nil {
			return 0, err
		}
		if weights != nil {
			weights[n] = weight
		}
	}
	return len(batch), nil
}

// edge reads a line, and its weight if there is a column of weights.
func (r *textEdgeReader) edge(line []byte, weight *float32) (Edge, error) {
	var ends [2]uint32
	more, count, whole := true, 0, line
	for ; more; count++ {
		var field []byte
		field, line, more = r.separator.Cut(line)
		if count == r.w {
			var problem string
			if *weight, problem = graph.ParseWeight(string(graph.Unquote(field))); problem != "" {
				return Edge{}, graph.BadData(r.lines.Where(), "%s", problem)
			}
			continue
		}
		if count != r.u && count != r.v {
			continue
		}
		id, problem := r.limit.Parse(field)
		if problem != "" {
			return Edge{}, graph.BadData(r.lines.Where(), "%s", problem)
		}
		if count == r.u {
			ends[0] = id
		} else {
			ends[1] = id
		}
	}
	if count != r.columns {
		return Edge{}, r.wrongWidth(r.lines, whole, count)
	}
	return Edge{U: ends[0], V: ends[1]}, nil
}
