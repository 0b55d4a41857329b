//go:build !openblas

package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/rng"
)

// exactProducts says that sums do not depend on how rows are grouped.
const exactProducts = true

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

// TestKnownBits pins the weights of a small model: they are the same on every
// platform, and change only with the algorithm.
func TestKnownBits(t *testing.T) {
	o := quick()
	o.Epochs, o.BatchSize, o.Schedule = 5, 64, Cosine
	r := mustFit(t, clouds(300, 12, 3, 100), o, Resources{Budget: testBudget(t, 32<<20)})
	digest := uint64(0)
	for _, w := range r.Models[0].params {
		digest = rng.Hash(digest, uint64(math.Float32bits(w)))
	}
	if want := uint64(0x17619d0bf27f8221); digest != want {
		t.Errorf("the weights hash to %#x, want %#x", digest, want)
	}
}
