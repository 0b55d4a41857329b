package spmv

import (
	"ndls/internal/invariants"
	"ndls/internal/packed"
)

// checkFrame sees that a kernel stays within its arrays, and that it adds up each row in
// ascending order of sources, on which the bits of the result depend.
func checkFrame(a Addition, f packed.Frame) {
	last := int64(-1)
	f.Visit(func(src, row uint32) {
		invariants.Check(int64(src) >= last, "source %d comes after %d", src, last)
		invariants.Check(src >= a.First && int64(src-a.First) < a.Rows.Len(), "source %d of rows %d to %d", src, a.First,
			int64(a.First)+a.Rows.Len())
		invariants.Check(int(row)*a.Rows.Stride+a.Col+a.Cols <= len(a.Acc), "row %d of a strip of %d values, %d columns apart", row,
			len(a.Acc), a.Rows.Stride)
		last = int64(src)
	})
}
