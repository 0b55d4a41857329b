package train

import (
	"fmt"
	"math"

	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/train/dense"
)

// Task says what a model learns of a row.
type Task uint8

// These are the tasks. A model of Label or Regress has an output for each number of a row.
const (
	// Classify learns one class of each row. Outputs are logits, probabilities are their softmax.
	Classify Task = iota
	// Label learns labels of 0 and 1. Outputs are logits, the probability of a label is the sigmoid of its logit.
	Label
	// Regress learns numbers, less their mean over the training rows and divided by their deviation. Outputs are the numbers.
	Regress
)

// softplus returns log(1 + e^z).
func softplus(z float64) float64 { return max(z, 0) + elementary.Log(1+elementary.Exp(-math.Abs(z))) }

// sigmoid returns 1 / (1 + e^-z).
func sigmoid(z float64) float64 {
	e := elementary.Exp(-math.Abs(z))
	if z < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// scales holds the mean and the deviation of each number over the training rows, for Regress; nil for other tasks.
type scales struct{ mean, deviation *mem.Array[float64] }

func scalesBytes(task Task, numbers int) int64 {
	if task != Regress {
		return 0
	}
	return 2 * (8*int64(numbers) + 4096)
}

// rowsTogether is the number of rows whose numbers a thread adds up. The sums of all such rows are added in order.
const rowsTogether = 1 << 16

// measureAnswers measures the numbers of the training rows. A deviation of 0 leaves its number at the mean.
func (f *fitting) measureAnswers(threads *threadPool) (err error) {
	p := &f.problem
	if f.options.Task != Regress {
		return nil
	}
	if f.scales.mean, err = mem.Alloc[float64](f.budget, int64(p.Classes), "means of numbers"); err == nil {
		f.scales.deviation, err = mem.Alloc[float64](f.budget, int64(p.Classes), "deviations of numbers")
	}
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	sums := make([]float64, units(len(p.Splits), rowsTogether))
	for k := range p.Classes {
		sum := func(of func(y float64) float64) (total float64) {
			threads.share(len(sums), func(i int) {
				sums[i] = 0
				for row := i * rowsTogether; row < min((i+1)*rowsTogether, len(p.Splits)); row++ {
					if y := p.Answers[row*p.Classes+k]; p.Splits[row] == Train && y == y {
						sums[i] += of(float64(y))
					}
				}
			})
			for _, s := range sums {
				total += s
			}
			return total
		}
		n := max(sum(func(float64) float64 { return 1 }), 1)
		mean := sum(func(y float64) float64 { return y }) / n
		squares := sum(func(y float64) float64 { return float64((y - mean) * (y - mean)) })
		f.scales.mean.S[k], f.scales.deviation.S[k] = mean, math.Sqrt(squares/n)
	}
	return nil
}

func (s scales) free() {
	s.mean.Free()
	s.deviation.Free()
}

// scaled returns a number less its mean and divided by its deviation, 0 where that is 0.
func (s scales) scaled(y float32, k int) float64 {
	if s.deviation.S[k] == 0 {
		return 0
	}
	return (float64(y) - s.mean.S[k]) / s.deviation.S[k]
}

// restore puts means and deviations of the numbers into the last layer, so that the outputs of the model are the numbers.
func (s scales) restore(m *Model) {
	if s.mean == nil {
		return
	}
	weights, biases := m.layer(m.params, m.layers()-1)
	for i, w := range weights {
		weights[i] = float32(float64(w) * s.deviation.S[i%len(biases)])
	}
	for k, b := range biases {
		biases[k] = float32(float64(float64(b)*s.deviation.S[k]) + s.mean.S[k])
	}
}

// lossOf returns the loss of a row and, unless share is 0, replaces its outputs by share times the gradient. A row of Label has the mean
// of the negative log-likelihoods of its labels, one of Regress the mean of the squared errors; a number that is not known adds 0.
func (f *fitting) lossOf(z []float32, answers []float32, share float64) (loss float64) {
	each := 1 / float64(len(z))
	for k, x := range z {
		y, slope, part := answers[k], 0.0, 0.0
		switch {
		case y != y: // not known
		case f.options.Task == Label:
			part, slope = softplus(float64(x))-float64(float64(x)*float64(y)), sigmoid(float64(x))-float64(y)
		default:
			slope = float64(x) - f.scales.scaled(y, k)
			part, slope = float64(slope*slope), 2*slope
		}
		loss += float64(part * each)
		if share != 0 {
			z[k] = float32(float64(slope*each) * share)
		}
	}
	return loss
}

// gradientOf replaces the outputs of sample i of a microbatch by share times the gradient of its loss, and returns the loss.
func (f *fitting) gradientOf(p microbatch, i int, outputs []float32, share float64, space []float64) float64 {
	if f.options.Task == Classify {
		return lossGradient(f.kernel, outputs, p.label(i), share, space)
	}
	return f.lossOf(outputs, p.answers(i), share)
}

// predict writes what outputs say of a row to out: probabilities, or numbers. p is space for as many values.
func (t Task) predict(k *dense.Kernel, outputs []float32, p []float64, out []float32, row int64) error {
	if t == Classify {
		return probabilities(k, outputs, p, out, row)
	}
	for i, z := range outputs {
		if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			return fmt.Errorf("train: row %d has a value that is not finite or too large: run ndls smooth again", row)
		}
		if out[i] = z; t == Label {
			out[i] = float32(sigmoid(float64(z)))
		}
	}
	return nil
}
