package dataset

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/npy"
)

// textEdges is an edge list as text: SNAP or CSV.
type textEdges struct {
	src       *source
	separator separator
	header    bool
	begin     int64 // where the first line begins, after header and mark
	columns   int
	u, v      int
	limit     idLimit
	empty     bool // not one line
	notes     []Note
}

// openTextEdges looks at the first data lines.
func openTextEdges(ctx context.Context, src *source, limit idLimit, named ends) (_ *textEdges, err error) {
	e := &textEdges{src: src, v: 1, limit: limit}
	l, err := openLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	e.begin = int64(l.pos)
	line, err := l.data()
	if err == io.EOF {
		e.empty = true
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.separator = separatorOf(line)
	first := e.separator.fields(line)
	e.columns = len(first)
	if e.columns < 2 {
		return nil, badData(l.where(), "has one column: an edge is two node ids, separated by a comma, a tab or blanks")
	}
	c := edgeColumns{file: src.name, width: e.columns}
	if !startsLikeNumber(line) {
		e.header = true
		e.begin = l.at + int64(l.pos)
		c.titles = e.separator.titles(line)
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
	e.notes = c.notes(e.u, e.v, func(i int) bool { return len(c.titles) > 0 && c.titles[i] == "" && kinds[i] == holdsNothing })
	return e, nil
}

// sampledLines is how many lines of an edge list tell which columns hold node ids,
// where their names do not.
const sampledLines = 1000

// sample looks at the fields of the first line, if it is no header, and of lines
// behind it.
func (e *textEdges) sample(l *lines, fields [][]byte, kinds []holds) error {
	for range sampledLines {
		for i, field := range fields {
			kinds[i] = max(kinds[i], holdsOf(field))
		}
		line, err := l.data()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if fields = e.separator.fields(line); len(fields) != e.columns {
			return e.wrongWidth(l, len(fields))
		}
	}
	return nil
}

func (e *textEdges) wrongWidth(l *lines, width int) error {
	return badData(l.where(), "has %d columns, the first line has %d: an edge list has one edge a line (write adjacency lists as pairs)", width, e.columns)
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
		id, problem := r.limit.parse(field)
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
		return Edge{}, r.wrongWidth(r.lines, count)
	}
	return Edge{ends[0], ends[1]}, nil
}

// arrayEdges is an edge list as an integer array of shape (2, m) or (m, 2).
type arrayEdges struct {
	v     vector
	m     int64
	split bool // all sources are stored before all targets
	limit idLimit
}

// openArrayEdges reads the header of a NumPy file of edges. Either order of storage
// is read: the transpose of an array in Fortran order is one in C order.
func openArrayEdges(ctx context.Context, src *source, limit idLimit) (*arrayEdges, error) {
	v, h, err := openAnyOrder(ctx, src)
	if err != nil {
		return nil, err
	}
	if !v.typ.IsInteger() || v.typ == npy.Bool {
		return nil, badData(v.name, "dtype %s: node ids must be integers, save a.astype('<i8')", v.typ)
	}
	shape := h.Shape
	switch {
	case len(shape) == 2 && shape[0] == 2:
		return &arrayEdges{v, shape[1], !h.Fortran, limit}, nil
	case len(shape) == 2 && shape[1] == 2:
		return &arrayEdges{v, shape[0], h.Fortran, limit}, nil
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
			if id < 0 || id >= r.limit.n {
				return 0, badData(r.arrayEdges.v.name, "edge %d: %s", r.row, r.limit.check(id, r.arrayEdges.v.typ == npy.Uint64))
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
