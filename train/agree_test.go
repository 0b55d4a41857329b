package train

import (
	"fmt"
	"math"
	"testing"
)

// TestProducts compares with sums in float64, in every build.
func TestProducts(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {3, 7, 200}, {130, 5, 129}, {65, 257, 64}, {256, 172, 256}} {
		m, n, k := size[0], size[1], size[2]
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			a, b, start := numbers(1, m*k), numbers(2, k*n), numbers(3, m*n)
			flippedA, flippedB := make([]float32, m*k), make([]float32, k*n)
			want, bound := widen(start), make([]float64, m*n)
			for i := range m {
				for l := range k {
					flippedA[l*m+i] = a[i*k+l]
					for j := range n {
						flippedB[j*k+l] = b[l*n+j]
						term := float64(a[i*k+l]) * float64(b[l*n+j])
						want[i*n+j] += term
						bound[i*n+j] += math.Abs(term)
					}
				}
			}
			for name, multiply := range map[string]func(c []float32){
				"addProduct":    func(c []float32) { addProduct(m, n, k, a, b, c) },
				"addTransposed": func(c []float32) { addTransposed(m, n, k, flippedA, b, c) },
				"addProductT":   func(c []float32) { addProductT(m, n, k, a, flippedB, c, make([]float32, n*k)) },
			} {
				got := append([]float32(nil), start...)
				multiply(got)
				for i, v := range got {
					if off := math.Abs(float64(v) - want[i]); !(off <= float64(k+1)*0x1p-24*(bound[i]+1)) {
						t.Fatalf("%s: element %d is %v, want %v", name, i, v, want[i])
					}
				}
			}
		})
	}
}

// TestBuildsAgree pins a model after 20 steps, and its accuracy, to those of
// the default build.
func TestBuildsAgree(t *testing.T) {
	o := quick()
	o.Epochs, o.BatchSize = 5, 64
	p, res := clouds(300, 12, 3, 100), Resources{Budget: testBudget(t, 32<<20)}
	r := mustFit(t, p, o, res)
	params := r.Models[0].params
	want := []float64{
		0.1345207393, -0.1977613121, 0.1391329318, -0.1241606176, -0.2046399117, 0.1460695714, -0.1806163937, 0.2299953550,
	}
	for k, w := range want {
		if got := float64(params[k*len(params)/len(want)]); math.Abs(got-w) > 1e-4*math.Abs(w) {
			t.Errorf("weight %d is %v, %v in the default build", k*len(params)/len(want), got, w)
		}
	}
	if loss := r.Histories[0].Epochs[4].TrainLoss; math.Abs(loss/0.3392621565-1) > 1e-4 {
		t.Errorf("the loss is %v", loss)
	}
	if got := accuracy(t, p, r, res, Test); got != 1 {
		t.Errorf("accuracy %v, 1 in the default build", got)
	}
}
