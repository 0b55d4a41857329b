package train

import "ndls/train/dense"

// normalise replaces the outputs of layer l, in rows [lo, hi) of a microbatch, by gain·n + shift, where n is the row with mean 0 and
// variance 1. Training keeps n and the inverse of the deviation for normaliseBack.
func (w *network) normalise(l, lo, hi int) {
	out := w.dims[l+1]
	gains, shifts := w.normOf(w.params, l)
	for r := lo; r < hi; r++ {
		y := w.out[l][r*out : (r+1)*out]
		n := y
		if w.gains[l] != nil {
			n = w.gains[l][r*out : (r+1)*out]
		}
		inverse := dense.Normalize(n, y)
		if w.inverse[l] != nil {
			w.inverse[l][r] = inverse
		}
		for i, x := range n {
			y[i] = float32(gains[i]*x) + shifts[i]
		}
	}
}

// normaliseBack turns the gradients of what normalise wrote for rows [lo, hi) into those of what it read. It leaves the part of each row in
// the gradients of gains and shifts.
func (w *network) normaliseBack(l, lo, hi int) {
	out := w.dims[l+1]
	gains, _ := w.normOf(w.params, l)
	for r := lo; r < hi; r++ {
		delta, n := w.delta[l][r*out:(r+1)*out], w.gains[l][r*out:(r+1)*out]
		copy(w.shifts[l][r*out:], delta)
		for i, g := range gains {
			delta[i] *= g
		}
		dense.NormalizeBack(delta, n, w.inverse[l][r])
		for i, d := range w.shifts[l][r*out : (r+1)*out] {
			n[i] *= d
		}
	}
}

// fill sets all of x to a value.
func fill(x []float32, value float32) {
	for i := range x {
		x[i] = value
	}
}
