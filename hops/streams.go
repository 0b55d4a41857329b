package hops

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"ndls/internal/byhop"
	"ndls/internal/packed"
	"ndls/internal/tracing"
	"ndls/spmv"
)

// Streams holds the edges that the column blocks of a run read. The first hops read the stream of the graph. If later hops do not need
// some rows, they read copies without the edges into such rows. All blocks read the same copies. With several blocks, several goroutines
// may make hops at the same time.
type Streams struct {
	g  Graph
	mu sync.Mutex // guards copies and idle
	// needed says up to which hop rows are needed; it is nil if all rows are computed at every hop.
	needed *Needed
	blocks int
	// reserve is the number of bytes of the budget that others need while copies exist.
	reserve int64
	whole   *copied
	copies  []*copied // in ascending order of hop
	idle    int64     // edges into rows that are not needed, read since the last copy
	moving  *Moving   // nil unless later hops have the rows that move alone
	between *copied   // the edges between these rows, or all edges if there is no room for a copy; nil before the first of these hops
}

// copied holds the edges into rows that a hop or a later one needs.
type copied struct {
	hop    int
	stream Stream // of all rows of the graph; nil for the graph's own
	pass   *spmv.Pass
	edges  int64
	bytes  int64 // of the budget, used by the stream
}

// mostCopies bounds the number of copies that exist at a time.
const mostCopies = 8

// copiesShare is the part of the free budget that copies may use to stay in memory.
const copiesShare = 4

// NewStreams prepares the edges for this number of blocks, which make the same hops. It leaves reserve bytes of the budget to others.
// needed is nil if every row is computed at every hop.
func (g Graph) NewStreams(blocks int, reserve int64, needed *Needed) *Streams {
	s := &Streams{g: g, needed: needed, blocks: max(blocks, 1), reserve: reserve}
	s.whole = &copied{pass: g.pass(g.Source), edges: NumEdges(g.Source)}
	return s
}

// Close frees memory and disk space. s may be nil.
func (s *Streams) Close() {
	if s == nil {
		return
	}
	s.Forget(math.MaxInt)
	s.closeBetween()
}

// Forget removes the copies that only hops before this one read.
func (s *Streams) Forget(hop int) {
	for len(s.copies) > 0 && (hop == math.MaxInt || len(s.copies) > 1 && s.copies[1].hop <= hop) {
		s.copies[0].stream.Close()
		s.copies = s.copies[1:]
	}
}

// at returns the edges for a hop, and the number of edges that it read for a copy. It makes a copy under two conditions. First, the edges
// that were read for nothing since the last copy, times the blocks, are as many as the copy reads. Second, the remaining hops, times the
// blocks, save more edges than the copy reads and writes. It makes no copy for which the graph has no room.
//
// Copies for several blocks stay until all blocks are done. Each has at most half of the edges of the one before, so together they have at
// most as many as the stream of the graph.
func (s *Streams) at(ctx context.Context, hop, left int) (c *copied, edges int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moving != nil && hop > s.moving.after {
		return s.restricted(ctx)
	}
	c = s.whole
	for _, x := range s.copies {
		if x.hop <= hop {
			c = x
		}
	}
	if s.needed == nil || s.g.Filter == nil || len(s.copies) > 0 && s.copies[len(s.copies)-1] != c {
		return c, 0, nil
	}
	active := s.active(hop)
	saved := c.edges - active
	blocks := int64(s.blocks)
	most := shrinkAt
	if blocks > 1 {
		most /= 2
	}
	s.idle += saved
	if blocks*s.idle < c.edges || float64(active) > most*float64(c.edges) ||
		float64(blocks)*float64(left)*float64(saved) <= float64(c.edges+active) ||
		blocks > 1 && len(s.copies) == mostCopies || !s.fits(active) {
		return c, 0, nil
	}
	s.idle = 0
	next, err := s.copy(ctx, c, hop, active)
	if err != nil {
		return nil, 0, fmt.Errorf("stream of hop %d: %w", hop, err)
	}
	s.copies = append(s.copies, next)
	if blocks == 1 {
		s.Forget(hop)
	}
	return next, c.edges, nil
}

// fits reports whether there is room for a copy of this number of edges.
func (s *Streams) fits(edges int64) bool {
	for _, x := range s.copies {
		edges += x.edges
	}
	return s.g.Room == 0 || edges <= s.g.Room
}

// shrinkAt is the largest share of its edges that a copy may keep to pay. For a copy that stays beside the stream it is half of that.
const shrinkAt = 0.9

// active counts the edges into rows that a hop needs.
func (s *Streams) active(hop int) int64 {
	return s.g.sum(func(lo, hi int64) (edges int64) {
		for i := lo; i < hi; i++ {
			if s.needed.Until(i) >= hop {
				edges += int64(s.g.Degree[i])
			}
		}
		return edges
	})
}

