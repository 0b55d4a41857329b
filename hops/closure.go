package hops

import (
	"math"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/spmv"
)

// Closure continues rows that have settled without their edges.
type Closure struct {
	until    func(i int64) int
	granules int
	padded   int64              // n, up to whole transfers
	decay    *mem.Array[uint16] // of each granule's rows, in 1/oneDecay
}

const oneDecay = math.MaxUint16

// Never is F of a row that is recomputed at every hop.
const Never = math.MaxInt

// NewClosure prepares decays for blocks of n rows of the given columns. until
// gives F(i), the last hop at which row i is recomputed, at least 1.
func NewClosure(b *mem.Budget, n int64, columns int, until func(i int64) int) (*Closure, error) {
	granules := columns / spmv.Granule
	a, err := mem.Alloc[uint16](b, int64(granules)*pad(n), "decays")
	return &Closure{until, granules, pad(n), a}, err
}

// ClosureBytes is what a closure takes.
func ClosureBytes(n int64, columns int) int64 { return int64(columns/spmv.Granule) * DecayBytes(n) }

// DecayBytes is the size of the decays of a granule, in whole transfers of direct
// I/O.
func DecayBytes(n int64) int64 { return 2 * pad(n) }

// pad rounds up to whole transfers of direct I/O.
func pad(n int64) int64 { return (n + direct.Align - 1) / direct.Align * direct.Align }

// Free returns the memory. It may be called on nil.
func (c *Closure) Free() {
	if c != nil {
		c.decay.Free()
	}
}

// Decays are those of the rows of a granule: what has to be kept to go on later.
func (c *Closure) Decays(granule int) []uint16 {
	return c.decay.S[int64(granule)*c.padded:][:c.padded]
}

// settle gives the rows of a hop their say.
func (c *Closure) settle(hop int) spmv.Settle {
	if c == nil {
		return nil
	}
	stride := c.granules * spmv.Granule
	return func(first int64, rows []float32, cur func(i int64) []float32) error {
		for i := first; len(rows) > 0; i++ {
			switch f := c.until(i); {
			case hop == f:
				c.measure(i, rows[:stride], cur(i))
			case hop > f:
				c.scale(i, rows[:stride], cur(i))
			}
			rows = rows[stride:]
		}
		return nil
	}
}

// measure takes the decay of a row at the last hop at which it is recomputed.
func (c *Closure) measure(i int64, row, before []float32) {
	for g := range c.granules {
		now, then := square(row[g*spmv.Granule:]), square(before[g*spmv.Granule:])
		rate := 0.0
		if then > 0 {
			rate = min(1, math.Sqrt(now/then))
		}
		c.Decays(g)[i] = uint16(math.Round(oneDecay * rate))
	}
}

func square(x []float32) float64 {
	sum := 0.0
	for _, v := range x[:spmv.Granule] {
		sum += float64(float64(v) * float64(v))
	}
	return sum
}

// scale replaces a row by the one before times its decay.
func (c *Closure) scale(i int64, row, before []float32) {
	for g := range c.granules {
		rate := float32(c.Decays(g)[i]) / oneDecay
		for j := g * spmv.Granule; j < (g+1)*spmv.Granule; j++ {
			row[j] = rate * before[j]
		}
	}
}
