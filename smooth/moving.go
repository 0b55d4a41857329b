package smooth

import (
	"context"
	"fmt"
	"slices"

	"ndls/hops"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// PlainHops and mostPlainHops bound the number of hops that are made before rows that stand are left out.
const PlainHops, mostPlainHops = 8, 24

// stands reports whether rows that stand may be left out.
func (o Options) stands() bool {
	return o.Standing > 0 && o.recurs() && o.Rule.NodeDependent && o.Depths == 0
}

// leaving leaves out the rows that stand: it finds those that move, and adds to the others what later hops would.
type leaving struct{ *Smoother }

func (s *Smoother) leaving() leaving { return leaving{s} }

// findMoving finds the rows that the hops after the first ones need, where nodes count at most so many hops.
func (s leaving) findMoving(ctx context.Context, most int) (err error) {
	if !s.o.stands() {
		return nil
	}
	last := min(mostPlainHops, most-3)
	s.moving, s.finding, err = s.g.FindMoving(ctx, hops.Standing{
		Amount: s.o.Standing, First: PlainHops, Last: last, Share: s.sharesAfter(PlainHops, last),
		All: s.o.Passes(most - 1), Later: func(hop int) int {
			weights, finals := s.weightsAfter(hop)
			return degree(weights, finals, slices.Repeat([]bool{true}, len(weights)+1), s.o.Tolerance)
		},
	}, s.o.Layout)
	if err != nil {
		return fmt.Errorf("rows that move: %w", err)
	}
	s.plain = s.moving.After(0)
	return nil
}

// sharesAfter returns a function that gives the share of the sum of node i that hops after one of first, …, last have.
func (s leaving) sharesAfter(first, last int) func(i int64, hop int) float64 {
	var totals [][]float64
	for hop := first; hop <= last; hop++ {
		totals = append(totals, newTails(s.weightsAfter(hop)).total)
	}
	return func(i int64, hop int) float64 {
		count := int(s.counts.S[i])
		if count <= hop+1 {
			return 0
		}
		return s.o.Rule.factor(count) * totals[hop-first][count-hop]
	}
}

// later returns the weights of the hops that polynomials replace, counted from the last plain one, which is added before.
func (s leaving) later() (weights, finals []float64) { return s.weightsAfter(s.plain) }

// weightsAfter returns the weights of hops from one on, whose own weight is 0 unless it is hop 0.
func (s leaving) weightsAfter(plain int) (weights, finals []float64) {
	if plain == 0 {
		return s.weights, s.finals
	}
	weights = slices.Clone(s.weights[plain:])
	weights[0] = 0
	if s.finals != nil {
		finals = slices.Clone(s.finals[plain:])
		finals[0] = 0
	}
	return weights, finals
}

// leave goes on from the last plain hop to polynomials of the rows that move. Later hops of a row are its stationary row, which is added
// with the weights of all of them at once, and what polynomials make of its difference from that.
func (s leaving) leave(ctx context.Context, w walk, add func(first int64, rows []float32)) error {
	mean, err := s.g.State.NewMean(s.o.Layout.Columns)
	if err != nil {
		return err
	}
	defer mean.Free()
	if err := s.g.Deflate(ctx, s.rows, mean); err != nil {
		return err
	}
	for _, x := range w.of {
		if err := x.leaving().addMean(mean); err != nil {
			return err
		}
	}
	if err := w.moving.Clear(s.rows); err != nil {
		return err
	}
	return s.addFirst(add)
}

// addMean adds the stationary rows to the sums of the targets that count later hops.
func (s leaving) addMean(mean *stationary.Mean) error {
	weights, finals := s.later()
	total := newTails(weights, finals).total
	columns := s.o.Layout.Columns
	return share.Each(s.g.Threads, packed.Strips(s.n), func(strip int) error {
		if int(s.most[strip]) <= s.plain+1 {
			return nil
		}
		lo := int64(strip) << packed.StripShift
		return s.sums.with(0, lo, change, func(sum []float32) error {
			s.o.Targets.each(lo, min(lo+packed.StripRows, s.n), func(i int64) {
				if later := int(s.counts.S[i]) - s.plain; later > 1 {
					for c, x := range mean.Row(i) {
						sum[c] += float32(total[later] * x)
					}
				}
				sum = sum[columns:]
			})
			return nil
		})
	})
}

// movingBytes returns the memory of leaving out rows that stand, in blocks of a layout.
func (o Options) movingBytes(c hops.Capacity, l spmv.Layout) int64 {
	bytes := int64(0)
	for _, b := range o.Beside {
		bytes += o.alone(b).movingBytes(c, l)
	}
	if o.stands() {
		bytes += c.MovingBytes(l) + 8*c.Components*int64(l.Columns) + 4096
	}
	return bytes
}
