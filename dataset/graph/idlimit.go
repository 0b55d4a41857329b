package graph

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// IDLimit is one above the largest node id of a dataset, and why.
type IDLimit struct {
	N int64
	// stated says where the number of nodes is stated, for example "nodes=7 in the
	// URI"; it is empty where ids are only bounded by their 32 bits.
	Stated string
}

// AnyID bounds ids where no number of nodes is stated.
var AnyID = IDLimit{N: MaxID + 1}

// Parse reads a node id below the limit; problem says what is wrong with it.
// Most fields are plain digits. Others are read by parseOther.
func (l *IDLimit) Parse(field []byte) (id uint32, problem string) {
	if len(field) == 0 || len(field) > 18 || field[0] == '0' && len(field) > 1 {
		return l.parseOther(field)
	}
	var v int64
	for _, c := range field {
		c -= '0'
		if c > 9 {
			return l.parseOther(field)
		}
		v = 10*v + int64(c)
	}
	if v >= l.N {
		return 0, l.Problem(v)
	}
	return uint32(v), ""
}

// parseOther reads the forms that other programs give to whole numbers: in
// quotes (R), with a fraction of zeros (pandas), with a plus sign.
func (l *IDLimit) parseOther(field []byte) (uint32, string) {
	text := string(WholeNumber(Unquote(field)))
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && len(strings.Trim(digits, "0123456789")) == 0 {
		return 0, fmt.Sprintf("node id %s has leading zeros, and here ids are numbers, of which it would be the same as %s: write the ids without leading zeros, or give the graph as table:, where %s is text",
			Shorten(field), cmp.Or(strings.TrimLeft(digits, "0"), "0"), Shorten(field))
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		if v < 0 || v >= l.N {
			return 0, l.Problem(v)
		}
		return uint32(v), ""
	}
	f, number := Number([]byte(text), 64)
	switch {
	case text == "":
		return 0, "a node id is missing: give each row its ids, or remove the row"
	case IsMissing(text):
		return 0, fmt.Sprintf("node id %s stands for a missing value: give each row its ids, or remove the row", Shorten(field))
	case number && f < 0:
		return 0, fmt.Sprintf("node id %s is negative: ids are whole numbers from 0, "+otherIDs, Shorten(field))
	case number && f >= float64(l.N): // infinite where the number is too large for a float64
		return 0, fmt.Sprintf("node id %s is too large: ids go up to %d, "+otherIDs, Shorten(field), l.N-1)
	case number:
		return 0, fmt.Sprintf("node id %s is not a whole number: write ids without fraction or exponent", Shorten(field))
	}
	return 0, fmt.Sprintf("node id %s is not a number: ids are whole numbers from 0, "+otherIDs, Shorten(field))
}

// otherIDs says what to do where ids are no whole numbers of this range.
const otherIDs = "renumber the nodes, or give the graph as table:, which takes ids of any type"

// Problem says what is wrong with a number that is no id below the limit.
func (l *IDLimit) Problem(v int64) string {
	switch {
	case v < 0:
		return fmt.Sprintf("node id %d is negative: ids are whole numbers from 0, "+otherIDs, v)
	case l.Stated == "":
		return fmt.Sprintf("node id %d is too large: ids go up to %d, "+otherIDs, v, l.N-1)
	}
	return fmt.Sprintf("node id %d is not below the number of nodes, %d (%s): correct the id, or the number of nodes", v, l.N, l.Stated)
}

// Check is problem for a number of 64 bits that may be unsigned; it returns ""
// for a node id.
func (l *IDLimit) Check(v int64, unsigned bool) string {
	switch {
	case v >= 0 && v < l.N:
		return ""
	case v < 0 && unsigned:
		return fmt.Sprintf("node id %d is too large: ids go up to %d, "+otherIDs, uint64(v), l.N-1)
	}
	return l.Problem(v)
}

// Unquote takes one pair of double quotes off a field.
func Unquote(field []byte) []byte {
	if len(field) >= 2 && field[0] == '"' && field[len(field)-1] == '"' {
		return bytes.TrimSpace(field[1 : len(field)-1])
	}
	return field
}

// WholeNumber takes a fraction of nothing but zeros off a number.
func WholeNumber(text []byte) []byte {
	whole, zeros, found := bytes.Cut(text, []byte("."))
	if found && len(whole) > 0 && len(zeros) > 0 && len(bytes.Trim(zeros, "0")) == 0 {
		return whole
	}
	return text
}

func Shorten(field []byte) string {
	if len(field) > 40 {
		return strconv.Quote(string(field[:40])) + "…"
	}
	return strconv.Quote(string(field))
}
