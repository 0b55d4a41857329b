package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// sampledLines is the number of lines that are read to learn which columns there are and what they
// hold.
const sampledLines = 1000

// jsonFile is a file with a JSON object a line.
type jsonFile struct {
	cuts
	columns []title
	widths  map[string]int   // of lists, as the sampled lines have them
	mixed   map[string]error // what is wrong with columns of several kinds
	empty   bool
}

func openJSON(ctx context.Context, src *source.Source) (_ *jsonFile, err error) {
	j := &jsonFile{cuts: cuts{src: src}, widths: map[string]int{}, mixed: map[string]error{}, empty: true}
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r := &jsonLines{Lines: l}
	for range sampledLines {
		err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		j.empty = false
		for more, err := r.member(); ; more, err = r.member() {
			if err != nil {
				return nil, err
			}
			if !more {
				break
			}
			j.sees(string(r.key), r.value, r.Where)
		}
	}
	return j, nil
}

// sees learns what a column holds from a value.
func (j *jsonFile) sees(name string, raw []byte, where func() string) {
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
	case t.kind != k && t.kind != mixedKind:
		j.mixed[name] = oneType(where(), name, k, t.kind)
		t.kind = mixedKind
	}
	if k == listKind && j.widths[name] == 0 {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		j.widths[name] = len(list)
	}
}

// oneType is the error for a value of another kind than those before.
func oneType(where, name string, k, before kind) error {
	return graph.BadData(where, "%q is %s, and %s in lines before: give the column one type", name, k, before)
}

