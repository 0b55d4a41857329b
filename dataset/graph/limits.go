package graph

import (
	"fmt"
	"math"
	"unsafe"
)

func Finite(v float32) bool { return v-v == 0 }

// AllFinite reports whether all values are finite.
func AllFinite(values []float32) bool {
	const both, exponent = 1<<32 | 1, 1 << 23
	// Two values at a time: the highest bit of a half of carry is set if the exponent of a value has only ones.
	carry := uint64(0)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(values))), len(values)/2)
	for _, two := range words {
		carry |= two&(both*(1<<31-1)) + both*exponent
	}
	if len(values)%2 == 1 {
		carry |= uint64(math.Float32bits(values[len(values)-1])&(1<<31-1) + exponent)
	}
	return carry&(both<<31) == 0
}

// WayOut says what to do about a feature that is not finite.
func WayOut(v float32) string {
	if v != v {
		return "fill missing features with --fill mean, or replace them before the import"
	}
	return "replace what is not finite in float32 before the import"
}

func NotFinite(name string, row, column int64, v float32) error {
	return BadData(name, "row %d, column %d is %s: %s",
		row, column, fmt.Sprint(v), WayOut(v))
}

// CheckMatrix takes the shape of a feature matrix.
func CheckMatrix(name string, shape []int64) (rows int64, width int, err error) {
	if len(shape) != 2 {
		return 0, 0, BadData(name, "has shape %v: features are a matrix with one row for each node", shape)
	}
	return shape[0], int(min(shape[1], MaxFeatures)), CheckSize(name, shape[0], shape[1])
}

// CheckSize checks a number of nodes and of features against the limits.
func CheckSize(name string, rows, width int64) error {
	return checkSize(name, rows, width, MaxFeatures)
}

// CheckSparse is CheckSize of features whose rows list what is not zero.
func CheckSparse(name string, rows, width int64) error {
	return checkSize(name, rows, width, MaxSparse)
}

func checkSize(name string, rows, width, most int64) error {
	if rows > MaxID+1 {
		return BadData(name, "has %d rows: node ids go up to %d", rows, int64(MaxID))
	}
	if width < 1 || width > most {
		return BadData(name, "has %d feature columns: from 1 to %d are read", width, most)
	}
	return nil
}

func RowOf(file string, row int64) string { return fmt.Sprintf("%s row %d", file, row) }

// Position names the file and the row or line that a reader has read last; it is other for a reader that cannot tell.
func Position(reader any, other string) string {
	if r, ok := reader.(interface{ Position() string }); ok {
		return r.Position()
	}
	return other
}

// NodeName is the input id of the node of the row that a reader has read last, as messages show it; "" where that is its number.
func NodeName(reader any) string {
	if r, ok := reader.(interface{ NodeName() string }); ok {
		return r.NodeName()
	}
	return ""
}

// CheckSplit refuses the number of a split of a dataset that has one.
func CheckSplit(name string, number int) error {
	if number > 0 {
		return BadData(name, "has one published split, or the URI picks one with split=N: leave out --splits, or draw splits with --split")
	}
	return nil
}

// CheckNulls takes the key nulls= of a URI: what null features are.
func CheckNulls(value string) error {
	if value != "zero" {
		return BadURI("nulls=%s: write nulls=zero, which makes null features zeros, or leave it out: then they are refused", value)
	}
	return nil
}
