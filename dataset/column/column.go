package column

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
	"ndls/internal/meant"
)

// MaxClasses is the largest number of classes of a label column. More mean that the column holds
// something else.
const MaxClasses = 1 << 16

// Column is a value for each node, in a file: a label or a split.
type Column interface {
	Open(ctx context.Context) (Reader, error)
	// Where names the file.
	Where() string
}

// Reader streams a column.
type Reader interface {
	// NextValue returns a node and its value, or io.EOF. No value is "".
	NextValue() (id uint32, value string, err error)
	// Position names the row that next returned last.
	Position() string
	Close() error
}

// Vector holds the value of node i at position i: text, whole numbers, or floats that are
// whole, with NaN for none.
type Vector struct {
	Values array.Vector
	// Width numbers belong to a node, of which number Pick is its value; 0 is 1 of 1.
	Width, Pick int64
}

func (c Vector) Where() string { return c.Values.Name }

func (c Vector) Open(ctx context.Context) (Reader, error) {
	if c.Values.Type.IsText() {
		texts, err := c.Values.Texts(ctx)
		if err != nil {
			return nil, err
		}
		return &vectorReader{name: c.Values.Name, Closer: texts, number: func() (string, error) {
			text, err := pick(texts.Next, c.Width, c.Pick)
			return strings.TrimSpace(text), err
		}}, nil
	}
	if c.Values.Type.IsInteger() {
		ints, err := c.Values.Integers(ctx, 0)
		if err != nil {
			return nil, err
		}
		return &vectorReader{name: c.Values.Name, Closer: ints, number: func() (string, error) {
			v, err := pick(ints.Next, c.Width, c.Pick)
			if v < 0 && c.Values.Type == npy.Uint64 {
				return "", errLarge
			}
			return strconv.FormatInt(v, 10), err
		}}, nil
	}
	floats, err := c.Values.Numbers(ctx)
	if err != nil {
		return nil, err
	}
	return &vectorReader{name: c.Values.Name, Closer: floats, number: func() (string, error) {
		v, err := pick(floats.Next, c.Width, c.Pick)
		if v != v || err != nil {
			return "", err
		}
		if v != float32(math.Trunc(float64(v))) || math.Abs(float64(v)) > 1<<24 {
			return "", errFraction
		}
		return strconv.FormatInt(int64(v), 10), nil
	}}, nil
}

// pick reads the numbers of a node and returns one of them.
func pick[T any](next func() (T, error), width, which int64) (value T, err error) {
	for i := range max(width, 1) {
		v, err := next()
		if err != nil {
			return value, err
		}
		if i == which {
			value = v
		}
	}
	return value, nil
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

func (r *vectorReader) Position() string { return fmt.Sprintf("%s row %d", r.name, r.row-1) }

func (r *vectorReader) NextValue() (uint32, string, error) {
	value, err := r.number()
	if err != nil {
		if slices.Contains([]error{errFraction, errLarge, errNoHot, errTwoHot}, err) {
			err = graph.BadData(fmt.Sprintf("%s row %d", r.name, r.row), "%v", err)
		}
		return 0, "", err
	}
	r.row++
	return uint32(r.row - 1), value, nil
}

// Text is a CSV file with a column of ids, or a text file with one value a
// line.
type Text struct {
	src       *source.Source
	form      source.Form
	separator byte
	stated    bool // by a line before the first one
	header    bool
	ID, value int // columns; id is -1 where the line number counts
	titles    []string
	width     int // columns of the first line
	limit     graph.IDLimit
}

// IDNames are headers of a column of node ids.
var IDNames = []string{"id", "node", "node_id", "nodeid", "node id", "node_idx"}

// Wanted says which column is looked for: the one named Name, or else the first of Known that the header has, or the
// only one there is besides the ids. Part is the file as the key header= of a URI has it.
type Wanted struct {
	Name, Part string
	Known      []string
}

// OpenText finds a column.
func OpenText(ctx context.Context, src *source.Source, form source.Form, want Wanted, limit graph.IDLimit) (_ *Text, err error) {
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	line, separator, stated, err := l.First()
	if err != nil {
		if err == io.EOF {
			err = graph.BadData(src.Name, "holds no rows: is this the file that is meant?")
		}
		return nil, err
	}
	c := &Text{src: src, form: form, ID: -1, limit: limit, separator: source.TableSeparator(line, " ")}
	if stated {
		c.separator, c.stated = separator.Byte(), true
	}
	r := c.records(l)
	first, err := r.Fields(line)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(first))
	for i, field := range first {
		names[i] = string(field)
	}
	if err := c.choose(names, want); err != nil || len(names) > 1 || c.header || want.Part == "" {
		return c, err
	}
	return c, c.checkFirst(r, names[0])
}

