package npy

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Type is a little-endian element type.
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

// ParseType accepts the NumPy spelling of one of the types above. Others are
// refused with what to do instead.
func ParseType(descr string) (Type, error) {
	if descr == "|O" || descr == "O" || descr == "|O8" {
		return "", fmt.Errorf("dtype %s holds Python objects: save it as a number type, for example a.astype('<i8')", descr)
	}
	if len(descr) == 3 {
		order, kind := descr[0], descr[1:]
		t := Type(descr)
		if kind == "i1" || kind == "u1" || kind == "b1" {
			t = Type("|" + kind) // A single byte has no order.
		}
		switch t {
		case Bool, Int8, Uint8, Int16, Uint16, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64:
			return t, nil
		}
		if order == '>' {
			if _, err := ParseType("<" + kind); err == nil {
				return "", fmt.Errorf("dtype %s is big-endian: save a.astype('<%s') instead", descr, kind)
			}
		}
	}
	return "", fmt.Errorf("dtype %q is no number type that can be read: use integers, float16, float32 or float64", descr)
}

// Size is the number of bytes of an element.
func (t Type) Size() int64 { return int64(t[2] - '0') }

// IsInteger says whether elements are whole numbers.
func (t Type) IsInteger() bool { return t[1] != 'f' }

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
		for i := range dst {
			dst[i] = int64(le.Uint64(src[8*i:]))
		}
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
		for i := range dst {
			dst[i] = half(le.Uint16(src[2*i:]))
		}
	case BFloat16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16)
		}
	case Float32:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
		}
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
		size := int(t.Size())
		for len(dst) > 0 {
			n := min(len(dst), len(ints))
			t.Ints(ints[:n], src)
			for i, v := range ints[:n] {
				dst[i] = float32(v)
			}
			dst, src = dst[n:], src[n*size:]
		}
	}
}

// half converts an IEEE 754 binary16 number; every one is a float32.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0:
		magnitude := float32(fraction) * 0x1p-24
		return math.Float32frombits(math.Float32bits(magnitude) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
