package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/inputid"
	"ndls/internal/meant"
)

// kind is the kind of a column of a file.
type kind uint8

const (
	otherKind   kind = iota
	intKind          // whole numbers that fit int64
	uintKind         // whole numbers of 64 bits without sign
	floatKind        // float16, float32, float64
	textKind         // text, by its type
	fieldKind        // fields of CSV: text that may stand for anything
	numberKind       // numbers of JSON, as text
	listKind         // lists of numbers
	nullKind         // nothing but nulls, as far as was seen
	boolKind         // 0 and 1, by their type
	decimalKind      // decimals, as text
	timeKind         // points in time and spans of it
	vectorKind       // vectors of Spark ML
	mixedKind        // values of several kinds
)

var kindNames = [...]string{
	otherKind: "values of another kind", intKind: "int64", uintKind: "uint64", floatKind: "float", textKind: "string",
	fieldKind: "text fields", numberKind: "numbers", listKind: "lists of numbers", nullKind: "nulls",
	boolKind: "bool", decimalKind: "decimal", timeKind: "times", vectorKind: "vectors", mixedKind: "values of several types",
}

func (k kind) String() string { return kindNames[k] }

// vector is a column of some rows.
type vector struct {
	kind   kind
	ints   []int64 // of intKind, boolKind and timeKind, and the bits of uintKind
	floats []float64
	text   [][]byte // of textKind, fieldKind, numberKind and decimalKind
	null   []bool   // nil if no value is null
	list   []float32
	width  int              // of lists, which all have the same length
	values *columnar.Values // with the lists and vectors of Parquet and Arrow
	// numbers are the numbers of nodes in a column of text, which are checked then; nil if it was read as something else.
	numbers []uint32
}

func (v *vector) isNull(row int) bool { return v.null != nil && v.null[row] }

// batch is some consecutive rows of a file. Slices are valid until the next one is read.
type batch struct {
	file  *tableFile
	part  string  // of the file, in which rows are counted
	first int64   // row of it
	lines []int64 // of text files, for each row; among those that are read
	text  *source.Lines
	n     int
	cols  []vector
	// features are the numbers in the last columns of text, row by row; nil if they were read as something else.
	features []float32
}

// where names a row.
func (b *batch) where(row int) string {
	if b.lines != nil {
		return b.text.WhereOf(b.lines[row])
	}
	return graph.RowOf(b.file.name+b.part, b.first+int64(row))
}

// title is a column that a file has.
type title struct {
	name string
	kind kind
}

// keyType is the type of ids in a column of some kind; ok is false where the kind leaves it
// open.
func (k kind) keyType() (t inputid.Type, ok bool) {
	switch k {
	case intKind, floatKind:
		return inputid.Int64, true
	case uintKind:
		return inputid.Uint64, true
	case textKind:
		return inputid.String, true
	}
	return inputid.Number, false
}

// holdsIDs reports whether a column of this kind can hold ids.
func (k kind) holdsIDs() bool {
	_, typed := k.keyType()
	return typed || k == fieldKind || k.isNumberText()
}

// isNumberText reports whether a column holds numbers whose type is open, as text.
func (k kind) isNumberText() bool { return k == numberKind || k == decimalKind }

// appendKey appends the key of the id of a row.
func (v *vector) appendKey(key []byte, t inputid.Type, row int) (_ []byte, problem string) {
	if v.isNull(row) {
		return key, "is null: give each row an id, or remove the row"
	}
	switch v.kind {
	case intKind, uintKind:
		return t.AppendBits(key, v.ints[row]), ""
	case floatKind:
		x := v.floats[row]
		if problem := WholeFloat(x); problem != "" {
			return key, problem
		}
		return t.AppendBits(key, int64(x)), ""
	}
	text := v.text[row]
	switch {
	case len(text) == 0:
		return key, "is empty: give each row an id, or remove the row"
	case len(text) > inputid.MaxKey:
		return key, fmt.Sprintf("has %d bytes: ids have at most %d", len(text), inputid.MaxKey)
	case t == inputid.String:
		return append(key, text...), ""
	}
	key, ok := t.ParseKey(key, string(text))
	if !ok {
		return key, fmt.Sprintf("is %s, and the ids of the graph are %s: write it as a whole number without leading zeros, or write all ids as text", graph.Shorten(text), t)
	}
	return key, ""
}

// WholeFloat says what is wrong with a float that is no whole number, or one that may have been
// rounded.
func WholeFloat(x float64) (problem string) {
	switch {
	case x != math.Trunc(x) || math.IsInf(x, 0):
		return fmt.Sprintf("is %v, and is no whole number: write ids as whole numbers or as text", x)
	case math.Abs(x) > 1<<53:
		return fmt.Sprintf("is %v, and floats above 2^53 are not exact: write ids as whole numbers of 64 bits, or as text", x)
	}
	return ""
}

