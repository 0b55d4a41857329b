package smooth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// scale turns numbers into codes of a byte: one code for each power of two of the fourth power of a
// number, 255 for the largest numbers, 0 for all that are too small.
type scale struct{ base int }

func newScale(largestFourth float64) scale { return scale{exponent(largestFourth) - math.MaxUint8} }

func (s scale) code(fourth float64) uint8 {
	return uint8(max(min(exponent(fourth)-s.base, math.MaxUint8), 0))
}

// exponent returns the stored exponent of a number that is not negative.
func exponent(x float64) int { return int(math.Float64bits(x) >> 52) }

// exponentOfOne is the exponent of 1.
const exponentOfOne = 1023

const (
	// sweepHops is the number of hops of a strip that are read at a time.
	sweepHops = 32
	// codesOfStrip is the size of the codes of a strip at a hop.
	codesOfStrip = packed.StripRows
)

// These are the two parts of the codes: codes of errors, and codes of influences.
const (
	sizePart = iota
	flowPart
)

// codes holds the codes of all rows at all hops, in memory if they are few, else in a scratch file.
type codes struct {
	n            int64
	last         int
	sizes, flows scale
	memory       *mem.Array[byte]
	file         *direct.Scratch
	// buffers has one buffer for each thread, for sweepHops hops of both parts of a strip.
	buffers chan *mem.Array[byte]
	made    []*mem.Array[byte]
}

func newCodes(g hops.Graph, last int) (_ *codes, err error) {
	threads := max(g.Threads, 1)
	c := &codes{n: g.Source.NumNodes(), last: last, buffers: make(chan *mem.Array[byte], threads)}
	defer func() {
		if err != nil {
			c.free()
		}
	}()
	for range threads {
		a, err := mem.Alloc[byte](g.Budget, 2*sweepHops*codesOfStrip, "codes of rows")
		if err != nil {
			return nil, err
		}
		c.made = append(c.made, a)
		c.buffers <- a
	}
	if size := int64(packed.Strips(c.n)) * 2 * int64(last) * c.stride(); size <= codesInMemory {
		c.memory, err = mem.Alloc[byte](g.Budget, size, "codes of rows")
		return c, err
	}
	if c.file, err = direct.NewScratch(g.Scratch); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	return c, nil
}

// codesInMemory is the largest size of codes that stay in memory.
const codesInMemory = 4 << 20

// stride returns the space for the codes of a strip at a hop.
func (c *codes) stride() int64 { return direct.RoundUp(min(c.n, packed.StripRows)) }

// free may be called on nil.
func (c *codes) free() {
	if c == nil {
		return
	}
	for _, a := range c.made {
		a.Free()
	}
	c.memory.Free()
	if c.file != nil {
		_ = c.file.Close()
	}
}

// with gives use a buffer for both parts.
func (c *codes) with(use func(sizes, flows []byte) error) error {
	a := <-c.buffers
	defer func() { c.buffers <- a }()
	return use(a.S[:sweepHops*codesOfStrip], a.S[sweepHops*codesOfStrip:])
}

// offset returns the place of a part of the codes of a strip at a hop.
func (c *codes) offset(first int64, hop, part int) int64 {
	return ((first>>packed.StripShift*2+int64(part))*int64(c.last) + int64(hop) - 1) * c.stride()
}

// write saves the codes of a strip at a hop.
func (c *codes) write(codes []byte, first int64, hop, part int) error {
	at := c.offset(first, hop, part)
	if c.file == nil {
		copy(c.memory.S[at:at+c.stride()], codes)
		return nil
	}
	if err := c.file.WriteAt(codes[:direct.RoundUp(min(c.n-first, packed.StripRows))], at); err != nil {
		return fmt.Errorf("codes of rows: %w", err)
	}
	return nil
}

// read reads what was written for a hop and those after it.
func (c *codes) read(codes []byte, first int64, hop, part int) error {
	at := c.offset(first, hop, part)
	if c.file == nil {
		copy(codes, c.memory.S[at:])
		return nil
	}
	if err := c.file.ReadAt(codes, at); err != nil {
		return fmt.Errorf("codes of rows: %w", err)
	}
	return nil
}

