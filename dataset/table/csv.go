package table

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// csvFile is a table of text. Its columns have the names of its header, or without one numbers from 1.
type csvFile struct {
	cuts
	separator byte
	plain     bool // quotes are letters
	header    []string
	headed    bool  // the names are in the file
	skip      int64 // lines before the first row
	empty     bool
	note      graph.Note
	// comments says that lines that begin with # or % are no rows, wherever they are.
	comments bool
	// list is the separator of a list: each line of it is a row, so that it can be read from any line on.
	list *source.Separator
	// begin is the byte of a list from which on its rows begin.
	begin int64
	// advice says what to do where a row has other columns than the first one.
	advice string
}

// QuoteValues advises on a row that has more values than columns.
const QuoteValues = "correct the line, quote values that hold the separator"

// openCSV looks at the first lines. part is the name of the table in the key header= of a URI; it
// is empty where a first line of numbers may be a header.
func openCSV(ctx context.Context, src *source.Source, form *source.Form, part string) (_ *csvFile, err error) {
	if src.Size == 0 {
		return nil, graph.BadData(src.Name, "is empty (0 bytes): remove the file, or write a table there, with the names of the columns")
	}
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c := &csvFile{cuts: cuts{src: src, quoted: !form.Plain}, plain: form.Plain, advice: QuoteValues}
	first, comments, names, err := c.top(l)
	if err != nil {
		return nil, err
	}
	r := c.recordsOf(l)
	fields, err := r.Fields(first)
	if err != nil {
		return nil, err
	}
	c.header, c.headed = titlesOf(fields), true
	has, stated := form.Header(part)
	switch {
	case names != nil && !stated:
		c.header, c.skip = names, r.Line()-1
		c.note = graph.NoteOf(src.Name, "the names of the columns are in the comment over the first row: %s", strings.Join(names, ", "))
		return c, c.look(ctx)
	case stated && !has:
		c.number(r)
	case !stated && part != "" && allNumbers(c.header):
		return nil, graph.BadData(r.Where(), "holds numbers where the names of the columns belong: write a first line such as src,dst, or header=false in the URI, which reads the line as a row (its columns are named 1, 2, …), or header=true if these are the names")
	default:
		c.skip = l.Number()
	}
	if comments > 0 {
		c.note = graph.NoteOf(src.Name, "%d lines at the top begin with #, and are not read", comments)
	}
	return c, c.look(ctx)
}

// number gives columns without names numbers from 1: the record that was read last is a row.
func (c *csvFile) number(r *source.Records) {
	c.headed, c.skip = false, r.Line()-1
	for i := range c.header {
		c.header[i] = strconv.Itoa(i + 1)
	}
}

// recordsOf reads the records of lines.
func (c *csvFile) recordsOf(l *source.Lines) *source.Records {
	return &source.Records{Lines: l, Separator: c.separator, Plain: c.plain, Comments: c.comments, List: c.list}
}

// mostComments bounds the lines at the top of a file that begin with #.
const mostComments = 1000

// top returns the first line that is neither empty nor a comment, sets the separator, and says how many comments are
// before it. The comment above it has the names of the columns if it has as many, and begins with # and a letter or is
// above numbers alone.
func (c *csvFile) top(l *source.Lines) (first []byte, comments int, names []string, err error) {
	var last []byte
	stated := false
	for first == nil {
		line, err := l.Next()
		if err == io.EOF {
			return nil, 0, nil, graph.BadData(l.Name(), "has no line but comments and empty ones: write a table, with the names of the columns")
		}
		if err != nil {
			return nil, 0, nil, err
		}
		s, separates := source.StatedSeparator(line)
		switch {
		case separates && !stated:
			c.separator, stated = s.Byte(), true
		case len(bytes.TrimSpace(line)) == 0:
		case line[0] == '#' && comments < mostComments:
			comments++
			last = append(last[:0], line...)
		default:
			first = line
		}
	}
	if err := l.RefuseGraph(first); err != nil {
		return nil, 0, nil, err
	}
	if !stated {
		c.separator = source.TableSeparator(first, "")
	}
	fields := titlesOf(bytes.Split(first, []byte{c.separator}))
	if above := titlesOf(bytes.Split(last, []byte{c.separator})); comments > 0 && len(fields) > 1 && len(above) == len(fields) &&
		(allNumbers(fields) || !strings.HasPrefix(string(last), "# ")) {
		names = above
	}
	return first, comments, names, nil
}

// titlesOf are the names of columns in fields.
func titlesOf(fields [][]byte) (titles []string) {
	for _, f := range fields {
		titles = append(titles, string(bytes.TrimSpace(f)))
	}
	return titles
}

// allNumbers reports whether there are numbers alone, and empty names.
func allNumbers(titles []string) bool {
	found := false
	for _, t := range titles {
		_, number := graph.Number([]byte(t), 64)
		if !number && t != "" {
			return false
		}
		found = found || number
	}
	return found
}