// sampled is the number of values that tell whether the first line is a header.
const sampled = 1000

// checkFirst refuses a first line of text over numbers, which may be a header that is not known. It is for files with
// one value a line.
func (c *Text) checkFirst(r *source.Records, first string) error {
	if _, stated := c.form.Header(""); stated || noLabel(first) || graph.IsMissing(first) {
		return nil
	}
	if _, number := graph.Number([]byte(first), 64); number {
		return nil
	}
	where, found := r.Where(), false
	for range sampled {
		record, err := r.Record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if _, number := graph.Number(record[0], 64); !number && !noLabel(string(record[0])) {
			return nil
		}
		found = found || !noLabel(string(record[0]))
	}
	if !found {
		return nil
	}
	return graph.BadData(where, "is %s, and numbers follow: if it is the name of the column, write header=true in the URI, and otherwise header=false", graph.Shorten([]byte(first)))
}

// records reads the records of the file.
func (c *Text) records(l *source.Lines) *source.Records {
	return &source.Records{Lines: l, Separator: c.separator, Plain: c.form.Plain, Comments: true}
}

// choose decides which columns to read from the first line.
func (c *Text) choose(first []string, w Wanted) error {
	want, names := w.Name, w.Known
	c.width = len(first)
	has, stated := c.form.Header(w.Part)
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
	if stated && !has {
		return c.chooseNumber(w)
	}
	c.value = known(names)
	if want != "" {
		if c.value = known([]string{want}); c.value < 0 {
			return graph.BadData(c.src.Name, "has no column %q: the columns are %s%s", want, strings.Join(first, ", "), meant.Hint(want, first))
		}
	}
	if len(first) == 1 {
		c.value, c.header = 0, c.value == 0 || has
		return nil
	}
	c.ID = max(known(IDNames), 0)
	c.header = c.value >= 0 || has || !source.Separator(c.separator).StartsLikeNumber([]byte(first[c.ID]))
	if c.header {
		c.titles = first
	}
	for _, i := range []int{c.ID, c.value} {
		if i >= 0 && c.header && slices.Contains(title[i+1:], title[i]) {
			return graph.BadData(c.src.Name, "has two columns named %q: give each a name of its own", first[i])
		}
	}
	switch {
	case c.value < 0 && len(first) == 2:
		c.value = 1 - c.ID
	case c.value < 0:
		return graph.BadData(c.src.Name, "which column is meant? Say so behind a #, for example labels=%s#%s; the columns are %s",
			filepath.Base(c.src.Name), first[len(first)-1], strings.Join(first, ", "))
	case known(IDNames) < 0 && len(first) == 2:
		c.ID = 1 - c.value
	case known(IDNames) < 0:
		return graph.BadData(c.src.Name, "which column holds the node ids? Name it id; the columns are %s", strings.Join(first, ", "))
	case c.value == c.ID:
		return graph.BadData(c.src.Name, "column %q is taken for the node ids: name the column of the ids id", first[c.ID])
	}
	return nil
}

