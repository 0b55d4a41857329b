package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/group"
	"ndls/internal/mem"
)

// These are the measures by which the weights of a run are chosen.
const (
	// Accuracy is the share of the validation rows whose most probable class is their label.
	Accuracy = "accuracy"
	// MacroF1 is the mean of F1 over the classes that occur as a label or as a prediction of the
	// validation rows.
	MacroF1 = "f1"
	// AUC is the area under the ROC curve. For two classes it is the area of the second; for more
	// it is the mean over the classes that some validation rows have and some have not.
	AUC = "auc"
)

// These are measures beside those of classes.
const (
	// Precision is the average precision: the sum over rows with the class of the precision among the rows with at least their
	// probability, divided by their number. Means are over the classes of AUC, or over all labels.
	Precision = "ap"
	// Determination is the coefficient of determination R², 1 − Σ(y−z)²/Σ(y−ȳ)², as a mean over the numbers that vary. MeanError is
	// the mean of |y−z| over the numbers.
	Determination = "r2"
	MeanError     = "mae"
)

// Measures returns the measures that may choose weights, the default first.
func (t Task) Measures() []string {
	switch t {
	case Label:
		return []string{AUC, Precision, MacroF1, Accuracy}
	case Regress:
		return []string{Determination}
	}
	return []string{Accuracy, MacroF1, AUC}
}

// needsAll reports whether a measure needs all validation rows in one place. Workers that train
// together then each measure all of them.
func (o Options) needsAll() bool {
	return o.Task != Classify || o.Measure != "" && o.Measure != Accuracy
}

// measuring measures the weights of a run on the validation rows.
type measuring struct {
	Options
	classes int
	// pieces cuts the validation rows, losses holds the sum of each piece: 0 for rows of other
	// workers.
	pieces pieces
	losses []float64
	// right counts right predictions among known: of rows, or of labels.
	right, known int
	tally        *Tallies           // of MacroF1 and of Regress
	keys         *mem.Array[uint32] // of AUC and Precision: those of the first class, then those of the next
	curves       []float64          // of AUC and Precision: the value of each class, below 0 where there is none
}

// curveClasses returns the number of classes with an area: for two classes the second alone.
func (o Options) curveClasses(classes int) int {
	if o.Task == Classify && classes == 2 {
		return 1
	}
	return classes
}

// measuringBytes returns the memory for so many validation rows.
func measuringBytes(o Options, rows int64, classes int) int64 {
	switch {
	case o.Measure == MacroF1 || o.Task == Regress:
		return TalliesBytes(1, classes)
	case o.Measure == AUC || o.Measure == Precision:
		return 4*rows*int64(o.curveClasses(classes)) + 8*int64(o.curveClasses(classes)) + 2*4096
	}
	return 0
}

func newMeasuring(b *mem.Budget, o Options, rows int64, classes int) (m *measuring, err error) {
	m = &measuring{Options: o, classes: classes, pieces: cutStep(rows)}
	m.losses = make([]float64, m.pieces.count)
	switch {
	case o.Measure == MacroF1 || o.Task == Regress:
		m.tally, err = NewTallies(b, 1, classes)
	case o.Measure == AUC || o.Measure == Precision:
		if m.keys, err = mem.Alloc[uint32](b, rows*int64(o.curveClasses(classes)), "scores of validation rows"); err == nil {
			m.curves = make([]float64, o.curveClasses(classes))
		}
	}
	if err != nil {
		m.free()
		return nil, fmt.Errorf("train: %w", err)
	}
	return m, nil
}

func (m *measuring) free() {
	if m != nil {
		m.tally.Free()
		m.keys.Free()
	}
}

// begin begins an epoch.
func (m *measuring) begin() {
	clear(m.losses)
	m.right, m.known = 0, 0
	if m.tally != nil {
		m.tally.Of[0].Reset()
	}
}

