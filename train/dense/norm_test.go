package dense

import (
	"math"
	"testing"
)

// TestNormalize compares rows of all lengths with float64 code, and the gradient with differences.
func TestNormalize(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 15, 64, 257} {
		x, g := numbers(uint64(n), n), numbers(uint64(n)+1, n)
		normal := func(x []float64) []float64 {
			mean, variance, y := 0.0, 0.0, make([]float64, n)
			for _, v := range x {
				mean += v / float64(n)
			}
			for _, v := range x {
				variance += (v - mean) * (v - mean) / float64(n)
			}
			for i, v := range x {
				y[i] = (v - mean) / math.Sqrt(variance+1e-5)
			}
			return y
		}
		wide, got := make([]float64, n), make([]float32, n)
		for i, v := range x {
			wide[i] = float64(v)
		}
		inverse := Normalize(got, x)
		for i, want := range normal(wide) {
			if math.Abs(float64(got[i])-want) > 1e-6*max(1, math.Abs(want)) {
				t.Errorf("%d values: value %d is %v, want %v", n, i, got[i], want)
			}
		}
		back := append([]float32(nil), g...)
		NormalizeBack(back, got, inverse)
		loss := func() (sum float64) {
			for i, y := range normal(wide) {
				sum += y * float64(g[i])
			}
			return sum
		}
		const h = 1e-5
		for i, v := range wide {
			wide[i] = v + h
			up := loss()
			wide[i] = v - h
			want := (up - loss()) / (2 * h)
			wide[i] = v
			if math.Abs(float64(back[i])-want) > 1e-5*max(1, math.Abs(want)) {
				t.Errorf("%d values: derivative %d is %v, want %v", n, i, back[i], want)
			}
		}
		if Normalize(x, x); !sameBits(x, got) {
			t.Errorf("%d values: in place there are other bits", n)
		}
	}
}
