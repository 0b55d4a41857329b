package spmv

import "unsafe"

// loadComputed is load for the rows that are Computed.
func (k *Kernel) loadComputed(dst []float32, r Rows, roles []Role) {
	if r.H == nil {
		_ = dst[len(r.S)-1]
		k.copyRows(&dst[0], &r.S[0], (*byte)(&roles[0]), uintptr(len(roles)), uintptr(r.Stride*4))
		return
	}
	runs(roles, func(role Role, lo, hi int) {
		if role == Computed {
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

// divideComputed is Divide for the rows that are Computed, and clears those that are Skipped: edges
// were added to them for nothing.
func (k *Kernel) divideComputed(rows []float32, divisors []float64, roles []Role, share float32) {
	if n := len(divisors); n > 0 {
		_ = roles[n-1]
		k.divideSome(&rows[0], &divisors[0], (*byte)(&roles[0]), uintptr(n), uintptr(len(rows)/n*4), share)
	}
}

func divideComputedGo(rows *float32, divisors *float64, roles *byte, n, bytes uintptr, share float32) {
	width := bytes / 4
	all, d := unsafe.Slice(rows, n*width), unsafe.Slice(divisors, n)
	for i, role := range unsafe.Slice(roles, n) {
		at := uintptr(i) * width
		switch Role(role) {
		case Computed:
			divideRowsGo(&all[at], &d[i], 1, bytes, share)
		case Skipped:
			clear(all[at : at+width])
		}
	}
}
