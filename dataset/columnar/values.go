package columnar

import "fmt"

// Kind is the kind of the values of a column.
type Kind uint8

// The kinds of columns.
const (
	Other   Kind = iota // nothing that is read: Type.Name says what
	Null                // nothing but nulls
	Bool                // 0 and 1
	Int                 // whole numbers that fit int64
	Uint                // whole numbers of 64 bits without sign
	Decimal             // numbers with a fixed number of digits behind the point
	Float               // float16, float32, float64
	Text                // UTF-8, or bytes that say not what they are; UUIDs
	Time                // points in time and spans of it
	List                // lists of numbers
	Vector              // vectors of Spark ML, dense and sparse
)

// Type is the type of a column.
type Type struct {
	Kind Kind
	// Name is the type as users of tables call it: "decimal(10, 2)", "timestamp[us]".
	Name string
	// Unit says of a Time what its whole numbers count: "microseconds since 1970".
	Unit string
	// Width is the length of all lists, 0 where the type does not state it.
	Width int
}

// IsNumber reports whether the values are numbers.
func (t Type) IsNumber() bool {
	switch t.Kind {
	case Bool, Int, Uint, Decimal, Float:
		return true
	}
	return false
}

// ListOf is the type of lists of values of a type.
func ListOf(t Type, width int) Type {
	l := Type{Kind: Other, Name: "list<" + t.Name + ">", Width: width}
	if t.IsNumber() {
		l.Kind = List
	}
	return l
}

// Column is a column of a file. One inside of a struct is Nested, and its name is the path to
// it, with points.
type Column struct {
	Name   string
	Type   Type
	Nested bool
}

// Values are some rows of a column. Slices are valid until more rows are read.
type Values struct {
	Ints   []int64   // of Bool, Int and Time; the bits of Uint
	Floats []float64 // of Float
	Text   [][]byte  // of Text; of Decimal the number, without zeros behind the last digit
	Null   []bool    // nil if no row is null
	// The numbers of all lists. Those of row i end at Ends[i].
	List []float32
	Ends []int
	// Hole says which numbers of List are null; it is nil if none is.
	Hole []bool
	// At has the place of each number of List in its Vector, Size the length of each Vector.
	At   []uint32
	Size []int
	// arena holds text that is not in a buffer of the reader.
	arena []byte
}

// MaxText bounds the text of some rows of a column.
const MaxText = 64 << 20

// Reset empties v, and keeps its memory.
func (v *Values) Reset() {
	*v = Values{
		Ints: v.Ints[:0], Floats: v.Floats[:0], Text: v.Text[:0], List: v.List[:0], Ends: v.Ends[:0], At: v.At[:0], Size: v.Size[:0],
		arena: v.arena[:0],
	}
}

// SetNull marks a row as null; rows is the number of all rows.
func (v *Values) SetNull(row, rows int) {
	for len(v.Null) < rows {
		v.Null = append(v.Null, make([]bool, rows-len(v.Null))...)
	}
	v.Null[row] = true
}

// IsNull reports whether a row is null.
func (v *Values) IsNull(row int) bool { return row < len(v.Null) && v.Null[row] }

// AddNumber appends a number to List.
func (v *Values) AddNumber(x float32, hole bool) {
	if hole && v.Hole == nil {
		v.Hole = make([]bool, len(v.List), len(v.List)+1)
	}
	if v.Hole != nil {
		v.Hole = append(v.Hole, hole)
	}
	v.List = append(v.List, x)
}

// ErrText reports rows that have more text than is held at a time.
var ErrText = fmt.Errorf("has more than %d MiB of text in a few rows", MaxText>>20)

// AddText appends a copy of bytes to Text.
func (v *Values) AddText(b []byte) error {
	if len(v.arena)+len(b) > MaxText {
		return ErrText
	}
	start := len(v.arena)
	v.arena = append(v.arena, b...)
	v.Text = append(v.Text, v.arena[start:len(v.arena):len(v.arena)])
	return nil
}

// Number is the number of a row that is of a kind of numbers: rounded, and as it is where it is
// whole.
func (v *Values) Number(k Kind, row int) (rounded float32, whole int64) {
	switch k {
	case Float:
		return float32(v.Floats[row]), 0
	case Decimal:
		if v.IsNull(row) {
			return 0, 0
		}
		return float32(ParseDecimal(v.Text[row])), 0
	case Uint:
		return float32(uint64(v.Ints[row])), v.Ints[row]
	}
	return float32(v.Ints[row]), v.Ints[row]
}
