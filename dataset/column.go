package dataset

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/npy"
)

// maxClasses is how many classes a label column may have. More speak of a column
// that holds something else.
const maxClasses = 1 << 16

// column is a value for each node, in a file: a label or a split.
type column interface {
	open(ctx context.Context) (columnReader, error)
	// where names the file.
	where() string
}

// columnReader streams a column.
type columnReader interface {
	// next returns a node and its value, or io.EOF. No value is "".
	next() (id uint32, value string, err error)
	// position names the row that next returned last.
	position() string
	Close() error
}

// vectorColumn holds the value of node i at position i: whole numbers, or floats
// that are whole, with NaN for none.
type vectorColumn struct{ v vector }

func (c vectorColumn) where() string { return c.v.name }

func (c vectorColumn) open(ctx context.Context) (columnReader, error) {
	if c.v.typ.IsInteger() {
		ints, err := c.v.integers(ctx, 0)
		if err != nil {
			return nil, err
		}
		return &vectorReader{name: c.v.name, Closer: ints, number: func() (string, error) {
			v, err := ints.next()
			if v < 0 && c.v.typ == npy.Uint64 {
				return "", errLarge
			}
			return strconv.FormatInt(v, 10), err
		}}, nil
	}
	floats, err := c.v.numbers(ctx)
	if err != nil {
		return nil, err
	}
	return &vectorReader{name: c.v.name, Closer: floats, number: func() (string, error) {
		v, err := floats.next()
		if v != v || err != nil {
			return "", err
		}
		if v != float32(math.Trunc(float64(v))) || math.Abs(float64(v)) > 1<<24 {
			return "", errFraction
		}
		return strconv.FormatInt(int64(v), 10), nil
	}}, nil
}

var (
	errFraction = errors.New("is no whole number: save the labels as integers, with -1 for none")
	errLarge    = errors.New("is 2^63 or more: save the labels as signed integers, with -1 for none")
)

type vectorReader struct {
	io.Closer
	name   string
	number func() (string, error)
	row    int64
}

func (r *vectorReader) position() string { return fmt.Sprintf("%s row %d", r.name, r.row-1) }

func (r *vectorReader) next() (uint32, string, error) {
	value, err := r.number()
	if err != nil {
		if err == errFraction || err == errLarge {
			err = badData(fmt.Sprintf("%s row %d", r.name, r.row), "%v", err)
		}
		return 0, "", err
	}
	r.row++
	return uint32(r.row - 1), value, nil
}

// textColumn is a CSV file with a column of ids, or a text file with one value a
// line.
type textColumn struct {
	src       *source
	separator rune
	header    bool
	id, value int // columns; id is -1 where the line number counts
	titles    []string
	width     int // columns of the first line
	limit     idLimit
}

// idNames are headers of a column of node ids.
var idNames = []string{"id", "node", "node_id", "nodeid", "node id", "node_idx"}

// openTextColumn finds the column named want, or the first of names that the
// header has, or the only one there is besides the ids.
func openTextColumn(ctx context.Context, src *source, want string, names []string, limit idLimit) (*textColumn, error) {
	l, err := openLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	line, err := l.data()
	if err != nil {
		if err == io.EOF {
			err = badData(src.name, "holds no rows: is this the file that is meant?")
		}
		return nil, err
	}
	c := &textColumn{src: src, separator: ',', id: -1, limit: limit}
	for _, s := range ",;\t " {
		if strings.ContainsRune(string(line), s) {
			c.separator = s
			break
		}
	}
	reader := csv.NewReader(strings.NewReader(string(line)))
	reader.Comma = c.separator
	first, err := reader.Read()
	if err != nil {
		return nil, badData(l.where(), "%v", errors.Unwrap(err))
	}
	return c, c.choose(first, want, names)
}

// choose decides which columns to read from the first line.
func (c *textColumn) choose(first []string, want string, names []string) error {
	c.width = len(first)
	title := make([]string, len(first))
	for i, name := range first {
		title[i] = strings.ToLower(strings.TrimSpace(name))
	}
	known := func(wanted []string) int {
		for _, name := range wanted {
			if i := slices.Index(title, strings.ToLower(name)); i >= 0 {
				return i
			}
		}
		return -1
	}
	c.value = known(names)
	if want != "" {
		if c.value = known([]string{want}); c.value < 0 {
			return badData(c.src.name, "has no column %q: the columns are %s", want, strings.Join(first, ", "))
		}
	}
	if len(first) == 1 {
		c.value, c.header = 0, c.value == 0
		return nil
	}
	c.id = max(known(idNames), 0)
	c.header = c.value >= 0 || !startsLikeNumber([]byte(first[c.id]))
	if c.header {
		c.titles = first
	}
	switch {
	case c.value < 0 && len(first) == 2:
		c.value = 1 - c.id
	case c.value < 0:
		return badData(c.src.name, "which column is meant? Say so behind a #, for example labels=%s#%s; the columns are %s",
			filepath.Base(c.src.name), first[len(first)-1], strings.Join(first, ", "))
	case known(idNames) < 0 && len(first) == 2:
		c.id = 1 - c.value
	case known(idNames) < 0:
		return badData(c.src.name, "which column holds the node ids? Name it id; the columns are %s", strings.Join(first, ", "))
	case c.value == c.id:
		return badData(c.src.name, "column %q is taken for the node ids: name the column of the ids id", first[c.id])
	}
	return nil
}

