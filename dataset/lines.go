package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
)

// maxLine is the longest line of a text file. The buffer grows to the longest
// line there is.
const maxLine = 16 << 20

// lines reads a text file line by line; "\n" and "\r\n" end a line.
type lines struct {
	stream   *stream
	buf      []byte
	pos, end int
	at       int64 // of buf[0] in the file
	start    int64 // where the reading began
	stop     int64 // where a line may not begin any more
	number   int64 // of the line that next returned last, from 1 at start
	err      error
}

func openLines(ctx context.Context, s *source) (*lines, error) {
	st, err := s.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	l := &lines{stream: st, buf: make([]byte, bufferSize), stop: math.MaxInt64}
	if first, err := l.peek(3); err == nil && string(first) == "\xef\xbb\xbf" {
		l.pos = 3 // The byte order mark some editors write.
	}
	return l, nil
}

// openLinesAt reads from some byte on.
func openLinesAt(ctx context.Context, s *source, off int64) (*lines, error) {
	st, err := s.open(ctx, off)
	if err != nil {
		return nil, err
	}
	return &lines{stream: st, buf: make([]byte, bufferSize), at: off, start: off, stop: math.MaxInt64}, nil
}

func (l *lines) Close() error { return l.stream.Close() }

// where names the current line.
func (l *lines) where() string {
	before := l.stream.source.countLines(l.stream.ctx, l.start)
	return l.stream.source.name + " line " + strconv.FormatInt(before+l.number, 10)
}

// peek returns the first n unread bytes without reading them.
func (l *lines) peek(n int) ([]byte, error) {
	for l.end-l.pos < n {
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
	return l.buf[l.pos : l.pos+n], nil
}

// fill reads more bytes behind those that are there.
func (l *lines) fill() error {
	if l.err != nil {
		return l.err
	}
	if l.pos > 0 {
		l.at += int64(l.pos)
		l.end = copy(l.buf, l.buf[l.pos:l.end])
		l.pos = 0
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= maxLine {
			l.number++
			return badData(l.where(), "is longer than %d MiB: is this a text file?", maxLine>>20)
		}
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	n, err := l.stream.Read(l.buf[l.end:])
	l.end += n
	l.err = err
	if n > 0 {
		return nil
	}
	return err
}

// next returns the next line without its end, valid until the next call, or io.EOF.
func (l *lines) next() ([]byte, error) {
	if l.at+int64(l.pos) >= l.stop {
		return nil, io.EOF
	}
	scanned := 0
	for {
		if i := bytes.IndexByte(l.buf[l.pos+scanned:l.end], '\n'); i >= 0 {
			line := l.buf[l.pos : l.pos+scanned+i]
			l.pos += scanned + i + 1
			l.number++
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		scanned = l.end - l.pos
		err := l.fill()
		if err == io.EOF && scanned > 0 {
			line := l.buf[l.pos:l.end]
			l.pos = l.end
			l.number++
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// data returns the next line that is neither empty nor a comment.
func (l *lines) data() ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil {
			return nil, err
		}
		trimmed := bytes.TrimLeft(line, " \t")
		if len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' {
			return line, nil
		}
		if bytes.HasPrefix(trimmed, []byte("%%MatrixMarket")) {
			return nil, badData(l.where(), "MatrixMarket files are not read: save the edges as lines of two ids, or as .npy")
		}
	}
}

// separator is what stands between the fields of a line: a comma or semicolon,
// or for 0 any number of blanks and tabs.
type separator byte

func separatorOf(line []byte) separator {
	for _, c := range []byte(",;") {
		if bytes.IndexByte(line, c) >= 0 {
			return separator(c)
		}
	}
	return 0
}

// cut splits the first field off a line; more is false if no other follows.
func (s separator) cut(line []byte) (field, rest []byte, more bool) {
	if s != 0 {
		i := bytes.IndexByte(line, byte(s))
		if i < 0 {
			return bytes.Trim(line, " \t"), nil, false
		}
		return bytes.Trim(line[:i], " \t"), line[i+1:], true
	}
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	j := i
	for j < len(line) && line[j] != ' ' && line[j] != '\t' {
		j++
	}
	k := j
	for k < len(line) && (line[k] == ' ' || line[k] == '\t') {
		k++
	}
	return line[i:j], line[k:], k < len(line)
}

// fields counts the fields of a line.
func (s separator) fields(line []byte) int {
	n, more := 0, true
	for more {
		_, line, more = s.cut(line)
		n++
	}
	return n
}

// startsLikeNumber tells a data line from a header.
func startsLikeNumber(line []byte) bool {
	field, _, _ := separatorOf(line).cut(line)
	return len(field) > 0 && (field[0] >= '0' && field[0] <= '9' || field[0] == '-' || field[0] == '+' || field[0] == '.')
}

// parseID reads a node id below limit; problem says what is wrong with it.
func parseID(field []byte, limit int64) (id uint32, problem string) {
	var v int64
	if len(field) == 0 || len(field) > 18 {
		return 0, idProblem(field, limit)
	}
	for _, c := range field {
		c -= '0'
		if c > 9 {
			return 0, idProblem(field, limit)
		}
		v = 10*v + int64(c)
	}
	if v >= limit {
		return 0, idProblem(field, limit)
	}
	return uint32(v), ""
}

func idProblem(field []byte, limit int64) string {
	text := shorten(field)
	if v, err := strconv.ParseInt(string(field), 10, 64); err == nil {
		return idRange(v, limit)
	}
	f, err := strconv.ParseFloat(string(field), 64)
	switch {
	case len(field) == 0:
		return "a node id is missing"
	case err == nil && f < 0:
		return fmt.Sprintf("node id %s is negative: ids are whole numbers from 0, renumber the nodes", text)
	case err == nil && f >= float64(limit):
		return fmt.Sprintf("node id %s is too large: ids are below %d, renumber the nodes", text, limit)
	case err == nil:
		return fmt.Sprintf("node id %s is not a whole number: write ids without fraction or exponent", text)
	}
	return fmt.Sprintf("node id %s is not a number: ids are whole numbers from 0, renumber the nodes", text)
}

// idRange says what is wrong with a number that is no id below limit.
func idRange(v, limit int64) string {
	switch {
	case v < 0:
		return fmt.Sprintf("node id %d is negative: ids are whole numbers from 0, renumber the nodes", v)
	case limit <= MaxID:
		return fmt.Sprintf("node id %d is not below the number of nodes, %d: correct the id, or the nodes= of the URI", v, limit)
	}
	return fmt.Sprintf("node id %d is too large: ids go up to %d, renumber the nodes", v, int64(MaxID))
}

func shorten(field []byte) string {
	if len(field) > 40 {
		return strconv.Quote(string(field[:40])) + "…"
	}
	return strconv.Quote(string(field))
}
