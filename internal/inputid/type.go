package inputid

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Type is the type of the input ids of a graph.
type Type uint8

// The types of ids.
const (
	// Number says that the ids are the numbers 0 to n-1, or other numbers of 32 bits
	// that are used as they are. Outputs have them as int64.
	Number Type = iota
	Int64
	Uint64
	String
)

var names = []string{Number: "", Int64: "int64", Uint64: "uint64", String: "string"}

// Name is the name of the type in files, "" for Number.
func (t Type) Name() string { return names[t] }

// String is the name of the type for users.
func (t Type) String() string {
	if t == Number {
		return "int64"
	}
	return names[t]
}

// TypeOf is the type with a name.
func TypeOf(name string) (Type, error) {
	for t, n := range names {
		if n == name {
			return Type(t), nil
		}
	}
	return Number, fmt.Errorf("ids have no type %q", name)
}

// MaxKey is the length of the longest key.
const MaxKey = 4096

// AppendInt appends the key of an id of type Int64.
func AppendInt(key []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(key, uint64(v)^(1<<63))
}

// AppendUint appends the key of an id of type Uint64.
func AppendUint(key []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(key, v) }

// Int is the id of a key of type Int64.
func Int(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }

// Uint is the id of a key of type Uint64.
func Uint(key []byte) uint64 { return binary.BigEndian.Uint64(key) }

// Bits are the 64 bits of the id of a key of type Int64 or Uint64, as columns of either
// type hold them.
func (t Type) Bits(key []byte) int64 {
	if t == Int64 {
		return Int(key)
	}
	return int64(Uint(key))
}

// AppendBits appends the key of the id of type Int64 or Uint64 that has these bits.
func (t Type) AppendBits(key []byte, bits int64) []byte {
	if t == Int64 {
		return AppendInt(key, bits)
	}
	return AppendUint(key, uint64(bits))
}

// AppendText appends the id of a key as text.
func (t Type) AppendText(text, key []byte) []byte {
	switch t {
	case Int64:
		return strconv.AppendInt(text, Int(key), 10)
	case Uint64:
		return strconv.AppendUint(text, Uint(key), 10)
	}
	return append(text, key...)
}

// Quote is the id of a key as messages show it.
func (t Type) Quote(key []byte) string {
	if t != String {
		return string(t.AppendText(nil, key))
	}
	const most = 80
	if len(key) > most {
		return strconv.Quote(string(key[:most])) + "…"
	}
	return strconv.Quote(string(key))
}

// ParseKey appends the key of an id that is given as text. A number is written without
// leading zeros, plus sign, fraction and blanks; ok is false for other text where the
// type is a number.
func (t Type) ParseKey(key []byte, text string) (_ []byte, ok bool) {
	switch t {
	case Int64:
		v, err := strconv.ParseInt(text, 10, 64)
		return AppendInt(key, v), err == nil && canonical(text)
	case Uint64:
		v, err := strconv.ParseUint(text, 10, 64)
		return AppendUint(key, v), err == nil && canonical(text)
	}
	return append(key, text...), true
}

// canonical reports whether the text of a number is the one that strconv writes.
func canonical(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return len(digits) > 0 && digits[0] != '+' && (digits[0] != '0' || text == "0")
}

// Narrowest is the narrowest type of ids that are all given as text, which it is shown
// one after the other: Int64, or else Uint64, or else String.
type Narrowest struct{ notInt, notUint bool }

// Show takes the next id.
func (n *Narrowest) Show(text string) {
	if n.notInt && n.notUint {
		return
	}
	if !canonical(text) {
		n.notInt, n.notUint = true, true
		return
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		n.notInt = true
	}
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		n.notUint = true
	}
}

// Type is the type of what was shown.
func (n *Narrowest) Type() Type {
	switch {
	case !n.notInt:
		return Int64
	case !n.notUint:
		return Uint64
	}
	return String
}
