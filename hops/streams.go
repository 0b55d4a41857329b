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
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/tracing"
	"ndls/spmv"
)

// Streams holds the edges that the column blocks of a run read. The first hops read the stream of the graph. If later hops do not recompute
// some rows, they read copies without the edges into such rows. All blocks read the same copies. With several blocks, several goroutines
// may make hops at the same time.
type Streams struct {
	g  Graph
	mu sync.Mutex // guards copies and idle
	// last returns the last hops at which rows are recomputed; nil if all rows are recomputed at every hop.
	last   Lasts
	blocks int
	// reserve is the number of bytes of the budget that others need while copies exist.
	reserve int64
	// settles says that rows are read after their last hop. Each copy then lists the rows that are read.
	settles bool
	whole   *copied
	copies  []*copied // in ascending order of hop
	idle    int64     // edges into rows that are not recomputed, read since the last copy
}

// copied holds the edges into rows that are recomputed at a hop or later.
type copied struct {
	hop    int
	stream Stream // of all rows of the graph; nil for the graph's own
	pass   *spmv.Pass
	edges  int64
	bytes  int64 // of the budget, used by the stream
	// read has a bit for each source row of an edge. It is nil if any row may be read, because other workers do not list what they read.
	read *mem.Array[uint32]
}

// mostCopies bounds the number of copies that exist at a time.
const mostCopies = 8

// copiesShare is the part of the free budget that copies may use to stay in memory.
const copiesShare = 4

// rowsAtATime is the number of rows for which last hops are computed at a time.
const rowsAtATime = 1024

// StreamsBytes returns the memory of the lists of read rows for n rows, if rows settle. It excludes edges in memory, which use a part of
// what is free.
func StreamsBytes(n int64) int64 { return mostCopies * direct.RoundUp((n+31)/32*4) }

// NewStreams prepares the edges for this number of blocks, which make the same hops. It leaves reserve bytes of the budget to others. last
// is nil if every row is recomputed at every hop. settles says that rows are also read after their last hop.
func (g Graph) NewStreams(blocks int, reserve int64, last Lasts, settles bool) *Streams {
	s := &Streams{g: g, last: last, blocks: max(blocks, 1), reserve: reserve, settles: settles}
	s.whole = &copied{pass: g.pass(g.Source), edges: NumEdges(g.Source)}
	return s
}

// Close frees memory and disk space. s may be nil.
func (s *Streams) Close() {
	if s != nil {
		s.Forget(math.MaxInt)
	}
}

// Forget removes the copies that only hops before this one read.
func (s *Streams) Forget(hop int) {
	for len(s.copies) > 0 && (hop == math.MaxInt || len(s.copies) > 1 && s.copies[1].hop <= hop) {
		s.copies[0].close()
		s.copies = s.copies[1:]
	}
}

