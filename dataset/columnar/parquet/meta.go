package parquet

import (
	"strconv"

	"ndls/dataset/columnar"
)

// The physical types of values.
const (
	boolean = iota
	int32s
	int64s
	int96s
	floats
	doubles
	byteArrays
	fixedArrays
	numPhysical
)

// How often a field occurs.
const (
	required = iota
	optional
	repeated
)

// The annotations of a field: logical types by their numbers, and the converted types of before
// there were logical ones.
const (
	logicalNone                                                                         = 0
	logicalString, logicalMap, logicalList, logicalEnum, logicalDecimal                 = 1, 2, 3, 4, 5
	logicalDate, logicalTime, logicalTimestamp, logicalInterval, logicalInteger         = 6, 7, 8, 9, 10
	logicalNull, logicalJSON, logicalBSON, logicalUUID, logicalHalf                     = 11, 12, 13, 14, 15
	logicalVariant, logicalGeometry, logicalGeography                                   = 16, 17, 18
	convertedUTF8, convertedMap, convertedMapKeyValue, convertedList, convertedEnum     = 0, 1, 2, 3, 4
	convertedDecimal, convertedDate, convertedTimeMillis, convertedTimeMicros           = 5, 6, 7, 8
	convertedTimestampMillis, convertedTimestampMicros, convertedUint8, convertedUint64 = 9, 10, 11, 14
	convertedInt8, convertedInt64, convertedJSON, convertedBSON, convertedInterval      = 15, 18, 19, 20, 21
)

// element is a field of the schema, as the footer has it.
type element struct {
	name            string
	physical        int // -1 of a group
	length          int // of fixedArrays
	repetition      int
	children        int
	converted       int // -1 for none
	scale           int
	precision       int
	logical         int // a number of a logical type that is not known is kept
	unit            int // of times: 1, 2 and 3 are milli-, micro- and nanoseconds
	utc             bool
	bits            int
	isSigned, named bool
}

// chunk is a column of a row group.
type chunk struct {
	physical         int
	codec            int
	values           int64
	size             int64 // stored
	unpacked         int64
	data, dictionary int64 // where pages begin
	encrypted, away  bool  // away is in another file
	known            bool
}

// group is a row group.
type group struct {
	chunks []chunk
	rows   int64
	first  int64 // row of the file
}

// meta is the content of the footer of a file.
type meta struct {
	elements []element
	groups   []group
}

// readMeta reads a footer; ok is false where it is damaged.
func readMeta(b []byte) (m meta, ok bool) {
	c := &compact{b: b}
	c.fields(thriftStruct, func(id int16, t byte) bool {
		switch id {
		case 2:
			c.list(t, func(t byte) {
				e := readElement(c, t)
				if !e.named {
					c.bad = true
				}
				m.elements = append(m.elements, e)
			})
		case 4:
			c.list(t, func(t byte) { m.groups = append(m.groups, readGroup(c, t)) })
		default:
			return false
		}
		return true
	})
	return m, !c.bad
}

func readElement(c *compact, t byte) element {
	e := element{physical: -1, converted: -1}
	c.fields(t, func(id int16, t byte) bool {
		switch id {
		case 1:
			e.physical = c.number(t)
		case 2:
			e.length = c.number(t)
		case 3:
			e.repetition = c.number(t)
		case 4:
			e.name, e.named = string(c.bytes(t)), true
		case 5:
			e.children = c.number(t)
		case 6:
			e.converted = c.number(t)
		case 7:
			e.scale = c.number(t)
		case 8:
			e.precision = c.number(t)
		case 10:
			readLogical(c, t, &e)
		default:
			return false
		}
		return true
	})
	return e
}

