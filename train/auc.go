package train

import (
	"errors"
	"math"
	"math/big"
)

// The area under the receiver operating characteristic (ROC AUC) of a class is a share of pairs of
// one row with the class and one without. It counts the pairs in which the row with the class has
// the larger probability of it; a pair with equal probabilities counts half. The average precision
// ([Precision]) needs the same order. Every probability becomes a [Score]. Scores are sorted outside
// of this package, and [Areas] reads them in order.

// Score holds one probability of one row in a number. [Score.Key] is the number by which scores are
// sorted: first by model, split and class, then by probability, the largest first, and last by whether
// the row has the class.
type Score uint64

const (
	scoreModelBits, scoreSplitBits, scoreClassBits, probabilityBits = 15, 2, 14, 32

	// MaxScoredModels and MaxScoredClasses bound the models and classes that a Score can
	// distinguish.
	MaxScoredModels  = 1 << scoreModelBits
	MaxScoredClasses = 1 << scoreClassBits
)

// NewScore packs a probability, which must not be negative.
func NewScore(model int, split uint8, class int, probability float32, has bool) Score {
	s := uint64(model)
	s = s<<scoreSplitBits | uint64(split)
	s = s<<scoreClassBits | uint64(class)
	s = s<<probabilityBits | uint64(math.Float32bits(probability+0)) // -0 becomes 0
	s <<= 1
	if has {
		s |= 1
	}
	return Score(s)
}

// probabilityMask has the bits of the probability.
const probabilityMask = (1<<probabilityBits - 1) << 1

// Key returns the number by which a score is sorted, and KeyScore the score of a key.
func (s Score) Key() uint64 { return uint64(s) ^ probabilityMask }

// KeyScore is described at Key.
func KeyScore(key uint64) Score { return Score(key ^ probabilityMask) }

// group returns the part of a score before the probability.
func (s Score) group() uint64 { return uint64(s) >> (probabilityBits + 1) }

// Area is the ROC AUC of a class, by a model, in a split.
type Area struct {
	Model, Class int
	Split        uint8
	// AUC and Precision are valid if the split has rows with the class and rows without it.
	AUC, Precision float64
	Defined        bool
}

// Areas computes areas from scores in ascending order of their keys. The zero value is ready.
type Areas struct {
	// Done receives each area after all of its scores.
	Done func(Area)

	last  Score
	any   bool
	tie   [2]uint64        // rows without and with the class, of the present probability
	total averagePrecision // of larger ones
	twice big.Int          // twice the number of pairs in the right order
}

// errScores reports that scores were not sorted.
var errScores = errors.New("scores are not in ascending order of their keys")

// Add reads a score that occurs so many times.
func (a *Areas) Add(s Score, times uint64) error {
	switch {
	case !a.any:
	case s.Key() < a.last.Key():
		return errScores
	case s.group() != a.last.group():
		a.endClass()
	case s>>1 != a.last>>1:
		a.endTie()
	}
	a.any, a.last = true, s
	a.tie[s&1] += times
	return nil
}

// Finish ends the last area.
func (a *Areas) Finish() {
	if a.any {
		a.endClass()
	}
	a.any = false
}

// endTie counts the pairs of rows with the class and the present probability.
func (a *Areas) endTie() {
	var pairs, x big.Int
	pairs.SetUint64(2 * a.total.seen[1])
	pairs.Add(&pairs, x.SetUint64(a.tie[1]))
	pairs.Mul(&pairs, x.SetUint64(a.tie[0]))
	a.twice.Add(&a.twice, &pairs)
	a.total.add(a.tie)
	a.tie = [2]uint64{}
}

// endClass reports the area of the present class.
func (a *Areas) endClass() {
	a.endTie()
	g := a.last.group()
	area := Area{
		Model: int(g >> (scoreClassBits + scoreSplitBits)), Class: int(g & (MaxScoredClasses - 1)),
		Split: uint8(g >> scoreClassBits & (1<<scoreSplitBits - 1)),
	}
	if n := a.total.seen; n[0] > 0 && n[1] > 0 {
		var all, x big.Int
		all.Mul(all.SetUint64(2*n[0]), x.SetUint64(n[1]))
		area.AUC, _ = new(big.Rat).SetFrac(&a.twice, &all).Float64()
		area.Precision, area.Defined = a.total.value(), true
	}
	a.Done(area)
	a.total = averagePrecision{}
	a.twice.SetInt64(0)
}
