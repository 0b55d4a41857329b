package hops

import (
	"math"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// Closure continues settled rows without reading their edges.
type Closure struct {
	until  func(i int64) int
	panels int
	padded int64              // n, up to whole transfers
	decay  *mem.Array[uint16] // of each panel's rows, in 1/oneDecay
}

const oneDecay = math.MaxUint16

// Never is F(i) of a row that is recomputed at every hop.
const Never = math.MaxInt

// NewClosure prepares decays for blocks of n rows of the given columns. until
// gives F(i), the last hop at which row i is recomputed, at least 1. Several goroutines
// call it at the same time.
func NewClosure(b *mem.Budget, n int64, columns int, until func(i int64) int) (*Closure, error) {
	panels := columns / packed.PanelColumns
	a, err := mem.Alloc[uint16](b, int64(panels)*direct.RoundUp(n), "decays")
	return &Closure{until, panels, direct.RoundUp(n), a}, err
}

// ClosureBytes is what a closure takes.
func ClosureBytes(n int64, columns int) int64 {
	return int64(columns/packed.PanelColumns) * DecayBytes(n)
}

// DecayBytes is the size of the decays of a panel, in whole transfers of direct
// I/O.
func DecayBytes(n int64) int64 { return 2 * direct.RoundUp(n) }

// Free returns the memory. It may be called on nil.
func (c *Closure) Free() {
	if c != nil {
		c.decay.Free()
	}
}

// Decays are those of the rows of a panel. A state contains them.
func (c *Closure) Decays(panel int) []uint16 {
	return c.decay.S[int64(panel)*c.padded:][:c.padded]
}

// settle returns what replaces the rows of a hop that have settled.
func (c *Closure) settle(hop int) spmv.Settle {
	if c == nil {
		return nil
	}
	stride := c.panels * packed.PanelColumns
	return func(first int64, roles []spmv.Role, rows []float32, cur func(i int64) []float32) error {
		for k, role := range roles {
			i, row := first+int64(k), rows[k*stride:(k+1)*stride]
			switch {
			case role == spmv.Kept:
				c.scale(i, row, cur(i))
			case role == spmv.Computed && c.until(i) == hop:
				c.measure(i, row, cur(i))
			}
		}
		return nil
	}
}

// measure takes the decay of a row at the last hop at which it is recomputed.
func (c *Closure) measure(i int64, row, before []float32) {
	for g := range c.panels {
		now, then := square(row[g*packed.PanelColumns:]), square(before[g*packed.PanelColumns:])
		rate := 0.0
		if then > 0 {
			rate = min(1, math.Sqrt(now/then))
		}
		c.Decays(g)[i] = uint16(math.Round(oneDecay * rate))
	}
}

func square(x []float32) float64 {
	sum := 0.0
	for _, v := range x[:packed.PanelColumns] {
		sum += float64(float64(v) * float64(v))
	}
	return sum
}

// scale replaces a row by the one before times its decay.
func (c *Closure) scale(i int64, row, before []float32) {
	for g := range c.panels {
		rate := float32(c.Decays(g)[i]) / oneDecay
		for j := g * packed.PanelColumns; j < (g+1)*packed.PanelColumns; j++ {
			row[j] = rate * before[j]
		}
	}
}