// look sees whether there is a row.
func (c *csvFile) look(ctx context.Context) (err error) {
	l, err := source.OpenLines(ctx, c.src)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r, err := c.behindTop(l)
	if err != nil {
		return err
	}
	if _, err = r.Record(); err == io.EOF {
		c.empty, err = true, nil
	}
	if errors.Is(err, graph.ErrData) {
		err = nil // whoever reads the row says so
	}
	return err
}

// behindTop passes over the lines before the first row, as far as they are among those that are read.
func (c *csvFile) behindTop(l *source.Lines) (*source.Records, error) {
	for l.Number() < c.skip {
		if _, err := l.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return c.recordsOf(l), nil
}

func (c *csvFile) titles() (titles []title) {
	for _, name := range c.header {
		titles = append(titles, title{name, fieldKind})
	}
	return titles
}

func (c *csvFile) rows() int64 {
	if c.empty {
		return 0
	}
	return -1
}

func (c *csvFile) width(context.Context, *tableFile, int) (int, error) { return 1, nil }

// records opens the records of a unit, or of those lines of a list that begin at bytes [lo, hi).
func (c *csvFile) records(ctx context.Context, unit int, w want) (*source.Records, error) {
	if w.hi > 0 {
		return c.linesFrom(ctx, w.lo, w.hi)
	}
	l, err := c.cuts.open(ctx, unit)
	if err != nil {
		return nil, err
	}
	r, err := c.behindTop(l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return r, nil
}

// linesFrom opens the lines of a list that begin at bytes [lo, hi).
func (c *csvFile) linesFrom(ctx context.Context, lo, hi int64) (*source.Records, error) {
	// A line that begins at lo ends the one before at lo-1.
	before := min(lo-c.begin, 1)
	l, err := source.OpenLinesAt(ctx, c.src, lo-before)
	if err != nil {
		return nil, err
	}
	if before > 0 {
		if _, err := l.Next(); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(err, l.Close())
		}
	}
	l.Stop = hi
	return c.recordsOf(l), nil
}

func (c *csvFile) open(ctx context.Context, _ *tableFile, unit int, w want) (cursor, error) {
	r, err := c.records(ctx, unit, w)
	if err != nil {
		return nil, err
	}
	return &csvCursor{Records: r, c: c, want: w, ids: make([][]uint32, w.ids)}, nil
}

type csvCursor struct {
	*source.Records
	want
	c     *csvFile
	ids   [][]uint32
	read  []float32 // features
	row   int64
	ends  []int
	text  []byte
	lines []int64
}

func (r *csvCursor) next(b *batch) error {
	r.ends, r.text, r.lines, r.read = r.ends[:0], r.text[:0], r.lines[:0], r.read[:0]
	last := len(r.columns) - r.features // columns before features
	for i := range r.ids {
		r.ids[i] = r.ids[i][:0]
	}
	n := 0
	for ; n < batchRows && len(r.text) < batchBytes && len(r.ends)+len(r.read) < batchFields; n++ {
		record, err := r.Record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if len(record) != len(r.c.header) {
			return r.c.otherWidth(r.Records, record)
		}
		r.lines = append(r.lines, r.Begun())
		for i, at := range r.columns {
			field := record[at]
			if r.c.list == nil { // whose fields have no blanks around them
				field = bytes.TrimSpace(field)
			}
			if i < len(r.ids) {
				id, problem := r.limit.Parse(field)
				if problem != "" {
					return badNumber(r.Where(), r.c.header[at], problem)
				}
				r.ids[i] = append(r.ids[i], id)
				continue
			}
			if i >= last {
				x, problem := feature(field)
				if problem != "" {
					return graph.BadData(r.Where(), "column %q %s", r.c.header[at], problem)
				}
				r.read = append(r.read, x)
				continue
			}
			r.text = append(r.text, field...)
			r.ends = append(r.ends, len(r.text))
		}
	}
	if n == 0 {
		return io.EOF
	}
	b.first, b.n, b.lines, b.text = r.row, n, r.lines, r.Lines
	r.row += int64(n)
	for i, ids := range r.ids {
		b.cols[i].kind, b.cols[i].null, b.cols[i].numbers = intKind, nil, ids
	}
	if r.features > 0 {
		b.features = r.read
	}
	fillText(b.cols[len(r.ids):last], r.text, r.ends, fieldKind)
	return nil
}

// otherWidth is the error for a row that has other columns than the first one.
func (c *csvFile) otherWidth(r *source.Records, record [][]byte) error {
	if c.list != nil && withData.Match(r.Raw()) {
		return attributes(r.Where())
	}
	return graph.BadData(r.Where(), "the number of columns is %d, and %d in the first line: %s", len(record), len(c.header), c.advice)
}

// fillText spreads fields, which are one behind the other row by row, over columns.
func fillText(cols []vector, text []byte, ends []int, k kind) {
	for c := range cols {
		cols[c].kind, cols[c].null, cols[c].text = k, nil, cols[c].text[:0]
	}
	start := 0
	for i, end := range ends {
		v := &cols[i%len(cols)]
		v.text = append(v.text, text[start:end])
		start = end
	}
}
