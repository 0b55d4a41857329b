package smooth

import "ndls/internal/packed"

// These are the rules of label propagation, of which Correct & Smooth consists. They are for
// labels, and no option names them as rules of features.

// Propagation is X^(0) after K steps of label propagation
//
//	G ← (1 − share)·X^(0) + share·Â G    from G = X^(0)
//
// with the K of each node: hop k weighs (1 − share)·share^k, and the last one share^k.
func Propagation(share float64) Rule {
	return Rule{
		NodeDependent: true, count: func(k int) int { return k + 1 }, factor: one, residual: none,
		weight: func(hop int) float64 { return decayed(1-share, share, hop) },
		final:  func(hop int) float64 { return decayed(1, share, hop) },
	}
}

// ClampedPropagation returns the rule for the last hop of each node, if known rows are set again
// after each step. After each hop the caller multiplies the rows of the block by share and sets the
// known rows ([Smoother.Clamp]). The last hop is counted before that, and therefore times share.
func ClampedPropagation(share float64) Rule {
	last := func(hop int) float64 {
		if hop == 0 {
			return 1
		}
		return share
	}
	return Rule{
		NodeDependent: true, changes: true, count: func(k int) int { return k + 1 },
		factor: one, residual: none, weight: none, final: last,
	}
}

// decayed returns x times share to the power of hop.
func decayed(x, share float64, hop int) float64 {
	for range hop {
		x *= share
	}
	return x
}

// Final reports whether the last hop of a node has a weight of its own, and K decides which hop
// that is.
func (r Rule) Final() bool { return r.final != nil && r.NodeDependent }

// Clamp multiplies the rows of the block by a factor, except the known rows. These become rows of
// X, which x returns by their number among the known rows. [Options.After] may call it. x is called
// on several threads.
func (s *Smoother) Clamp(factor float32, known *Targets, x func(i int64) []float32) error {
	stride := int64(s.o.Layout.Columns)
	return s.rows.Edit(func(first int64, rows []float32) {
		for c := range rows {
			rows[c] *= factor
		}
		strip := first &^ (packed.StripRows - 1)
		at := known.Before(strip) + known.count(strip, first)
		known.each(first, first+int64(len(rows))/stride, func(i int64) {
			row := rows[(i-first)*stride:][:stride]
			copy(row, x(at))
			s.g.State.Scale(i, row, int(stride))
			at++
		})
	})
}
