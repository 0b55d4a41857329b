package dataset

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// endpointNames are headers of the two id columns of an edge list.
var endpointNames = [][2]string{
	{"src", "dst"},
	{"source", "target"},
	{"id_1", "id_2"},
	{"from", "to"},
	{"node_1", "node_2"},
	{"u", "v"},
}

// textEdges is an edge list as text: SNAP or CSV.
type textEdges struct {
	src       *source
	separator separator
	header    bool
	begin     int64 // where the first line begins, after header and mark
	columns   int
	u, v      int
	limit     int64
}

// openTextEdges looks at the first data line.
func openTextEdges(ctx context.Context, src *source, limit int64) (*textEdges, error) {
	e := &textEdges{src: src, v: 1, limit: limit}
	l, err := openLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	e.begin = int64(l.pos)
	line, err := l.data()
	if err == io.EOF {
		return e, nil // No edges.
	}
	if err != nil {
		return nil, err
	}
	e.separator = separatorOf(line)
	e.columns = e.separator.fields(line)
	if e.columns < 2 {
		return nil, badData(l.where(), "has one column: an edge is two node ids, separated by a comma, a tab or blanks")
	}
	if !startsLikeNumber(line) {
		e.header = true
		e.begin = l.at + int64(l.pos)
		e.u, e.v = e.separator.endpoints(line)
	}
	return e, nil
}

// endpoints finds the id columns in a header; the first two if none has a known name.
func (s separator) endpoints(header []byte) (u, v int) {
	var title []string
	if s == 0 {
		title = strings.Fields(string(header))
	} else {
		r := csv.NewReader(strings.NewReader(string(header)))
		r.Comma, r.LazyQuotes = rune(s), true
		title, _ = r.Read()
	}
	for i, name := range title {
		title[i] = strings.ToLower(strings.TrimSpace(name))
	}
	for _, pair := range endpointNames {
		u, v := slices.Index(title, pair[0]), slices.Index(title, pair[1])
		if u >= 0 && v >= 0 {
			return u, v
		}
	}
	return 0, 1
}

func (e *textEdges) open(ctx context.Context) (EdgeReader, error) {
	l, err := openLines(ctx, e.src)
	if err != nil {
		return nil, err
	}
	if e.header {
		if _, err := l.data(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return &textEdgeReader{textEdges: e, lines: l}, nil
}

type textEdgeReader struct {
	*textEdges
	lines *lines
}

func (r *textEdgeReader) Close() error { return r.lines.Close() }

func (r *textEdgeReader) Read(batch []Edge) (int, error) {
	for n := range batch {
		line, err := r.lines.data()
		if err == io.EOF && n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		if batch[n], err = r.edge(line); err != nil {
			return 0, err
		}
	}
	return len(batch), nil
}

func (r *textEdgeReader) edge(line []byte) (Edge, error) {
	var ends [2]uint32
	more, count := true, 0
	for ; more; count++ {
		var field []byte
		field, line, more = r.separator.cut(line)
		if count != r.u && count != r.v {
			continue
		}
		id, problem := parseID(field, r.limit)
		if problem != "" {
			return Edge{}, badData(r.lines.where(), "%s", problem)
		}
		if count == r.u {
			ends[0] = id
		} else {
			ends[1] = id
		}
	}
	if count != r.columns {
		return Edge{}, badData(r.lines.where(), "has %d columns, the first line has %d: an edge list has one edge a line (write adjacency lists as pairs)", count, r.columns)
	}
	return Edge{ends[0], ends[1]}, nil
}

// arrayEdges is an edge list as an integer array of shape (2, m) or (m, 2).
type arrayEdges struct {
	v     vector
	m     int64
	split bool // all sources come before all targets
	limit int64
}

func newArrayEdges(v vector, shape []int64, limit int64) (*arrayEdges, error) {
	if !v.typ.IsInteger() {
		return nil, badData(v.name, "dtype %s: node ids must be integers, save a.astype('<i8')", v.typ)
	}
	switch {
	case len(shape) == 2 && shape[0] == 2:
		return &arrayEdges{v, shape[1], true, limit}, nil
	case len(shape) == 2 && shape[1] == 2:
		return &arrayEdges{v, shape[0], false, limit}, nil
	}
	return nil, badData(v.name, "has shape %v: an edge list has shape (2, m) or (m, 2)", shape)
}

func (e *arrayEdges) open(ctx context.Context) (EdgeReader, error) { return e.openRows(ctx, 0, e.m) }

// openRows reads rows [lo, hi).
func (e *arrayEdges) openRows(ctx context.Context, lo, hi int64) (EdgeReader, error) {
	if !e.split {
		u, err := e.v.integers(ctx, 2*lo)
		return &arrayEdgeReader{arrayEdges: e, u: u, v: u, row: lo, end: hi}, err
	}
	u, err := e.v.integers(ctx, lo)
	if err != nil {
		return nil, err
	}
	v, err := e.v.integers(ctx, e.m+lo)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return &arrayEdgeReader{arrayEdges: e, u: u, v: v, row: lo, end: hi}, nil
}

type arrayEdgeReader struct {
	*arrayEdges
	u, v     *cursor[int64] // the same where the ends of an edge are neighbours
	row, end int64
}

func (r *arrayEdgeReader) Read(batch []Edge) (int, error) {
	n := int(min(int64(len(batch)), r.end-r.row))
	if n == 0 && len(batch) > 0 {
		if r.end < r.m {
			return 0, io.EOF
		}
		if _, err := r.v.next(); err != io.EOF {
			return 0, err
		}
		return 0, io.EOF
	}
	for i := range n {
		u, err := r.u.next()
		if err != nil {
			return 0, err
		}
		v, err := r.v.next()
		if err != nil {
			return 0, err
		}
		for _, id := range [2]int64{u, v} {
			if id < 0 || id >= r.limit {
				return 0, badData(r.arrayEdges.v.name, "edge %d: %s", r.row, idRange(id, r.limit))
			}
		}
		batch[i] = Edge{uint32(u), uint32(v)}
		r.row++
	}
	return n, nil
}

func (r *arrayEdgeReader) Close() error {
	if r.u == r.v {
		return r.u.Close()
	}
	return errors.Join(r.u.Close(), r.v.Close())
}
