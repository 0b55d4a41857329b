package hops

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Needed says up to which hop each row is needed. A row that is counted at some hop needs
// its neighbours one hop earlier, these need their own neighbours two hops earlier, and so
// on.
type Needed struct {
	last int
	// early is, for each row, how many of the last hops do not need it.
	early *mem.Array[uint8]
	// EdgesRead is how many edges FindNeeded has read.
	EdgesRead int64
}

// mostEarly bounds how many of the last hops leave rows out. A few hops before the last one,
// most graphs are needed whole.
const mostEarly = 8

// NeededBytes is the memory in bytes for n rows, with what FindNeeded takes meanwhile.
func NeededBytes(n int64) int64 { return direct.RoundUp(n) + direct.RoundUp((n+31)/32*4) }

// FindNeeded finds up to which hop rows are needed if last is the last hop and counted the
// last hop at which a row is counted, below 0 for none. It takes steps from the rows that
// are counted until nearly all edges lead into rows that are needed. It returns nil where
// that is so before the first step.
func (g Graph) FindNeeded(ctx context.Context, last int, counted func(i int64) int) (_ *Needed, err error) {
	n := g.Source.NumNodes()
	x := &Needed{last: last}
	if x.early, err = mem.Alloc[uint8](g.Budget, n, "how long rows are needed"); err != nil {
		return nil, err
	}
	at, err := mem.Alloc[uint32](g.Budget, (n+31)/32, "rows of a step")
	if err != nil {
		x.Free()
		return nil, err
	}
	defer at.Free()
	most := min(mostEarly, last)
	g.sum(func(lo, hi int64) int64 {
		for i := lo; i < hi; i++ {
			x.early.S[i] = uint8(min(last-counted(i), most))
		}
		return 0
	})
	s := &spread{Graph: g, early: x.early.S, at: at.S, edges: NumEdges(g.Source)}
	for step := 0; ; step++ {
		if step == most || float64(s.into(step)) > shrinkAt*float64(s.edges) {
			if step == 0 {
				x.Free()
				return nil, nil
			}
			g.sum(func(lo, hi int64) int64 {
				for i := lo; i < hi; i++ {
					x.early.S[i] = min(x.early.S[i], uint8(step))
				}
				return 0
			})
			return x, nil
		}
		if err := s.step(ctx, uint8(step)); err != nil {
			x.Free()
			return nil, err
		}
		x.EdgesRead += s.edges
	}
}

// Free returns the memory. It may be called on nil.
func (x *Needed) Free() {
	if x != nil {
		x.early.Free()
	}
}

// Until is the last hop at which row i is needed, or a later one.
func (x *Needed) Until(i int64) int { return x.last - int(x.early.S[i]) }

// spread takes steps from row to row.
type spread struct {
	Graph
	early []uint8
	at    []uint32 // a bit for each row of the step
	edges int64
}

// into counts the edges into rows that at most so many of the last hops do not need.
func (s *spread) into(early int) int64 {
	return s.sum(func(lo, hi int64) (edges int64) {
		for i := lo; i < hi; i++ {
			if int(s.early[i]) <= early {
				edges += int64(s.Degree[i])
			}
		}
		return edges
	})
}

// step takes the rows that have this value, and lowers that of their neighbours to one more
// where it is larger.
func (s *spread) step(ctx context.Context, early uint8) error {
	s.sum(func(lo, hi int64) int64 {
		clear(s.at[lo/32 : (hi+31)/32])
		for i := lo; i < hi; i++ {
			if s.early[i] == early {
				s.at[i/32] |= 1 << (i % 32)
			}
		}
		return 0
	})
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, max(s.Threads, 1))
	for t := range errs {
		wg.Go(func() {
			for strip := int(next.Add(1)) - 1; strip < s.Source.Strips() && errs[t] == nil; strip = int(next.Add(1)) - 1 {
				errs[t] = s.strip(ctx, strip, early)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *spread) strip(ctx context.Context, strip int, early uint8) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.Source.Edges(strip) == 0 {
		return nil
	}
	n := s.Source.NumNodes()
	lo := int64(strip) << packed.StripShift
	rows := s.early[lo:min(lo+packed.StripRows, n)]
	frames, err := s.Source.Open(ctx, strip, 0, uint32(n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, frames.Close()) }()
	for {
		f, err := frames.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		f.Visit(func(src, row uint32) {
			if s.at[src/32]>>(src%32)&1 != 0 && rows[row] > early+1 {
				rows[row] = early + 1
			}
		})
	}
}
