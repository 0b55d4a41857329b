package dataset

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// jsonFeatures is an object of node id → list of the columns that are 1.
type jsonFeatures struct {
	src   *source.Source
	width int
	limit graph.IDLimit
}

// openJSONFeatures reads the file once to learn its width.
func openJSONFeatures(ctx context.Context, src *source.Source, limit graph.IDLimit) (*jsonFeatures, error) {
	f := &jsonFeatures{src: src, limit: limit}
	r, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		row, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if n := len(row.Indices); n > 0 {
			f.width = max(f.width, int(row.Indices[n-1])+1)
		}
	}
	if f.width == 0 {
		return nil, graph.BadData(src.Name, "holds no feature")
	}
	return f, nil
}

func (f *jsonFeatures) Open(ctx context.Context) (FeatureReader, error) {
	text, err := f.src.OpenText(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &jsonReader{jsonFeatures: f, text: text, buf: make([]byte, source.BufferSize), digits: make([]byte, 0, 20), line: 1}, nil
}

// jsonReader parses the one shape of JSON that is read, as it streams by.
type jsonReader struct {
	*jsonFeatures
	text     *source.Text
	buf      []byte
	pos, end int
	line     int64
	offset   int64 // of buf in the file
	started  bool
	done     bool
	digits   []byte
	row      FeatureRow
}

func (r *jsonReader) Close() error { return r.text.Close() }

func (r *jsonReader) bad(format string, args ...any) error {
	where := r.src.Name + " line " + strconv.FormatInt(r.line, 10) + " byte " + strconv.FormatInt(r.offset+int64(r.pos), 10)
	return graph.BadData(where, format, args...)
}

// fill reads the next part of the file.
func (r *jsonReader) fill() error {
	r.offset += int64(r.end)
	r.pos, r.end = 0, 0
	for r.end == 0 {
		n, err := r.text.Read(r.buf)
		r.end = n
		if n == 0 && err != nil {
			return err
		}
	}
	if r.offset == 0 {
		r.pos = r.end - len(source.WithoutMark(r.buf[:r.end]))
	}
	return nil
}

// peek returns the next byte that is no white space, without taking it.
func (r *jsonReader) peek() (byte, error) {
	for {
		if r.pos == r.end {
			if err := r.fill(); err != nil {
				return 0, err
			}
		}
		switch c := r.buf[r.pos]; c {
		case '\n':
			r.line++
		case ' ', '\t', '\r':
		default:
			return c, nil
		}
		r.pos++
	}
}

func (r *jsonReader) truncated() error {
	return r.bad("the file ends too early: it is truncated, fetch it again")
}

// take takes the next byte that is no white space.
func (r *jsonReader) take() (byte, error) {
	c, err := r.peek()
	if err == io.EOF {
		return 0, r.truncated()
	}
	r.pos++
	return c, err
}

func (r *jsonReader) expect(want byte) error {
	c, err := r.take()
	if err == nil && c != want {
		r.pos--
		err = r.bad("found %q where %q is needed: features are an object of node id to list of feature ids", c, want)
	}
	return err
}

// number takes what stands before the next separator.
func (r *jsonReader) number() ([]byte, error) {
	r.digits = r.digits[:0]
	c, err := r.peek()
	for err == nil && !strings.ContainsRune("\",] \t\r\n", rune(c)) {
		if len(r.digits) == cap(r.digits) {
			return nil, r.bad("number %s is too long", graph.Shorten(r.digits))
		}
		r.digits = append(r.digits, c)
		r.pos++
		if r.pos == r.end {
			err = r.fill()
		}
		if err == nil {
			c = r.buf[r.pos]
		}
	}
	if err == io.EOF {
		err = r.truncated()
	}
	return r.digits, err
}

func (r *jsonReader) Next() (FeatureRow, error) {
	if r.done {
		return FeatureRow{}, io.EOF
	}
	if !r.started {
		if err := r.expect('{'); err != nil {
			return FeatureRow{}, err
		}
	}
	c, err := r.take()
	if err != nil {
		return FeatureRow{}, err
	}
	switch {
	case c == '}':
		return FeatureRow{}, r.finish()
	case r.started && c != ',':
		r.pos--
		return FeatureRow{}, r.bad("found %q where ',' or '}' is needed", c)
	case !r.started:
		r.pos--
		r.started = true
	}
	if err := r.key(); err != nil {
		return FeatureRow{}, err
	}
	err = r.list()
	return r.row, err
}

// finish checks that nothing follows.
func (r *jsonReader) finish() error {
	r.done = true
	_, err := r.peek()
	if err == nil {
		err = r.bad("text after the closing brace")
	}
	return err
}

func (r *jsonReader) key() error {
	if err := r.expect('"'); err != nil {
		return err
	}
	digits, err := r.number()
	if err != nil {
		return err
	}
	id, problem := r.limit.Parse(digits)
	if problem != "" {
		return r.bad("%s", problem)
	}
	r.row.ID = id
	if err := r.expect('"'); err != nil {
		return err
	}
	return r.expect(':')
}

// list takes the feature ids of a node.
func (r *jsonReader) list() error {
	row := &r.row
	row.Indices = row.Indices[:0]
	if err := r.expect('['); err != nil {
		return err
	}
	if c, err := r.peek(); err == nil && c == ']' {
		r.pos++
		return r.sortRow()
	}
	for {
		digits, err := r.number()
		if err != nil {
			return err
		}
		v, err := strconv.ParseUint(string(digits), 10, 32)
		if err != nil || v >= MaxFeatures || len(row.Indices) == MaxFeatures {
			return r.bad("feature id %s of node %d: feature ids are whole numbers below %d", graph.Shorten(digits), row.ID, MaxFeatures)
		}
		row.Indices = append(row.Indices, uint32(v))
		c, err := r.take()
		if err != nil {
			return err
		}
		if c == ']' {
			return r.sortRow()
		}
		if c != ',' {
			r.pos--
			return r.bad("found %q where ',' or ']' is needed", c)
		}
	}
}

func (r *jsonReader) sortRow() error {
	row := &r.row
	slices.Sort(row.Indices)
	for i := 1; i < len(row.Indices); i++ {
		if row.Indices[i] == row.Indices[i-1] {
			return r.bad("node %d has feature %d twice: list each one once", row.ID, row.Indices[i])
		}
	}
	for len(row.Values) < len(row.Indices) {
		row.Values = append(row.Values, 1)
	}
	row.Values = row.Values[:len(row.Indices)]
	return nil
}
