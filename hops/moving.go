package hops

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/spmv"
)

const (
	// movingShare bounds the edges into rows that move: one of so many.
	movingShare = 2
	// mostPassesLeft is the largest share of all passes that may be left where rows are left out.
	mostPassesLeft = 0.85
	// signScale multiplies the random signs, so that their deflated rows are not too small for float16.
	signScale = 1 << 13
	// signSeed is the seed of the signs.
	signSeed = 0x5e771ed
)

// Standing says which rows a caller may leave out after some hops: those that differ little from their stationary rows. Later hops then
// have the stationary rows in their place.
type Standing struct {
	// Amount is the largest amount by which rows that stand may change what the caller makes of an open row, in units of the distance from
	// the stationary row, d̃^r ‖Z‖.
	Amount float64
	// First and Last bound the hops that are made one by one before rows are left out.
	First, Last int
	// Open bounds the share of all edges that may lead into open rows after hop Last; 0 stands for one of movingShare.
	Open float64
	// Later returns the number of passes for the rest of the hops, and All the number of all passes if no row is left out.
	Later func(hop int) int
	All   int
	// Share returns the part, from 0 to 1, that the hops after this one have in what the caller makes of row i. An error in these hops
	// counts in that part. The row is open if the part is above 0. A row that is open after a hop is open before it.
	Share func(i int64, hop int) float64
}

// Moving has the rows that still move after some hops. The others stand: they are zero in deflated form, and the rows that move are a graph
// of their own.
type Moving struct {
	after int
	bits  *mem.Array[uint32] // a bit for each row of all workers
	first int64              // this worker's first row
	rows  int64              // that move, of all workers
	share float64            // of all edges, that lead into them
}

// MovingBytes returns the memory of the rows that move, and what FindMoving needs more than the caller's block, which is not there
// meanwhile.
func (c Capacity) MovingBytes(l spmv.Layout) int64 {
	finding := MovingLayout(l).Memory(c.Nodes, c.Threads) + 8*c.Components*packed.PanelColumns + ReadBytes
	return 2*((c.Nodes+c.Others+31)/32*4+4096) + max(finding-l.Memory(c.Nodes, c.Threads), 0)
}

// MovingLayout returns the layout of the block that FindMoving uses for a caller whose blocks have layout l.
func MovingLayout(l spmv.Layout) spmv.Layout {
	l.Columns, l.Precision = packed.PanelColumns, spmv.Float16
	return l
}

// MovingWork adds the work of FindMoving for n rows. It assumes that the search ends two hops after the first possible one.
func MovingWork(w *Work, n int64, first int, l spmv.Layout) {
	l = MovingLayout(l)
	w.External(l, n, 3, 2) // filled, deflated, summed by the first pass
	w.Pass(l, n, first+2, false)
}

// FindMoving finds the rows that move, and the hop after which the others are best left out: the one with the least passes if a pass over
// the edges into rows that move counts as their share of all edges. Rows that are open move, and those do whose deflated row of 16 random
// signs is longer than the amount over the largest product of d̃^r and Share of an open row, since averages do not lengthen errors.
// FindMoving looks at one hop after the other, until the passes grew twice in a row.
//
// It returns nil if the amount is 0, if no row is open or too many are, if edges have weights or directions, if more than one of
// movingShare edges lead into rows that move, or if less than 15 % of all passes are saved. All workers of the graph's group call it, with
// layouts of one kind. The result depends on the graph and s alone.
func (g Graph) FindMoving(ctx context.Context, s Standing, l spmv.Layout) (_ *Moving, stats Stats, err error) {
	if !(s.Amount > 0) || s.First > s.Last || g.Divisors != nil || g.Sent != nil {
		return nil, stats, nil
	}
	most := cmp.Or(s.Open, 1./movingShare)
	if share, err := g.shareOf(ctx, func(i int64) bool { return s.Share(i, s.Last) > 0 }); err != nil || share > most {
		return nil, stats, err
	}
	found, err := g.newMoving()
	if err != nil {
		return nil, stats, err
	}
	if stats, err = g.searchMoving(ctx, s, l, found); err == nil && found.after > 0 {
		err = found.unite(ctx, g.Group)
	}
	if err != nil || found.after == 0 {
		found.Free()
		return nil, stats, err
	}
	return found, stats, nil
}

// newMoving returns a set without rows.
func (g Graph) newMoving() (m *Moving, err error) {
	first, _, all := g.Group.Range()
	m = &Moving{first: first}
	m.bits, err = mem.Alloc[uint32](g.Budget, (all+31)/32, "rows that move")
	return m, err
}

