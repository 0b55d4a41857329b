package columnar

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"strconv"
)

// AppendDecimal appends a whole number divided by a power of ten, as text without zeros behind
// its last digit.
func AppendDecimal(to []byte, v int64, scale int) []byte {
	if scale <= 0 && (scale == 0 || v == 0) {
		return strconv.AppendInt(to, v, 10)
	}
	return appendScaled(to, strconv.AppendInt(nil, v, 10), scale)
}

// AppendBigDecimal is AppendDecimal of a number in two's complement, the highest byte first.
func AppendBigDecimal(to, v []byte, scale int) []byte {
	if len(v) <= 8 {
		var x int64
		if len(v) > 0 && v[0] >= 0x80 {
			x = -1
		}
		for _, b := range v {
			x = x<<8 | int64(b)
		}
		return AppendDecimal(to, x, scale)
	}
	// Most wide decimals hold small numbers.
	rest := v[:len(v)-8]
	x := int64(binary.BigEndian.Uint64(v[len(v)-8:]))
	if sign := byte(x >> 63); len(bytes.Trim(rest, string([]byte{sign}))) == 0 {
		return AppendDecimal(to, x, scale)
	}
	n := new(big.Int).SetBytes(v)
	if v[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
	}
	return appendScaled(to, []byte(n.String()), scale)
}

// appendScaled puts the point into digits.
func appendScaled(to, digits []byte, scale int) []byte {
	if digits[0] == '-' {
		to, digits = append(to, '-'), digits[1:]
	}
	if scale <= 0 {
		to = append(to, digits...)
		return append(to, bytes.Repeat([]byte{'0'}, -scale)...)
	}
	if short := scale + 1 - len(digits); short > 0 {
		digits = append(bytes.Repeat([]byte{'0'}, short), digits...)
	}
	whole, fraction := digits[:len(digits)-scale], bytes.TrimRight(digits[len(digits)-scale:], "0")
	if to = append(to, whole...); len(fraction) > 0 {
		to = append(append(to, '.'), fraction...)
	}
	return to
}

// MaxScale bounds the digits behind the point of a decimal, and -MaxScale the zeros before it.
const MaxScale = 1 << 10

// AppendUUID appends the 16 bytes of a UUID as text.
func AppendUUID(to, id []byte) []byte {
	const digits = "0123456789abcdef"
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			to = append(to, '-')
		}
		to = append(to, digits[b>>4], digits[b&15])
	}
	return to
}

// ParseDecimal is the number that a decimal as text is.
func ParseDecimal(text []byte) float64 {
	v, _ := strconv.ParseFloat(string(text), 64) // infinite where it is too large
	return v
}