// chooseNumber chooses columns of a file without header, which have numbers from 1.
func (c *Text) chooseNumber(w Wanted) error {
	c.value = min(c.width, 2) - 1
	if w.Name != "" {
		n, err := strconv.Atoi(w.Name)
		if err != nil || n < 1 || n > c.width {
			return graph.BadData(c.src.Name, "has no column %q: without header, columns have numbers from 1 to %d", w.Name, c.width)
		}
		c.value = n - 1
	}
	switch {
	case c.width == 1:
	case c.value == 0:
		return graph.BadData(c.src.Name, "column 1 holds the node ids of a file without header")
	case c.width > 2 && w.Name == "":
		return graph.BadData(c.src.Name, "which column is meant? Say so behind a #, for example labels=%s#%d; columns have numbers from 1 to %d", filepath.Base(c.src.Name), c.width, c.width)
	default:
		c.ID = 0
	}
	return nil
}

// Note says which columns were chosen, where their names decided.
func (c *Text) Note(what string) graph.Note {
	if c.ID < 0 || c.titles == nil {
		return graph.Note{}
	}
	var others []string
	for i, title := range c.titles {
		if i != c.ID && i != c.value {
			others = append(others, title)
		}
	}
	n := graph.NoteOf(c.src.Name, "node ids are in column %q, %s in column %q", c.titles[c.ID], what, c.titles[c.value])
	if len(others) > 0 {
		n.Text += "; " + graph.Count(others, "column") + " not read"
		if what == "labels" {
			n.Text += fmt.Sprintf(" (to take another one, write labels=%s#COLUMN)", filepath.Base(c.src.Name))
		}
	}
	return n
}

func (c *Text) Where() string { return c.src.Name }

