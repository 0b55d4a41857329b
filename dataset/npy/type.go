package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ndls/internal/half"
	"ndls/internal/mem"
)

// Type is an element type, by the name of its little-endian form.
type Type string

// The types whose elements can be converted.
const (
	Bool    Type = "|b1"
	Int8    Type = "|i1"
	Uint8   Type = "|u1"
	Int16   Type = "<i2"
	Uint16  Type = "<u2"
	Int32   Type = "<i4"
	Uint32  Type = "<u4"
	Int64   Type = "<i8"
	Uint64  Type = "<u8"
	Float16 Type = "<f2"
	Float32 Type = "<f4"
	Float64 Type = "<f8"
	// BFloat16 is the upper half of a float32. NumPy has no such type, PyTorch has.
	BFloat16 Type = "<f2b"
)

// MaxText is the largest number of bytes of an element that is text.
const MaxText = 16 << 10

// ParseType accepts the NumPy spelling of one of the types above, in either order of
// bytes: swapped says that the most significant one comes first. Others are refused with
// what to do instead.
func ParseType(descr string) (t Type, swapped bool, err error) {
	if len(descr) == 3 && (descr[0] == '<' || descr[0] == '>' || descr[0] == '|') {
		switch t := Type("|" + descr[1:]); t { // A single byte has no order.
		case Bool, Int8, Uint8:
			return t, false, nil
		}
		switch t := Type("<" + descr[1:]); t {
		case Int16, Uint16, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64:
			if descr[0] != '|' {
				return t, descr[0] == '>', nil
			}
		}
	}
	return "", false, fmt.Errorf("dtype %s %s", descr, notNumbers(descr))
}

// notNumbers says what a type holds that is none of the types above, and what to save instead.
func notNumbers(descr string) string {
	kind := strings.TrimLeft(descr, "<>|=")
	switch {
	case strings.HasPrefix(descr, "[") || strings.HasPrefix(descr, "("):
		return "has fields: save each field as an array of its own, for example a['src']"
	case kind == "":
	case kind[0] == 'O':
		return "holds Python objects: save it as numbers, for example a.astype('<i8'), or labels as text, a.astype(str)"
	case kind[0] == 'U' || kind[0] == 'S' || kind[0] == 'a':
		return "holds text, where numbers are needed: save integers, for example numpy.unique(a, return_inverse=True)[1]"
	case kind[0] == 'c':
		return "holds complex numbers: save a.real, or numpy.abs(a)"
	case kind[0] == 'M' || kind[0] == 'm':
		return "holds times: save numbers, for example a.astype('<i8')"
	case kind[0] == 'f' && len(kind) == 3:
		return "holds numbers of extended precision (longdouble): save a.astype('<f8')"
	case kind[0] == 'V':
		return "holds raw bytes: save numbers, for example a.astype('<f4') of an array of bfloat16"
	}
	return "is no number type that can be read: save integers, float16, float32 or float64"
}

// ParseText accepts the NumPy spelling of text: bytes of a fixed length (S), or characters
// of 32 bits (U). ok is false for other types, and for text that is longer than [MaxText].
func ParseText(descr string) (t Type, swapped, ok bool) {
	if len(descr) < 3 || !strings.ContainsRune("<>|", rune(descr[0])) || descr[1] != 'U' && descr[1] != 'S' {
		return "", false, false
	}
	n, err := strconv.Atoi(descr[2:])
	if err != nil || n < 1 || n > MaxText/4 || descr[2] == '+' {
		return "", false, false
	}
	if descr[1] == 'S' {
		return Type("|" + descr[1:]), false, true
	}
	return Type("<" + descr[1:]), descr[0] == '>', true
}

// IsText reports whether elements are text.
func (t Type) IsText() bool { return t[1] == 'U' || t[1] == 'S' }

// Size is the number of bytes of an element.
func (t Type) Size() int64 {
	if !t.IsText() {
		return int64(t[2] - '0')
	}
	n, _ := strconv.ParseInt(string(t[2:]), 10, 64)
	if t[1] == 'U' {
		n *= 4
	}
	return n
}

