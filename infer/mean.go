package infer

import (
	"ndls/internal/mem"
	"ndls/train"
)

// mean is the mean of what several models say of some rows.
type mean struct {
	models int
	sum    *mem.Array[float32] // nil of one model
}

// newMean takes memory for the rows that [train.Predict] gives at a time.
func newMean(b *mem.Budget, classes, models int) (m *mean, err error) {
	m = &mean{models: models}
	if models > 1 {
		m.sum, err = mem.Alloc[float32](b, train.PredictRows*int64(classes), "the mean of predictions")
	}
	return m, err
}

func (m *mean) free() { m.sum.Free() }

// add takes what a model says of some rows: the models come in their order. Of the last one it returns the mean.
func (m *mean) add(model int, soft []float32) []float32 {
	if m.models == 1 {
		return soft
	}
	sum := m.sum.S[:len(soft)]
	if model == 0 {
		copy(sum, soft)
		return sum
	}
	for i, x := range soft {
		sum[i] += x
	}
	if model == m.models-1 {
		for i, x := range sum {
			sum[i] = float32(float64(x) / float64(m.models))
		}
	}
	return sum
}