// searchMoving sets found to this worker's rows that move after the best hop. It leaves it as it is if no hop is good enough.
func (g Graph) searchMoving(ctx context.Context, s Standing, l spmv.Layout, found *Moving) (stats Stats, err error) {
	now, err := g.newMoving()
	if err != nil {
		return stats, err
	}
	defer now.Free()
	signs, err := g.newSigns(ctx, MovingLayout(l))
	if err != nil {
		return stats, err
	}
	defer signs.free()
	best, before, grew := float64(s.All)*mostPassesLeft, math.Inf(1), 0
	for hop := 1; hop <= s.Last && grew < 2; hop++ {
		if hop < s.First {
			if err := signs.next(ctx, nil); err != nil {
				return signs.walk.Stats, err
			}
			continue
		}
		weight := func(i int64) float64 { return s.Share(i, hop) }
		largest, err := g.largestUp(ctx, weight)
		if err != nil || largest == 0 {
			return signs.walk.Stats, err
		}
		limit := s.Amount * signScale / largest
		now.bits.Clear()
		if err := signs.next(ctx, func(i int64, square float64) {
			if weight(i) > 0 || !(square <= limit*limit) {
				row := now.first + i
				atomic.OrUint32(&now.bits.S[row/32], 1<<(row%32))
			}
		}); err != nil {
			return signs.walk.Stats, err
		}
		share, err := g.shareOf(ctx, now.Has)
		if err != nil {
			return signs.walk.Stats, err
		}
		passes := float64(hop) + float64(share*float64(s.Later(hop)))
		if share*movingShare <= 1 && passes < best {
			best, found.after, found.share = passes, hop, share
			found.bits, now.bits = now.bits, found.bits
		}
		if grew++; passes < before {
			grew = 0
		}
		before = passes
	}
	return signs.walk.Stats, nil
}

// unite adds the rows of all other workers, and counts them.
func (m *Moving) unite(ctx context.Context, all group.Group) error {
	if err := group.Union(ctx, all, m.bits.S); err != nil {
		return fmt.Errorf("rows that move: %w", err)
	}
	for _, word := range m.bits.S {
		m.rows += int64(bits.OnesCount32(word))
	}
	return nil
}

// shareOf returns the share of the edges of all workers that lead into the rows.
func (g Graph) shareOf(ctx context.Context, has func(i int64) bool) (float64, error) {
	counts := []float64{0, float64(NumEdges(g.Source))}
	counts[0] = float64(g.sum(func(lo, hi int64) (edges int64) {
		for i := lo; i < hi; i++ {
			if has(i) {
				edges += int64(g.Degree[i])
			}
		}
		return edges
	}))
	if err := group.Totals(ctx, g.Group, counts); err != nil {
		return 0, fmt.Errorf("edges into rows that move: %w", err)
	}
	return counts[0] / max(counts[1], 1), nil
}

// largestUp returns the largest d̃^r times weight of the rows of all workers.
func (g Graph) largestUp(ctx context.Context, weight func(i int64) float64) (float64, error) {
	var mu sync.Mutex
	largest := []float64{0}
	g.sum(func(lo, hi int64) int64 {
		up := 0.0
		for i := lo; i < hi; i++ {
			if w := weight(i); w > 0 {
				up = max(up, w*g.State.Up(i))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		largest[0] = max(largest[0], up)
		return 0
	})
	if err := group.Largest(ctx, g.Group, largest); err != nil {
		return 0, fmt.Errorf("largest degree of open rows: %w", err)
	}
	return largest[0], nil
}

// signs makes hops of deflated random signs.
type signs struct {
	g       Graph
	rows    *spmv.Block
	streams *Streams
	walk    *Walk
}

func (g Graph) newSigns(ctx context.Context, l spmv.Layout) (_ *signs, err error) {
	x := &signs{g: g}
	if x.rows, err = g.NewBlock(l); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			x.rows.Free()
		}
	}()
	mean, err := g.State.NewMean(l.Columns)
	if err != nil {
		return nil, err
	}
	defer mean.Free()
	first, _, _ := g.Group.Range()
	unit := math.Float32bits(signScale / 4) // of 16 columns
	if err := g.Make(ctx, x.rows, func(i int64, to []float32) {
		signs := uint32(rng.Hash(signSeed, uint64(first+i)))
		for c := range to {
			to[c] = math.Float32frombits(unit | signs>>c<<31)
		}
	}, mean); err != nil {
		return nil, err
	}
	x.streams = g.NewStreams(1, ReadBytes, nil)
	x.walk = x.streams.Walk(x.rows, 0)
	return x, nil
}

func (x *signs) free() {
	x.streams.Close()
	x.rows.Free()
}

// next makes a hop. If show is not nil, it receives the squared length of each row then. Concurrent calls are for different rows.
func (x *signs) next(ctx context.Context, show func(i int64, square float64)) error {
	var sink spmv.Sink
	if show != nil {
		sink = func(at int64, rows []float32) { x.g.showSquares(at, rows, x.rows.Layout().Columns, show) }
	}
	_, err := x.walk.Next(ctx, 1, sink)
	return err
}

