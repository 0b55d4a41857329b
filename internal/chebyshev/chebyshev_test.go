package chebyshev

import (
	"math"
	"testing"
)

// TestCoefficientsAreThoseOfAWalk compares with steps ±1, one after the other.
func TestCoefficientsAreThoseOfAWalk(t *testing.T) {
	const n = 201
	at := [][]float64{{1}}
	for k := 1; k < n; k++ {
		next := make([]float64, k+1)
		for j, p := range at[k-1] {
			if j == 0 {
				next[1] += p
				continue
			}
			next[j-1] += p / 2
			next[j+1] += p / 2
		}
		at = append(at, next)
	}
	x := New(n)
	for ; x.Degree() < n; x.Next() {
		for k := range n {
			want := 0.0
			if x.Degree() <= k {
				want = at[k][x.Degree()]
			}
			if got := x.At(k); math.Abs(got-want) > 1e-12*want+1e-300 {
				t.Fatalf("c of %d, %d is %g, not %g", k, x.Degree(), got, want)
			}
		}
	}
	for _, k := range []int{1, 2, 20, 40, 192, 200} {
		for _, tolerance := range []float64{0.1, 1e-3, 1e-6} {
			degree, left := Degree(k, tolerance), 1.0
			for j := range degree {
				left -= at[k][j]
			}
			if left <= tolerance || left-at[k][degree] > tolerance*(1+1e-9) {
				t.Errorf("degree %d of hop %d with tolerance %g: %g is left before it, %g after it", degree, k, tolerance, left, left-at[k][degree])
			}
		}
	}
	if Degree(0, 0) != 0 || Degree(5, 0) != 5 {
		t.Error("with tolerance 0 the degree is the power")
	}
}
