package smooth

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// Graph is what hops run on.
type Graph struct {
	Pass   *spmv.Pass
	State  *stationary.State
	Budget *mem.Budget
}

// Smoother applies one rule to column blocks of one graph.
type Smoother struct {
	g       Graph
	rule    Rule
	threads int
	counts  *mem.Array[uint16]
	weights []float64 // by hop
	hops    int
}

// Stats says what smoothing a block took.
type Stats struct {
	Passes        int
	EdgesStreamed int64
	// Seconds is the time spent in passes.
	Seconds float64
}

// New prepares smoothing by rule; k gives the LSI of each node and is not called
// for rules that do not depend on it.
func New(g Graph, rule Rule, k func(i int64) int, threads int) (*Smoother, error) {
	n := g.Pass.Source.NumNodes()
	counts, err := mem.Alloc[uint16](g.Budget, n, "hop counts")
	if err != nil {
		return nil, err
	}
	s := &Smoother{g: g, rule: rule, threads: threads, counts: counts}
	most := 0
	for i := range n {
		lsi := 0
		if rule.NodeDependent {
			lsi = k(i)
		}
		c := rule.count(lsi)
		if c > math.MaxUint16 {
			counts.Free()
			return nil, fmt.Errorf("smooth: %d hops are more than %d", c, math.MaxUint16)
		}
		counts.S[i] = uint16(c)
		most = max(most, c)
	}
	s.hops = max(most-1, 0)
	for hop := range most {
		s.weights = append(s.weights, rule.weight(hop))
	}
	return s, nil
}

// Hops is the number of passes each block takes.
func (s *Smoother) Hops() int { return s.hops }

// Free returns the memory.
func (s *Smoother) Free() { s.counts.Free() }

// Block is the memory of one column block: hop, next hop and running sum.
type Block struct {
	arrays         [3]*mem.Array[float32]
	cur, next, sum spmv.Rows
}

// NewBlock maps a block of n rows of the given number of columns, a multiple of
// 16.
func NewBlock(b *mem.Budget, n int64, columns int) (*Block, error) {
	bl := &Block{}
	for i, rows := range []*spmv.Rows{&bl.cur, &bl.next, &bl.sum} {
		a, err := mem.Alloc[float32](b, n*int64(columns), "smoothing rows")
		if err != nil {
			bl.Free()
			return nil, err
		}
		bl.arrays[i] = a
		*rows = spmv.Rows{Stride: columns, S: a.S}
	}
	return bl, nil
}

// Free returns the memory.
func (b *Block) Free() {
	for _, a := range b.arrays {
		a.Free()
	}
}

// Run smooths one column block: load writes X^(0) into zeroed rows, and may be
// called twice; store takes the smoothed rows, of the same shape.
func (s *Smoother) Run(ctx context.Context, b *Block, load, store func(rows spmv.Rows) error) (stats Stats, err error) {
	cur, next := b.cur, b.next
	clear(cur.S)
	if err := load(cur); err != nil {
		return stats, err
	}
	s.g.State.Scale(cur.S, cur.Stride, s.threads)

	clear(b.sum.S)
	hop := 0
	add := func(first int64, rows []float32) {
		if w := s.weights[hop]; w != 0 {
			end := first + int64(len(rows)/cur.Stride)
			s.g.Pass.Kernel.AddWhere(b.sum.Slice(first, end), rows, s.counts.S[first:end], uint16(hop), float32(w))
		}
	}
	add(0, cur.S)
	meter := progress.Start(ctx, "hops", int64(s.hops), "hops")
	defer meter.Done()
	for hop = 1; hop <= s.hops; hop++ {
		start := time.Now()
		edges, err := s.g.Pass.Run(cur, next, add)
		stats.Seconds += time.Since(start).Seconds()
		stats.EdgesStreamed += edges
		if err != nil {
			return stats, fmt.Errorf("smooth: hop %d: %w", hop, err)
		}
		stats.Passes++
		meter.Add(1)
		cur, next = next, cur
	}

	clear(cur.S)
	if s.rule.residual(1) != 0 {
		if err := load(cur); err != nil {
			return stats, err
		}
	}
	s.combine(b.sum, cur)
	return stats, store(b.sum)
}

// combine turns sums of rows of Z into output rows; x holds X^(0).
func (s *Smoother) combine(sum, x spmv.Rows) {
	const chunk = 1 << 12
	queue := make(chan int64)
	var wg sync.WaitGroup
	for range s.threads {
		wg.Go(func() {
			for first := range queue {
				for i := first; i < min(first+chunk, int64(len(s.counts.S))); i++ {
					s.combineRow(i, sum.Row(i), x.Row(i))
				}
			}
		})
	}
	for i := int64(0); i < int64(len(s.counts.S)); i += chunk {
		queue <- i
	}
	close(queue)
	wg.Wait()
}

func (s *Smoother) combineRow(i int64, sum, x []float32) {
	count := int(s.counts.S[i])
	factor := s.rule.factor(count) * s.g.State.Up(i)
	residual := s.rule.residual(count)
	for c, z := range sum {
		sum[c] = float32(float64(factor*float64(z)) + float64(residual*float64(x[c])))
	}
}
