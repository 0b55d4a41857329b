package train

import (
	"gonum.org/v1/gonum/stat"
)

// Argmax is the class of the largest probability, the first of equals.
func Argmax(p []float32) int32 {
	best := 0
	for j, v := range p {
		if v > p[best] {
			best = j
		}
	}
	return int32(best)
}

// Tally counts labelled rows and right predictions in each split. The zero
// value is empty.
type Tally struct {
	Right [numSplits]int64 `json:"right"`
	Rows  [numSplits]int64 `json:"rows"`
}

// Add counts consecutive rows: the probabilities of each, its label and its
// split. Rows without a label (-1) are left out.
func (t *Tally) Add(probability []float32, labels []int32, splits []uint8) {
	if len(labels) == 0 {
		return
	}
	classes := len(probability) / len(labels)
	for i, label := range labels {
		if label < 0 {
			continue
		}
		t.Rows[splits[i]]++
		if Argmax(probability[i*classes:(i+1)*classes]) == label {
			t.Right[splits[i]]++
		}
	}
}

// Count counts consecutive rows: the predicted class of each, its label and its split. Rows
// without a label (-1) are left out.
func (t *Tally) Count(predicted, labels []int32, splits []uint8) {
	for i, label := range labels {
		if label < 0 {
			continue
		}
		t.Rows[splits[i]]++
		if predicted[i] == label {
			t.Right[splits[i]]++
		}
	}
}

// Merge adds what another tally counted.
func (t *Tally) Merge(other Tally) {
	for i := range t.Rows {
		t.Rows[i] += other.Rows[i]
		t.Right[i] += other.Right[i]
	}
}

// Accuracy is the share of right predictions in a split, 0 without rows, and the
// number of rows it was taken over.
func (t *Tally) Accuracy(split uint8) (share float64, rows int64) {
	if rows = t.Rows[split]; rows > 0 {
		share = float64(t.Right[split]) / float64(rows)
	}
	return share, rows
}

// Stat is a mean over runs and its sample standard deviation, which is 0 for a
// single run.
type Stat struct{ Mean, Std float64 }

// Summarize returns the Stat of x, the zero value without numbers.
func Summarize(x []float64) Stat {
	switch len(x) {
	case 0:
		return Stat{}
	case 1:
		return Stat{Mean: x[0]}
	}
	mean, std := stat.MeanStdDev(x, nil)
	return Stat{Mean: mean, Std: std}
}
