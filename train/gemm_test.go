package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/rng"
)

// numbers returns n values in [-1, 1), a quarter of them zero.
func numbers(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if h := rng.Hash(seed, uint64(i)); h%4 != 0 {
			x[i] = float32(2*rng.Float64(h) - 1)
		}
	}
	return x
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
	})
}

// sizes are those at which vector code takes another branch.
var sizes = []int{1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 63, 64, 65, 130}

func TestPanelEqualsItsTwin(t *testing.T) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), math.SmallestNonzeroFloat32, -0x1p-130, float32(math.Copysign(0, -1))}
	for _, n := range sizes {
		for _, transA := range []bool{false, true} {
			for offset := range 4 {
				const m, k = 5, 9
				a, b := numbers(1, m*k), numbers(2, offset+k*n)[offset:]
				for i, v := range special {
					b[(i*7)%len(b)] = v
				}
				lda := k
				if transA {
					lda = m
				}
				got := numbers(3, offset+m*n+2)[offset:]
				want := slices.Clone(got)
				panel(transA, m, n, k, a, lda, b, n, got[:m*n], n)
				panelGo(transA, m, n, k, a, lda, b, n, want[:m*n], n)
				if !sameBits(got, want) {
					t.Fatalf("n=%d transposed=%v offset=%d: bits differ, or memory after the result changed", n, transA, offset)
				}
			}
		}
	}
}

func TestProductsSumInAscendingOrder(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {3, 7, 200}, {130, 5, 129}, {65, 257, 64}, {200, 200, 3}} {
		m, n, k := size[0], size[1], size[2]
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			a, b, start := numbers(1, m*k), numbers(2, k*n), numbers(3, m*n)
			want := slices.Clone(start)
			panelGo(false, m, n, k, a, k, b, n, want, n)

			got := slices.Clone(start)
			addProduct(m, n, k, a, b, got)
			if !sameBits(got, want) {
				t.Error("addProduct")
			}
			flipped := make([]float32, m*k)
			transpose(m, k, a, flipped)
			got = slices.Clone(start)
			addTransposed(m, n, k, flipped, b, got)
			if !sameBits(got, want) {
				t.Error("addTransposed")
			}
		})
	}
}

func TestPanelGo(t *testing.T) {
	// [1 2; 3 4]·[5 6; 7 8] + [1 1; 1 1], and with the first transposed.
	a, b := []float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}
	c := []float32{1, 1, 1, 1}
	panelGo(false, 2, 2, 2, a, 2, b, 2, c, 2)
	if !slices.Equal(c, []float32{20, 23, 44, 51}) {
		t.Errorf("product %v", c)
	}
	c = []float32{0, 0, 0, 0}
	panelGo(true, 2, 2, 2, a, 2, b, 2, c, 2)
	if !slices.Equal(c, []float32{26, 30, 38, 44}) {
		t.Errorf("transposed product %v", c)
	}
}
