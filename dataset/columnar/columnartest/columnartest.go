// Package columnartest has files of columns in memory, for tests of what reads them.
package columnartest

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/memory"

	"ndls/dataset/columnar"
	"ndls/dataset/source"
)

// Source returns an open file of these bytes.
func Source(data []byte) *source.Source {
	return &source.Source{Name: "memory", File: file{bytes.NewReader(data)}, End: int64(len(data)), Size: int64(len(data))}
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }
func (file) Name() string { return "memory" }

// Floats returns columns f0, f1, … of random float32 from 0 to 1, and their values by column.
func Floats(columns, rows int) (arrow.Record, [][]float32) {
	fields, arrays, values := make([]arrow.Field, columns), make([]arrow.Array, columns), make([][]float32, columns)
	for i := range columns {
		for range rows {
			values[i] = append(values[i], rand.Float32())
		}
		fields[i] = arrow.Field{Name: fmt.Sprint("f", i), Type: arrow.PrimitiveTypes.Float32}
		b := array.NewFloat32Builder(memory.DefaultAllocator)
		b.AppendValues(values[i], nil)
		arrays[i] = b.NewArray()
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(rows)), values
}

// ReadFloats reads the only unit of a file of [Floats] and compares its values. It returns the most bytes that held tells after a read.
func ReadFloats(f columnar.File, r columnar.Reader, want [][]float32, held func() int64) (most int64, err error) {
	values := make([]columnar.Values, len(want))
	for at := 0; ; {
		n, err := r.Next(1024, values)
		most = max(most, held())
		switch {
		case err == io.EOF && int64(at) != f.Rows():
			return most, fmt.Errorf("%d rows in place of %d", at, f.Rows())
		case err == io.EOF:
			return most, nil
		case err != nil:
			return most, err
		}
		for i, v := range values {
			for k, x := range v.Floats[:n] {
				if math.Float32bits(float32(x)) != math.Float32bits(want[i][at+k]) {
					return most, fmt.Errorf("column %d, row %d: %v in place of %v", i, at+k, x, want[i][at+k])
				}
			}
		}
		at += n
	}
}

// All returns the numbers of so many columns.
func All(columns int) []int {
	all := make([]int, columns)
	for i := range all {
		all[i] = i
	}
	return all
}
