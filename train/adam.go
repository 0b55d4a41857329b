package train

import (
	"math"
	"slices"

	"ndls/train/dense"
)

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
// decoupled decay of AdamW. It returns the largest magnitude of a parameter after it.
func (a *adam) step(c pool, k *dense.Kernel, params, grad []float32, rate, decay float64) float32 {
	a.beta1 *= adamBeta1
	a.beta2 *= adamBeta2
	numbers := dense.Adam{
		Decay: float32(decay),
		Beta1: adamBeta1, Rest1: 1 - adamBeta1, Beta2: adamBeta2, Rest2: 1 - adamBeta2,
		Size: float32(rate / (1 - a.beta1)), Root: float32(math.Sqrt(1 - a.beta2)), Small: adamEpsilon,
	}
	largest := make([]float32, c)
	c.each(func(thread int) {
		lo, hi := c.split(len(params), thread)
		largest[thread] = k.Step(numbers, params[lo:hi], grad[lo:hi], a.mean[lo:hi], a.square[lo:hi])
	})
	return slices.Max(largest)
}
