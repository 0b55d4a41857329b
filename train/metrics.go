package train

import (
	"math"
	"unsafe"

	"ndls/internal/mem"
)

// Argmax returns the class of the largest probability, the first of equals.
func Argmax(p []float32) int32 {
	best := 0
	for j, v := range p {
		if v > p[best] {
			best = j
		}
	}
	return int32(best)
}

// Tally counts labelled rows and right predictions in each split, together and by class. Where a row
// has several labels, it counts the labels, and where it has numbers, it measures them. The zero value is empty.
type Tally struct {
	Right [numSplits]int64 `json:"right"`
	Rows  [numSplits]int64 `json:"rows"`
	// Classes counts by class, for each split. It ends with the last class that occurs.
	Classes [numSplits][]ClassTally `json:"classes"`
	// space is the memory in which Classes grow, unless it is nil.
	space [numSplits][]ClassTally
}

// ClassTally counts rows by class: rows that have it, rows predicted to have it, and rows of which
// both are true.
type ClassTally struct {
	Rows      int64 `json:"rows"`
	Predicted int64 `json:"predicted"`
	Right     int64 `json:"right"`
	// Numbers is set for rows with numbers in place of classes.
	Numbers NumberTally `json:"numbers,omitzero"`
}

// NumberTally measures predictions z of numbers y.
type NumberTally struct {
	Rows int64 `json:"rows"`
	// Mean is the mean of y, Squares the sum of (y − mean)².
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
	// SquaredErrors is the sum of (y − z)², Errors that of |y − z|.
	SquaredErrors float64 `json:"squared_errors"`
	Errors        float64 `json:"errors"`
}

// add measures a prediction.
func (t *NumberTally) add(y, z float64) {
	t.Rows++
	d := y - t.Mean
	t.Mean += d / float64(t.Rows)
	t.Squares += float64(d * (y - t.Mean))
	t.SquaredErrors += float64((y - z) * (y - z))
	t.Errors += math.Abs(y - z)
}

// merge adds the measurements of other rows (Chan, Golub and LeVeque 1979).
func (t *NumberTally) merge(o NumberTally) {
	if o.Rows == 0 {
		return
	}
	n, m := float64(t.Rows), float64(o.Rows)
	d := o.Mean - t.Mean
	t.Mean += float64(d * (m / (n + m)))
	t.Squares += o.Squares + float64(float64(d*d)*float64(n*(m/(n+m))))
	t.SquaredErrors += o.SquaredErrors
	t.Errors += o.Errors
	t.Rows += o.Rows
}

// Tallies holds tallies whose memory is charged to a budget.
type Tallies struct {
	Of    []Tally
	space *mem.Array[ClassTally]
}

// NewTallies allocates n tallies for rows of so many classes. The caller frees it.
func NewTallies(b *mem.Budget, n, classes int) (*Tallies, error) {
	space, err := mem.Alloc[ClassTally](b, int64(n)*int64(numSplits)*int64(classes), "right predictions by class")
	if err != nil {
		return nil, err
	}
	t := &Tallies{make([]Tally, n), space}
	rest := space.S
	for i := range t.Of {
		for split := range t.Of[i].space {
			t.Of[i].space[split], rest = rest[:0:classes], rest[classes:]
		}
	}
	return t, nil
}

// Free returns the memory. It may be called on nil.
func (t *Tallies) Free() {
	if t != nil {
		t.space.Free()
	}
}

// TalliesBytes returns the memory that NewTallies allocates.
func TalliesBytes(n, classes int) int64 {
	return int64(n)*int64(numSplits)*int64(classes)*int64(unsafe.Sizeof(ClassTally{})) + 4096
}

// Reset empties the tally and keeps its memory.
func (t *Tally) Reset() { *t = Tally{space: t.space} }

// Class returns the counts of a class in a split.
func (t *Tally) Class(split, class int) *ClassTally {
	return &t.upTo(uint8(split), int32(class))[class]
}

// Add counts consecutive rows: the probabilities of each, its label and its
// split. Rows without a label (-1) are left out.
func (t *Tally) Add(probability []float32, labels []int32, splits []uint8) {
	if len(labels) == 0 {
		return
	}
	classes := len(probability) / len(labels)
	for i, label := range labels {
		if label >= 0 {
			t.note(Argmax(probability[i*classes:(i+1)*classes]), label, splits[i])
		}
	}
}

// Count counts consecutive rows: the predicted class of each, its label and its split. Rows
// without a label (-1) are left out.
func (t *Tally) Count(predicted, labels []int32, splits []uint8) {
	for i, label := range labels {
		if label >= 0 {
			t.note(predicted[i], label, splits[i])
		}
	}
}

