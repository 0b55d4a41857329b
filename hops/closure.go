package hops

import (
	"math"
	"slices"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// Closure continues settled rows without reading their edges.
type Closure struct {
	last   Lasts
	panels int
	padded int64              // n, up to whole transfers
	decay  *mem.Array[uint16] // by panel and row, in 1/spmv.OneDecay
}

// Lasts writes F of rows first, first+1, … to last: the last hop at which a row is recomputed. Several goroutines call it at the same time.
type Lasts func(first int64, last []uint16)

// AsLasts returns a Lasts for the last hops that last returns. Hops above the range of a Lasts become Never.
func AsLasts(last func(i int64) int) Lasts {
	return func(first int64, to []uint16) {
		for k := range to {
			to[k] = uint16(min(max(last(first+int64(k)), 0), Never))
		}
	}
}

// Never is F(i) of a row that is recomputed at every hop.
const Never = math.MaxUint16

// NewClosure allocates decays for blocks of n rows of the given columns. last returns F, at least 1 for each row.
func NewClosure(b *mem.Budget, n int64, columns int, last Lasts) (*Closure, error) {
	panels := columns / packed.PanelColumns
	a, err := mem.Alloc[uint16](b, int64(panels)*direct.RoundUp(n), "decays")
	return &Closure{last, panels, direct.RoundUp(n), a}, err
}

// ClosureBytes returns the memory of a closure.
func ClosureBytes(n int64, columns int) int64 {
	return int64(columns/packed.PanelColumns) * DecayBytes(n)
}

// DecayBytes returns the size of the decays of a panel, in whole transfers of direct I/O.
func DecayBytes(n int64) int64 { return 2 * direct.RoundUp(n) }

// Free frees the memory. c may be nil.
func (c *Closure) Free() {
	if c != nil {
		c.decay.Free()
	}
}

// Decays returns the decays of the rows of a panel. A state contains them.
func (c *Closure) Decays(panel int) []uint16 {
	return c.decay.S[int64(panel)*c.padded:][:c.padded]
}

// settle returns the function that replaces the settled rows of a hop.
func (c *Closure) settle(hop int, k *spmv.Kernel) spmv.Settle {
	if c == nil {
		return nil
	}
	stride := int64(c.panels * packed.PanelColumns)
	return func(first int64, roles []spmv.Role, rows []float32, before func(lo, hi int64) []float32) error {
		for len(roles) > 0 {
			n := min(spmv.SettleRows, int64(len(roles)))
			c.settleSome(hop, k, first, roles[:n], rows[:n*stride], before)
			first, roles, rows = first+n, roles[n:], rows[n*stride:]
		}
		return nil
	}
}

// settleSome settles at most SettleRows rows.
func (c *Closure) settleSome(hop int, k *spmv.Kernel, first int64, roles []spmv.Role, rows []float32, before func(lo, hi int64) []float32) {
	end := first + int64(len(roles))
	if slices.Contains(roles, spmv.Kept) {
		then := before(first, end)
		for g := range c.panels {
			k.Decay(rows, then, g*packed.PanelColumns, c.Decays(g)[first:end], roles)
		}
	}
	var buf [spmv.SettleRows]uint16
	last := buf[:len(roles)]
	c.last(first, last)
	stride := c.panels * packed.PanelColumns
	for i, f := range last {
		if int(f) == hop && roles[i] == spmv.Computed {
			c.measure(k, first+int64(i), rows[i*stride:(i+1)*stride], before(first+int64(i), first+int64(i)+1))
		}
	}
}

// measure sets the decay of a row at the last hop at which it is recomputed.
func (c *Closure) measure(k *spmv.Kernel, i int64, row, before []float32) {
	for g := range c.panels {
		var now, then [1]float64
		k.SquareNorms(now[:], row[g*packed.PanelColumns:][:packed.PanelColumns])
		k.SquareNorms(then[:], before[g*packed.PanelColumns:][:packed.PanelColumns])
		rate := 0.0
		if then[0] > 0 {
			rate = min(1, math.Sqrt(now[0]/then[0]))
		}
		c.Decays(g)[i] = uint16(math.Round(spmv.OneDecay * rate))
	}
}