func (c *Text) Open(ctx context.Context) (Reader, error) {
	l, err := source.OpenLines(ctx, c.src)
	if err != nil {
		return nil, err
	}
	r := &textColumnReader{c: c, records: c.records(l)}
	if err := l.Pass(c.stated); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if c.header {
		if _, err := r.records.Record(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return r, nil
}

type textColumnReader struct {
	c       *Text
	records *source.Records
	row     int64
}

func (r *textColumnReader) Close() error { return r.records.Close() }

func (r *textColumnReader) Position() string { return r.records.Where() }

func (r *textColumnReader) NextValue() (uint32, string, error) {
	record, err := r.records.Record()
	if err != nil {
		return 0, "", err
	}
	if len(record) != r.c.width {
		return 0, "", graph.BadData(r.Position(), "has %d columns, and the first line %d: correct the line, quote values that hold the separator", len(record), r.c.width)
	}
	field := bytes.TrimSpace(record[r.c.value])
	if r.c.form.Missing(field) {
		field = nil
	}
	value := string(field)
	if r.c.ID < 0 {
		r.row++
		if r.row > r.c.limit.N {
			return 0, "", graph.BadData(r.Position(), "is one more than there are nodes, %d (%s): remove it, or correct the number of nodes", r.c.limit.N, r.c.limit.Stated)
		}
		return uint32(r.row - 1), value, nil
	}
	id, problem := r.c.limit.Parse(bytes.TrimSpace(record[r.c.ID]))
	if problem != "" {
		return 0, "", graph.BadData(r.Position(), "%s", problem)
	}
	return id, value, nil
}

// Labels numbers the values of a column.
type Labels struct {
	column  Column
	Classes []string
	Index   map[string]int32
	Rows    int64
	missing map[string]int64 // number of nodes with a class whose name stands for a missing value
}

// OpenLabels reads a column once to learn its classes: integers are sorted by
// value, other names by their bytes.
func OpenLabels(ctx context.Context, c Column) (*Labels, error) {
	l := &Labels{column: c, Index: map[string]int32{}, missing: map[string]int64{}}
	fraction, fractionAt, numbers := "", "", true
	r, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		_, value, err := r.NextValue()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		l.Rows++
		if value == "" {
			continue // most nodes of a large graph have no label
		}
		if len(l.missing) > 0 {
			if _, known := l.missing[value]; known {
				l.missing[value]++
			}
		}
		if _, known := l.Index[value]; known || noLabel(value) {
			continue
		}
		if graph.IsMissing(value) {
			l.missing[strings.Clone(value)] = 1
		} else if v, number := graph.Number([]byte(value), 64); !number {
			numbers = false
		} else if v != math.Trunc(v) && fraction == "" {
			fraction, fractionAt = strings.Clone(value), r.Position()
		}
		if len(l.Index) == MaxClasses && fraction != "" && numbers {
			return nil, realNumbers(fractionAt, fraction)
		}
		if len(l.Index) == MaxClasses {
			return nil, graph.BadData(r.Position(), "more than %d different labels: is this the label column?", MaxClasses)
		}
		l.Index[strings.Clone(value)] = 0
	}
	if fraction != "" && numbers {
		return nil, realNumbers(fractionAt, fraction)
	}
	for name := range l.Index {
		l.Classes = append(l.Classes, name)
	}
	sortClasses(l.Classes)
	for i, name := range l.Classes {
		l.Index[name] = int32(i)
	}
	if len(l.Classes) == 0 {
		return nil, graph.BadData(c.Where(), "there is no label in any row: fill the column, or leave it out of the URI")
	}
	return l, nil
}

// realNumbers is the error for labels that are real numbers.
func realNumbers(where, label string) error {
	return graph.BadData(where, "the label is %s: labels are classes, and the column holds real numbers, each of which would be a class of its own; write a class for each range of them, as a name or a whole number, or leave the labels out", label)
}

// Notes warns of classes whose names stand for a missing value.
func (l *Labels) Notes() (notes []graph.Note) {
	for _, word := range slices.Sorted(maps.Keys(l.missing)) {
		notes = append(notes, graph.WarningOf(l.column.Where(), "%d labels are %q, which is a class of its own: if it stands for a missing value, write missing=%s in the URI", l.missing[word], word, graph.EscapePath(word)))
	}
	return notes
}

// noLabel reports whether a value stands for none: pandas writes NaN, and -1.0 in a
// Column that holds NaN.
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

func (l *Labels) Open(ctx context.Context) (graph.LabelReader, error) {
	r, err := l.column.Open(ctx)
	return &labelReader{r, l.Index}, err
}

type labelReader struct {
	Reader
	index map[string]int32
}

// NodeName is the input id of the node that was read last, "" where that is its number.
func (r *labelReader) NodeName() string { return nodeName(r.Reader) }

// NodeName returns the name by labelReader.
func (r splitReader) NodeName() string { return nodeName(r.Reader) }

func nodeName(r Reader) string {
	if n, ok := r.(interface{ NodeName() string }); ok {
		return n.NodeName()
	}
	return ""
}

func (r *labelReader) Next() (uint32, int32, error) {
	for {
		id, value, err := r.NextValue()
		if err != nil {
			return 0, 0, err
		}
		if value == "" {
			continue
		}
		if label, ok := r.index[value]; ok {
			return id, label, nil
		}
	}
}

// SplitColumn is a split in a column of names or numbers.
type SplitColumn struct{ Column }

// Open streams the split.
func (c SplitColumn) Open(ctx context.Context) (graph.SplitReader, error) {
	r, err := c.Column.Open(ctx)
	return splitReader{r}, err
}

// splitOf maps the values of a split column.
var splitOf = map[string]graph.Split{
	"": graph.NoSplit, "none": graph.NoSplit, "0": graph.NoSplit, "-1": graph.NoSplit,
	"train": graph.Train, "1": graph.Train,
	"valid": graph.Valid, "val": graph.Valid, "validation": graph.Valid, "2": graph.Valid,
	"test": graph.Test, "3": graph.Test,
}

type splitReader struct{ Reader }

func (r splitReader) Next() (uint32, graph.Split, error) {
	for {
		id, value, err := r.NextValue()
		if err != nil {
			return 0, graph.NoSplit, err
		}
		split, ok := splitOf[value]
		if !ok {
			return 0, graph.NoSplit, graph.BadData(r.Position(), "split %q is unknown: write train, valid, test or nothing", value)
		}
		if split != graph.NoSplit {
			return id, split, nil
		}
	}
}