// value returns a label or split, "" for none.
func (v *vector) value(row int) string {
	if v.isNull(row) {
		return ""
	}
	switch v.kind {
	case intKind, boolKind:
		return strconv.FormatInt(v.ints[row], 10)
	case uintKind:
		return strconv.FormatUint(uint64(v.ints[row]), 10)
	case floatKind:
		f := v.floats[row]
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return strconv.FormatInt(int64(f), 10)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(v.text[row])
}

// holdsValues reports whether a column of this kind can hold labels or splits.
func (k kind) holdsValues() bool {
	return k != otherKind && k != listKind && k != vectorKind && k != timeKind && k != mixedKind
}

// holdsNumbers reports whether a column of this kind can hold features.
func (k kind) holdsNumbers() bool {
	return k != otherKind && k != textKind && k != timeKind && k != mixedKind
}

// holdsNamed reports whether a column of this kind can hold features where it is named: times are
// numbers for those who ask for them.
func (k kind) holdsNamed() bool { return k.holdsNumbers() || k == timeKind }

// noFeatures is the way out where a row has no features.
const noFeatures = "give every node its features, fill them with --fill mean, or write nulls=zero in the URI, which makes them zeros"

// nulls says what is made of values that are missing.
type nulls uint8

const (
	refused nulls = iota
	zeros         // they are zeros
	unknown       // they are NaN, which is also a value then
)

// allow makes missing values unknown where they are refused.
func (n *nulls) allow() {
	if *n == refused {
		*n = unknown
	}
}

// features fills to with the numbers of a row.
func (v *vector) features(to []float32, row int, missing nulls) (problem string) {
	if v.isNull(row) || missing == unknown && v.isMissing(row) {
		switch missing {
		case zeros:
			clear(to)
		case unknown:
			unknowns(to)
		default:
			if v.kind == fieldKind {
				return "is " + graph.Shorten(v.text[row]) + ", which missing= makes no value: " + noFeatures
			}
			return "is null: " + noFeatures
		}
		return ""
	}
	switch v.kind {
	case intKind, boolKind, timeKind:
		to[0] = float32(v.ints[row])
	case uintKind:
		to[0] = float32(uint64(v.ints[row]))
	case floatKind:
		to[0] = float32(v.floats[row])
	case listKind:
		if v.values != nil {
			if problem := v.ragged(to, row, missing); problem != "" {
				return problem
			}
			break
		}
		copy(to, v.list[row*v.width:(row+1)*v.width])
	default:
		to[0], problem = feature(v.text[row])
		return problem
	}
	for _, x := range to {
		if !graph.Finite(x) && !(missing == unknown && x != x) {
			return notFinite(x)
		}
	}
	return ""
}

// unknowns fills to with NaN.
func unknowns(to []float32) {
	for i := range to {
		to[i] = float32(math.NaN())
	}
}

// notFinite says what is wrong with such a feature.
func notFinite(x float32) string {
	return fmt.Sprintf("is %v, and features are finite float32 numbers: %s", x, graph.WayOut(x))
}

// feature reads a feature.
func feature(text []byte) (x float32, problem string) {
	if len(text) == 1 && text[0]-'0' <= 9 {
		return float32(text[0] - '0'), ""
	}
	if len(text) == 0 || graph.IsMissing(string(text)) {
		return 0, "is " + graph.Shorten(text) + ": " + graph.WayOut(float32(math.NaN()))
	}
	v, ok := graph.Number(text, 32)
	if !ok || !graph.Finite(float32(v)) {
		return 0, fmt.Sprintf("is %s: features are finite float32 numbers, replace it before the import", graph.Shorten(text))
	}
	return float32(v), ""
}

// isMissing reports whether the text of a value stands for none.
func (v *vector) isMissing(row int) bool {
	return (v.kind == fieldKind || v.kind.isNumberText()) && (len(v.text[row]) == 0 || graph.IsMissing(string(v.text[row])))
}

// weight returns the weight of an edge; problem is "" or says what is wrong with it.
func (v *vector) weight(row int) (w float32, problem string) {
	if v.isNull(row) {
		return graph.ParseWeight("")
	}
	switch v.kind {
	case intKind, boolKind:
		return graph.Weight(float64(v.ints[row]))
	case uintKind:
		return graph.Weight(float64(uint64(v.ints[row])))
	case floatKind:
		return graph.Weight(v.floats[row])
	case listKind, vectorKind:
		return 0, "it holds lists: a weight is one number for each edge"
	}
	return graph.ParseWeight(string(v.text[row]))
}

// find looks for a column by its name: exactly, or else whatever the case of its letters;
// -1 if there is none.
func find(titles []title, name string) int {
	if i := slices.IndexFunc(titles, func(t title) bool { return t.name == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(titles, func(t title) bool { return strings.EqualFold(t.name, name) })
}

// hint names the column that a wrong name may mean, as the end of a message.
func hint(titles []title, name string) string {
	s := meant.NewSearch(name)
	for _, t := range titles {
		s.Add(t.name)
	}
	return s.Hint()
}

// list names columns for a message.
func list(titles []title) string {
	const most = 40
	var names []string
	for _, t := range titles[:min(len(titles), most)] {
		if names = append(names, t.name); t.name == "" {
			names[len(names)-1] = `""`
		}
	}
	text := strings.Join(names, ", ")
	if more := len(titles) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
