package spmv

import (
	"unsafe"

	"ndls/internal/packed"
)

// OneDecay is the decay that leaves a row as it is.
const OneDecay = 1<<16 - 1

// Decay replaces one panel of the rows that are Kept, from column col on: row i becomes
// decay[i]/OneDecay times row i of from. to and from have a row of the same width for each
// role.
func (k *Kernel) Decay(to, from []float32, col int, decay []uint16, roles []Role) {
	if n := len(roles); n > 0 {
		stride := len(to) / n
		_, _, _ = from[len(to)-1], decay[n-1], to[col+packed.PanelColumns-1]
		k.decayRows(&to[col], &from[col], &decay[0], (*byte)(&roles[0]), uintptr(n), uintptr(stride*4))
	}
}

func decayRowsGo(to, from *float32, decay *uint16, roles *byte, n, bytes uintptr) {
	rates := unsafe.Slice(decay, n)
	for i, role := range unsafe.Slice(roles, n) {
		if Role(role) != Kept {
			continue
		}
		rate := float32(rates[i]) / OneDecay
		at := uintptr(i) * bytes
		a := (*[packed.PanelColumns]float32)(unsafe.Add(unsafe.Pointer(to), at))
		b := (*[packed.PanelColumns]float32)(unsafe.Add(unsafe.Pointer(from), at))
		for c, x := range b {
			a[c] = rate * x
		}
	}
}

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

// Products puts three sums for each row of a panel in out, over all columns but the last: of
// the squares of now, of the squares of then, and of their products.
func (k *Kernel) Products(out []float64, now, then []float32) {
	if n := len(now) / packed.PanelColumns; n > 0 {
		_, _ = out[3*n-1], then[len(now)-1]
		k.products(&out[0], &now[0], &then[0], uintptr(n))
	}
}

func productsGo(out *float64, now, then *float32, n uintptr) {
	sums := unsafe.Slice(out, 3*n)
	a, b := unsafe.Slice(now, n*packed.PanelColumns), unsafe.Slice(then, n*packed.PanelColumns)
	for i := range n {
		x, y := (*[packed.PanelColumns]float32)(a[i*packed.PanelColumns:]), (*[packed.PanelColumns]float32)(b[i*packed.PanelColumns:])
		sums[3*i], sums[3*i+1], sums[3*i+2] = product(x, x), product(y, y), product(x, y)
	}
}

// product adds in the order that squareNormsGo adds.
func product(x, y *[packed.PanelColumns]float32) float64 {
	var p [8]float64
	for l := range 7 {
		p[l] = float64(float64(x[l])*float64(y[l])) + float64(float64(x[l+8])*float64(y[l+8]))
	}
	p[7] = float64(float64(x[7])*float64(y[7])) + 0 // the sign of zero agrees with the assembly
	return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))
}
