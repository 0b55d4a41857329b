package hops

import (
	"context"
	"slices"
	"sync"

	"ndls/group"
	"ndls/internal/byhop"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// Graph holds what hops run on.
type Graph struct {
	Source packed.Source
	// Degree holds the degree of each node without the self-loop.
	Degree []uint32
	// Divisors, if not nil, holds the divisor of the sum of each row, in place of its degree plus one: the strength plus one if edges have
	// weights.
	Divisors []float32
	// Sent holds, in a graph with directions, the number of rows to which each row is added, without itself. Degree then holds the number
	// of rows that are added to each, and State scales with powers of Sent plus one. Otherwise Sent is nil.
	Sent   []uint32
	Kernel *spmv.Kernel
	State  *stationary.State
	Budget *mem.Budget
	// Threads is the number of goroutines of a pass. Scratch is a folder for data that does not stay in memory.
	Threads int
	Scratch string
	// Filter returns the edges of src into the rows for which keep returns true, from rows for which from does, or from all rows if it is
	// nil. It may use this number of bytes of the budget. src has all
	// rows of the graph, and rows are numbered from the first of all. If Filter is nil, streams are never copied.
	Filter func(ctx context.Context, src packed.Source, keep, from func(row int64) bool, bytes int64) (Stream, error)
	// Room is the number of edges that all copies of a stream may have at a time, 0 for any number.
	Room int64
	// Group has the workers that share the rows of the graph. Source (see [Slice]), Degree, Divisors, Sent, State and the engines' other
	// inputs cover this worker's rows, numbered from the first of them.
	Group group.Group
	// Traffic, if not nil, returns the bytes of the run directory and of scratch files that the worker has read and written so far.
	Traffic func() (read, written int64)
}

// traffic returns Traffic, or zeros if it is nil.
func (g Graph) traffic() (read, written int64) {
	if g.Traffic == nil {
		return 0, 0
	}
	return g.Traffic()
}

// Degree1 returns d̃_i of a graph without directions: the degree plus one, or the strength plus one if edges have weights.
func (g Graph) Degree1(i int64) float64 {
	if g.Divisors != nil {
		return float64(g.Divisors[i])
	}
	return float64(g.Degree[i]) + 1
}

// Stream is a source that can release its memory and disk space.
type Stream interface {
	packed.Source
	Close()
}

// NumEdges returns the number of directed edges of a source.
func NumEdges(s packed.Source) int64 {
	var n int64
	for i := range s.Strips() {
		n += s.Edges(i)
	}
	return n
}

// Rows puts all rows of a column block in ascending order, some at a time; put may change them.
type Rows func(put func(rows []float32) error) error

// Most returns the largest x of all workers of the graph's group, all of which call it.
func (g Graph) Most(ctx context.Context, x int) (int, error) { return group.Max(ctx, g.Group, x) }

// NewBlock maps a column block of the graph.
func (g Graph) NewBlock(l spmv.Layout) (*spmv.Block, error) {
	return spmv.NewBlock(g.Budget, g.Kernel, g.Group, l, g.Threads, g.Scratch)
}

// Fill writes rows of X to the block as Z = D̃^(−r) X. If mean is not nil, it becomes the stationary rows, which are subtracted.
func (g Graph) Fill(ctx context.Context, b *spmv.Block, x Rows, mean *stationary.Mean) error {
	stride := b.Layout().Columns
	if err := b.Fill(func(put func([]float32) error) error {
		first := int64(0)
		return x(func(rows []float32) error {
			n := len(rows) / stride
			_ = share.Ranges(g.Threads, n, scaledRows, func(lo, hi int) error {
				g.State.Scale(first+int64(lo), rows[lo*stride:hi*stride], stride)
				return nil
			})
			first += int64(n)
			return put(rows)
		})
	}); err != nil {
		return err
	}
	return g.Deflate(ctx, b, mean)
}

// scaledRows is the number of rows that a thread scales at a time.
const scaledRows = 1 << 10

// Make is [Graph.Fill] with computed rows, on all threads: row sets row i of X, which is zero before.
func (g Graph) Make(ctx context.Context, b *spmv.Block, row func(i int64, to []float32), mean *stationary.Mean) error {
	stride := b.Layout().Columns
	if err := b.Make(func(first int64, rows []float32) {
		for at := 0; at < len(rows); at += stride {
			row(first+int64(at/stride), rows[at:at+stride])
		}
		g.State.Scale(first, rows, stride)
	}); err != nil {
		return err
	}
	return g.Deflate(ctx, b, mean)
}

// Deflate computes the stationary rows of a block in mean, unless it is nil, and subtracts them.
func (g Graph) Deflate(ctx context.Context, b *spmv.Block, mean *stationary.Mean) error {
	if mean == nil {
		return nil
	}
	if err := g.Group.OrderedSum(ctx, mean.Sums(), func() error {
		// Each sum runs in ascending order of row, so threads divide the columns.
		parts, columns := 1, b.Layout().Columns
		if b.Layout().Residency != spmv.External {
			parts = min(max(g.Threads, 1), columns/leastColumns)
		}
		return share.Each(parts, parts, func(part int) error {
			return b.Visit(func(first int64, rows []float32) error {
				mean.Add(first, rows, columns*part/parts, columns*(part+1)/parts)
				return nil
			})
		})
	}); err != nil {
		return err
	}
	mean.Finish()
	return b.Edit(mean.Subtract)
}

// leastColumns is the least number of columns that a thread adds up, because it reads the rows of all columns.
const leastColumns = 4

// Stats counts the work of hops.
type Stats struct {
	Passes int
	// EdgesStreamed counts directed edges, including those read to copy a stream.
	EdgesStreamed int64
	// Seconds is the time spent in passes.
	Seconds float64
	// ByHop holds the same counts per hop.
	ByHop byhop.List
}

// Beside returns s for one of several teams that made hops side by side: seconds, and bytes that were counted for the whole process, become
// its share.
func (s Stats) Beside(teams int) Stats {
	s.Seconds /= float64(teams)
	list := slices.Clone(s.ByHop)
	for i := range list {
		x, n := &list[i], int64(teams)
		x.Seconds /= float64(n)
		x.Words, x.Rows, x.Read, x.Written = x.Words/n, x.Rows/n, x.Read/n, x.Written/n
	}
	s.ByHop = list
	return s
}

// Add adds the counts of another block.
func (s *Stats) Add(t Stats) {
	s.Passes += t.Passes
	s.EdgesStreamed += t.EdgesStreamed
	s.Seconds += t.Seconds
	s.ByHop.Add(t.ByHop...)
}

func (g Graph) pass(s packed.Source) *spmv.Pass {
	return &spmv.Pass{Source: s, Degree: g.Degree, Divisors: g.Divisors, Sent: g.Sent, Kernel: g.Kernel}
}

// sum calls part for ranges of rows, whole strips, on all threads, and returns the sum of the results.
func (g Graph) sum(part func(lo, hi int64) int64) (total int64) {
	n := g.Source.NumNodes()
	strips, threads := int64(packed.Strips(n)), int64(max(g.Threads, 1))
	sums := make([]int64, threads)
	var wg sync.WaitGroup
	for t := range threads {
		lo, hi := min(strips*t/threads*packed.StripRows, n), min(strips*(t+1)/threads*packed.StripRows, n)
		wg.Go(func() { sums[t] = part(lo, hi) })
	}
	wg.Wait()
	for _, s := range sums {
		total += s
	}
	return total
}
