package spmv

import (
	"ndls/internal/invariants"
	"ndls/internal/packed"
)

// checkFrame sees that a kernel stays within its arrays, and that it adds up each row in
// ascending order of sources, on which the bits of the result depend.
func checkFrame(acc []float32, stride int, z Rows, base uint32, f packed.Frame, col, cols int) {
	last := int64(-1)
	f.Visit(func(src, row uint32) {
		invariants.Check(int64(src) >= last, "source %d comes after %d", src, last)
		invariants.Check(src >= base && int64(src-base) < z.Len(), "source %d of rows %d to %d", src, base, int64(base)+z.Len())
		invariants.Check(int(row)*stride+col+cols <= len(acc), "row %d of a strip of %d values, %d columns apart", row, len(acc), stride)
		last = int64(src)
	})
}