// readLogical reads the union of logical types.
func readLogical(c *compact, t byte, e *element) {
	c.fields(t, func(id int16, t byte) bool {
		e.logical = int(id)
		c.fields(t, func(id int16, t byte) bool {
			switch {
			case e.logical == logicalDecimal && id == 1:
				e.scale = c.number(t)
			case e.logical == logicalDecimal && id == 2:
				e.precision = c.number(t)
			case (e.logical == logicalTime || e.logical == logicalTimestamp) && id == 1:
				e.utc = t == thriftTrue
				return false
			case (e.logical == logicalTime || e.logical == logicalTimestamp) && id == 2:
				c.fields(t, func(id int16, t byte) bool {
					e.unit = int(id)
					return false
				})
			case e.logical == logicalInteger && id == 1:
				e.bits = c.number(t)
			case e.logical == logicalInteger && id == 2:
				e.isSigned = t == thriftTrue
				return false
			default:
				return false
			}
			return true
		})
		return true
	})
}

func readGroup(c *compact, t byte) (g group) {
	c.fields(t, func(id int16, t byte) bool {
		switch id {
		case 1:
			c.list(t, func(t byte) { g.chunks = append(g.chunks, readChunk(c, t)) })
		case 3:
			g.rows = c.integer(t)
		default:
			return false
		}
		return true
	})
	return g
}

