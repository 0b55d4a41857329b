package dataset

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// textEdges is an edge list as text: SNAP or CSV.
type textEdges struct {
	src       *source.Source
	separator source.Separator
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
func openTextEdges(ctx context.Context, src *source.Source, limit graph.IDLimit, named ends, weight string) (_ *textEdges, err error) {
	e := &textEdges{src: src, v: 1, w: -1, limit: limit}
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	e.begin = int64(l.Pos)
	line, err := l.Data()
	if err == io.EOF {
		e.empty = true
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.separator = source.SeparatorOf(line)
	first := e.separator.Fields(line)
	e.columns = len(first)
	if e.columns < 2 {
		return nil, graph.BadData(l.Where(), "has one column: an edge is two node ids, separated by a comma, a tab or blanks")
	}
	c := edgeColumns{file: src.Name, width: e.columns}
	if !source.StartsLikeNumber(line) {
		e.header = true
		e.begin = l.At + int64(l.Pos)
		c.titles = e.separator.Titles(line)
		first = nil
	}
	kinds := make([]holds, e.columns)
	c.candidates = func() ([]int, error) {
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
	e, err := openTextEdges(ctx, src, limit, ends{}, "")
	if err != nil {
		return nil, err
	}
	return e, nil
}

// sampledLines is how many lines of an edge list tell which columns hold node ids,
// where their names do not.
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
			return e.wrongWidth(l, len(fields))
		}
	}
	return nil
}

func (e *textEdges) wrongWidth(l *source.Lines, width int) error {
	return graph.BadData(l.Where(), "has %d columns, the first line has %d: an edge list has one edge a line (write adjacency lists as pairs)", width, e.columns)
}

func (e *textEdges) Open(ctx context.Context) (EdgeReader, error) {
	l, err := source.OpenLines(ctx, e.src)
	if err != nil {
		return nil, err
	}
	if e.header {
		if _, err := l.Data(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
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
	more, count := true, 0
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
		return Edge{}, r.wrongWidth(r.lines, count)
	}
	return Edge{U: ends[0], V: ends[1]}, nil
}
