package train

import (
	"math"

	"ndls/train/dense"
)

// These are Adam's constants, with the values of torch.optim.Adam.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// adam is the state of the optimiser: running means of the gradient and of its square, and the
// betas to the power of the number of steps.
type adam struct {
	mean, square []float32
	beta1, beta2 float64
}

func newAdam(mean, square []float32) *adam {
	return &adam{mean: mean, square: square, beta1: 1, beta2: 1}
}

// next returns the numbers of the next step, which moves all parameters against the gradient. decay
// times the parameter is added to the gradient first: L2 regularisation, as in torch.optim.Adam,
// not the decoupled decay of AdamW.
func (a *adam) next(rate, decay float64) dense.Adam {
	a.beta1 = float64(a.beta1 * adamBeta1)
	a.beta2 = float64(a.beta2 * adamBeta2)
	return dense.Adam{
		Decay: float32(decay),
		Beta1: adamBeta1, Rest1: 1 - adamBeta1, Beta2: adamBeta2, Rest2: 1 - adamBeta2,
		Size: float32(rate / (1 - a.beta1)), Root: float32(math.Sqrt(1 - a.beta2)), Small: adamEpsilon,
	}
}

// move moves parameters [lo, hi), and returns their largest magnitude after the move.
func (a *adam) move(k *dense.Kernel, step dense.Adam, params, grad []float32, lo, hi int) float32 {
	return k.Step(step, params[lo:hi], grad[lo:hi], a.mean[lo:hi], a.square[lo:hi])
}