// showSquares calls show with the squared lengths of rows first, first+1, ….
func (g Graph) showSquares(first int64, rows []float32, columns int, show func(i int64, square float64)) {
	var squares [scaledRows]float64
	for len(rows) > 0 {
		part := rows[:min(len(rows), scaledRows*columns)]
		some := squares[:len(part)/columns]
		clear(some)
		g.Kernel.SquareNorms(some, part)
		for i, x := range some {
			show(first+int64(i), x)
		}
		first, rows = first+int64(len(some)), rows[len(part):]
	}
}

// Has reports whether row i of this worker moves. m may be nil: then each row does.
func (m *Moving) Has(i int64) bool { return m == nil || m.has(m.first+i) }

func (m *Moving) has(row int64) bool { return m.bits.S[row/32]>>(row%32)&1 != 0 }

// After returns the hop after which the other rows stand. It returns otherwise if m is nil.
func (m *Moving) After(otherwise int) int {
	if m == nil {
		return otherwise
	}
	return m.after
}

// Share returns the share of all edges that lead into rows that move, 1 if m is nil.
func (m *Moving) Share() float64 {
	if m == nil {
		return 1
	}
	return m.share
}

// Rows returns the number of rows that move, of all workers; 0 if m is nil.
func (m *Moving) Rows() int64 {
	if m == nil {
		return 0
	}
	return m.rows
}

// Free frees the memory. m may be nil.
func (m *Moving) Free() {
	if m != nil {
		m.bits.Free()
	}
}

// Clear sets the rows of a block that stand to zero. m may be nil.
func (m *Moving) Clear(b *spmv.Block) error {
	if m == nil {
		return nil
	}
	columns := int64(b.Layout().Columns)
	return b.Edit(func(first int64, rows []float32) {
		for i := range int64(len(rows)) / columns {
			if !m.Has(first + i) {
				clear(rows[i*columns : (i+1)*columns])
			}
		}
	})
}

// Restrict says that later hops than those after which m was found compute the rows that move alone, of blocks that m has cleared, by the
// edges between them. m may be nil, for all rows.
func (s *Streams) Restrict(m *Moving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moving != m {
		s.closeBetween()
		s.moving = m
	}
}

func (s *Streams) closeBetween() {
	if s.between != nil && s.between != s.whole {
		s.between.stream.Close()
	}
	s.between = nil
}

// restricted returns the edges between rows that move, and the number of edges that it read for a copy.
func (s *Streams) restricted(ctx context.Context) (c *copied, edges int64, err error) {
	if s.between != nil {
		return s.between, 0, nil
	}
	s.between = s.whole
	if s.g.Filter == nil || s.g.Room > 0 && float64(s.g.Room) < s.moving.share*float64(s.whole.edges) {
		return s.between, 0, nil
	}
	m, n := s.moving, s.g.Source.NumNodes()
	stream, err := s.g.Filter(ctx, whole(s.g.Source), func(row int64) bool {
		return m.first <= row && row < m.first+n && m.has(row)
	}, m.has, s.room())
	if err != nil {
		s.between = nil
		return nil, 0, fmt.Errorf("edges between rows that move: %w", err)
	}
	s.between = &copied{hop: m.after, stream: stream, edges: NumEdges(stream)}
	s.between.pass = s.g.pass(Slice(stream, m.first, m.first+n))
	s.between.pass.Lacks = true // a row that stands is zero, and without edges it stays so
	return s.between, s.whole.edges, nil
}

// roles returns the function that sets the roles of rows at a hop that reads all edges: Computed for a row that moves, and Skipped,
// so that it stays zero, for others.
func (m *Moving) roles() spmv.Roles {
	return func(first int64, roles []spmv.Role) (least, most spmv.Role) {
		least, most = spmv.Computed, spmv.Skipped
		for k := range roles {
			roles[k] = spmv.Skipped
			if m.Has(first + int64(k)) {
				roles[k] = spmv.Computed
			}
			least, most = min(least, roles[k]), max(most, roles[k])
		}
		return least, most
	}
}

// wordRoles returns the function that sets the roles of rows at a hop that reads the edges between rows that move. Rows are Idle where a
// word of bits has none that moves, and Computed elsewhere: a row that stands is zero there, and without edges it stays so. The runs of
// equal roles are longer than those of single rows.
func (m *Moving) wordRoles() spmv.Roles {
	const wordRows = 32
	return func(first int64, roles []spmv.Role) (least, most spmv.Role) {
		least, most = spmv.Computed, spmv.Idle
		for k := 0; k < len(roles); {
			row := m.first + first + int64(k)
			role := spmv.Idle
			if m.bits.S[row/wordRows] != 0 {
				role = spmv.Computed
			}
			least, most = min(least, role), max(most, role)
			for end := min(k+wordRows-int(row%wordRows), len(roles)); k < end; k++ {
				roles[k] = role
			}
		}
		return least, most
	}
}
