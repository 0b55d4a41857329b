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
	last   Lasts
	panels int
	padded int64              // n, up to whole transfers
	decay  *mem.Array[uint16] // of each panel's rows, in 1/oneDecay
}

const oneDecay = math.MaxUint16

// Lasts puts F of rows first, first+1, … in last: the last hop at which a row is recomputed.
// Several goroutines call it at the same time.
type Lasts func(first int64, last []uint16)

// AsLasts are the last hops that last gives for each row. Those above what a Lasts can put
// become Never.
func AsLasts(last func(i int64) int) Lasts {
	return func(first int64, to []uint16) {
		for k := range to {
			to[k] = uint16(min(max(last(first+int64(k)), 0), Never))
		}
	}
}

// Never is F(i) of a row that is recomputed at every hop.
const Never = math.MaxUint16

// NewClosure prepares decays for blocks of n rows of the given columns. last gives F, at least
// 1 for each row.
func NewClosure(b *mem.Budget, n int64, columns int, last Lasts) (*Closure, error) {
	panels := columns / packed.PanelColumns
	a, err := mem.Alloc[uint16](b, int64(panels)*direct.RoundUp(n), "decays")
	return &Closure{last, panels, direct.RoundUp(n), a}, err
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
		var buf [rowsAtATime]uint16
		for len(roles) > 0 {
			part := roles[:min(rowsAtATime, len(roles))]
			last := buf[:len(part)]
			c.last(first, last)
			for k, role := range part {
				switch {
				case role == spmv.Kept:
					c.scale(first+int64(k), rows[k*stride:(k+1)*stride], cur(first+int64(k)))
				case role == spmv.Computed && int(last[k]) == hop:
					c.measure(first+int64(k), rows[k*stride:(k+1)*stride], cur(first+int64(k)))
				}
			}
			first, roles, rows = first+int64(len(part)), roles[len(part):], rows[len(part)*stride:]
		}
		return nil
	}
}

// rowsAtATime is for how many rows last hops are asked for at a time.
const rowsAtATime = 1024

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
		to, from := (*[packed.PanelColumns]float32)(row[g*packed.PanelColumns:]), (*[packed.PanelColumns]float32)(before[g*packed.PanelColumns:])
		for j := 0; j < packed.PanelColumns; j += 4 {
			to[j] = rate * from[j]
			to[j+1] = rate * from[j+1]
			to[j+2] = rate * from[j+2]
			to[j+3] = rate * from[j+3]
		}
	}
}
