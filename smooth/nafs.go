package smooth

import (
	"math"

	"ndls/internal/elementary"
)

// Blend makes rows of the rule nafs. The row of node i is the sum of its hops 0 to last, of which
// hop k weighs
//
//	exp(D(k)) / Σ_{l ≤ last} exp(D(l)),    D(k) = ‖X_i^(k) − X_i^∞‖₂
//
// where X_i^∞ is the stationary row: a hop weighs the more the farther it is from that. A Blend is
// not safe for concurrent use.
type Blend struct{ weight, sum []float64 }

// NewBlend returns a Blend for rows of width values at so many hops.
func NewBlend(hops, width int) *Blend {
	return &Blend{make([]float64, hops), make([]float64, width)}
}

// Row makes a row of hops 0 to last. The rows of hops follow each other, stride values apart. The
// stationary row is limit times scale.
func (b *Blend) Row(row, hops []float32, stride, last int, limit []float64, scale float64) {
	width, most := len(b.sum), 0.0
	weight := b.weight[:last+1]
	for k := range weight {
		square := 0.0
		for c, x := range hops[k*stride:][:width] {
			d := float64(x) - float64(scale*limit[c])
			square += float64(d * d)
		}
		weight[k] = math.Sqrt(square)
		most = max(most, weight[k])
	}
	total := 0.0
	for k, d := range weight {
		weight[k] = elementary.Exp(d - most) // the largest power is 1
		total += weight[k]
	}
	clear(b.sum)
	for k, w := range weight {
		w /= total
		for c, x := range hops[k*stride:][:width] {
			b.sum[c] += float64(w * float64(x))
		}
	}
	for c, x := range b.sum {
		row[c] = float32(x)
	}
}
