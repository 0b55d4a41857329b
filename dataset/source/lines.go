package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strconv"

	"ndls/dataset/graph"
)

// maxLine is the longest line of a text file. The buffer grows to the longest
// line there is.
const maxLine = 16 << 20

// Lines reads a text file line by line; "\n", "\r\n" and "\r" end a line.
type Lines struct {
	text     *Text
	buf      []byte
	Pos, end int
	At       int64 // of buf[0] in the file
	start    int64 // where the reading began
	Stop     int64 // where a line may not begin any more
	Begin    int64 // where lines begin, behind a byte order mark and a stated separator
	number   int64 // of the line that next returned last, from 1 at start
	before   int64 // lines before start, -1 where they are not counted yet
	long     bool  // a line is too long
	err      error
}

// mark begins the text that some editors write.
const mark = "\xef\xbb\xbf"

// WithoutMark takes a byte order mark off a text.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(mark)) }

// OpenLines reads a text from its beginning, without a byte order mark.
func OpenLines(ctx context.Context, s *Source) (*Lines, error) {
	l, err := OpenLinesAt(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	head, err := l.peek(len(mark))
	if err != nil && err != io.EOF && len(head) < len(mark) {
		return nil, errors.Join(err, l.Close())
	}
	if string(head) == mark {
		l.Pos, l.Begin = len(mark), int64(len(mark))
	}
	return l, nil
}

// OpenLinesAt reads from some byte on.
func OpenLinesAt(ctx context.Context, s *Source, off int64) (*Lines, error) {
	t, err := s.OpenText(ctx, off)
	if err != nil {
		return nil, err
	}
	l := &Lines{text: t, buf: make([]byte, BufferSize), At: off, start: off, Begin: off, Stop: math.MaxInt64, before: -1}
	if off == 0 {
		l.before = 0
	}
	return l, nil
}

// Close closes the file.
func (l *Lines) Close() error { return l.text.Close() }

// Name is the name of the file.
func (l *Lines) Name() string { return l.text.source.Name }

// Before says how many lines are before the byte from which the text is read.
func (l *Lines) Before(lines int64) { l.before = lines }

// Number returns the number of the current line, from 1.
func (l *Lines) Number() int64 {
	if l.before < 0 {
		l.before = l.text.source.countLines(l.text.ctx, l.start)
	}
	return l.before + l.number
}

// Where names the current line.
func (l *Lines) Where() string { return l.at(l.Number()) }

// Read returns the number of lines that were read.
func (l *Lines) Read() int64 { return l.number }

// WhereOf names a line by its number among those that were read, from 1.
func (l *Lines) WhereOf(read int64) string { return l.at(l.Number() - l.number + read) }

// at names a line.
func (l *Lines) at(line int64) string { return l.Name() + " line " + strconv.FormatInt(line, 10) }

// peek returns the first n unread bytes without reading them; they are fewer where
// the file ends or cannot be read, and then the reason is returned with them.
func (l *Lines) peek(n int) (_ []byte, err error) {
	for err == nil && l.end-l.Pos < n {
		err = l.fill()
	}
	return l.buf[l.Pos:min(l.Pos+n, l.end)], err
}

// fill reads more bytes behind those that are there.
func (l *Lines) fill() error {
	if l.err != nil {
		return l.err
	}
	if l.Pos > 0 {
		l.At += int64(l.Pos)
		l.end = copy(l.buf, l.buf[l.Pos:l.end])
		l.Pos = 0
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= maxLine {
			l.number++
			l.long = true
			return graph.BadData(l.Where(), "is longer than %d MiB: is this a text file?", maxLine>>20)
		}
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	n, err := l.text.Read(l.buf[l.end:])
	l.end += n
	l.err = err
	if n > 0 {
		return nil
	}
	return err
}

// Next returns the next line without its end, valid until the next call, or io.EOF.
func (l *Lines) Next() ([]byte, error) {
	if l.At+int64(l.Pos) >= l.Stop {
		return nil, io.EOF
	}
	scanned := 0
	for {
		if i := bytes.IndexByte(l.buf[l.Pos+scanned:l.end], '\n'); i >= 0 {
			line := l.buf[l.Pos : l.Pos+scanned+i]
			l.Pos += scanned + i + 1
			l.number++
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		scanned = l.end - l.Pos
		err := l.fill()
		if err == io.EOF && scanned > 0 {
			line := l.buf[l.Pos:l.end]
			l.Pos = l.end
			l.number++
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Data returns the next line that is neither empty nor a comment.
func (l *Lines) Data() ([]byte, error) {
	for {
		line, err := l.Next()
		if err != nil {
			return nil, err
		}
		trimmed := bytes.TrimLeft(line, " \t")
		if len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' {
			return line, nil
		}
		if bytes.HasPrefix(trimmed, []byte("%%MatrixMarket")) {
			return nil, graph.BadData(l.Where(), "is a MatrixMarket file: write mtx:FILE, or give it a name that ends in .mtx")
		}
	}
}

// First returns the first line of a table or list that is neither empty nor a comment, and its separator: the one that
// a line "sep=;" before it states, as Excel writes it, or else what [SeparatorOf] finds. Text in a form of graphs is
// refused with the way to read it.
func (l *Lines) First() (line []byte, s Separator, stated bool, err error) {
	if line, err = l.Data(); err != nil {
		return nil, 0, false, err
	}
	if err := l.RefuseGraph(line); err != nil {
		return nil, 0, false, err
	}
	if s, ok := StatedSeparator(line); ok {
		l.Begin = l.At + int64(l.Pos)
		line, err = l.Data()
		return line, s, true, err
	}
	return line, SeparatorOf(line), false, nil
}

// StatedSeparator reads the line sep=; of Excel.
func StatedSeparator(line []byte) (Separator, bool) {
	line = bytes.Trim(graph.Unquote(bytes.TrimSpace(line)), " ")
	if len(line) != 5 || !bytes.EqualFold(line[:4], []byte("sep=")) {
		return 0, bytes.EqualFold(line, []byte("sep=\t")) || bytes.EqualFold(line, []byte("sep="))
	}
	return Separator(line[4]), true
}

// Separator separates the fields of a line: a comma, semicolon or bar, or for 0 any number of
// blanks and tabs.
type Separator byte

// Byte is the separator where it is one byte: a tab in place of blanks and tabs.
func (s Separator) Byte() byte {
	if s == 0 {
		return '\t'
	}
	return byte(s)
}

// SeparatorOf finds the separator of a line.
func SeparatorOf(line []byte) Separator {
	for _, c := range []byte(",;|") {
		if bytes.IndexByte(line, c) >= 0 {
			return Separator(c)
		}
	}
	return 0
}

// trim removes spaces and tabs at both ends of a field, which mostly has none.
func trim(field []byte) []byte {
	for len(field) > 0 && (field[0] == ' ' || field[0] == '\t') {
		field = field[1:]
	}
	for len(field) > 0 && (field[len(field)-1] == ' ' || field[len(field)-1] == '\t') {
		field = field[:len(field)-1]
	}
	return field
}

// Cut splits the first field off a line; more is false if no other follows.
func (s Separator) Cut(line []byte) (field, rest []byte, more bool) {
	if s != 0 {
		i := bytes.IndexByte(line, byte(s))
		if len(line) > 0 && line[0] == '"' {
			i = s.behindQuotes(line)
		}
		if i < 0 {
			return trim(line), nil, false
		}
		return trim(line[:i]), line[i+1:], true
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
func (s Separator) behindQuotes(line []byte) int {
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