// copy copies the edges of c into rows that a hop needs.
func (s *Streams) copy(ctx context.Context, c *copied, hop int, edges int64) (next *copied, err error) {
	next = &copied{hop: hop, edges: edges}
	first, _, _ := s.g.Group.Range()
	n := s.g.Source.NumNodes()
	free := s.g.Budget.Free()
	next.stream, err = s.g.Filter(ctx, whole(c.pass.Source), func(row int64) bool {
		row -= first
		return 0 <= row && row < n && s.needed.Until(row) >= hop
	}, nil, s.room())
	next.bytes = free - s.g.Budget.Free()
	if err != nil {
		return nil, err
	}
	if got := NumEdges(next.stream); got != edges {
		next.stream.Close()
		return nil, fmt.Errorf("%d edges of %d: %w", got, edges, packed.ErrFrame)
	}
	next.pass = s.g.pass(Slice(next.stream, first, first+n))
	return next, nil
}

// room returns the number of bytes that a further copy may use.
func (s *Streams) room() int64 {
	held := int64(0)
	for _, x := range s.copies {
		held += x.bytes
	}
	return max((s.g.Budget.Free()+held-s.reserve)/copiesShare-held, 0)
}

// roles returns the function that sets the roles of rows at a hop that reads c: Computed for a row that the hop needs, Skipped for one into
// which c still has edges, Idle for others. Roles of neighbours differ, so the loop has no branches that depend on them.
func (s *Streams) roles(c *copied, hop int) spmv.Roles {
	copied, computed := int32(s.needed.last-c.hop), int32(s.needed.last-hop)
	return func(first int64, roles []spmv.Role) (least, most spmv.Role) {
		var found uint8
		for k, early := range s.needed.early.S[first : first+int64(len(roles))] {
			roles[k] = spmv.Role(2 + (copied-int32(early))>>31 + (computed-int32(early))>>31)
			found |= 1 << roles[k]
		}
		return spmv.Role(bits.TrailingZeros8(found)), spmv.Role(bits.Len8(found) - 1)
	}
}

// Walk advances a column block hop by hop.
type Walk struct {
	Stats
	// Recurs says that hop j makes the rows T_j Z of Chebyshev's polynomials ([spmv.Pass.Recur]).
	Recurs  bool
	b       *spmv.Block
	streams *Streams
	hop     int
}

// Walk returns a walk that starts at the given hop of the block.
func (s *Streams) Walk(b *spmv.Block, hop int) *Walk { return &Walk{b: b, streams: s, hop: hop} }

// Hop returns the hop of the block's rows.
func (w *Walk) Hop() int { return w.hop }

// Next makes one hop and calls sink with its rows. left is the largest number of hops that may still be made, including this one. It
// returns the number of edges streamed.
func (w *Walk) Next(ctx context.Context, left int, sink spmv.Sink) (edges int64, err error) {
	return w.Make(ctx, w.hop+1, left, sink)
}

// Make is [Walk.Next] for a given hop, whatever the hop of the block's rows.
func (w *Walk) Make(ctx context.Context, hop, left int, sink spmv.Sink) (edges int64, err error) {
	w.hop = hop
	start := time.Now()
	took, before := byhop.Hop{Hop: hop}, spmv.TrafficSoFar()
	readBefore, writtenBefore := w.streams.g.traffic()
	ctx, span := tracing.Span(ctx, "hop", attribute.Int("ndls.hop", hop))
	defer func() {
		span(err, attribute.Int64("ndls.edges", edges))
		took.Edges, took.Seconds = edges, time.Since(start).Seconds()
		read := spmv.TrafficSoFar().Since(before)
		took.Words, took.Rows = read.Words, read.Rows
		took.Read, took.Written = w.streams.g.traffic()
		took.Read -= readBefore
		took.Written -= writtenBefore
		w.Seconds += took.Seconds
		w.ByHop.Add(took)
	}()
	c, copying, err := w.streams.at(ctx, hop, left)
	if err != nil {
		return 0, err
	}
	var roles spmv.Roles
	switch s := w.streams; {
	case s.moving != nil && hop > s.moving.after:
		roles = s.moving.wordRoles()
		if c == s.whole {
			roles = s.moving.roles()
		}
	case s.needed != nil:
		roles = s.roles(c, hop)
	}
	run := c.pass.Run
	if w.Recurs {
		run = c.pass.Recur
	}
	edges, err = run(ctx, w.b, sink, roles)
	edges += copying
	w.EdgesStreamed += edges
	if err != nil {
		return 0, fmt.Errorf("hop %d: %w", hop, err)
	}
	w.Passes++
	took.Passes = 1
	return edges, nil
}