func readChunk(c *compact, t byte) (k chunk) {
	c.fields(t, func(id int16, t byte) bool {
		switch id {
		case 1:
			k.away = len(c.bytes(t)) > 0
		case 3:
			k.known = true
			c.fields(t, func(id int16, t byte) bool {
				switch id {
				case 1:
					k.physical = c.number(t)
				case 4:
					k.codec = c.number(t)
				case 5:
					k.values = c.integer(t)
				case 6:
					k.unpacked = c.integer(t)
				case 7:
					k.size = c.integer(t)
				case 9:
					k.data = c.integer(t)
				case 11:
					k.dictionary = c.integer(t)
				default:
					return false
				}
				return true
			})
		case 8:
			k.encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	return k
}

// Names of units by their numbers.
var (
	shortUnits = [...]string{1: "ms", 2: "us", 3: "ns"}
	longUnits  = [...]string{1: "milliseconds", 2: "microseconds", 3: "nanoseconds"}
)

// moment is a time or timestamp in some unit.
func moment(of string, unit int, utc bool) columnar.Type {
	if unit < 1 || unit > 3 {
		return columnar.Type{Name: of}
	}
	t := columnar.Type{Kind: columnar.Time, Name: of + "[" + shortUnits[unit] + "]", Unit: longUnits[unit] + " since midnight"}
	if of == "timestamp" {
		t.Unit = longUnits[unit] + " since 1970"
		if utc {
			t.Name = of + "[" + shortUnits[unit] + ", UTC]"
		}
	}
	return t
}

// integer is the type of whole numbers.
func integer(bits int, isSigned bool) columnar.Type {
	t := columnar.Type{Kind: columnar.Int, Name: "int" + strconv.Itoa(bits)}
	if !isSigned {
		t.Name = "u" + t.Name
		if bits == 64 {
			t.Kind = columnar.Uint
		}
	}
	return t
}

// primitive is the type of the values of a leaf.
func (e *element) primitive() columnar.Type {
	annotation := e.annotation()
	if stored := e.stored(); !e.fits(annotation) {
		return columnar.Type{Name: annotations[annotation] + " stored as " + stored.Name}
	}
	if t, ok := annotated[annotation]; ok {
		return t
	}
	switch annotation {
	case logicalDecimal:
		t := columnar.Type{Kind: columnar.Decimal, Name: "decimal(" + strconv.Itoa(e.precision) + ", " + strconv.Itoa(e.scale) + ")"}
		if e.scale < -columnar.MaxScale || e.scale > columnar.MaxScale {
			t.Kind = columnar.Other
		}
		return t
	case logicalTime:
		return moment("time", e.unit, false)
	case logicalTimestamp:
		return moment("timestamp", e.unit, e.utc)
	case logicalInteger:
		return integer(e.bits, e.isSigned)
	case logicalNone:
	default:
		return columnar.Type{Name: "logical type " + strconv.Itoa(e.logical)}
	}
	return e.stored()
}

// annotated are the types of values whose logical type says all.
var annotated = map[int]columnar.Type{
	logicalString: {Kind: columnar.Text, Name: "string"}, logicalEnum: {Kind: columnar.Text, Name: "string"},
	logicalJSON: {Kind: columnar.Text, Name: "json"}, logicalUUID: {Kind: columnar.Text, Name: "uuid"},
	logicalDate: {Kind: columnar.Time, Name: "date", Unit: "days since 1970"},
	logicalNull: {Kind: columnar.Null, Name: "null"}, logicalHalf: {Kind: columnar.Float, Name: "float16"},
	logicalInterval: {Name: "interval"}, logicalBSON: {Name: "bson"},
	logicalGeometry: {Name: "geometry"}, logicalGeography: {Name: "geography"},
}

// annotations are names of logical types that say how values are stored.
var annotations = map[int]string{
	logicalString: "string", logicalEnum: "enum", logicalDecimal: "decimal", logicalDate: "date", logicalTime: "time",
	logicalTimestamp: "timestamp",
	logicalInteger:   "integer", logicalJSON: "json", logicalUUID: "uuid", logicalHalf: "float16",
}

// fits reports whether values of a logical type may be stored as these are. A file where they may
// not comes from a broken writer.
func (e *element) fits(annotation int) bool {
	switch annotation {
	case logicalString, logicalEnum, logicalJSON:
		return e.physical == byteArrays || e.physical == fixedArrays
	case logicalDecimal:
		return e.physical == int32s || e.physical == int64s || e.physical == byteArrays || e.physical == fixedArrays
	case logicalDate:
		return e.physical == int32s
	case logicalTime:
		return e.physical == int32s && e.unit == 1 || e.physical == int64s && e.unit > 1
	case logicalTimestamp:
		return e.physical == int64s
	case logicalInteger:
		switch e.bits {
		case 8, 16, 32:
			return e.physical == int32s
		case 64:
			return e.physical == int64s
		}
		return false
	case logicalUUID:
		return e.physical == fixedArrays && e.length == 16
	case logicalHalf:
		return e.physical == fixedArrays && e.length == 2
	}
	return true
}

// stored is the type of values without a logical one.
func (e *element) stored() columnar.Type {
	switch e.physical {
	case boolean:
		return columnar.Type{Kind: columnar.Bool, Name: "bool"}
	case int32s:
		return integer(32, true)
	case int64s:
		return integer(64, true)
	case int96s:
		return moment("timestamp", 3, false)
	case floats:
		return columnar.Type{Kind: columnar.Float, Name: "float"}
	case doubles:
		return columnar.Type{Kind: columnar.Float, Name: "double"}
	case byteArrays:
		return columnar.Type{Kind: columnar.Text, Name: "binary"}
	}
	return columnar.Type{Name: "fixed_size_binary(" + strconv.Itoa(e.length) + ")"}
}

// annotation is the logical type, or the one that a converted type stands for; units and widths
// of converted types are filled in.
func (e *element) annotation() int {
	if e.logical != logicalNone {
		return e.logical
	}
	switch c := e.converted; {
	case c == convertedUTF8:
		return logicalString
	case c == convertedMap || c == convertedMapKeyValue:
		return logicalMap
	case c == convertedList:
		return logicalList
	case c == convertedEnum:
		return logicalEnum
	case c == convertedDecimal:
		return logicalDecimal
	case c == convertedDate:
		return logicalDate
	case c == convertedTimeMillis || c == convertedTimeMicros:
		e.unit = c - convertedTimeMillis + 1
		return logicalTime
	case c == convertedTimestampMillis || c == convertedTimestampMicros:
		e.unit, e.utc = c-convertedTimestampMillis+1, true
		return logicalTimestamp
	case c >= convertedUint8 && c <= convertedUint64:
		e.bits, e.isSigned = 8<<(c-convertedUint8), false
		return logicalInteger
	case c >= convertedInt8 && c <= convertedInt64:
		e.bits, e.isSigned = 8<<(c-convertedInt8), true
		return logicalInteger
	case c == convertedJSON:
		return logicalJSON
	case c == convertedBSON:
		return logicalBSON
	case c == convertedInterval:
		return logicalInterval
	}
	return logicalNone
}
