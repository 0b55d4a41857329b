package spmv

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"ndls/internal/packed"
)

// finishRows is how many rows are divided and handed to the sink at a time:
// few enough to be in cache, enough to hide the calls.
const finishRows = 256

// ErrConservation reports a pass after which Σ_i d̃_i Z_i differs: an edge was
// lost, doubled or misplaced.
var ErrConservation = errors.New("conservation of the degree-weighted sum is violated")

// Sink receives finished rows [first, first+len(rows)/stride) of the next hop.
// Calls for different rows may come at the same time and in any order.
type Sink func(first int64, rows []float32)

// Pass runs hops over one graph.
type Pass struct {
	Source packed.Source
	// Degree has the degree of each node without the self-loop.
	Degree []uint32
	Kernel *Kernel
	// Threads is how many blocks or slices are computed at the same time.
	Threads int

	// directed is set for measurements on random edges, which conserve nothing.
	directed bool

	once sync.Once
	tol  float64
}

// unit is what one thread works on: columns [col, col+cols) of a block.
type unit struct {
	block     int
	col, cols int
	last      *sync.WaitGroup
}

// Run computes next = D̃⁻¹ Ã cur, row by row, and calls sink (unless nil) for
// every row. Both hold Source.NumNodes rows of the same stride; cur is not
// changed. It returns the number of directed edges streamed. Errors are the
// source's, or ErrConservation.
func (p *Pass) Run(cur, next Rows, sink Sink) (edges int64, err error) {
	n := p.Source.NumNodes()
	blocks := p.Source.Blocks()
	slices := 1
	if blocks < p.Threads {
		slices = min((p.Threads+blocks-1)/blocks, cur.Stride/Granule)
	}
	width := (cur.Stride/Granule + slices - 1) / slices * Granule

	queue := make(chan unit, blocks*slices)
	for b := range blocks {
		pending := new(sync.WaitGroup)
		for col := 0; col < cur.Stride; col += width {
			pending.Add(1)
			queue <- unit{b, col, min(width, cur.Stride-col), pending}
		}
	}
	close(queue)

	var mu sync.Mutex
	var before, after [32]float64
	var wg sync.WaitGroup
	for range min(p.Threads, cap(queue)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for u := range queue {
				mu.Lock()
				failed := err != nil
				mu.Unlock()
				var e int64
				var b, a [32]float64
				var unitErr error
				if !failed {
					e, unitErr = p.accumulate(u, n, cur, next)
				}
				u.last.Done()
				if u.col == 0 && unitErr == nil && !failed {
					// The block's first slice waits for the others, then
					// finishes whole rows: norms need all their columns.
					u.last.Wait()
					lo := int64(u.block) << packed.BlockShift
					p.finish(lo, min(lo+packed.BlockRows, n), cur, next, &b, &a, sink)
				}
				mu.Lock()
				if u.col == 0 {
					edges += e
				}
				for c := range b {
					before[c] += b[c]
					after[c] += a[c]
				}
				if err == nil {
					err = unitErr
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	if err != nil || p.directed {
		return edges, err
	}
	tolerance := p.tolerance()
	for c := range Granule {
		if d := math.Abs(after[c] - before[c]); d > tolerance*before[16+c] || math.IsNaN(d) {
			return edges, fmt.Errorf("spmv: column %d of the block went from %g to %g: %w",
				c, before[c], after[c], ErrConservation)
		}
	}
	return edges, nil
}

// tolerance bounds |Σ d̃ Z^(k+1) − Σ d̃ Z^(k)| in shares of Σ d̃ |Z^(k)|: adding d̃
// float32 values one after the other can lose d̃·2^−24 of their sum when they
// are all alike, and a row counts d̃ times.
func (p *Pass) tolerance() float64 {
	p.once.Do(func() {
		var sum, squares float64
		for _, d := range p.Degree {
			d1 := float64(d) + 1
			sum += d1
			squares += float64(d1 * d1)
		}
		p.tol = 1e-6 + 0x1p-24*squares/sum
	})
	return p.tol
}

// accumulate sums the rows of a unit, self first.
func (p *Pass) accumulate(u unit, n int64, cur, next Rows) (edges int64, err error) {
	lo := int64(u.block) << packed.BlockShift
	hi := min(lo+packed.BlockRows, n)
	if u.cols == cur.Stride {
		copy(next.Slice(lo, hi), cur.Slice(lo, hi))
	} else {
		for i := lo; i < hi; i++ {
			copy(next.Row(i)[u.col:u.col+u.cols], cur.Row(i)[u.col:])
		}
	}
	frames, err := p.Source.Open(u.block)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, frames.Close()) }()
	acc := next.Slice(lo, hi)
	for {
		f, err := frames.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return edges, err
		}
		p.Kernel.add(acc, cur, f, u.col, u.cols)
		edges += int64(f.Edges)
	}
	if want := p.Source.Edges(u.block); edges != want {
		return edges, fmt.Errorf("spmv: block %d gave %d edges of %d: %w", u.block, edges, want, packed.ErrFrame)
	}
	return edges, nil
}

// finish divides rows [lo, hi) of next and hands them out.
func (p *Pass) finish(lo, hi int64, cur, next Rows, before, after *[32]float64, sink Sink) {
	for i := lo; i < hi; i += finishRows {
		end := min(i+finishRows, hi)
		rows, degree := next.Slice(i, end), p.Degree[i:end]
		p.Kernel.Divide(rows, degree)
		p.Kernel.WeightedSums(before, cur.Slice(i, end), degree)
		p.Kernel.WeightedSums(after, rows, degree)
		if sink != nil {
			sink(i, rows)
		}
	}
}