// score stores the probabilities of a row, before the division by norm, if areas are computed.
// Threads may call it concurrently for different rows.
func (m *measuring) score(row int64, p []float64, norm float64, label int32) {
	if m.keys == nil {
		return
	}
	first := m.classes - len(m.curves)
	for k := range m.curves {
		class := first + k
		m.keep(row, k, float32(p[class]*(1/norm)), int(label) == class)
	}
}

// noScore marks a label that is not known: no probability has that key.
const noScore = math.MaxUint32

// keep stores the score of a row for a curve.
func (m *measuring) keep(row int64, curve int, probability float32, has bool) {
	key := math.Float32bits(probability+0) << 1 // a probability is at most 1, whose bits leave one free
	if has {
		key |= 1
	}
	m.keys.S[curve*len(m.keys.S)/len(m.curves)+int(row)] = key
}

// scoreLabels stores the probabilities of the labels of a row, if areas are computed. Threads may call it concurrently for different rows.
func (m *measuring) scoreLabels(row int64, logits, answers []float32) {
	for k := range m.curves {
		if y := answers[k]; y == y {
			m.keep(row, k, float32(sigmoid(float64(logits[k]))), y > 0)
		} else {
			m.keys.S[k*len(m.keys.S)/len(m.curves)+int(row)] = noScore
		}
	}
}

// addAnswers counts a row of labels or numbers.
func (m *measuring) addAnswers(outputs, answers []float32, s scales) {
	for k, y := range answers {
		switch {
		case y != y:
		case m.Task == Regress:
			m.tally.Of[0].Class(int(Valid), k).Numbers.add(s.scaled(y, k), float64(outputs[k]))
		default:
			m.known++
			if m.tally != nil {
				m.tally.Of[0].noteLabel(k, outputs[k] > 0, y > 0, Valid)
			}
			if (outputs[k] > 0) == (y > 0) {
				m.right++
			}
		}
	}
}

