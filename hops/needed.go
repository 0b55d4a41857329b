package hops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"ndls/group"
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
	// EdgesRead is how many edges FindNeeded has looked at.
	EdgesRead int64
	// into[e] is how many edges, of all workers, lead into rows that at least e of the last
	// hops do not need.
	into []int64
}

// mostEarly bounds how many of the last hops leave rows out. A few hops before the last one,
// most graphs are needed whole.
const mostEarly = 8

// NeededBytes is the memory in bytes for n of all rows of a graph, with what FindNeeded takes
// meanwhile.
func NeededBytes(n, all int64) int64 { return direct.RoundUp(n) + direct.RoundUp((all+31)/32*4) }

// FindNeeded finds up to which hop rows are needed if last is the last hop and counted the
// last hop at which a row is counted, below 0 for none. It takes steps from the rows that
// are counted until nearly all edges lead into rows that are needed. It returns nil where
// that is so before the first step. All workers of the graph's group call it, with the same
// last. It returns nil for a graph with directions, too: steps go from where an edge begins to
// where it ends, and what a row needs lies the other way.
func (g Graph) FindNeeded(ctx context.Context, last int, counted func(i int64) int) (_ *Needed, err error) {
	if g.Sent != nil {
		return nil, nil
	}
	n := g.Source.NumNodes()
	x := &Needed{last: last}
	if x.early, err = mem.Alloc[uint8](g.Budget, n, "how long rows are needed"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			x.Free()
		}
	}()
	first, _, all := g.Group.Range()
	at, err := mem.Alloc[uint32](g.Budget, (all+31)/32, "rows of a step")
	if err != nil {
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
	s := &spread{Graph: g, early: x.early.S, at: at.S, first: first}
	for step := 0; ; step++ {
		counts, err := s.into(ctx, most)
		if err != nil {
			return nil, err
		}
		if x.into = counts; step == most || float64(counts[0]-counts[step+1]) > shrinkAt*float64(counts[0]) {
			if step == 0 {
				x.Free()
				return nil, nil
			}
			x.into = counts[:step+1]
			g.sum(func(lo, hi int64) int64 {
				for i := lo; i < hi; i++ {
					x.early.S[i] = min(x.early.S[i], uint8(step))
				}
				return 0
			})
			return x, nil
		}
		if err := s.step(ctx, uint8(step)); err != nil {
			return nil, err
		}
		x.EdgesRead = s.read
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

// Edges is how many edges, of all workers, lead into rows that a hop needs.
func (x *Needed) Edges(hop int) int64 {
	if early := x.last - hop + 1; early < len(x.into) {
		return x.into[0] - x.into[early]
	}
	return x.into[0]
}

// spread takes steps from row to row.
type spread struct {
	Graph
	early []uint8
	at    []uint32 // a bit for each row of the step, of all workers
	first int64    // this worker's first row
	read  int64    // edges of the frames with an edge that may come from a row of the step
}

// into counts, for each e up to most+1, the edges of all workers into rows that at least e of
// the last hops do not need.
func (s *spread) into(ctx context.Context, most int) ([]int64, error) {
	var mu sync.Mutex
	counts := make([]float64, most+2)
	s.sum(func(lo, hi int64) int64 {
		var own [mostEarly + 1]int64
		for i := lo; i < hi; i++ {
			own[s.early[i]] += int64(s.Degree[i])
		}
		mu.Lock()
		defer mu.Unlock()
		for e := range most + 1 {
			counts[e] += float64(own[e])
		}
		return 0
	})
	if err := group.Totals(ctx, s.Group, counts); err != nil {
		return nil, fmt.Errorf("edges into rows that are needed: %w", err)
	}
	into := make([]int64, most+2)
	for e := most; e >= 0; e-- {
		into[e] = into[e+1] + int64(counts[e])
	}
	return into, nil
}

// step takes the rows that have this value, and lowers that of their neighbours to one more
// where it is larger.
func (s *spread) step(ctx context.Context, early uint8) error {
	clear(s.at)
	s.sum(func(lo, hi int64) int64 {
		for i := lo; i < hi; i++ {
			if s.early[i] == early {
				at := s.first + i
				s.at[at/32] |= 1 << (at % 32)
			}
		}
		return 0
	})
	if err := group.Union(ctx, s.Group, s.at); err != nil {
		return fmt.Errorf("rows that are needed: %w", err)
	}
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
	lo := int64(strip) << packed.StripShift
	rows := s.early[lo:min(lo+packed.StripRows, s.Source.NumNodes())]
	_, _, all := s.Group.Range()
	frames, err := s.Source.Open(ctx, strip, 0, uint32(all))
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
		if !anySet(s.at, f.Src, f.Last) {
			continue
		}
		atomic.AddInt64(&s.read, int64(f.Edges))
		f.From(s.at, func(_, row uint32) {
			if rows[row] > early+1 {
				rows[row] = early + 1
			}
		})
	}
}

// anySet says whether one of the bits from first to last is set.
func anySet(bits []uint32, first, last uint32) bool {
	for w := first / 32; w <= last/32; w++ {
		word := bits[w]
		if w == first/32 {
			word &= math.MaxUint32 << (first % 32)
		}
		if w == last/32 {
			word &= math.MaxUint32 >> (31 - last%32)
		}
		if word != 0 {
			return true
		}
	}
	return false
}
