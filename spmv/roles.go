package spmv

import (
	"unsafe"

	"ndls/internal/packed"
)

// loadComputed is load for the rows that are Computed.
func (k *Kernel) loadComputed(dst []float32, r Rows, roles []Role) {
	if r.H == nil && r.Stride >= packed.PanelColumns {
		_ = dst[len(r.S)-1]
		k.copyRows(&dst[0], &r.S[0], (*byte)(&roles[0]), uintptr(len(roles)), uintptr(r.Stride*4))
		return
	}
	runs(roles, func(role Role, lo, hi int) {
		switch {
		case role < Computed:
		case r.H == nil:
			copy(dst[lo*r.Stride:hi*r.Stride], r.S[lo*r.Stride:])
		default:
			k.Widen(dst[lo*r.Stride:hi*r.Stride], r.H[lo*r.Stride:hi*r.Stride])
		}
	})
}

func copyComputedGo(to, from *float32, roles *byte, n, bytes uintptr) {
	width := int(bytes / 4)
	a, b := unsafe.Slice(to, int(n)*width), unsafe.Slice(from, int(n)*width)
	for i, role := range unsafe.Slice(roles, n) {
		if Role(role) == Computed {
			copy(a[i*width:(i+1)*width], b[i*width:])
		}
	}
}

// divideComputed divides the rows that are Computed, and clears those that are Skipped: edges
// were added to them for nothing.
func (k *Kernel) divideComputed(rows []float32, degree []uint32, roles []Role) {
	if n := len(degree); n > 0 {
		_ = roles[n-1]
		k.divideSome(&rows[0], &degree[0], (*byte)(&roles[0]), uintptr(n), uintptr(len(rows)/n*4))
	}
}

func divideComputedGo(rows *float32, degree *uint32, roles *byte, n, bytes uintptr) {
	width := bytes / 4
	all, d := unsafe.Slice(rows, n*width), unsafe.Slice(degree, n)
	for i, role := range unsafe.Slice(roles, n) {
		at := uintptr(i) * width
		switch Role(role) {
		case Computed:
			divideRowsGo(&all[at], &d[i], 1, bytes, 1)
		case Skipped:
			clear(all[at : at+width])
		}
	}
}
