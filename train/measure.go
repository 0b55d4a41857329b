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

// needsAll reports whether a measure needs all validation rows in one place. Workers that train
// together then each measure all of them.
func needsAll(measure string) bool { return measure == MacroF1 || measure == AUC }

// measuring measures the weights of a run on the validation rows.
type measuring struct {
	measure string
	classes int
	// pieces cuts the validation rows, losses holds the sum of each piece: 0 for rows of other
	// workers.
	pieces pieces
	losses []float64
	right  int
	tally  *Tallies           // of MacroF1
	keys   *mem.Array[uint32] // of AUC: those of the first class, then those of the next
	curves []float64          // of AUC: the area of each class, below 0 where there is none
}

// curveClasses returns the number of classes with an area: for two classes the second alone.
func curveClasses(classes int) int {
	if classes == 2 {
		return 1
	}
	return classes
}

// measuringBytes returns the memory for so many validation rows.
func measuringBytes(measure string, rows int64, classes int) int64 {
	switch measure {
	case MacroF1:
		return TalliesBytes(1, classes)
	case AUC:
		return 4*rows*int64(curveClasses(classes)) + 8*int64(curveClasses(classes)) + 2*4096
	}
	return 0
}

func newMeasuring(b *mem.Budget, measure string, rows int64, classes int) (m *measuring, err error) {
	m = &measuring{measure: measure, classes: classes, pieces: cutStep(rows)}
	m.losses = make([]float64, m.pieces.count)
	switch measure {
	case MacroF1:
		m.tally, err = NewTallies(b, 1, classes)
	case AUC:
		if m.keys, err = mem.Alloc[uint32](b, rows*int64(curveClasses(classes)), "scores of validation rows"); err == nil {
			m.curves = make([]float64, curveClasses(classes))
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
	m.right = 0
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
	rows := len(m.keys.S) / len(m.curves)
	for k := range m.curves {
		class := first + k
		key := math.Float32bits(float32(p[class]*(1/norm))+0) << 1 // a probability is at most 1, whose bits leave one free
		if int(label) == class {
			key |= 1
		}
		m.keys.S[k*rows+int(row)] = key
	}
}

// areas returns the mean area over the classes that have one, 0 if none has.
func (m *measuring) areas(threads *threadPool) float64 {
	rows := len(m.keys.S) / len(m.curves)
	threads.share(len(m.curves), func(k int) { m.curves[k] = areaOf(m.keys.S[k*rows : (k+1)*rows]) })
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
	slices.Sort(keys)
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

// end combines the measurements of all workers into e.
func (m *measuring) end(ctx context.Context, t *trainer, e *Epoch) error {
	if t.together() && !needsAll(m.measure) {
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
	e.ValidAccuracy = float64(m.right) / float64(t.validation)
	switch e.ValidMeasure = e.ValidAccuracy; m.measure {
	case MacroF1:
		e.ValidMeasure = m.tally.Of[0].MacroF1(Valid)
	case AUC:
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
				row, label := net.logits(i), p.label(i)
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