// jsonKind returns the kind of a value.
func jsonKind(raw []byte) kind {
	switch c := raw[0]; {
	case c == 'n' || string(raw) == notANumber:
		return nullKind
	case c == '"':
		return textKind
	case c == '[':
		return listKind
	case c == '-' || c >= '0' && c <= '9', c == 't', c == 'f', c == 'I':
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
	l, err := j.cuts.open(ctx, unit)
	if err != nil {
		return nil, err
	}
	c := &jsonCursor{jsonLines: &jsonLines{Lines: l}, widths: w.widths, found: make([]bool, len(w.columns))}
	for i, column := range w.columns {
		c.columns = append(c.columns, title{j.columns[column].name, w.kinds[i]})
	}
	return c, nil
}

// jsonLines reads the objects of a file. Of a value it sees where it ends, so that what nobody reads may be anything.
type jsonLines struct {
	*source.Lines
	rest  []byte // of the line
	inner bool   // a member was read
	key   []byte // of the member that was read last
	value []byte
}

// bad is the error for a line that is no object.
func (r *jsonLines) bad() error {
	return graph.BadData(r.Where(), "is no JSON object: write one object a line, such as {\"src\": 1, \"dst\": 2}")
}

// next goes to the next line that is not empty.
func (r *jsonLines) next() error {
	for {
		line, err := r.Next()
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if line[0] == '[' {
			return graph.BadData(r.Where(), "is a JSON list: write one object a line; pandas does with to_json(FILE, orient=\"records\", lines=True)")
		}
		if line[0] != '{' {
			return r.bad()
		}
		r.rest, r.inner = line[1:], false
		return nil
	}
}

// member reads the next member of the object; more is false behind the last one.
func (r *jsonLines) member() (more bool, err error) {
	r.rest = skipBlanks(r.rest)
	if len(r.rest) > 0 && r.rest[0] == '}' {
		if rest := skipBlanks(r.rest[1:]); len(rest) > 0 {
			return false, graph.BadData(r.Where(), "has text behind the object: write one JSON object a line")
		}
		return false, nil
	}
	if r.inner {
		if len(r.rest) == 0 || r.rest[0] != ',' {
			return false, r.bad()
		}
		r.rest = skipBlanks(r.rest[1:])
	}
	r.inner = true
	end := valueEnd(r.rest)
	if end <= 0 || r.rest[0] != '"' {
		return false, r.bad()
	}
	if r.key, err = r.string(r.key[:0], r.rest[:end]); err != nil {
		return false, err
	}
	r.rest = skipBlanks(r.rest[end:])
	if len(r.rest) == 0 || r.rest[0] != ':' {
		return false, r.bad()
	}
	r.rest = skipBlanks(r.rest[1:])
	if end = valueEnd(r.rest); end <= 0 {
		return false, r.bad()
	}
	r.value, r.rest = r.rest[:end], r.rest[end:]
	return true, nil
}

func skipBlanks(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// valueEnd returns where the JSON value ends with which a text begins, -1 if it does not end. It looks at quotes and
// brackets alone.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			n := stringEnd(text[i+1:])
			if n < 0 {
				return -1
			}
			if i += n; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// stringEnd returns how many bytes a string has behind its opening quote, with the closing one; -1 if there is none.
func stringEnd(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// string appends the text of a JSON string.
func (r *jsonLines) string(to, raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(to, raw[1:len(raw)-1]...), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return to, graph.BadData(r.Where(), "the string %s: %v", graph.Shorten(raw), err)
	}
	if strings.ContainsRune(s, utf8.RuneError) && !bytes.ContainsRune(raw, utf8.RuneError) &&
		!bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return to, graph.BadData(r.Where(), "the string %s has half of a surrogate pair: write the character as UTF-8", graph.Shorten(raw))
	}
	if strings.IndexByte(s, 0) >= 0 {
		return to, graph.BadData(r.Where(), "the string %s holds a character of 0, which is in no text", graph.Shorten(raw))
	}
	return append(to, s...), nil
}

type jsonCursor struct {
	*jsonLines
	columns []title
	widths  []int
	row     int64
	texts   [][]byte // of the columns, one text behind the other
	ends    [][]int
	found   []bool // columns of the row
	numbers []int64
}

func (r *jsonCursor) next(b *batch) error {
	r.numbers = r.numbers[:0]
	for len(r.texts) < len(r.columns) {
		r.texts, r.ends = append(r.texts, nil), append(r.ends, nil)
	}
	for c := range r.columns {
		v := &b.cols[c]
		v.kind, v.null, v.list, v.width = r.columns[c].kind, nil, v.list[:0], r.widths[c]
		r.texts[c], r.ends[c] = r.texts[c][:0], r.ends[c][:0]
	}
	n, size := 0, 0
	for ; n < batchRows && size < batchBytes; n++ {
		err := r.read(b, n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		r.numbers = append(r.numbers, r.Read())
		size = 0
		for c := range r.texts {
			size += len(r.texts[c]) + 4*len(b.cols[c].list)
		}
	}
	if n == 0 {
		return io.EOF
	}
	b.first, b.n, b.lines, b.text = r.row, n, r.numbers, r.Lines
	r.row += int64(n)
	for c := range r.columns {
		v := &b.cols[c]
		v.text = v.text[:0]
		start := 0
		for _, end := range r.ends[c] {
			v.text = append(v.text, r.texts[c][start:end])
			start = end
		}
	}
	return nil
}

// read reads a line as row n of the batch.
func (r *jsonCursor) read(b *batch, n int) error {
	if err := r.jsonLines.next(); err != nil {
		return err
	}
	clear(r.found)
	for {
		more, err := r.member()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		for c, t := range r.columns {
			if t.name != string(r.key) {
				continue
			}
			if r.found[c] {
				return graph.BadData(r.Where(), "has %q twice: write each key once", t.name)
			}
			r.found[c] = true
			if err := r.take(&b.cols[c], c, n); err != nil {
				return err
			}
		}
	}
	for c, there := range r.found {
		if !there {
			r.null(&b.cols[c], c, n)
		}
	}
	return nil
}

// null makes the value of column c in row n null.
func (r *jsonCursor) null(v *vector, c, n int) {
	for len(v.null) < n {
		v.null = append(v.null, false)
	}
	v.null = append(v.null, true)
	v.list = append(v.list, make([]float32, v.width)...)
	r.ends[c] = append(r.ends[c], len(r.texts[c]))
}

// take takes the value of a member as that of column c in row n.
func (r *jsonCursor) take(v *vector, c, n int) (err error) {
	t, k := r.columns[c], jsonKind(r.value)
	if k == nullKind {
		if s := string(r.value); s != "null" && s != notANumber {
			return r.bad()
		}
		r.null(v, c, n)
		return nil
	}
	if k != t.kind {
		return oneType(r.Where(), t.name, k, t.kind)
	}
	switch k {
	case textKind:
		if r.texts[c], err = r.string(r.texts[c], r.value); err != nil {
			return err
		}
	case listKind:
		if v.list, err = appendList(v.list, r.value, v.width); err != nil {
			return graph.BadData(r.Where(), "%q %v", t.name, err)
		}
	default:
		if !json.Valid(r.value) {
			return graph.BadData(r.Where(), "%q is %s, which is no JSON value: numbers are decimal ones, and a missing value is null", t.name, graph.Shorten(r.value))
		}
		r.texts[c] = append(r.texts[c], r.value...)
	}
	if v.null != nil && len(v.null) == n {
		v.null = append(v.null, false)
	}
	r.ends[c] = append(r.ends[c], len(r.texts[c]))
	return nil
}

// notANumber is Python's text for a float NaN, here null.
const notANumber = "NaN"

// appendList appends the numbers of a JSON list of a length.
func appendList(to []float32, raw []byte, width int) ([]float32, error) {
	var list []float32
	if err := json.Unmarshal(raw, &list); err != nil {
		return to, fmt.Errorf("is no list of float32 numbers: %w", err)
	}
	if len(list) != width {
		return to, fmt.Errorf("has %d numbers, and %d in the first line: every list must have the same length", len(list), width)
	}
	return append(to, list...), nil
}
