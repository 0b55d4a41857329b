package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

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

// Options decides the weights, together with the rows, labels and splits. The zero value is
// refused.
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

// Validate names the first invalid option by its flag.
func (o Options) Validate() error {
	share := func(x float64) bool { return x >= 0 && x < 1 }
	for _, c := range []struct {
		ok    bool
		flag  string
		value any
		want  string
	}{
		{o.Layers >= 1 && o.Layers <= maxLayers, "layers", o.Layers, fmt.Sprintf("from 1 to %d", maxLayers)},
		{o.Hidden >= 1 && o.Hidden <= maxDim, "hidden", o.Hidden, fmt.Sprintf("from 1 to %d", maxDim)},
		{share(o.Dropout), "dropout", o.Dropout, "at least 0 and below 1"},
		{share(o.InputDropout), "input-dropout", o.InputDropout, "at least 0 and below 1"},
		{o.LR > 0 && o.LR <= math.MaxFloat32, "lr", o.LR, "positive and finite"},
		{o.WeightDecay >= 0 && o.WeightDecay <= math.MaxFloat32, "weight-decay", o.WeightDecay, "finite and not negative"},
		{o.Schedule == Constant || o.Schedule == Cosine, "schedule", o.Schedule, Constant + " or " + Cosine},
		{o.Measure == "" || slices.Contains(o.Task.Measures(), o.Measure), "metrics", o.Measure, strings.Join(o.Task.Measures(), ", ")},
		{!o.Ridge || o.Task == Classify, "model", "ridge", "a perceptron for labels and numbers"},
		{o.Choose == "" || o.Choose == ByMeasure || o.Choose == ByLoss, "choose", o.Choose, ByMeasure + " or " + ByLoss},
		{o.Epochs >= 1, "epochs", o.Epochs, "at least 1"},
		{o.Patience >= 0, "patience", o.Patience, "at least 0"},
		{o.BatchSize >= 0, "batch-size", o.BatchSize, "at least 0 (0 takes all rows)"},
		{o.Runs >= 1, "runs", o.Runs, "at least 1"},
	} {
		if !c.ok {
			return fmt.Errorf("train: --%s is %v and must be %s", c.flag, c.value, c.want)
		}
	}
	return nil
}

// rate returns the learning rate of an epoch, counted from 0.
func (o Options) rate(epoch int) float64 {
	if o.Schedule == Cosine {
		return o.LR * elementary.HalfCosine(float64(epoch)/float64(o.Epochs))
	}
	return o.LR
}
