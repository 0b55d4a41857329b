package train

import "math"

// Adam's constants, those of torch.optim.Adam.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// adam is the state of the optimiser: running means of the gradient and of its
// square, and the betas to the power of the number of steps.
type adam struct {
	mean, square []float32
	beta1, beta2 float64
}

func newAdam(mean, square []float32) *adam {
	return &adam{mean: mean, square: square, beta1: 1, beta2: 1}
}

// step moves the parameters against the gradient, to which decay times the
// parameter is added first: L2 regularisation, as in torch.optim.Adam, not the
// decoupled decay of AdamW.
func (a *adam) step(c pool, params, grad []float32, rate, decay float64) {
	a.beta1 *= adamBeta1
	a.beta2 *= adamBeta2
	c.each(func(thread int) {
		lo, hi := c.split(len(params), thread)
		a.move(params[lo:hi], grad[lo:hi], lo, rate, decay)
	})
}

// move moves the parameters from first on.
func (a *adam) move(params, grad []float32, first int, rate, decay float64) {
	mean, square := a.mean[first:], a.square[first:]
	var (
		size = float32(rate / (1 - a.beta1))
		root = float32(math.Sqrt(1 - a.beta2))
		l2   = float32(decay)
	)
	for i, w := range params {
		g := grad[i] + float32(l2*w)
		m := float32(adamBeta1*mean[i]) + float32((1-adamBeta1)*g)
		v := float32(adamBeta2*square[i]) + float32(float32((1-adamBeta2)*g)*g)
		mean[i], square[i] = m, v
		params[i] = w - float32(size*m)/(float32(math.Sqrt(float64(v)))/root+adamEpsilon)
	}
}
