package smooth

import (
	"context"
	"fmt"
	"slices"

	"ndls/group"
	"ndls/internal/chebyshev"
	"ndls/internal/packed"
)

// negligible is the share of all weights of a node below which later ones are left out: it is far below the rounding of float32 rows.
const negligible = 0x1p-30

// series goes through the weights by which a rule adds up T_j Z of Chebyshev's polynomials, j = 0, 1, …, in place of hops:
//
//	Σ_k a_k Z^(k) = Σ_j w_j T_j Z,    w_j = Σ_k a_k c_kj
//
// Package chebyshev says what c_kj is.
type series struct {
	*chebyshev.Coefficients
	weights, finals []float64 // by hop; finals may be nil, and is then weights
	// column holds w_j by count, from 0 to the number of weights.
	column []float64
}

// newSeries returns the series at j = 0.
func newSeries(weights, finals []float64) *series {
	n := len(weights)
	x := &series{Coefficients: chebyshev.New(n), weights: weights, finals: finals, column: make([]float64, n+1)}
	if finals == nil {
		x.finals = weights
	}
	x.fill()
	return x
}

// next goes on to the next j.
func (x *series) next() {
	x.Next()
	x.fill()
}

// fill computes the column.
func (x *series) fill() {
	sum := 0.0
	for k := range x.weights {
		p := x.At(k)
		x.column[k+1] = sum + float64(x.finals[k]*p)
		sum += float64(x.weights[k] * p)
	}
}

// tails is a series with what comes after it.
type tails struct {
	*series
	// left holds, by count, the share of all weights that those of T_{j+1}, T_{j+2}, … have.
	left, total []float64
}

func newTails(weights, finals []float64) *tails {
	x := &tails{series: newSeries(weights, finals)}
	x.left, x.total = make([]float64, len(x.column)), make([]float64, len(x.column))
	sum := 0.0
	for k, w := range weights {
		x.total[k+1] = sum + x.finals[k]
		sum += w
	}
	for count, total := range x.total {
		if total > 0 {
			x.left[count] = 1
		}
	}
	x.take()
	return x
}

func (x *tails) next() {
	x.series.next()
	x.take()
}

// take takes the weights of the column from those that are left.
func (x *tails) take() {
	for count, w := range x.column {
		switch {
		case x.Degree() >= count-1:
			x.left[count] = 0
		case x.total[count] > 0:
			x.left[count] -= w / x.total[count]
		}
	}
}

// degree returns the least J at which no count that occurs has more than tolerance of its weights after T_J.
func degree(weights, finals []float64, occurs []bool, tolerance float64) int {
	x := newTails(weights, finals)
	for slices.Contains(occurs, true) {
		open := false
		for count, is := range occurs {
			open = open || is && x.left[count] > tolerance
		}
		if !open {
			break
		}
		x.next()
	}
	return x.Degree()
}

// endsOf returns, by count, the last j whose weight is not left out where sums are cut after T_most.
func endsOf(weights, finals []float64, most int) []uint16 {
	x := newTails(weights, finals)
	lasts := make([]uint16, len(x.left))
	for ; x.Degree() < most; x.next() {
		for count, left := range x.left {
			if left > negligible {
				lasts[count] = uint16(x.Degree() + 1)
			}
		}
	}
	return lasts
}

// recurs reports whether hops may be replaced by a recurrence.
func (o Options) recurs() bool {
	everyHop := len(o.Keep) > 0 || o.After != nil && o.Depths == 0
	return o.Tolerance > 0 && o.Rule.Sums() && !o.Rule.Walk && !o.Rule.changes && !everyHop
}

// Passes returns the number of passes of a block where some nodes count so many hops, and others fewer.
func (o Options) Passes(hops int) int {
	if !o.recurs() || hops < 1 {
		return hops
	}
	x := &Smoother{o: o}
	x.weigh(hops + 1)
	occurs := make([]bool, hops+2)
	for count := range occurs {
		occurs[count] = count == hops+1 || o.Rule.NodeDependent
	}
	return degree(x.weights, x.finals, occurs, o.Tolerance)
}

// chooseDegree decides whether the rule adds up T_j Z, after the counts are known, of which the
// largest of all nodes of all workers is most. The decision does not depend on the targets, so that
// a row has the same bits whatever other rows are asked for. All workers of the group agree.
func (s *Smoother) chooseDegree(ctx context.Context, most int) error {
	if most < 2 || s.o.Depths > 0 && s.o.Passes(s.o.Depths) >= s.o.Depths {
		return nil
	}
	occurs := make([]bool, most+1-s.plain)
	for _, count := range s.counts.S {
		if count := int(count) - s.plain; count > 1 || s.plain == 0 {
			occurs[count] = true
		}
	}
	for count := range occurs {
		occurs[count] = occurs[count] || s.o.Depths > 0 // as a depth
	}
	weights, finals := s.leaving().later()
	all, err := group.Max(ctx, s.g.Group, degree(weights, finals, occurs, s.o.Tolerance))
	if err != nil {
		return fmt.Errorf("polynomials of all workers: %w", err)
	}
	if all >= most-1 && s.plain == 0 {
		return nil
	}
	s.ends = make([]uint16, s.plain, most+1)
	for count := range s.ends {
		s.ends[count] = uint16(max(count-1, 0))
	}
	for count, end := range endsOf(weights, finals, all) {
		s.ends = append(s.ends, uint16(s.plain)+end)
		if s.plain > 0 && count < 2 {
			s.ends[s.plain+count] = uint16(s.plain + count - 1)
		}
	}
	last := 0 // of the targets
	clear(s.most)
	for i := range s.n {
		if s.o.Targets.Has(i) {
			strip, end := &s.most[i>>packed.StripShift], s.ends[s.counts.S[i]]
			*strip, last = max(*strip, end+1), max(last, int(end))
		}
	}
	if s.o.Depths > 0 {
		last = s.plain + all
	}
	if s.hops, err = group.Max(ctx, s.g.Group, last); err != nil {
		return fmt.Errorf("polynomials of all workers: %w", err)
	}
	return nil
}

// turns goes through the weights with which a smoother adds T_j Z.
type turns struct {
	*series
	ends  []uint16
	plain int
	// weight holds the weights of the T_j Z that a pass makes, by count. It is 0 where they are left out.
	weight []float32
}

// newTurns returns the weights of T_0 Z. It returns nil if the smoother adds up hops.
func (s *Smoother) newTurns() *turns {
	if s.ends == nil {
		return nil
	}
	weights, finals := s.leaving().later()
	t := &turns{series: newSeries(weights, finals), ends: s.ends, plain: s.plain}
	t.weight = make([]float32, s.plain+len(t.column))
	t.round()
	return t
}

// to goes on to T_j Z. t may be nil.
func (t *turns) to(j int) {
	if t == nil {
		return
	}
	for t.Degree() < j {
		t.next()
	}
	t.round()
}

func (t *turns) round() {
	for later, w := range t.column {
		count := t.plain + later
		if t.weight[count] = 0; t.plain+t.Degree() <= int(t.ends[count]) && (t.plain == 0 || later > 1) {
			t.weight[count] = float32(w)
		}
	}
}