// AddAnswers counts consecutive rows of a task: the outputs of each, which are probabilities of labels or numbers, what is known of them,
// and their splits. A label with a probability above one half is predicted. NaN stands for what is not known.
func (t *Tally) AddAnswers(task Task, outputs, answers []float32, splits []uint8) {
	if len(splits) == 0 {
		return
	}
	width := len(outputs) / len(splits)
	for i, y := range answers {
		split, k := splits[i/width], i%width
		switch {
		case y != y:
		case task == Label:
			t.noteLabel(k, outputs[i] > 0.5, y > 0, split)
		default:
			t.Rows[split]++
			t.upTo(split, int32(k))[k].Numbers.add(float64(y), float64(outputs[i]))
		}
	}
}

// noteLabel counts a label of a row.
func (t *Tally) noteLabel(label int, predicted, has bool, split uint8) {
	c := &t.upTo(split, int32(label))[label]
	t.Rows[split]++
	if has {
		c.Rows++
	}
	if predicted {
		c.Predicted++
	}
	if predicted && has {
		c.Right++
	}
	if predicted == has {
		t.Right[split]++
	}
}

// Determination returns R² in a split, as the mean over the numbers that vary there; ok is false if none does.
func (t *Tally) Determination(split uint8) (r2 float64, ok bool) {
	n := 0
	for _, c := range t.Classes[split] {
		if x := c.Numbers; x.Squares > 0 {
			r2, n = r2+1-x.SquaredErrors/x.Squares, n+1
		}
	}
	return r2 / float64(max(n, 1)), n > 0
}

// MeanError returns the mean absolute error in a split, as the mean over the numbers; ok is false if there is none.
func (t *Tally) MeanError(split uint8) (mae float64, ok bool) {
	n := 0
	for _, c := range t.Classes[split] {
		if x := c.Numbers; x.Rows > 0 {
			mae, n = mae+x.Errors/float64(x.Rows), n+1
		}
	}
	return mae / float64(max(n, 1)), n > 0
}

// note counts a row.
func (t *Tally) note(predicted, label int32, split uint8) {
	t.Rows[split]++
	classes := t.upTo(split, max(predicted, label))
	classes[label].Rows++
	classes[predicted].Predicted++
	if predicted == label {
		t.Right[split]++
		classes[label].Right++
	}
}

// upTo returns the counts of the classes of a split, extended to include class.
func (t *Tally) upTo(split uint8, class int32) []ClassTally {
	if t.Classes[split] == nil {
		t.Classes[split] = t.space[split]
	}
	if n := int(class) + 1 - len(t.Classes[split]); n > 0 {
		t.Classes[split] = append(t.Classes[split], make([]ClassTally, n)...)
	}
	return t.Classes[split]
}

// Merge adds the counts of another tally.
func (t *Tally) Merge(other Tally) {
	for i := range t.Rows {
		t.Rows[i] += other.Rows[i]
		t.Right[i] += other.Right[i]
		if len(other.Classes[i]) == 0 {
			continue
		}
		classes := t.upTo(uint8(i), int32(len(other.Classes[i])-1))
		for c, x := range other.Classes[i] {
			classes[c].Rows += x.Rows
			classes[c].Predicted += x.Predicted
			classes[c].Right += x.Right
			classes[c].Numbers.merge(x.Numbers)
		}
	}
}

// Precision returns the share of the rows predicted to have the class that have it, 0 without such
// rows.
func (c ClassTally) Precision() float64 { return ratio(c.Right, c.Predicted) }

// Recall returns the share of the rows of the class that are predicted to have it, 0 without such
// rows.
func (c ClassTally) Recall() float64 { return ratio(c.Right, c.Rows) }

// F1 returns the harmonic mean of precision and recall: 2·right / (rows + predicted).
func (c ClassTally) F1() float64 { return ratio(2*c.Right, c.Rows+c.Predicted) }

// MacroF1 returns the mean of F1 over the classes that occur as a label or as a prediction in the
// split; 0 without rows.
func (t *Tally) MacroF1(split uint8) float64 {
	sum, n := 0.0, 0
	for _, c := range t.Classes[split] {
		if c.Rows+c.Predicted > 0 {
			sum, n = sum+c.F1(), n+1
		}
	}
	return sum / float64(max(n, 1))
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Accuracy returns the share of right predictions in a split, 0 without rows, and the number of
// counted rows.
func (t *Tally) Accuracy(split uint8) (share float64, rows int64) {
	if rows = t.Rows[split]; rows > 0 {
		share = float64(t.Right[split]) / float64(rows)
	}
	return share, rows
}
