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

// Graph is what hops run on.
type Graph struct {
	Source packed.Source
	// Degree has the degree of each node without the self-loop.
	Degree []uint32
	// Divisors has what the sum of each row is divided by, where that is not its degree plus
	// one: the strength plus one where edges have weights. Else it is nil.
	Divisors []float32
	// Sent has, in a graph with directions, the number of rows to which each row is added,
	// without itself; Degree has that of the rows which are added to each, and State scales
	// with powers of Sent plus one. Else it is nil.
	Sent   []uint32
	Kernel *spmv.Kernel
	State  *stationary.State
	Budget *mem.Budget
	// Threads is the number of goroutines of a pass, Scratch a folder for what
	// does not stay in memory.
	Threads int
	Scratch string
	// Filter gives the edges of src into the rows that keep names, and sets a bit of
	// read, unless that is nil, for each row that they come from. It may take so many
	// bytes of the budget. src has all rows of the graph, and rows are numbered from the first
	// of all. If Filter is nil, streams are never copied.
	Filter func(ctx context.Context, src packed.Source, keep func(row int64) bool, read []uint32, bytes int64) (Stream, error)
	// Room is how many edges the copies of a stream that exist at a time may have, 0 for any
	// number.
	Room int64
	// Group has the workers that share the rows of the graph. Source (see [Slice]),
	// Degree, Divisors, Sent, State and what the engines are given are of this worker's rows,
	// numbered from the first of them.
	Group group.Group
	// Traffic, unless nil, is how many bytes of the run directory and of scratch files the worker has read and written
	// so far.
	Traffic func() (read, written int64)
}

// traffic is Traffic, zero where that is nil.
func (g Graph) traffic() (read, written int64) {
	if g.Traffic == nil {
		return 0, 0
	}
	return g.Traffic()
}

// Degree1 is d̃_i of a graph without directions: the degree plus one, or, where edges have
// weights, the strength plus one.
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

// NumEdges is the number of directed edges of a source.
func NumEdges(s packed.Source) int64 {
	var n int64
	for i := range s.Strips() {
		n += s.Edges(i)
	}
	return n
}

// Rows puts all rows of a column block in ascending order, some at a time; put
// may change them.
type Rows func(put func(rows []float32) error) error

// NewBlock maps a column block of the graph.
func (g Graph) NewBlock(l spmv.Layout) (*spmv.Block, error) {
	return spmv.NewBlock(g.Budget, g.Kernel, g.Group, l, g.Threads, g.Scratch)
}

// Fill puts rows of X in the block as Z = D̃^(−r) X. Where mean is not nil it
// becomes the stationary rows, which are subtracted.
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
	return g.deflate(ctx, b, mean)
}

// scaledRows is how many rows a thread scales at a time.
const scaledRows = 1 << 10

// Make is [Graph.Fill] with rows that are computed, on all threads: row sets row i of X, which
// is zero.
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
	return g.deflate(ctx, b, mean)
}

// deflate makes mean the stationary rows, unless it is nil, and subtracts them.
func (g Graph) deflate(ctx context.Context, b *spmv.Block, mean *stationary.Mean) error {
	if mean == nil {
		return nil
	}
	if err := g.Group.OrderedSum(ctx, mean.Sums(), func() error {
		// Each sum runs in ascending order of row, so that the threads take a part of the columns.
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

// leastColumns is how many columns a thread adds up at least: it reads the rows of all.
const leastColumns = 4

// Stats says what hops took.
type Stats struct {
	Passes int
	// EdgesStreamed counts directed edges, including those read to rewrite a
	// stream.
	EdgesStreamed int64
	// Seconds is the time spent in passes.
	Seconds float64
	// ByHop says the same of each hop.
	ByHop byhop.List
}

// Beside is s, of one of so many teams that made hops side by side: seconds, and bytes that were counted for the whole
// process, are its share of what was measured.
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

// Add adds another block's.
func (s *Stats) Add(t Stats) {
	s.Passes += t.Passes
	s.EdgesStreamed += t.EdgesStreamed
	s.Seconds += t.Seconds
	s.ByHop.Add(t.ByHop...)
}

func (g Graph) pass(s packed.Source) *spmv.Pass {
	return &spmv.Pass{Source: s, Degree: g.Degree, Divisors: g.Divisors, Sent: g.Sent, Kernel: g.Kernel}
}

// sum calls part for ranges of rows, whole strips, on all threads, and adds up the results.
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
