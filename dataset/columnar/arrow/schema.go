package arrow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ndls/dataset/columnar"
)

// The numbers of types, as the format gives them.
const (
	typeNull = 1 + iota
	typeInt
	typeFloat
	typeBinary
	typeUTF8
	typeBool
	typeDecimal
	typeDate
	typeTime
	typeTimestamp
	typeInterval
	typeList
	typeStruct
	typeUnion
	typeFixedBinary
	typeFixedList
	typeMap
	typeDuration
	typeLargeBinary
	typeLargeUTF8
	typeLargeList
	typeRunEnds
	typeBinaryView
	typeUTF8View
	typeListView
	typeLargeListView
)

// maxDepth is how deep columns may be nested.
const maxDepth = 64

// node is a field of the schema. A field with a dictionary has two sides: how its indices are
// stored, and the values of the dictionary, which the other fields of node describe.
type node struct {
	name      string
	id        int // a number of a type
	bits      int // of numbers, of dates and of offsets
	signed    bool
	scale     int
	precision int
	size      int // of fixed lists and binaries
	unit      int
	zone      string
	mode      int // of unions
	children  []*node
	extension string

	hasDictionary bool
	dictionary    int64
	indexBits     int
	indexSigned   bool
}

var (
	errSchema = errors.New("its schema is damaged")
	errEndian = errors.New("is big-endian, which is not read: write it on a machine of today")
)

// readSchema reads the fields of a schema.
func readSchema(t table) (fields []*node, err error) {
	if t.i16(0, 0) != 0 {
		return nil, errEndian
	}
	left := len(t.of.b) / 4 // more fields do not fit
	at, n := t.vector(1, 4)
	for i := range n {
		fields = append(fields, readField(t.of.table(t.of.offset(at+4*i)), 0, &left))
		if t.of.bad {
			return nil, errSchema
		}
	}
	return fields, nil
}

func readField(t table, depth int, left *int) *node {
	n := &node{name: t.text(0), id: t.i8(2)}
	if *left--; *left < 0 || depth > maxDepth || t.of.bad {
		t.of.bad = true
		return n
	}
	typ, _ := t.inner(3)
	switch n.id {
	case typeInt:
		n.bits, n.signed = typ.i32(0, 0), typ.i8(1) != 0
	case typeFloat:
		n.bits = 16 << typ.i16(0, 0)
	case typeDecimal:
		n.precision, n.scale, n.bits = typ.i32(0, 0), typ.i32(1, 0), typ.i32(2, 128)
	case typeDate:
		n.unit = typ.i16(0, 1)
		n.bits = 32 << n.unit
	case typeTime:
		n.unit, n.bits = typ.i16(0, 1), typ.i32(1, 32)
	case typeTimestamp:
		n.unit, n.zone, n.bits = typ.i16(0, 0), typ.text(1), 64
	case typeDuration:
		n.unit, n.bits = typ.i16(0, 1), 64
	case typeInterval:
		n.unit = typ.i16(0, 0)
	case typeUnion:
		n.mode = typ.i16(0, 0)
	case typeFixedBinary, typeFixedList:
		if n.size = typ.i32(0, 0); n.size < 0 {
			t.of.bad = true
		}
	}
	switch n.id {
	case typeUTF8, typeBinary, typeList, typeMap:
		n.bits = 32
	case typeLargeUTF8, typeLargeBinary, typeLargeList:
		n.bits = 64
	}
	if d, ok := t.inner(4); ok {
		n.hasDictionary, n.dictionary, n.indexBits, n.indexSigned = true, d.i64(0), 32, true
		if index, ok := d.inner(1); ok {
			n.indexBits, n.indexSigned = index.i32(0, 0), index.i8(1) != 0
		}
		if k := n.indexBits; k != 8 && k != 16 && k != 32 && k != 64 {
			t.of.bad = true
		}
	}
	at, count := t.vector(5, 4)
	for i := 0; i < count && !t.of.bad; i++ {
		n.children = append(n.children, readField(t.of.table(t.of.offset(at+4*i)), depth+1, left))
	}
	at, count = t.vector(6, 4)
	for i := 0; i < count && !t.of.bad; i++ {
		if pair := t.of.table(t.of.offset(at + 4*i)); pair.text(0) == "ARROW:extension:name" {
			n.extension = pair.text(1)
		}
	}
	n.check(t.of)
	return n
}

// check refuses widths that a type does not have.
func (n *node) check(b *buffer) {
	one := func(bits ...int) {
		for _, k := range bits {
			if n.bits == k {
				return
			}
		}
		b.bad = true
	}
	switch n.id {
	case typeInt:
		one(8, 16, 32, 64, 128, 256) // Polars writes integers of 128 bits, which the format does not have
	case typeFloat:
		one(16, 32, 64)
	case typeDecimal:
		one(32, 64, 128, 256)
	case typeDate, typeTime:
		one(32, 64)
	case typeList, typeLargeList, typeFixedList, typeMap, typeListView, typeLargeListView:
		if len(n.children) != 1 {
			b.bad = true
		}
	}
}

var (
	shortUnits = [...]string{"s", "ms", "us", "ns"}
	longUnits  = [...]string{"seconds", "milliseconds", "microseconds", "nanoseconds"}
)

