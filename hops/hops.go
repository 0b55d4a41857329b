package hops

import (
	"context"
	"fmt"
	"time"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// Graph is what hops run on.
type Graph struct {
	Source packed.Source
	// Degree has the degree of each node without the self-loop.
	Degree []uint32
	Kernel *spmv.Kernel
	State  *stationary.State
	Budget *mem.Budget
	// Threads is the number of goroutines of a pass, Scratch a folder for what
	// does not stay in memory.
	Threads int
	Scratch string
	// Filter gives the edges of src into the rows that keep names. If it is nil,
	// streams are never rewritten.
	Filter func(ctx context.Context, src packed.Source, keep func(row int64) bool) (Stream, error)
	// Group has the workers that share the rows of the graph. Source (see [Slice]),
	// Degree, State and what the engines are given are of this worker's rows,
	// numbered from the first of them. If there are other workers, Filter is nil.
	Group group.Group
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
			g.State.Scale(first, rows, stride)
			first += int64(len(rows) / stride)
			return put(rows)
		})
	}); err != nil || mean == nil {
		return err
	}
	if err := g.Group.OrderedSum(ctx, mean.Sums(), func() error {
		return b.Visit(func(first int64, rows []float32) error {
			mean.Add(first, rows)
			return nil
		})
	}); err != nil {
		return err
	}
	mean.Finish()
	return b.Edit(mean.Subtract)
}

// Stats says what hops took.
type Stats struct {
	Passes int
	// EdgesStreamed counts directed edges, including those read to rewrite a
	// stream.
	EdgesStreamed int64
	// Seconds is the time spent in passes.
	Seconds float64
}

// Add adds another block's.
func (s *Stats) Add(t Stats) {
	s.Passes += t.Passes
	s.EdgesStreamed += t.EdgesStreamed
	s.Seconds += t.Seconds
}

// Walk takes a column block from hop to hop.
type Walk struct {
	Stats
	g       Graph
	b       *spmv.Block
	closure *Closure
	pass    *spmv.Pass
	edges   int64 // of the present stream
	idle    int64 // edges streamed into settled rows since the stream was written
	shrunk  Stream
	hop     int
}

// Walk starts at the given hop of the block; closure is nil where every row is
// recomputed.
func (g Graph) Walk(b *spmv.Block, hop int, closure *Closure) *Walk {
	return &Walk{g: g, b: b, closure: closure, hop: hop, pass: g.pass(g.Source), edges: NumEdges(g.Source)}
}

func (g Graph) pass(s packed.Source) *spmv.Pass {
	return &spmv.Pass{Source: s, Degree: g.Degree, Kernel: g.Kernel}
}

// Close releases what the walk holds beside the block.
func (w *Walk) Close() {
	if w.shrunk != nil {
		w.shrunk.Close()
	}
	w.shrunk = nil
}

// Hop is the hop that the block's rows are of.
func (w *Walk) Hop() int { return w.hop }

// Next makes one hop and calls sink with its rows. left is the largest number of hops
// that may still be made, including this one. It returns the number of edges streamed.
func (w *Walk) Next(ctx context.Context, left int, sink spmv.Sink) (edges int64, err error) {
	w.hop++
	before := w.EdgesStreamed
	if w.closure != nil {
		if err := w.shrink(ctx, left); err != nil {
			return 0, fmt.Errorf("stream of hop %d: %w", w.hop, err)
		}
	}
	start := time.Now()
	edges, err = w.pass.Run(ctx, w.b, sink, w.closure.settle(w.hop))
	w.Seconds += time.Since(start).Seconds()
	w.EdgesStreamed += edges
	if err != nil {
		return 0, fmt.Errorf("hop %d: %w", w.hop, err)
	}
	w.Passes++
	return w.EdgesStreamed - before, nil
}

// shrinkAt is the largest share of its edges that a stream may retain to be worth
// rewriting.
const shrinkAt = 0.9

// shrink rewrites the stream for the rows that are recomputed at this hop. It does so
// once the edges that were streamed into settled rows are as many as rewriting reads,
// and only if the remaining hops save more edges than rewriting reads and writes.
func (w *Walk) shrink(ctx context.Context, left int) error {
	if w.g.Filter == nil {
		return nil
	}
	active := int64(0)
	for i, d := range w.g.Degree {
		if w.closure.until(int64(i)) >= w.hop {
			active += int64(d)
		}
	}
	saved := w.edges - active
	w.idle += saved
	if w.idle < w.edges || float64(active) > shrinkAt*float64(w.edges) || float64(left)*float64(saved) <= float64(w.edges+active) {
		return nil
	}
	w.idle = 0
	start := time.Now()
	s, err := w.g.Filter(ctx, w.pass.Source, func(i int64) bool { return w.closure.until(i) >= w.hop })
	if err != nil {
		return err
	}
	w.EdgesStreamed += w.edges
	w.Seconds += time.Since(start).Seconds()
	w.Close()
	w.shrunk, w.pass, w.edges = s, w.g.pass(s), active
	if got := NumEdges(s); got != active {
		return fmt.Errorf("%d edges of %d: %w", got, active, packed.ErrFrame)
	}
	return nil
}
