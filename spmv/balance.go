package spmv

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ndls/group"
	"ndls/internal/failure"
	"ndls/internal/packed"
)

// ErrConservation reports a pass after which Σ_i d̃_i Z_i differs: an edge was
// lost, doubled or misplaced. In a graph with directions it reports a pass after which
// Σ_i v_i Z_i, with the divisors v, is not the sum before of each row times how often it was added.
var ErrConservation = errors.New("conservation of the degree-weighted sum is violated: edges or rows are not what they were; run ndls verify, and then the same command, and look at the memory of this machine if it fails again")

// TooLarge is the error about values that a column block, or what is added up of it,
// cannot hold.
func TooLarge(p Precision) error {
	if p == Float16 {
		return failure.Of(failure.ErrData, "the values of a column are too large for float16, whose largest value is 65504: use --precision float32, or scale the features down before you import them")
	}
	return failure.Of(failure.ErrData, "the values of a column are too large: their sums pass 3.4e38, the largest float32: scale the features down before you import them")
}

// sum finds the degree-weighted sums of the rows before a hop, and of those before them if the block holds them.
func (p *Pass) sum(b *Block) (err error) {
	if b.held {
		if b.earlier, err = p.sumOf(b, b.readBefore); err != nil {
			return err
		}
	}
	b.totals, err = p.sumOf(b, b.read)
	b.summed = true
	return err
}

// sumOf is sum for the rows of strips that read gives.
func (p *Pass) sumOf(b *Block, read func(t *thread, strip int) (Rows, error)) ([2 * packed.PanelColumns]float64, error) {
	for _, t := range b.threads {
		t.totals = [2 * packed.PanelColumns]float64{}
	}
	err := b.parallel(b.strips(), func(t *thread, s int) error {
		r, err := read(t, s)
		if err != nil {
			return err
		}
		lo, _ := b.bounds(s)
		var buf []float32
		for at := int64(0); at < r.Len(); at += visitRows {
			part := r.Slice(at, min(at+visitRows, r.Len()))
			rows := part.S
			if part.H != nil {
				if buf == nil {
					buf = make([]float32, visitRows*part.Stride)
				}
				rows = buf[:len(part.H)]
				p.Kernel.Widen(rows, part.H)
			}
			p.Kernel.WeightedSums(&t.totals, rows, t.uses(p, lo+at, lo+at+part.Len()))
		}
		return nil
	})
	return b.addTotals(), err
}

// addSent adds up what the threads found for the next hop.
func (b *Block) addSent() (all [2 * packed.PanelColumns]float64) {
	for _, t := range b.threads {
		for c, x := range t.sent {
			all[c] += x
		}
	}
	return all
}

func (b *Block) addTotals() (all [2 * packed.PanelColumns]float64) {
	for _, t := range b.threads {
		for c, x := range t.totals {
			all[c] += x
		}
	}
	return all
}

// balance holds the sums that a hop must conserve: Σ d̃ Z and Σ d̃ |Z| of the first columns, before
// and after it. Before a step of the recurrence, which makes 2 P T_j Z − T_{j−1} Z, these are 2 Σ d̃ T_j Z − Σ d̃ T_{j−1} Z and
// 2 Σ d̃ |T_j Z| + Σ d̃ |T_{j−1} Z|.
type balance struct {
	before, after   [2 * packed.PanelColumns]float64
	volume, squares float64 // Σ d̃ and Σ d̃², or, with weights, Σ (degree + 1)·d̃
	// largest is, with directions, the largest d̃, which counts the rows that are added to a row
	// and the row itself; else it is 0.
	largest float64
}

// balance returns the balance of the block's rows.
func (p *Pass) balance(b *Block) *balance {
	p.once.Do(func() {
		for i, d := range p.Degree {
			d1 := float64(d) + 1
			mass := d1
			switch {
			case p.Sent != nil:
				p.largest = max(p.largest, d1)
			case p.Divisors != nil:
				mass = float64(p.Divisors[i])
			}
			p.volume += mass
			p.squares += float64(d1 * mass)
		}
	})
	before := b.totals
	if b.held {
		for c := range packed.PanelColumns {
			before[c] = float64(2*b.totals[c]) - b.earlier[c]
			before[packed.PanelColumns+c] = float64(2*b.totals[packed.PanelColumns+c]) + b.earlier[packed.PanelColumns+c]
		}
	}
	return &balance{before, b.addTotals(), p.volume, p.squares, p.largest}
}

// gather adds up what all workers found, in their order. When it returns, no worker
// reads rows of the hop any more.
func (s *balance) gather(ctx context.Context, g group.Group) error {
	own := append(append(s.before[:], s.after[:]...), s.volume, s.squares, s.largest)
	lists, err := g.AllGather(ctx, own)
	if err != nil {
		return err
	}
	*s = balance{}
	for _, values := range lists {
		for c := range s.before {
			s.before[c] += values[c]
			s.after[c] += values[len(s.before)+c]
		}
		rest := values[2*len(s.before):]
		s.volume += rest[0]
		s.squares += rest[1]
		s.largest = max(s.largest, rest[2])
	}
	return nil
}

// check compares the sums after a hop with those before. Adding d̃ float32 values one
// after the other can lose d̃·2^−24 of their sum when they are all alike, and a row
// counts d̃ times: that bounds |Σ d̃ Z^(k+1) − Σ d̃ Z^(k)| in shares of Σ d̃ |Z^(k)|. With
// weights a row adds degree + 1 values and counts d̃ = strength + 1 times. With directions what the
// rows hold may come together in a few of them, so that the largest sum bounds the share. A step of the recurrence adds one value
// more to each row, d̃/2 times that of two steps before, and doubles what all of them lose.
func (s *balance) check(p Precision) error {
	tolerance, tiny := 1e-6+0x1p-24*max(s.squares/s.volume, s.largest), 4*floatTiny*max(s.volume, s.squares)
	if p == Float16 {
		tolerance += halfTolerance
		tiny += 4 * halfTiny * s.volume
	}
	for c := range packed.PanelColumns {
		if !finite(s.before[c]) || !finite(s.after[c]) {
			return TooLarge(p)
		}
		if d := math.Abs(s.after[c] - s.before[c]); d > tolerance*s.before[packed.PanelColumns+c]+tiny {
			return fmt.Errorf("column %d of the block went from %g to %g: %w", c, s.before[c], s.after[c], ErrConservation)
		}
	}
	return nil
}

// halfTolerance is the largest share of Σ d̃|Z| that rounding every row to float16 may move: half a
// unit in the last of 11 places, all in one direction. halfTiny is the largest change of a value
// that is too small for 11 places. floatTiny is the largest loss of a product or quotient of
// float32 that is too small for 24 places: a value has one such loss for each added row, with
// weights, and one for its divisor.
const (
	halfTolerance = 0x1p-11
	halfTiny      = 0x1p-25
	floatTiny     = 0x1p-149
)

// finite reports whether x is a number, and not too large for one.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