// note says which columns were chosen, where their names decided.
func (c *textColumn) note(what string) Note {
	if c.id < 0 || c.titles == nil {
		return Note{}
	}
	var others []string
	for i, title := range c.titles {
		if i != c.id && i != c.value {
			others = append(others, title)
		}
	}
	n := noteOf(c.src.name, "node ids are in column %q, %s in column %q", c.titles[c.id], what, c.titles[c.value])
	if len(others) > 0 {
		n.Text += "; " + count(others, "column") + " not read"
		if what == "labels" {
			n.Text += fmt.Sprintf(" (to take another one, write labels=%s#COLUMN)", filepath.Base(c.src.name))
		}
	}
	return n
}

func (c *textColumn) where() string { return c.src.name }

func (c *textColumn) open(ctx context.Context) (columnReader, error) {
	st, err := c.src.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &textColumnReader{c: c, stream: st, csv: csv.NewReader(skipMark(st))}
	r.csv.Comma, r.csv.Comment, r.csv.ReuseRecord = c.separator, '#', true
	r.csv.FieldsPerRecord = c.width // of the line that the columns were chosen from: this reader may skip it as blank
	r.csv.TrimLeadingSpace = c.separator != ' ' && c.separator != '\t'
	if c.header {
		if _, err := r.record(); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	return r, nil
}

type textColumnReader struct {
	c      *textColumn
	stream *stream
	csv    *csv.Reader
	line   int
	row    int64
}

func (r *textColumnReader) Close() error { return r.stream.Close() }

func (r *textColumnReader) position() string { return fmt.Sprintf("%s line %d", r.c.src.name, r.line) }

func (r *textColumnReader) record() ([]string, error) {
	record, err := r.csv.Read()
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax):
		r.line = syntax.Line
		if syntax.Err == csv.ErrFieldCount {
			return nil, badData(r.position(), "has another number of columns than the first line: correct the line, quote values that hold the separator")
		}
		return nil, badData(r.position(), "%v: correct the quotes", syntax.Err)
	case err == nil:
		r.line, _ = r.csv.FieldPos(0)
	}
	return record, err
}

func (r *textColumnReader) next() (uint32, string, error) {
	record, err := r.record()
	if err != nil {
		return 0, "", err
	}
	value := strings.TrimSpace(record[r.c.value])
	if r.c.id < 0 {
		r.row++
		if r.row > r.c.limit.n {
			return 0, "", badData(r.position(), "is one more than there are nodes, %d (%s): remove it, or correct the number of nodes", r.c.limit.n, r.c.limit.stated)
		}
		return uint32(r.row - 1), value, nil
	}
	id, problem := r.c.limit.parse([]byte(strings.TrimSpace(record[r.c.id])))
	if problem != "" {
		return 0, "", badData(r.position(), "%s", problem)
	}
	return id, value, nil
}

// classLabels numbers the values of a column.
type classLabels struct {
	column  column
	classes []string
	index   map[string]int32
	rows    int64
}

// openLabels reads a column once to learn its classes: integers are sorted by
// value, other names by their bytes.
func openLabels(ctx context.Context, c column) (*classLabels, error) {
	l := &classLabels{column: c, index: map[string]int32{}}
	r, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		_, value, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		l.rows++
		if _, known := l.index[value]; known || noLabel(value) {
			continue
		}
		if len(l.index) == maxClasses {
			return nil, badData(r.position(), "more than %d different labels: is this the label column?", maxClasses)
		}
		l.index[strings.Clone(value)] = 0
	}
	for name := range l.index {
		l.classes = append(l.classes, name)
	}
	sortClasses(l.classes)
	for i, name := range l.classes {
		l.index[name] = int32(i)
	}
	if len(l.classes) == 0 {
		return nil, badData(c.where(), "holds no label: leave it out of the URI")
	}
	return l, nil
}

// noLabel says whether a value stands for none: pandas writes NaN, and -1.0 in a
// column that holds NaN.
func noLabel(value string) bool {
	return value == "" || value == "-1" || value == "-1.0" || strings.EqualFold(value, "nan")
}

func sortClasses(names []string) {
	value := func(name string) (int64, bool) {
		v, err := strconv.ParseInt(name, 10, 64)
		return v, err == nil
	}
	numeric := !slices.ContainsFunc(names, func(name string) bool { _, ok := value(name); return !ok })
	slices.SortFunc(names, func(a, b string) int {
		if numeric {
			x, _ := value(a)
			y, _ := value(b)
			if x != y {
				if x < y {
					return -1
				}
				return 1
			}
		}
		return strings.Compare(a, b)
	})
}

func (l *classLabels) open(ctx context.Context) (LabelReader, error) {
	r, err := l.column.open(ctx)
	return &labelReader{r, l.index}, err
}

type labelReader struct {
	columnReader
	index map[string]int32
}

func (r *labelReader) Next() (uint32, int32, error) {
	for {
		id, value, err := r.next()
		if err != nil {
			return 0, 0, err
		}
		if label, ok := r.index[value]; ok {
			return id, label, nil
		}
	}
}

// splitOf maps the values of a split column.
var splitOf = map[string]Split{
	"": NoSplit, "none": NoSplit, "0": NoSplit, "-1": NoSplit,
	"train": Train, "1": Train,
	"valid": Valid, "val": Valid, "validation": Valid, "2": Valid,
	"test": Test, "3": Test,
}

type splitReader struct{ columnReader }

func (r splitReader) Next() (uint32, Split, error) {
	for {
		id, value, err := r.next()
		if err != nil {
			return 0, NoSplit, err
		}
		split, ok := splitOf[value]
		if !ok {
			return 0, NoSplit, badData(r.position(), "split %q is unknown: write train, valid, test or nothing", value)
		}
		if split != NoSplit {
			return id, split, nil
		}
	}
}