// areas returns the mean area or precision over the classes that have one, 0 if none has.
func (m *measuring) areas(threads *threadPool) float64 {
	rows, of := len(m.keys.S)/len(m.curves), areaOf
	if m.Measure == Precision {
		of = precisionOf
	}
	threads.share(len(m.curves), func(k int) { m.curves[k] = of(m.keys.S[k*rows : (k+1)*rows]) })
	sum, n := 0.0, 0
	for _, a := range m.curves {
		if a >= 0 {
			sum, n = sum+a, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// areaOf sorts keys, each a probability and whether its row has the class, and returns the area
// under their curve: -1 if rows with or without the class are missing. There are fewer than 2^32
// keys.
func areaOf(keys []uint32) float64 {
	keys = sortedScores(keys)
	var before, total [2]uint64 // rows without and with the class
	twice := uint64(0)          // twice the number of pairs in the right order, below 2^63
	for at := 0; at < len(keys); {
		var tie [2]uint64
		for p := keys[at] >> 1; at < len(keys) && keys[at]>>1 == p; at++ {
			tie[keys[at]&1]++
		}
		twice += tie[1] * (2*before[0] + tie[0])
		before[0] += tie[0]
		total[0], total[1] = total[0]+tie[0], total[1]+tie[1]
	}
	if total[0] == 0 || total[1] == 0 {
		return -1
	}
	return float64(twice) / (2 * float64(total[0]) * float64(total[1]))
}

// sortedScores sorts keys and returns those of labels that are known.
func sortedScores(keys []uint32) []uint32 {
	slices.Sort(keys)
	for len(keys) > 0 && keys[len(keys)-1] == noScore {
		keys = keys[:len(keys)-1]
	}
	return keys
}

// precisionOf sorts keys and returns their average precision: -1 if rows with or without the class are missing.
func precisionOf(keys []uint32) float64 {
	keys = sortedScores(keys)
	a := averagePrecision{}
	for at := len(keys); at > 0; {
		var tie [2]uint64
		for p := keys[at-1] >> 1; at > 0 && keys[at-1]>>1 == p; at-- {
			tie[keys[at-1]&1]++
		}
		a.add(tie)
	}
	if a.seen[0] == 0 || a.seen[1] == 0 {
		return -1
	}
	return a.value()
}

// averagePrecision adds the rows of one probability after the other, the largest first.
type averagePrecision struct {
	seen [2]uint64 // rows without and with the class
	sum  float64
}

func (a *averagePrecision) add(tie [2]uint64) {
	a.seen[0], a.seen[1] = a.seen[0]+tie[0], a.seen[1]+tie[1]
	if tie[1] > 0 {
		a.sum += float64(float64(tie[1]) * (float64(a.seen[1]) / float64(a.seen[0]+a.seen[1])))
	}
}

func (a *averagePrecision) value() float64 { return a.sum / float64(a.seen[1]) }

// end combines the measurements of all workers into e.
func (m *measuring) end(ctx context.Context, t *trainer, e *Epoch) error {
	if t.together() && !m.needsAll() {
		all := append([]float64{float64(m.right)}, m.losses...)
		if err := group.Totals(ctx, t.group, all); err != nil { // all but one worker add 0
			return err
		}
		m.right = int(all[0])
		copy(m.losses, all[1:])
	}
	e.ValidLoss = 0
	for _, loss := range m.losses {
		e.ValidLoss += loss
	}
	e.ValidLoss /= float64(t.validation)
	if m.Task == Classify {
		m.known = int(t.validation)
	}
	e.ValidAccuracy = float64(m.right) / float64(max(m.known, 1))
	switch e.ValidMeasure = e.ValidAccuracy; {
	case m.Task == Regress:
		e.ValidMeasure, _ = m.tally.Of[0].Determination(Valid)
	case m.Measure == MacroF1:
		e.ValidMeasure = m.tally.Of[0].MacroF1(Valid)
	case m.Measure == AUC || m.Measure == Precision:
		e.ValidMeasure = m.areas(t.net.pool)
	}
	return nil
}

// validate measures the weights on the validation rows. It adds the losses of the rows of a piece
// in their order, and then the losses of the pieces.
func (t *trainer) validate(ctx context.Context, e *Epoch) error {
	m, net := t.measuring, t.net
	m.begin()
	at, piece := t.validFrom, 0
	measure := func(p microbatch) error { //nolint:unparam // a visitor
		n := p.len()
		net.pool.rows(n, func(thread, lo, hi int) {
			net.forward(thread, net.enter(p.x[lo*p.width:hi*p.width], lo, hi), lo, hi, nil)
			for i := lo; i < hi; i++ {
				row := net.logits(i)
				if t.options.Task != Classify {
					net.sum[i] = t.lossOf(row, p.answers(i), 0)
					m.scoreLabels(at+int64(i), row, p.answers(i))
					continue
				}
				label := p.label(i)
				norm, largest := softmax(t.kernel, row, net.p[thread])
				net.sum[i] = negativeLog(row[label], norm, largest)
				net.class[i] = Argmax(row)
				m.score(at+int64(i), net.p[thread], norm, label)
			}
		})
		for i, loss := range net.sum[:n] {
			for at >= m.pieces.at(piece+1) {
				piece++
			}
			m.losses[piece] += loss
			at++
			if t.options.Task != Classify {
				m.addAnswers(net.logits(i), p.answers(i), t.scales)
				continue
			}
			if label := p.label(i); m.tally != nil {
				m.tally.Of[0].note(net.class[i], label, Valid)
			}
			if net.class[i] == p.label(i) {
				m.right++
			}
		}
		return nil
	}
	if err := t.sampler.inOrder(ctx, t.valid, func(p microbatch) error {
		return p.pieces(ctx, net.rows, int(net.threads)*takenRows, measure)
	}); err != nil {
		return err
	}
	return m.end(ctx, t, e)
}