// strips passes the codes of all strips at all hops to visit, some hops at a time. Within a strip,
// hops descend. Concurrent calls are for different strips and threads.
func (c *codes) strips(visit func(thread int, first int64, hop, count int, sizes, flows []byte)) error {
	var next atomic.Int64
	errs := make([]error, len(c.made))
	var wg sync.WaitGroup
	for t := range errs {
		wg.Go(func() {
			errs[t] = c.with(func(sizes, flows []byte) error {
				for {
					first := (next.Add(1) - 1) << packed.StripShift
					if first >= c.n {
						return nil
					}
					for end := c.last; end > 0; end -= sweepHops {
						hop := max(end-sweepHops+1, 1)
						size := int64(end+1-hop) * c.stride()
						if err := errors.Join(c.read(sizes[:size], first, hop, sizePart), c.read(flows[:size], first, hop, flowPart)); err != nil {
							return err
						}
						visit(t, first, hop, end+1-hop, sizes, flows)
					}
				}
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// sweep passes the codes of all rows at all hops to visit. For the rows of a strip, hops descend.
// Concurrent calls are for different strips and threads.
func (c *codes) sweep(visit func(thread int, first int64, hop int, sizes, flows []byte)) error {
	return c.strips(func(t int, first int64, hop, count int, sizes, flows []byte) {
		rows := min(c.n-first, packed.StripRows)
		for k := count - 1; k >= 0; k-- {
			at := int64(k) * c.stride()
			visit(t, first, hop+k, sizes[at:at+rows], flows[at:at+rows])
		}
	})
}

// mostLimit is the largest sum of two codes.
const mostLimit = 2 * math.MaxUint8

// tally holds the counts of a thread for each limit. errors counts, by the sum of both codes, the
// edges, self-loops included, into each row at each hop. edges has differences: the sum of its
// elements up to a limit is the number of edges that are read under that limit.
type tally struct {
	errors, edges [mostLimit + 2]int64
	// computed is, for each row of the strip, the largest sum of codes at the hops so far.
	computed [packed.StripRows]uint16
}

// limits returns for each limit the sum of d̃ v e of all rows and hops at or below it, as a mean
// over the smoothed rows, and the number of edges that a panel reads. Codes stand for e, and for v
// times d̃ over the number of edges. Both results count all workers. All rows are computed at hop
// 1.
func (p *pilot) limits(ctx context.Context) (bounds, edges []float64, err error) {
	tallies := make([]*tally, max(p.g.Threads, 1))
	for t := range tallies {
		tallies[t] = new(tally)
	}
	if err := p.codes.sweep(func(t int, first int64, hop int, sizes, flows []byte) {
		tallies[t].count(hop, hop == p.last, p.g.Degree[first:][:len(sizes)], sizes, flows)
	}); err != nil {
		return nil, nil, err
	}
	sums := make([]float64, 2*(mostLimit+1))
	for _, t := range tallies {
		for i := range mostLimit + 1 {
			sums[i] += float64(t.errors[i])
			sums[mostLimit+1+i] += float64(t.edges[i])
		}
	}
	if err := group.Totals(ctx, p.g.Group, sums); err != nil {
		return nil, nil, fmt.Errorf("errors of all workers: %w", err)
	}
	bounds, edges = sums[:mostLimit+1], sums[mostLimit+1:]
	sum, read := 0.0, 0.0
	for i, n := range bounds {
		// This is the middle of both codes.
		size := quarters(i + p.codes.sizes.base + p.codes.flows.base - 2*exponentOfOne + 1)
		sum += float64(n*size) * p.unit / max(p.counts.rows, 1)
		read += edges[i]
		bounds[i], edges[i] = sum, read
	}
	return bounds, edges, nil
}

// quarters returns 2^(n/4).
func quarters(n int) float64 {
	roots := [4]float64{1, 1.18920711500272106671749997056047591529, math.Sqrt2, 1.68179283050742908606225095246642979008}
	return math.Ldexp(roots[n&3], n>>2)
}

// count adds the codes of a strip at a hop. newStrip says that it is the first of the strip.
func (t *tally) count(hop int, newStrip bool, degree []uint32, sizes, flows []byte) {
	if newStrip {
		clear(t.computed[:])
	}
	for k, size := range sizes {
		d := int64(degree[k])
		if hop == 1 {
			// The row is computed at hop 1, whatever its codes.
			t.edges[t.computed[k]] += d
			continue
		}
		flow := flows[k]
		if size == 0 || flow == 0 {
			continue
		}
		code := uint16(size) + uint16(flow)
		t.errors[code] += d + 1
		if code > t.computed[k] {
			// Limits from the largest code so far to below this one compute the row up to
			// this hop.
			t.edges[t.computed[k]] += d * int64(hop)
			t.edges[code] -= d * int64(hop)
			t.computed[k] = code
		}
	}
}

// choose writes the last hops of rows for a limit.
func (p *pilot) choose(limit int, last []uint16) error {
	return p.codes.sweep(func(_ int, first int64, hop int, sizes, flows []byte) {
		to := last[first:][:len(sizes)]
		if hop == p.last {
			clear(to)
		}
		for k, size := range sizes {
			flow := flows[k]
			if to[k] == 0 && (hop == 1 || size > 0 && flow > 0 && int(size)+int(flow) > limit) {
				to[k] = uint16(hop)
			}
		}
	})
}
