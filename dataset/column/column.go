package column

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
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
		next := picked(texts.Next, c.Width, c.Pick)
		return &vectorReader{name: c.Values.Name, Closer: texts, number: func() (string, error) {
			text, err := next()
			return strings.TrimSpace(text), err
		}}, nil
	}
	if c.Values.Type.IsInteger() {
		ints, err := c.Values.Integers(ctx, 0)
		if err != nil {
			return nil, err
		}
		next := picked(ints.Next, c.Width, c.Pick)
		return &vectorReader{name: c.Values.Name, Closer: ints, number: func() (string, error) {
			v, err := next()
			if v < 0 && c.Values.Type == npy.Uint64 {
				return "", errLarge
			}
			return strconv.FormatInt(v, 10), err
		}}, nil
	}
	floats, err := c.Values.Numbers(ctx, 0)
	if err != nil {
		return nil, err
	}
	next := picked(floats.Next, c.Width, c.Pick)
	return &vectorReader{name: c.Values.Name, Closer: floats, number: func() (string, error) {
		v, err := next()
		if v != v || err != nil {
			return "", err
		}
		if v != float32(math.Trunc(float64(v))) || math.Abs(float64(v)) > 1<<24 {
			return "", errFraction
		}
		return strconv.FormatInt(int64(v), 10), nil
	}}, nil
}

// picked returns a function that reads the numbers of a node, of which there are width, and returns number which of them.
func picked[T any](next func() (T, error), width, which int64) func() (T, error) {
	if width <= 1 {
		return next
	}
	return func() (value T, err error) {
		for i := range width {
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
}

var (
	errFraction = errors.New("is no whole number: save integers, for labels with -1 for none")
	errLarge    = errors.New("is 2^63 or more: save signed integers, for labels with -1 for none")
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

// IDNames are headers of a column of node ids.
var IDNames = []string{"id", "node", "node_id", "nodeid", "node id", "node_idx"}

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
		if _, known := l.Index[value]; known || NoLabel(value) {
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
	SortClasses(l.Classes)
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

// NoLabel reports whether a value stands for none: pandas writes NaN, and -1.0 in a
// column that holds NaN.
func NoLabel(value string) bool {
	return value == "" || value == "-1" || value == "-1.0" || strings.EqualFold(value, "nan")
}

// SortClasses puts whole numbers in order of value, other names in that of their bytes.
func SortClasses(names []string) {
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

// Count numbers the classes from 0 to the largest label, and to least-1 at least, whether or not each one occurs.
func (l *Labels) Count(least int) error {
	last := least - 1
	for _, name := range l.Classes {
		label, err := strconv.Atoi(name)
		if err != nil || label < 0 || label >= MaxClasses {
			return graph.BadData(l.column.Where(), "label %s: labels are whole numbers from 0 to %d, NaN or -1 is none; write them so", graph.Shorten([]byte(name)), MaxClasses-1)
		}
		l.Index[name], last = int32(label), max(last, label)
	}
	l.Classes = make([]string, last+1)
	for i := range l.Classes {
		l.Classes[i] = strconv.Itoa(i)
	}
	return nil
}

// Open streams the labelled nodes.
func (l *Labels) Open(ctx context.Context) (graph.LabelReader, error) {
	r, err := l.column.Open(ctx)
	return &labelReader{r, l.Index}, err
}

type labelReader struct {
	Reader
	index map[string]int32
}

// NodeName is the input id of the node that was read last, "" where that is its number.
func (r *labelReader) NodeName() string { return graph.NodeName(r.Reader) }

// NodeName returns the name by labelReader.
func (r splitReader) NodeName() string { return graph.NodeName(r.Reader) }

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