func (c *copied) close() {
	c.stream.Close()
	c.read.Free()
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
	c = s.whole
	for _, x := range s.copies {
		if x.hop <= hop {
			c = x
		}
	}
	if s.last == nil || s.g.Filter == nil || len(s.copies) > 0 && s.copies[len(s.copies)-1] != c {
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

// Prepare makes the copies that pay for hops first to last, before any of these hops. It returns the number of edges that it read.
func (s *Streams) Prepare(ctx context.Context, first, last int) (edges int64, err error) {
	for hop := first; hop <= last; hop++ {
		_, copying, err := s.at(ctx, hop, last-hop+1)
		if edges += copying; err != nil {
			return edges, err
		}
	}
	return edges, nil
}

// shrinkAt is the largest share of its edges that a copy may keep to pay. For a copy that stays beside the stream it is half of that.
const shrinkAt = 0.9

// active counts the edges into rows that are recomputed at a hop.
func (s *Streams) active(hop int) int64 {
	return s.g.sum(func(lo, hi int64) (edges int64) {
		var buf [rowsAtATime]uint16
		for ; lo < hi; lo += rowsAtATime {
			last := buf[:min(hi-lo, rowsAtATime)]
			s.last(lo, last)
			degree := s.g.Degree[lo : lo+int64(len(last))]
			for k, f := range last {
				if int(f) >= hop {
					edges += int64(degree[k])
				}
			}
		}
		return edges
	})
}

// copy copies the edges of c into rows that are recomputed at a hop.
func (s *Streams) copy(ctx context.Context, c *copied, hop int, edges int64) (next *copied, err error) {
	next = &copied{hop: hop, edges: edges}
	var read []uint32
	first, _, all := s.g.Group.Range()
	n := s.g.Source.NumNodes()
	if s.settles && n == all {
		if next.read, err = mem.Alloc[uint32](s.g.Budget, (n+31)/32, "rows that are read"); err != nil {
			return nil, err
		}
		read = next.read.S
	}
	held, free := int64(0), s.g.Budget.Free()
	for _, x := range s.copies {
		held += x.bytes
	}
	room := max((free+held-s.reserve)/copiesShare-held, 0)
	keep := s.computed(hop)
	next.stream, err = s.g.Filter(ctx, whole(c.pass.Source), func(row int64) bool {
		row -= first
		return 0 <= row && row < n && keep(row)
	}, read, room)
	next.bytes = free - s.g.Budget.Free()
	if err != nil {
		next.read.Free()
		return nil, err
	}
	if got := NumEdges(next.stream); got != edges {
		next.close()
		return nil, fmt.Errorf("%d edges of %d: %w", got, edges, packed.ErrFrame)
	}
	next.pass = s.g.pass(Slice(next.stream, first, first+n))
	return next, nil
}

// roles returns the function that sets the roles of rows at a hop that reads c.
func (s *Streams) roles(c *copied, hop int) func(first int64, roles []spmv.Role) (least, most spmv.Role) {
	return func(first int64, roles []spmv.Role) (least, most spmv.Role) {
		var found uint8
		var buf [rowsAtATime]uint16
		for len(roles) > 0 {
			part := roles[:min(rowsAtATime, len(roles))]
			last := buf[:len(part)]
			s.last(first, last)
			found |= s.after(c, hop, first, last, part)
			first, roles = first+int64(len(part)), roles[len(part):]
		}
		return spmv.Role(bits.TrailingZeros8(found)), spmv.Role(bits.Len8(found) - 1)
	}
}

// after sets the roles of rows at a hop that reads c, from their last hops, and returns a bit for each role that occurs. first is a
// multiple of 32. Roles of neighbours differ, so the loops have no branches that depend on them.
func (s *Streams) after(c *copied, hop int, first int64, last []uint16, roles []spmv.Role) (found uint8) {
	for k, f := range last {
		// The copy has no edges into a row that is idle at the copy's hop.
		copied, computed := 1+(int32(f)-int32(c.hop))>>31, 1+(int32(f)-int32(hop))>>31
		roles[k] = spmv.Role(copied + computed<<1)
	}
	if s.settles && c.read == nil {
		for k, role := range roles {
			roles[k] = kept(role)
		}
	} else if s.settles {
		for at := 0; at < len(roles); at += 32 {
			word := c.read.S[(first+int64(at))/32]
			if word == 0 {
				continue
			}
			part := roles[at:min(at+32, len(roles))]
			for k, role := range part {
				read := -spmv.Role(word >> k & 1)
				part[k] = role&^read | kept(role)&read
			}
		}
	}
	for _, role := range roles {
		found |= 1 << role
	}
	return found
}

// kept returns Kept for a row that is not computed.
func kept(role spmv.Role) spmv.Role { return spmv.Kept | role&(role>>1) }

// computed returns a function that reports whether a row is recomputed at a hop.
func (s *Streams) computed(hop int) func(i int64) bool {
	return func(i int64) bool {
		var last [1]uint16
		s.last(i, last[:])
		return int(last[0]) >= hop
	}
}

// everyRow sets the roles of rows that are all computed.
func everyRow(_ int64, roles []spmv.Role) (least, most spmv.Role) {
	for k := range roles {
		roles[k] = spmv.Computed
	}
	return spmv.Computed, spmv.Computed
}

// Walk advances a column block hop by hop.
type Walk struct {
	Stats
	// Watch, if not nil, may change the finished rows of a hop. No row settles then.
	Watch spmv.Settle
	// Recurs says that hop j makes the rows T_j Z of Chebyshev's polynomials ([spmv.Pass.Recur]). No row settles then, nor is one changed.
	Recurs  bool
	b       *spmv.Block
	closure *Closure
	streams *Streams
	hop     int
}

// Walk returns a walk that starts at the given hop of the block. closure is nil if no row settles; otherwise its rows settle after their
// last hop.
func (s *Streams) Walk(b *spmv.Block, hop int, closure *Closure) *Walk {
	return &Walk{b: b, closure: closure, streams: s, hop: hop}
}

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
	var part *spmv.Part
	switch {
	case w.streams.last != nil:
		part = &spmv.Part{Roles: w.streams.roles(c, hop), Settle: w.closure.settle(hop, w.streams.g.Kernel)}
	case w.Watch != nil:
		part = &spmv.Part{Roles: everyRow}
	}
	if w.Watch != nil {
		part.Settle = w.Watch
	}
	run := c.pass.Run
	if w.Recurs {
		run = c.pass.Recur
	}
	edges, err = run(ctx, w.b, sink, part)
	edges += copying
	w.EdgesStreamed += edges
	if err != nil {
		return 0, fmt.Errorf("hop %d: %w", hop, err)
	}
	w.Passes++
	took.Passes = 1
	return edges, nil
}