// Swap reverses the order of bytes of the elements in b.
func (t Type) Swap(b []byte) {
	switch size := t.Size(); {
	case t[1] == 'S':
	case size == 2:
		for i := 0; i+2 <= len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
	case size == 8 && !t.IsText():
		for i := 0; i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], binary.BigEndian.Uint64(b[i:]))
		}
	case size%4 == 0:
		for i := 0; i+4 <= len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
		}
	}
}

// Text is the element in src, without the zeros that fill it up.
func (t Type) Text(src []byte) string {
	if t[1] == 'S' {
		return string(bytes.TrimRight(src, "\x00"))
	}
	var text []rune
	for ; len(src) >= 4; src = src[4:] {
		text = append(text, rune(binary.LittleEndian.Uint32(src)))
	}
	return strings.TrimRight(string(text), "\x00")
}

// IsInteger reports whether elements are whole numbers.
func (t Type) IsInteger() bool { return t[1] != 'f' && !t.IsText() }

// Exact is the largest whole number up to which all are elements of a type.
func (t Type) Exact() float64 {
	switch t {
	case Float16:
		return 1 << 11
	case BFloat16:
		return 1 << 8
	case Float32:
		return 1 << 24
	}
	return 1 << 53
}

// Ints converts the elements in src, which holds len(dst) of them. Values of
// Uint64 beyond the largest int64 become negative. t must be an integer type.
func (t Type) Ints(dst []int64, src []byte) {
	le := binary.LittleEndian
	switch t {
	case Int8:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case Uint8, Bool:
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case Int16:
		for i := range dst {
			dst[i] = int64(int16(le.Uint16(src[2*i:])))
		}
	case Uint16:
		for i := range dst {
			dst[i] = int64(le.Uint16(src[2*i:]))
		}
	case Int32:
		for i := range dst {
			dst[i] = int64(int32(le.Uint32(src[4*i:])))
		}
	case Uint32:
		for i := range dst {
			dst[i] = int64(le.Uint32(src[4*i:]))
		}
	case Int64, Uint64:
		copy(mem.AsBytes(dst), src)
	default:
		panic("npy: Ints of " + string(t))
	}
}

// Floats converts the elements in src, which holds len(dst) of them, rounding to
// the nearest float32.
func (t Type) Floats(dst []float32, src []byte) {
	le := binary.LittleEndian
	switch t {
	case Float16:
		half.Decode(dst, src)
	case BFloat16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16)
		}
	case Float32:
		copy(mem.AsBytes(dst), src)
	case Float64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(src[8*i:])))
		}
	case Uint64:
		for i := range dst {
			dst[i] = float32(le.Uint64(src[8*i:]))
		}
	default:
		var ints [256]int64
		convert(dst, src, ints[:], t, t.Ints)
	}
}

// Doubles converts the elements in src, which holds len(dst) of them. Whole numbers beyond
// 2^53 are rounded.
func (t Type) Doubles(dst []float64, src []byte) {
	le := binary.LittleEndian
	switch t {
	case Float64:
		copy(mem.AsBytes(dst), src)
	case Uint64:
		for i := range dst {
			dst[i] = float64(le.Uint64(src[8*i:]))
		}
	case Float16, BFloat16, Float32:
		var floats [256]float32
		convert(dst, src, floats[:], t, t.Floats)
	default:
		var ints [256]int64
		convert(dst, src, ints[:], t, t.Ints)
	}
}

// convert converts elements by way of another type, a buffer at a time.
func convert[T int64 | float32, D float32 | float64](dst []D, src []byte, buf []T, t Type, to func([]T, []byte)) {
	size := int(t.Size())
	for len(dst) > 0 {
		n := min(len(dst), len(buf))
		to(buf[:n], src)
		for i, v := range buf[:n] {
			dst[i] = D(v)
		}
		dst, src = dst[n:], src[n*size:]
	}
}