// timed is a type whose values count a unit of time.
func (n *node) timed(of, since string) columnar.Type {
	if n.unit >= len(shortUnits) {
		return columnar.Type{Name: of}
	}
	t := columnar.Type{Kind: columnar.Time, Name: of + "[" + shortUnits[n.unit] + "]", Unit: longUnits[n.unit] + since}
	if n.zone != "" {
		t.Name = of + "[" + shortUnits[n.unit] + ", " + n.zone + "]"
	}
	return t
}

// value is the type of the values, whether they are in a dictionary or not.
func (n *node) value() columnar.Type {
	text := func(name string) columnar.Type { return columnar.Type{Kind: columnar.Text, Name: name} }
	switch n.id {
	case typeNull:
		return columnar.Type{Kind: columnar.Null, Name: "null"}
	case typeBool:
		return columnar.Type{Kind: columnar.Bool, Name: "bool"}
	case typeInt:
		t := columnar.Type{Kind: columnar.Int, Name: "int" + strconv.Itoa(n.bits)}
		if !n.signed {
			t.Name = "u" + t.Name
		}
		switch {
		case n.bits > 64:
			t.Kind = columnar.Other
		case n.bits == 64 && !n.signed:
			t.Kind = columnar.Uint
		}
		return t
	case typeFloat:
		return columnar.Type{Kind: columnar.Float, Name: map[int]string{16: "float16", 32: "float", 64: "double"}[n.bits]}
	case typeDecimal:
		t := columnar.Type{Kind: columnar.Decimal, Name: fmt.Sprintf("decimal(%d, %d)", n.precision, n.scale)}
		if n.scale < -columnar.MaxScale || n.scale > columnar.MaxScale {
			t.Kind = columnar.Other
		}
		return t
	case typeUTF8, typeLargeUTF8, typeUTF8View:
		return text("string")
	case typeBinary, typeLargeBinary, typeBinaryView:
		return text("binary")
	case typeFixedBinary:
		if n.size == 16 && n.extension == "arrow.uuid" {
			return text("uuid")
		}
		return columnar.Type{Name: fmt.Sprintf("fixed_size_binary(%d)", n.size)}
	case typeDate:
		t := columnar.Type{Kind: columnar.Time, Name: "date", Unit: "days since 1970"}
		if n.unit == 1 {
			t.Unit = "milliseconds since 1970"
		}
		return t
	case typeTime:
		return n.timed("time", " since midnight")
	case typeTimestamp:
		return n.timed("timestamp", " since 1970")
	case typeDuration:
		return n.timed("duration", "")
	case typeList, typeLargeList:
		return columnar.ListOf(n.children[0].item(), 0)
	case typeFixedList:
		return columnar.ListOf(n.children[0].item(), n.size)
	case typeStruct:
		if n.isVector() {
			return columnar.Type{Kind: columnar.Vector, Name: "vector"}
		}
	}
	if n.id < len(otherNames) && otherNames[n.id] != "" {
		return columnar.Type{Name: otherNames[n.id]}
	}
	return columnar.Type{Name: "type " + strconv.Itoa(n.id)}
}

var otherNames = [...]string{
	typeInterval: "interval", typeStruct: "struct", typeUnion: "union", typeMap: "map", typeRunEnds: "run_end_encoded",
	typeListView: "list_view", typeLargeListView: "large_list_view",
}

// item is the type of the values in a list.
func (n *node) item() columnar.Type {
	t := n.value()
	if n.hasDictionary {
		t.Kind = columnar.Other
	}
	return t
}

// isVector reports whether a struct is a vector of Spark ML.
func (n *node) isVector() bool {
	if n.hasDictionary || len(n.children) != len(columnar.VectorParts) {
		return false
	}
	for i, name := range columnar.VectorParts {
		c := n.children[i]
		kind := columnar.List
		if i < columnar.VectorIndices {
			kind = columnar.Int
		}
		if c.name != name || c.item().Kind != kind {
			return false
		}
	}
	indices, values := n.children[columnar.VectorIndices].children[0].value(), n.children[columnar.VectorValues].children[0].value()
	return indices.Kind == columnar.Int && values.Kind == columnar.Float
}

// field is a column that users see.
type field struct {
	columnar.Column
	path []int // of children from the fields of the schema on
	node *node
}

// columns lists the columns: those of the schema first, then those inside of structs.
func columns(schema []*node) (all []field) {
	var inside []field
	var add func(n *node, names []string, path []int)
	add = func(n *node, names []string, path []int) {
		names = append(names[:len(names):len(names)], n.name)
		f := field{columnar.Column{Name: strings.Join(names, "."), Type: n.value(), Nested: len(names) > 1}, path, n}
		if n.hasDictionary && (f.Type.Kind == columnar.List || f.Type.Kind == columnar.Null || f.Type.Kind == columnar.Vector) {
			f.Type.Kind = columnar.Other
		}
		if f.Nested {
			inside = append(inside, f)
		} else {
			all = append(all, f)
		}
		if f.Type.Name == "struct" && !n.hasDictionary {
			for i, c := range n.children {
				add(c, names, append(path[:len(path):len(path)], i))
			}
		}
	}
	for i, n := range schema {
		add(n, nil, []int{i})
	}
	return append(all, inside...)
}
