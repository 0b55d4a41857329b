package dataset

import (
	"bytes"
	"context"
	"errors"
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
	if err := l.begin(); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return l, nil
}

// begin refuses what is no text and skips the byte order mark that some editors
// write.
func (l *lines) begin() error {
	head, err := l.peek(sniffed)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		l.pos = 3
	}
	return refuseBinary(l.stream.source.name, head)
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

// peek returns the first n unread bytes without reading them; they are fewer where
// the file ends or cannot be read, and then the reason is returned with them.
func (l *lines) peek(n int) (_ []byte, err error) {
	for err == nil && l.end-l.pos < n {
		err = l.fill()
	}
	return l.buf[l.pos:min(l.pos+n, l.end)], err
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
		if len(line) > 0 && line[0] == '"' {
			i = s.behindQuotes(line)
		}
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

// behindQuotes finds the separator behind a quoted field at the front of a line, -1
// if there is none. A quote inside of the field is written twice.
func (s separator) behindQuotes(line []byte) int {
	end := 1
	for end < len(line) {
		i := bytes.IndexByte(line[end:], '"')
		if i < 0 {
			return bytes.IndexByte(line, byte(s)) // never closed: a quote like any letter
		}
		if end += i + 1; end == len(line) || line[end] != '"' {
			break
		}
		end++
	}
	if i := bytes.IndexByte(line[end:], byte(s)); i >= 0 {
		return end + i
	}
	return -1
}

// fields splits a line.
func (s separator) fields(line []byte) (fields [][]byte) {
	more := true
	for more {
		var field []byte
		field, line, more = s.cut(line)
		fields = append(fields, field)
	}
	return fields
}

// titles are the fields of a header, without quotes.
func (s separator) titles(header []byte) (titles []string) {
	for _, field := range s.fields(header) {
		titles = append(titles, string(unquote(field)))
	}
	return titles
}

// startsLikeNumber tells a data line from a header.
func startsLikeNumber(line []byte) bool {
	field, _, _ := separatorOf(line).cut(line)
	field = unquote(field)
	return len(field) > 0 && (field[0] >= '0' && field[0] <= '9' || field[0] == '-' || field[0] == '+' || field[0] == '.')
}
