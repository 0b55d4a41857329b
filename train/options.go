package train

import (
	"ndls/internal/elementary"
)

// These are the schedules of the learning rate.
const (
	// Constant keeps the rate.
	Constant = "constant"
	// Cosine lowers it along half a cosine, from LR in the first epoch towards 0 after the last.
	Cosine = "cosine"
)

// These say what chooses the weights of a run.
const (
	ByMeasure = "measure"
	ByLoss    = "loss"
)

// Options decides the weights, together with the rows, labels and splits. The plan has
// checked the values.
type Options struct {
	// Ridge makes linear models by ridge regression in place of training: Measure and Choose choose the penalty. Other
	// options but Runs and Standardize have no effect.
	Ridge bool
	// Hidden is the width of each hidden layer, Layers the number of linear
	// layers: 1 is logistic regression.
	Hidden, Layers int
	// Dropout and InputDropout are the shares of hidden activations and of
	// input values that are set to zero in training, in [0, 1).
	Dropout, InputDropout float64
	// LR is Adam's rate; WeightDecay times the weight is added to its gradient.
	LR, WeightDecay float64
	// Schedule is Constant or Cosine.
	Schedule string
	// Standardize gives each column of the rows that models read mean 0 and deviation 1 on the training rows.
	Standardize bool
	// LayerNorm normalises the outputs of each hidden layer before its rectifier.
	LayerNorm bool
	// Task is the task of the problem.
	Task Task
	// Measure is a measure of the validation rows among [Task.Measures]; "" is Accuracy, and Determination for
	// [Regress].
	Measure string
	// Choose says which weights of a run are kept: ByMeasure (also ""), those with the highest
	// Measure, and of equals those with the lower loss; or ByLoss, those with the lowest loss on the
	// validation rows. Of equals the earliest are kept.
	Choose string
	// Epochs is the largest number of epochs. Training stops earlier when
	// Patience epochs in a row were no better by Choose; 0 never stops early.
	Epochs, Patience int
	// BatchSize is the number of rows of one step. 0, or at least the number of training rows,
	// takes all of them.
	BatchSize int
	// Runs is the number of models. Run r of a seed is the same model for any number of runs.
	Runs int
	Seed uint64
}

// rate returns the learning rate of an epoch, counted from 0.
func (o Options) rate(epoch int) float64 {
	if o.Schedule == Cosine {
		return o.LR * elementary.HalfCosine(float64(epoch)/float64(o.Epochs))
	}
	return o.LR
}
