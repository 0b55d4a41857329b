package table

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// csvFile is a table of text with a header.
type csvFile struct {
	cuts
	separator rune
	header    []string
}

// sniffed is how many bytes of a text file are looked at for signs that it is none.
const sniffed = 512

// openText opens a text file behind the byte order mark that some editors write.
func openText(ctx context.Context, src *source.Source) (*source.Stream, *bufio.Reader, error) {
	st, err := src.Open(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(st, source.BufferSize)
	head, err := r.Peek(sniffed)
	if err == io.EOF || err == bufio.ErrBufferFull {
		err = nil
	}
	if err == nil {
		err = source.RefuseBinary(src.Name, head)
	}
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = r.Discard(3)
	}
	return st, r, nil
}

func openCSV(ctx context.Context, src *source.Source) (_ *csvFile, err error) {
	st, r, err := openText(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	line, err := r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, graph.BadData(src.Name, "its first line is longer than %d KiB: is this a table?", source.BufferSize>>10)
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	c := &csvFile{cuts: cuts{src: src, quoted: true}, separator: ','}
	for _, s := range ",\t;|" {
		if bytes.ContainsRune(line, s) {
			c.separator = s
			break
		}
	}
	if len(line) == 0 {
		return nil, graph.BadData(src.Name, "its first line is empty: write the names of the columns there")
	}
	header := csv.NewReader(bytes.NewReader(line))
	header.Comma = c.separator
	if c.header, err = header.Read(); err != nil {
		return nil, graph.BadData(src.Name+" line 1", "%v: correct the quotes; the first line has the names of the columns", errors.Unwrap(err))
	}
	for i, name := range c.header {
		c.header[i] = strings.TrimSpace(name)
	}
	return c, nil
}

func (c *csvFile) titles() (titles []title) {
	for _, name := range c.header {
		titles = append(titles, title{name, fieldKind})
	}
	return titles
}

func (c *csvFile) rows() int64 { return -1 }

func (c *csvFile) width(context.Context, *tableFile, int) (int, error) { return 1, nil }

func (c *csvFile) open(ctx context.Context, f *tableFile, unit int, w want) (cursor, error) {
	st, in, lines, err := c.cuts.open(ctx, unit)
	if err != nil {
		return nil, err
	}
	r := &csvCursor{f: f, st: st, csv: csv.NewReader(in), columns: w.columns, before: lines}
	r.csv.Comma, r.csv.ReuseRecord, r.csv.FieldsPerRecord = c.separator, true, len(c.header)
	if unit > 0 {
		return r, nil
	}
	if _, err := r.csv.Read(); err != nil {
		return nil, errors.Join(r.failed(err), st.Close())
	}
	return r, nil
}

type csvCursor struct {
	f       *tableFile
	st      *source.Stream
	csv     *csv.Reader
	columns []int
	before  int // lines before those that are read
	row     int64
	ends    []int
	text    []byte
	lines   []int
}

func (r *csvCursor) close() error { return r.st.Close() }

// failed says what the parser did not take.
func (r *csvCursor) failed(err error) error {
	var syntax *csv.ParseError
	if !errors.As(err, &syntax) {
		return err
	}
	where := lineOf(r.f.name, r.before+syntax.Line)
	if syntax.Err == csv.ErrFieldCount {
		return graph.BadData(where, "has another number of columns than the first line, %d: correct the line, quote values that hold the separator", r.csv.FieldsPerRecord)
	}
	return graph.BadData(where, "%v: correct the quotes", syntax.Err)
}

func (r *csvCursor) next(b *batch) error {
	r.ends, r.text, r.lines = r.ends[:0], r.text[:0], r.lines[:0]
	n := 0
	for ; n < batchRows; n++ {
		record, err := r.csv.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return r.failed(err)
		}
		line, _ := r.csv.FieldPos(0)
		r.lines = append(r.lines, r.before+line)
		for _, c := range r.columns {
			r.text = append(r.text, strings.TrimSpace(record[c])...)
			r.ends = append(r.ends, len(r.text))
		}
	}
	if n == 0 {
		return io.EOF
	}
	b.first, b.n, b.lines = r.row, n, r.lines
	r.row += int64(n)
	fillText(b, len(r.columns), r.text, r.ends, fieldKind)
	return nil
}

// fillText spreads fields, which are one behind the other row by row, over columns.
func fillText(b *batch, columns int, text []byte, ends []int, k kind) {
	for c := range columns {
		v := &b.cols[c]
		v.kind, v.null, v.text = k, nil, v.text[:0]
	}
	start := 0
	for i, end := range ends {
		v := &b.cols[i%columns]
		v.text = append(v.text, text[start:end])
		start = end
	}
}
