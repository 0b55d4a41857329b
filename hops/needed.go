package hops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Needed holds the hop up to which each row is needed. A row that is counted at some hop needs its neighbours one hop earlier, their
// neighbours two hops earlier, and so on.
type Needed struct {
	last int
	// early holds, for each row, the number of last hops that do not need it.
	early *mem.Array[uint8]
	// EdgesRead counts the edges that FindNeeded has read.
	EdgesRead int64
}

// MostEarly bounds the number of last hops that leave rows out. A few hops before the last, most graphs are needed whole.
const MostEarly = 8

// NeededBytes returns the memory for n of all rows of a graph, including what FindNeeded uses meanwhile.
func NeededBytes(n, all int64) int64 { return direct.RoundUp(n) + direct.RoundUp((all+31)/32*4) }

// FindNeeded finds the hop up to which each row is needed. last is the last hop; counted returns the last hop at which a row is counted,
// negative for none. It steps from the counted rows against the edges into them, until nearly all edges lead into needed rows. A step reads
// the strips with rows of the step. FindNeeded returns nil if nearly all edges lead into needed rows before the first step. All workers of
// the graph's group call it, with the same last.
func (g Graph) FindNeeded(ctx context.Context, last int, counted func(i int64) int) (_ *Needed, err error) {
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
	from, err := mem.Alloc[uint32](g.Budget, (all+31)/32, "rows that a step reaches")
	if err != nil {
		return nil, err
	}
	defer from.Free()
	most := min(MostEarly, last)
	g.sum(func(lo, hi int64) int64 {
		for i := lo; i < hi; i++ {
			x.early.S[i] = uint8(min(last-counted(i), most))
		}
		return 0
	})
	s := &spread{Graph: g, early: x.early.S, from: from.S, first: first}
	for step := 0; ; step++ {
		into, err := s.into(ctx, most)
		if err != nil {
			return nil, err
		}
		if step == most || float64(into[0]-into[step+1]) > shrinkAt*float64(into[0]) {
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
			return nil, err
		}
		x.EdgesRead = s.edges
	}
}

// Free frees the memory. x may be nil.
func (x *Needed) Free() {
	if x != nil {
		x.early.Free()
	}
}

// Until returns the last hop at which row i is needed, or a later one.
func (x *Needed) Until(i int64) int { return x.last - int(x.early.S[i]) }

// spread steps from row to row.
type spread struct {
	Graph
	early []uint8
	from  []uint32 // a bit for each row of the whole group that the step reaches
	first int64    // this worker's first row
	edges int64    // in the strips that were read
}

// into returns for e = 0…most+1 how many edges of the whole group end in rows that at least e of the last hops do not need.
func (s *spread) into(ctx context.Context, most int) ([]int64, error) {
	var mu sync.Mutex
	counts := make([]float64, most+2)
	s.sum(func(lo, hi int64) int64 {
		var own [MostEarly + 1]int64
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

// step takes the rows whose value is early, and lowers the value of the source rows of edges into them to early+1 if it is larger.
func (s *spread) step(ctx context.Context, early uint8) error {
	clear(s.from)
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, max(s.Threads, 1))
	for t := range errs {
		wg.Go(func() {
			marked := new([packed.StripRows]bool)
			for strip := int(next.Add(1)) - 1; strip < s.Source.Strips() && errs[t] == nil; strip = int(next.Add(1)) - 1 {
				if s.mark(marked, strip, early) {
					errs[t] = s.strip(ctx, strip, marked)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := group.Union(ctx, s.Group, s.from); err != nil {
		return fmt.Errorf("rows that are needed: %w", err)
	}
	s.sum(func(lo, hi int64) int64 {
		for i := lo; i < hi; i++ {
			if row := s.first + i; s.from[row/32]>>(row%32)&1 != 0 {
				s.early[i] = min(s.early[i], early+1)
			}
		}
		return 0
	})
	return nil
}

// mark marks the rows of a strip whose value is early, and reports whether there is one.
func (s *spread) mark(marked *[packed.StripRows]bool, strip int, early uint8) bool {
	lo := int64(strip) << packed.StripShift
	some := false
	for i, e := range s.early[lo:min(lo+packed.StripRows, s.Source.NumNodes())] {
		marked[i] = e == early
		some = some || e == early
	}
	return some
}

// strip sets the bits of the source rows of edges into the marked rows of a strip.
func (s *spread) strip(ctx context.Context, strip int, marked *[packed.StripRows]bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, _, all := s.Group.Range()
	return s.read(ctx, s.Source, strip, all, marked)
}

// read is strip for a source of all rows of a graph.
func (s *spread) read(ctx context.Context, src packed.Source, strip int, all int64, marked *[packed.StripRows]bool) (err error) {
	if src.Edges(strip) == 0 {
		return nil
	}
	frames, err := src.Open(ctx, strip, 0, uint32(all))
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
		atomic.AddInt64(&s.edges, int64(f.Edges))
		f.Into(marked, func(src, _ uint32) {
			// Most bits are set already. Another thread may set a bit of the same word.
			if word, bit := &s.from[src/32], uint32(1)<<(src%32); atomic.LoadUint32(word)&bit == 0 {
				atomic.OrUint32(word, bit)
			}
		})
	}
}
