package pass

import (
	"fmt"
	"unsafe"

	"ndls/internal/half"
	"ndls/spmv"
)

// loops are two ways to sum rows, which a pass is compared with. Strides are in bytes;
// indices may be read 256 bytes past their end.
type loops struct {
	// sumCSR sums rows first to first+n of a CSR matrix; next and offsets count from
	// the row first.
	sumCSR func(next *float32, nextStride uintptr, z *byte, zStride uintptr, offsets, src *uint32, first, n uint64)
	// gather writes the sum of n rows to out.
	gather func(out *float32, z *byte, zStride uintptr, ids *uint32, n uint64)
}

// table has the loops by precision and by columns: 16, 32 and 64.
type table [2][3]loops

// of are the loops for rows of some columns.
func (t table) of(p spmv.Precision, columns int) (loops, error) {
	width, ok := map[int]int{16: 0, 32: 1, 64: 2}[columns]
	if !ok {
		return loops{}, fmt.Errorf("%d columns: there are loops for 16, 32 and 64", columns)
	}
	return t[p][width], nil
}

// goLoops are those that the assembly is tested against.
var goLoops = table{
	{goLoop(16, addFloats), goLoop(32, addFloats), goLoop(64, addFloats)},
	{goLoop(16, addHalves), goLoop(32, addHalves), goLoop(64, addHalves)},
}

func goLoop(cols int, add addFunc) loops { return loops{sumCSRGo(cols, add), gatherGo(cols, add)} }

type addFunc func(to *float32, from unsafe.Pointer, cols int)

// addFloats adds cols values at from, a row of float32, to those at to.
func addFloats(to *float32, from unsafe.Pointer, cols int) {
	a := unsafe.Slice(to, cols)
	for c, x := range unsafe.Slice((*float32)(from), cols) {
		a[c] += x
	}
}

// addHalves is addFloats for a row of float16.
func addHalves(to *float32, from unsafe.Pointer, cols int) {
	a := unsafe.Slice(to, cols)
	for c, h := range unsafe.Slice((*uint16)(from), cols) {
		a[c] += half.Float(h)
	}
}

func sumCSRGo(cols int, add addFunc) func(next *float32, nextStride uintptr, z *byte, zStride uintptr, offsets, src *uint32, first, n uint64) {
	return func(next *float32, nextStride uintptr, z *byte, zStride uintptr, offsets, src *uint32, first, n uint64) {
		off := unsafe.Slice(offsets, n+1)
		for i := range n {
			to := (*float32)(unsafe.Add(unsafe.Pointer(next), uintptr(i)*nextStride))
			clear(unsafe.Slice(to, cols))
			add(to, unsafe.Add(unsafe.Pointer(z), uintptr(first+i)*zStride), cols)
			for e := off[i]; e < off[i+1]; e++ {
				s := *(*uint32)(unsafe.Add(unsafe.Pointer(src), uintptr(e)*4))
				add(to, unsafe.Add(unsafe.Pointer(z), uintptr(s)*zStride), cols)
			}
		}
	}
}

func gatherGo(cols int, add addFunc) func(out *float32, z *byte, zStride uintptr, ids *uint32, n uint64) {
	return func(out *float32, z *byte, zStride uintptr, ids *uint32, n uint64) {
		clear(unsafe.Slice(out, cols))
		for _, id := range unsafe.Slice(ids, n) {
			add(out, unsafe.Add(unsafe.Pointer(z), uintptr(id)*zStride), cols)
		}
	}
}
