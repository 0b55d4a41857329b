package train

import (
	"math"
	"testing"
)

// TestAdamFirstSteps follows the published recurrence in float64. In the first
// step, mean and square over their corrections are g and g², so that the
// parameter moves by the rate against the sign of g whatever its size.
func TestAdamFirstSteps(t *testing.T) {
	const rate, decay = 0.1, 0.5
	for _, c := range []struct {
		name  string
		decay float64
		grads []float64
		want  []float64 // parameter after each step, from 1
	}{
		{"the first step is the rate", 0, []float64{0.25}, []float64{0.9}},
		{"small gradients move as far", 0, []float64{-1e-4}, []float64{1.09999}},
		{"decay is part of the gradient", decay, []float64{0}, []float64{0.9}},
		{"decay can outweigh the gradient", decay, []float64{-0.25}, []float64{0.9}},
		// m̂₂ = (0.09·1 + 0.1·(−2))/0.19 = −0.578947, v̂₂ = (0.000999 + 0.004)/0.001999 = 2.500750
		{"a second step", 0, []float64{1, -2}, []float64{0.9, 0.9 + 0.1*0.578947/math.Sqrt(2.500750)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAdam(make([]float32, 1), make([]float32, 1))
			p := []float32{1}
			for i, g := range c.grads {
				if most := a.move(someKernel(), a.next(rate, c.decay), p, []float32{float32(g)}, 0, 1); float64(most) != math.Abs(float64(p[0])) {
					t.Errorf("after step %d the largest magnitude is %v, of the parameter %v", i+1, most, p[0])
				}
				if math.Abs(float64(p[0])-c.want[i]) > 2e-6 {
					t.Errorf("after step %d the parameter is %v, want %v", i+1, p[0], c.want[i])
				}
			}
		})
	}
}

func TestAdamFollowsTheRecurrence(t *testing.T) {
	const n, rate, decay = 40, 0.02, 0.01
	p := numbers(1, n)
	want := make([]float64, n)
	m, v := make([]float64, n), make([]float64, n)
	for i, w := range p {
		want[i] = float64(w)
	}
	a := newAdam(make([]float32, n), make([]float32, n))
	for step := 1; step <= 50; step++ {
		grad := numbers(uint64(1+step), n)
		for i := range want {
			g := float64(grad[i]) + decay*want[i]
			m[i] = 0.9*m[i] + 0.1*g
			v[i] = 0.999*v[i] + 0.001*g*g
			mHat, vHat := m[i]/(1-math.Pow(0.9, float64(step))), v[i]/(1-math.Pow(0.999, float64(step)))
			want[i] -= rate * mHat / (math.Sqrt(vHat) + 1e-8)
		}
		numbers := a.next(rate, decay)
		a.move(someKernel(), numbers, p, grad, 0, n/3)
		a.move(someKernel(), numbers, p, grad, n/3, n)
	}
	for i := range p {
		if math.Abs(float64(p[i])-want[i]) > 1e-5 {
			t.Errorf("parameter %d is %v after 50 steps, want %v", i, p[i], want[i])
		}
	}
}
