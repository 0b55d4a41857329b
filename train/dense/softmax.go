package dense

import (
	"unsafe"

	"ndls/internal/elementary"
)

// Largest returns the largest value of z, which is not empty. It may skip NaN.
func (k *Kernel) Largest(z []float32) float32 {
	if len(z) < 16 {
		return largestGo(&z[0], uintptr(len(z)))
	}
	most := k.largest(&z[0], uintptr(len(z)&^15))
	// The last 16 values include those that fill no vector.
	return max(most, k.largest(&z[len(z)-16], 16))
}

// Exps sets p[i] to e^(z[i]-largest), which is at most 0, within 1e-15 of its value, and to 0 below
// e^-708, and returns the sum. p and z are equally long. The values equal those of
// [elementary.Exp].
func (k *Kernel) Exps(p []float64, z []float32, largest float64) float64 {
	sum, whole := 0.0, len(z)&^7
	if whole > 0 {
		sum = k.exps(&p[0], &z[0], uintptr(whole), largest)
	}
	if whole == len(z) {
		return sum
	}
	// Values that fill no vector are added one by one. The vector of the last 8 values includes
	// them.
	if last := len(z) - 8; last > 0 {
		k.exps(&p[last], &z[last], 8, largest)
	} else {
		expsGo(&p[0], &z[0], uintptr(len(z)), largest)
	}
	for _, x := range p[whole:] {
		sum += x
	}
	return sum
}

// Scale sets to[i] to p[i]·share. to and p are equally long.
func (k *Kernel) Scale(to []float32, p []float64, share float64) {
	whole := len(p) &^ 7
	if whole > 0 {
		k.scale(&to[0], &p[0], uintptr(whole), share)
	}
	for i := whole; i < len(p); i++ {
		to[i] = float32(p[i] * share)
	}
}

// Rectify sets values below 0 to 0.
func (k *Kernel) Rectify(x []float32) {
	whole := len(x) &^ 15
	if whole > 0 {
		k.rectify(&x[0], uintptr(whole))
	}
	for i := whole; i < len(x); i++ {
		if x[i] < 0 {
			x[i] = 0
		}
	}
}

// Sum adds each value of x to the value of to. Both have the same length.
func (k *Kernel) Sum(to, x []float32) {
	whole := len(x) &^ 15
	if whole > 0 {
		k.sum(&to[0], &x[0], uintptr(whole))
	}
	for i := whole; i < len(x); i++ {
		to[i] += x[i]
	}
}

func largestGo(z *float32, n uintptr) float32 {
	most := *z
	for _, v := range unsafe.Slice(z, n) {
		if v > most {
			most = v
		}
	}
	return most
}

func expsGo(p *float64, z *float32, n uintptr, largest float64) float64 {
	to := unsafe.Slice(p, n)
	var s [8]float64
	for i, x := range unsafe.Slice(z, n) {
		to[i] = elementary.Exp(float64(x) - largest)
		s[i%8] += to[i]
	}
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

func scaleGo(to *float32, p *float64, n uintptr, share float64) {
	x := unsafe.Slice(to, n)
	for i, v := range unsafe.Slice(p, n) {
		x[i] = float32(v * share)
	}
}

func rectifyGo(x *float32, n uintptr) {
	all := unsafe.Slice(x, n)
	for i, v := range all {
		if v < 0 {
			all[i] = 0
		}
	}
}

func plusGo(to, x *float32, n uintptr) {
	all := unsafe.Slice(to, n)
	for i, v := range unsafe.Slice(x, n) {
		all[i] += v
	}
}
