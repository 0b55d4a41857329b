package dense

import (
	"fmt"
	"math"
	"testing"

	"ndls/internal/rng"
)

// sameBits compares values bit by bit; those that are no number are equal.
func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return false
		}
	}
	return true
}

// Each kernel drops the values that the draws say, whatever the length, and scales the others.
func TestDrop(t *testing.T) {
	state := rng.New(11).State()
	first := rng.New(11).Uint64() & (1<<16 - 1) // the draw of the first value, which stays
	for _, n := range []int{1, 3, 16, 31, 32, 33, 63, 64, 65, 129, 1433} {
		for _, below := range []uint64{1, 26214, 1<<15 + 1, 1<<16 - 1, first} {
			x := numbers(uint64(n), n)
			x[0] = float32(math.Copysign(0, -1))
			source := rng.New(11)
			var lanes uint64
			want := make([]float32, n)
			for i := range want {
				if i%4 == 0 {
					lanes = source.Uint64()
				}
				if lanes&(1<<16-1) >= below {
					want[i] = x[i] * 1.5
				}
				lanes >>= 16
			}
			for _, k := range available() {
				got := numbers(7, n+1)
				guard := got[n]
				if k.Drop(got[:n], x, state, below, 1.5); !sameBits(got[:n], want) || got[n] != guard {
					t.Errorf("%s: %d values below %d: %v, want %v", k.name, n, below, got, want)
				}
				copy(got, x)
				if k.Drop(got[:n], got[:n], state, below, 1.5); !sameBits(got[:n], want) {
					t.Errorf("%s: %d values in place: %v, want %v", k.name, n, got, want)
				}
			}
		}
	}
}

// Each kernel takes the steps of the definition, and finds the largest magnitude.
func TestStep(t *testing.T) {
	a := Adam{Decay: 5e-4, Beta1: 0.9, Rest1: 0.1, Beta2: 0.999, Rest2: 0.001, Size: 0.0123, Root: 0.3, Small: 1e-8}
	for _, n := range []int{1, 15, 16, 17, 31, 32, 100} {
		for _, special := range []float32{0, 1e-42, 1e20, 1e38, float32(math.Inf(1)), float32(math.NaN())} {
			t.Run(fmt.Sprint(n, special), func(t *testing.T) {
				state := func() [4][]float32 {
					x := [4][]float32{numbers(1, n), numbers(2, n), numbers(3, n), numbers(4, n)}
					for i := range x[3] {
						x[3][i] *= x[3][i]
					}
					x[1][n/2] = special
					return x
				}
				want, most := state(), float32(0)
				for range 3 {
					most = 0
					for i, w := range want[0] {
						g := want[1][i] + float32(a.Decay*w)
						m := float32(a.Beta1*want[2][i]) + float32(a.Rest1*g)
						v := float32(a.Beta2*want[3][i]) + float32(float32(a.Rest2*g)*g)
						w -= float32(a.Size*m) / (float32(math.Sqrt(float64(v)))/a.Root + a.Small)
						want[0][i], want[2][i], want[3][i] = w, m, v
						most = max(most, float32(math.Abs(float64(w))))
					}
				}
				for _, k := range available() {
					got, largest := state(), float32(0)
					for range 3 {
						largest = k.Step(a, got[0], got[1], got[2], got[3])
					}
					for i, what := range []string{"parameters", "gradient", "means", "squares"} {
						if !sameBits(got[i], want[i]) {
							t.Errorf("%s: %s %v, want %v", k.name, what, got[i], want[i])
						}
					}
					if !sameBits([]float32{largest}, []float32{most}) {
						t.Errorf("%s: the largest magnitude is %v, want %v", k.name, largest, most)
					}
				}
			})
		}
	}
}
