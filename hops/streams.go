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

// Streams holds the edges that the column blocks of a run read. The first hops read the
// stream of the graph. Where some rows are not recomputed at later hops, those hops read
// copies without the edges into such rows. All blocks read the same copies. Several goroutines may
// take blocks from hop to hop at the same time, if there are several blocks.
type Streams struct {
	g  Graph
	mu sync.Mutex // of copies and idle
	// last gives the last hops at which rows are recomputed; nil if that is the last of all.
	last   Lasts
	blocks int
	// reserve is how many bytes of the budget others need while copies exist.
	reserve int64
	// settles says that rows are read after their last hop. Each copy then lists the rows
	// that are read.
	settles bool
	whole   *copied
	copies  []*copied // in ascending order of hop
	idle    int64     // edges into rows that are not recomputed, read since the last copy
}

// copied is the edges into rows that are recomputed at a hop or later.
type copied struct {
	hop    int
	stream Stream // of all rows of the graph; nil for the graph's own
	pass   *spmv.Pass
	edges  int64
	bytes  int64 // of the budget that the stream takes
	// read has a bit for each row that an edge comes from. It is nil where any row may be read:
	// other workers do not say what they read.
	read *mem.Array[uint32]
}

// mostCopies bounds the copies that exist at a time.
const mostCopies = 8

// copiesShare is the part of the free budget that copies may take up to be kept in memory.
const copiesShare = 4

// rowsAtATime is for how many rows last hops are asked for at a time.
const rowsAtATime = 1024

// StreamsBytes is the memory in bytes that the lists of read rows take for n rows, where
// rows settle. Edges in memory are not in it: they take a part of what is free.
func StreamsBytes(n int64) int64 { return mostCopies * direct.RoundUp((n+31)/32*4) }

// NewStreams prepares the edges for that many blocks, which make the same hops. It leaves
// reserve bytes of the budget to others. last is nil where every row is recomputed at every
// hop. settles says that rows are also read after their last hop.
func (g Graph) NewStreams(blocks int, reserve int64, last Lasts, settles bool) *Streams {
	s := &Streams{g: g, last: last, blocks: max(blocks, 1), reserve: reserve, settles: settles}
	s.whole = &copied{pass: g.pass(g.Source), edges: NumEdges(g.Source)}
	return s
}

// Close gives back memory and disk space. It may be called on nil.
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

// at gives the edges for a hop. It makes a copy if two conditions hold. First, the edges
// that were read for nothing since the last copy, times the blocks, are as many as the copy
// reads. Second, the hops that are left, times the blocks, save more edges than the copy
// reads and writes. Neither is enough where the graph has no room for the copy. It also returns
// how many edges it read for a copy.
//
// Copies for several blocks stay until all blocks are done. Each has at most half of the
// edges of the one before, so together they have at most as many as the stream of the
// graph.
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
	if blocks*s.idle < c.edges || float64(active) > most*float64(c.edges) || float64(blocks)*float64(left)*float64(saved) <= float64(c.edges+active) ||
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

// fits says whether there is room for a copy of so many edges.
func (s *Streams) fits(edges int64) bool {
	for _, x := range s.copies {
		edges += x.edges
	}
	return s.g.Room == 0 || edges <= s.g.Room
}

// Prepare makes the copies that hops from first to last are worth, before any of them is made.
// It returns how many edges it read.
func (s *Streams) Prepare(ctx context.Context, first, last int) (edges int64, err error) {
	for hop := first; hop <= last; hop++ {
		_, copying, err := s.at(ctx, hop, last-hop+1)
		if edges += copying; err != nil {
			return edges, err
		}
	}
	return edges, nil
}

// shrinkAt is the largest share of its edges that a stream may retain to be worth
// copying. It is half of that for a copy that stays beside the stream.
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

// roles are those of rows at a hop that reads c.
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

// after gives rows, whose last hops are given, their roles at a hop that reads c, and a bit for
// each role in the result. first is a multiple of 32. Roles of neighbours differ: the loops have
// no branches that depend on them.
func (s *Streams) after(c *copied, hop int, first int64, last []uint16, roles []spmv.Role) (found uint8) {
	for k, f := range last {
		// Of a row that is idle, the copy was made without the edges into it.
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

// kept is Kept for a row that is not computed.
func kept(role spmv.Role) spmv.Role { return spmv.Kept | role&(role>>1) }

// computed says which rows are recomputed at a hop.
func (s *Streams) computed(hop int) func(i int64) bool {
	return func(i int64) bool {
		var last [1]uint16
		s.last(i, last[:])
		return int(last[0]) >= hop
	}
}

// everyRow are the roles of rows that are all computed.
func everyRow(_ int64, roles []spmv.Role) (least, most spmv.Role) {
	for k := range roles {
		roles[k] = spmv.Computed
	}
	return spmv.Computed, spmv.Computed
}

// Walk takes a column block from hop to hop.
type Walk struct {
	Stats
	// Watch, unless nil, may change the finished rows of a hop. No row settles then.
	Watch   spmv.Settle
	b       *spmv.Block
	closure *Closure
	streams *Streams
	hop     int
}

// Walk starts at the given hop of the block; closure is nil where no row settles, else its
// rows settle after their last hop.
func (s *Streams) Walk(b *spmv.Block, hop int, closure *Closure) *Walk {
	return &Walk{b: b, closure: closure, streams: s, hop: hop}
}

// Hop is the hop that the block's rows are of.
func (w *Walk) Hop() int { return w.hop }

// Next makes one hop and calls sink with its rows. left is the largest number of hops
// that may still be made, including this one. It returns the number of edges streamed.
func (w *Walk) Next(ctx context.Context, left int, sink spmv.Sink) (edges int64, err error) {
	return w.Make(ctx, w.hop+1, left, sink)
}

// Make is [Walk.Next] with the rows that are computed at a hop, whatever hop the block's rows
// are of.
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
	edges, err = c.pass.Run(ctx, w.b, sink, part)
	edges += copying
	w.EdgesStreamed += edges
	if err != nil {
		return 0, fmt.Errorf("hop %d: %w", hop, err)
	}
	w.Passes++
	took.Passes = 1
	return edges, nil
}
