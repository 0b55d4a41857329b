package table

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

const (
	// maxJSONLine is the longest line of a file of JSON lines.
	maxJSONLine = 16 << 20
	// sampledLines is how many lines are read to learn what columns there are and what they
	// hold.
	sampledLines = 1000
)

// jsonFile is a file with a JSON object a line.
type jsonFile struct {
	cuts
	columns []title
	widths  map[string]int // of lists, as the sampled lines have them
	empty   bool
}

func lineOf(name string, line int) string { return name + " line " + strconv.Itoa(line) }

func openJSON(ctx context.Context, src *source.Source) (_ *jsonFile, err error) {
	j := &jsonFile{cuts: cuts{src: src}, widths: map[string]int{}, empty: true}
	r, err := openJSONLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for range sampledLines {
		object, err := r.object()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		j.empty = false
		for _, name := range r.order {
			raw := object[name]
			k := jsonKind(raw)
			at := slices.IndexFunc(j.columns, func(t title) bool { return t.name == name })
			if at < 0 {
				j.columns = append(j.columns, title{name, k})
				at = len(j.columns) - 1
			}
			switch t := &j.columns[at]; {
			case k == nullKind:
			case t.kind == nullKind:
				t.kind = k
			case t.kind != k:
				return nil, graph.BadData(r.where(), "%q is %s, and %s in lines before: give the column one type", name, k, t.kind)
			}
			if k == listKind && j.widths[name] == 0 {
				var list []json.RawMessage
				_ = json.Unmarshal(raw, &list)
				j.widths[name] = len(list)
			}
		}
	}
	return j, nil
}

// jsonKind is what a value is.
func jsonKind(raw json.RawMessage) kind {
	switch c := raw[0]; {
	case c == 'n':
		return nullKind
	case c == '"':
		return textKind
	case c == '[':
		return listKind
	case c == '-' || c >= '0' && c <= '9', c == 't', c == 'f':
		return numberKind
	}
	return otherKind
}

func (j *jsonFile) titles() []title { return j.columns }

func (j *jsonFile) rows() int64 {
	if j.empty {
		return 0
	}
	return -1
}

func (j *jsonFile) width(_ context.Context, f *tableFile, column int) (int, error) {
	return j.widths[j.columns[column].name], nil
}

func (j *jsonFile) open(ctx context.Context, f *tableFile, unit int, w want) (cursor, error) {
	st, in, lines, err := j.cuts.open(ctx, unit)
	if err != nil {
		return nil, err
	}
	c := &jsonCursor{jsonLines: &jsonLines{name: f.src.Name, st: st, in: in, line: lines}, widths: w.widths}
	for i, column := range w.columns {
		c.columns = append(c.columns, title{j.columns[column].name, w.kinds[i]})
	}
	return c, nil
}

// jsonLines reads the lines of a file.
type jsonLines struct {
	name  string
	st    *source.Stream
	in    *bufio.Reader
	long  []byte
	line  int
	order []string // keys of the object that was read last, as they stand
}

func openJSONLines(ctx context.Context, src *source.Source) (*jsonLines, error) {
	st, in, err := openText(ctx, src)
	return &jsonLines{name: src.Name, st: st, in: in}, err
}

func (r *jsonLines) close() error  { return r.st.Close() }
func (r *jsonLines) where() string { return lineOf(r.name, r.line) }

// text is the next line that is not empty.
func (r *jsonLines) text() ([]byte, error) {
	for {
		r.line++
		line, err := r.in.ReadSlice('\n')
		for r.long = r.long[:0]; err == bufio.ErrBufferFull; {
			if r.long = append(r.long, line...); len(r.long) > maxJSONLine {
				return nil, graph.BadData(r.where(), "is longer than %d MiB: write one JSON object a line", maxJSONLine>>20)
			}
			line, err = r.in.ReadSlice('\n')
		}
		if len(r.long) > 0 {
			r.long = append(r.long, line...)
			line = r.long
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// object reads the next line.
func (r *jsonLines) object() (map[string]json.RawMessage, error) {
	line, err := r.text()
	if err != nil {
		return nil, err
	}
	if line[0] != '{' {
		return nil, graph.BadData(r.where(), "is no JSON object: write one object a line, such as {\"src\": 1, \"dst\": 2}")
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, graph.BadData(r.where(), "%v: write one JSON object a line", err)
	}
	r.order = r.order[:0]
	for name := range object {
		r.order = append(r.order, name)
	}
	// A map has no order, and the first object of a file decides that of the columns.
	slices.SortFunc(r.order, func(a, b string) int {
		return bytes.Index(line, quoted(a)) - bytes.Index(line, quoted(b))
	})
	return object, nil
}

func quoted(name string) []byte {
	text, _ := json.Marshal(name)
	return text
}

type jsonCursor struct {
	*jsonLines
	columns []title
	widths  []int
	row     int64
	text    []byte
	ends    []int
	numbers []int
}

func (r *jsonCursor) next(b *batch) error {
	r.text, r.ends, r.numbers = r.text[:0], r.ends[:0], r.numbers[:0]
	for c := range r.columns {
		v := &b.cols[c]
		v.kind, v.null, v.list, v.width = r.columns[c].kind, nil, v.list[:0], r.widths[c]
	}
	n := 0
	for ; n < batchRows; n++ {
		err := r.read(b, n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		r.numbers = append(r.numbers, r.line)
	}
	if n == 0 {
		return io.EOF
	}
	b.first, b.n, b.lines = r.row, n, r.numbers
	r.row += int64(n)
	for c := range r.columns {
		b.cols[c].text = b.cols[c].text[:0]
	}
	start := 0
	for i, end := range r.ends {
		v := &b.cols[i%len(r.columns)]
		v.text = append(v.text, r.text[start:end])
		start = end
	}
	return nil
}

// read reads a line as row n of the batch.
func (r *jsonCursor) read(b *batch, n int) error {
	line, err := r.jsonLines.text()
	if err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return graph.BadData(r.where(), "%v: write one JSON object a line", err)
	}
	for c, t := range r.columns {
		v := &b.cols[c]
		raw, there := object[t.name]
		k := nullKind
		if there {
			k = jsonKind(raw)
		}
		if k != nullKind && k != t.kind {
			return graph.BadData(r.where(), "%q is %s, and %s in lines before: give the column one type", t.name, k, t.kind)
		}
		switch {
		case k == nullKind:
			for len(v.null) < n {
				v.null = append(v.null, false)
			}
			v.null = append(v.null, true)
			v.list = append(v.list, make([]float32, v.width)...)
		case k == textKind:
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return graph.BadData(r.where(), "%v", err)
			}
			r.text = append(r.text, s...)
		case k == listKind:
			if v.list, err = appendList(v.list, raw, v.width); err != nil {
				return graph.BadData(r.where(), "%q %v", t.name, err)
			}
		default:
			r.text = append(r.text, raw...)
		}
		if v.null != nil && len(v.null) == n {
			v.null = append(v.null, false)
		}
		r.ends = append(r.ends, len(r.text))
	}
	return nil
}

// appendList appends the numbers of a JSON list of a length.
func appendList(to []float32, raw json.RawMessage, width int) ([]float32, error) {
	var list []float32
	if err := json.Unmarshal(raw, &list); err != nil {
		return to, fmt.Errorf("is no list of float32 numbers: %w", err)
	}
	if len(list) != width {
		return to, fmt.Errorf("has %d numbers, and %d in the first line: every list must have the same length", len(list), width)
	}
	return append(to, list...), nil
}
