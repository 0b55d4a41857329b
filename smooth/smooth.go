package smooth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/share"
	"ndls/spmv"
)

// Options says how one rule is applied to the column blocks of a graph.
type Options struct {
	Rule Rule
	// K returns the LSI of a node. New calls it once for each node, in ascending order, from its
	// own goroutine; it does not call it for rules that do not depend on K.
	K func(i int64) int
	// Targets holds the rows that are written.
	Targets *Targets
	// Tolerance is the share of the weights of a node's hops that may be left out. Where it is above 0, and saves passes, rows are made of
	// few of Chebyshev's polynomials in place of all hops: if the rule adds hops up, the graph has no directions, and neither Keep nor After
	// asks for hops. A node that counts no more hops than there are polynomials has its row up to rounding. The bits depend on Tolerance,
	// the rule and the K of all nodes.
	Tolerance float64
	// Standing is the largest amount by which rows that stand may change the sum of a row, in units of the distance from the stationary
	// row. Where it is above 0, the rows of a rule with a depth for each node are made of polynomials, and few edges lead into rows that
	// still move after PlainHops to mostPlainHops hops, polynomials take the place of later hops alone, and leave out the rows that stand
	// ([hops.Graph.FindMoving]).
	Standing float64
	// Layout is the layout of a column block. SpilledSums says that the running sums are on disk.
	// The result does not depend on them.
	Layout      spmv.Layout
	SpilledSums bool
	// Blocks is the number of column blocks that are run, 0 for one. Several blocks share copies of
	// the edges that late hops need. The result does not depend on it.
	Blocks int
	// SideBySide says that the caller can run several blocks at the same time. [Options.Plan] sets
	// their number, Teams; each has a smoother ([Smoother.Another]) and a share of the threads.
	// Layout is the layout of one block.
	SideBySide bool
	Teams      int
	// After, if not nil, is called when the rows of a hop are added to the sums: first for hop 0,
	// then for each hop. It may call [Smoother.Prefix] and [Smoother.Hop].
	After func(hop int) error
	// Depths, if above 0, says that rows for every depth are asked for ([Smoother.Prefix]), not sums over all hops, and that no node counts
	// later hops. If few polynomials take the place of hops, Prefix may be called for every hop at the end, and After is not called:
	// [Smoother.Replaced] says so.
	Depths int
	// Keep lists, in ascending order, the hops whose rows After reads with [Smoother.Hop]. All of
	// them are made, even if the rule counts fewer.
	Keep []int
	// Beside lists further rules whose rows are made of the same hops for the same targets
	// ([Smoother.Each]). These rules and Rule add hops up, of the same walk. Keep must be empty, and
	// there are no checkpoints.
	Beside []Beside
	// PanelBytes is the memory that the caller holds for each panel of a block while it is
	// smoothed.
	PanelBytes int64
	// Ahead asks for memory for hop 0 of one more block, 4 bytes a value. The caller reads it while
	// the hops of the block before are made. [Options.Plan] clears Ahead if it would change the
	// blocks, or if hop 0 of a block is read again.
	Ahead bool
}

// Beside is a rule, the K of each node by which it counts hops, and what rows that stand may change, as in [Options].
type Beside struct {
	Rule     Rule
	K        func(i int64) int
	Standing float64
}

// alone returns the options of one of the rules beside.
func (o Options) alone(b Beside) Options {
	o.Rule, o.K, o.Standing, o.Beside, o.After = b.Rule, b.K, b.Standing, nil, nil
	return o
}

// kept returns the last hop that the caller reads, 0 if there is none.
func (o Options) kept() int {
	if len(o.Keep) == 0 {
		return 0
	}
	return o.Keep[len(o.Keep)-1]
}

// Smoother applies one rule to column blocks of one graph.
type Smoother struct {
	g       hops.Graph
	o       Options
	n       int64
	counts  *mem.Array[uint16]
	most    []uint16  // largest number of hops that are added to a target of each strip
	weights []float64 // by hop
	// finals holds the weight of each hop as the last one of a node. It is nil if last hops weigh
	// as others do.
	finals []float64
	// hops is the number of passes. ends holds, by count, the last T_j that is added to a row where Chebyshev's polynomials take the place
	// of hops; it is nil otherwise.
	hops int
	ends []uint16
	// plain is the number of hops that are made before polynomials, of the rows in moving alone, take the place of the others; 0 if these
	// take the place of all. finding counts the work of finding the rows.
	plain   int
	moving  *hops.Moving
	finding hops.Stats
	// largest is the largest hop that a target counts.
	largest int
	// beside adds up what further rules make of the hops. These smoothers have no rows of their
	// own.
	beside []*Smoother

	// another says that everything outside of the block belongs to another smoother.
	another bool

	rows    *spmv.Block
	sums    *sums
	history *history     // nil unless Depths is given and polynomials take the place of hops
	needed  *hops.Needed // nil if all rows are computed
	streams *hops.Streams
}

// New prepares smoothing. All workers of the graph's group must call it.
func New(ctx context.Context, g hops.Graph, o Options) (_ *Smoother, err error) {
	s := &Smoother{g: g, o: o, n: g.Source.NumNodes()}
	defer func() {
		if err != nil {
			s.Free()
		}
	}()
	if len(o.Beside) > 0 && len(o.Keep) > 0 {
		return nil, errors.New("hops are not kept of rules beside each other")
	}
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	for _, b := range o.Beside {
		if !o.Rule.Sums() || !b.Rule.Sums() || b.Rule.Walk != o.Rule.Walk {
			return nil, fmt.Errorf("the rule %s does not add up the hops of %s", b.Rule.Name, o.Rule.Name)
		}
		one := &Smoother{g: g, o: o.alone(b), n: s.n}
		s.beside = append(s.beside, one)
		if err := one.count(ctx); err != nil {
			return nil, err
		}
		if one.sums, err = newSums(g.Budget, o.Targets, o.Layout.Columns, 1, o.SpilledSums, g.Threads, g.Scratch); err != nil {
			return nil, err
		}
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, s.prune(ctx)
}

// Another prepares a smoother for other blocks, which another goroutine runs at the same time with
// so many threads. It shares with s what all blocks have in common, and must be freed before s.
func (s *Smoother) Another(threads int) (t *Smoother, err error) {
	if s.another || len(s.beside) > 0 || s.o.After != nil {
		return nil, errors.New("blocks with After, or with rules beside each other, cannot run side by side")
	}
	t = &Smoother{
		g: s.g, o: s.o, n: s.n, another: true,
		counts: s.counts, most: s.most, weights: s.weights, finals: s.finals, hops: s.hops, ends: s.ends,
		plain: s.plain, moving: s.moving, largest: s.largest,
		needed: s.needed, streams: s.streams,
	}
	t.g.Threads = threads
	if err := t.open(); err != nil {
		t.Free()
		return nil, err
	}
	return t, nil
}

// open allocates what belongs to a block.
func (s *Smoother) open() (err error) {
	g, o := s.g, s.o
	if s.rows, err = g.NewBlock(o.Layout); err != nil {
		return err
	}
	layers := 1
	if o.Depths > 0 && s.ends != nil {
		if s.history, err = s.newHistory(); err != nil {
			return err
		}
		layers = len(s.history.weights)
	}
	if o.Rule.holds() {
		s.sums, err = newSums(g.Budget, o.Targets, o.Layout.Columns, layers, o.SpilledSums, g.Threads, g.Scratch)
	}
	return err
}

// reserve returns the memory of all teams while blocks are smoothed, without copies of edges.
func (s *Smoother) reserve() int64 { return s.o.held(s.n) * int64(max(s.o.Teams, 1)) }

// prunes reports whether rows that no later hop needs are left out. Finding them is worth its time
// for several blocks only.
func (o Options) prunes() bool { return o.Blocks > 1 }

// prune finds the last hop at which each row is needed.
func (s *Smoother) prune(ctx context.Context) (err error) {
	if walks := s.walks(); s.o.prunes() && s.g.Filter != nil && len(walks) == 1 && walks[0].moving == nil {
		s.needed, err = s.g.FindNeeded(ctx, walks[0].hops, func(i int64) int {
			if !s.o.Targets.Has(i) {
				return -1
			}
			last := s.o.kept()
			for _, x := range walks[0].of {
				last = max(last, x.lastOf(i))
			}
			return last
		})
	}
	s.streams = s.g.NewStreams(s.o.Blocks, s.reserve(), s.needed)
	return err
}

// lastOf returns the last pass whose rows are added to the sum of row i, -1 if there is none.
func (s *Smoother) lastOf(i int64) int {
	if s.ends != nil {
		return int(s.ends[s.counts.S[i]])
	}
	return int(s.counts.S[i]) - 1
}

// walk is one way from hop 0 for the sums of some smoothers: by hops, by a recurrence, or by plain hops and then a recurrence of the rows
// that move.
type walk struct {
	recurs bool
	plain  int
	moving *hops.Moving
	hops   int
	of     []*Smoother
}

// walks returns the walks of the rule and those beside it. Each rule goes the way that it goes alone.
func (s *Smoother) walks() (all []walk) {
	for _, x := range append([]*Smoother{s}, s.beside...) {
		w := walk{x.ends != nil, x.plain, x.moving, x.hops, []*Smoother{x}}
		same := slices.IndexFunc(all, func(y walk) bool { return y.recurs == w.recurs && y.moving == nil && w.moving == nil })
		if same < 0 {
			all = append(all, w)
			continue
		}
		all[same].of = append(all[same].of, x)
		all[same].hops = max(all[same].hops, x.hops)
	}
	return all
}

// count finds the number of hops that each node counts.
func (s *Smoother) count(ctx context.Context) (err error) {
	if s.counts, err = mem.Alloc[uint16](s.g.Budget, s.n, "hop counts"); err != nil {
		return err
	}
	s.most = make([]uint16, s.g.Source.Strips())
	most, all := 0, 0 // hops of targets, and of all nodes
	for i := range s.n {
		lsi := 0
		if s.o.Rule.NodeDependent {
			lsi = s.o.K(i)
		}
		c := s.o.Rule.held(lsi)
		if c > math.MaxUint16 {
			return fmt.Errorf("%d hops exceed the maximum, %d", c, math.MaxUint16)
		}
		s.counts.S[i] = uint16(c)
		all = max(all, c)
		if s.o.Targets.Has(i) {
			most = max(most, c)
			strip := &s.most[i>>packed.StripShift]
			*strip = max(*strip, uint16(c))
		}
	}
	// Rows are computed as long as any worker counts them.
	if most, err = group.Max(ctx, s.g.Group, most); err != nil {
		return fmt.Errorf("hops of all workers: %w", err)
	}
	s.largest = most - 1
	s.hops = max(s.largest, s.o.kept())
	if !s.o.recurs() || s.g.Sent != nil {
		s.weigh(most)
		return nil
	}
	if all, err = group.Max(ctx, s.g.Group, all); err != nil {
		return fmt.Errorf("hops of all workers: %w", err)
	}
	s.weigh(all)
	if err := s.leaving().findMoving(ctx, all); err != nil {
		return err
	}
	return s.chooseDegree(ctx, all)
}

// weigh computes the weights of so many hops.
func (s *Smoother) weigh(most int) {
	rule := s.o.Rule
	for hop := range most {
		s.weights = append(s.weights, rule.weight(hop))
	}
	switch {
	case rule.final == nil || most == 0:
	case rule.NodeDependent:
		for hop := range most {
			s.finals = append(s.finals, rule.last(hop))
		}
	case most == rule.count(0):
		s.weights[most-1] = rule.last(most - 1)
	}
}

// sharedBytes returns the part of [MemoryBytes] that smoothers of several teams share.
func sharedBytes(n int64, o Options) int64 {
	bytes := 2*n + 4096
	if o.prunes() {
		bytes += hops.NeededBytes(n, n)
	}
	return bytes
}

// MemoryBytes returns the memory of a smoother without the column block.
func MemoryBytes(n int64, o Options, threads int) int64 {
	bytes := 2 * n
	if o.Rule.holds() {
		bytes += sumsBytes(o.Targets, o.Layout.Columns, o.layers(), o.SpilledSums, threads)
	}
	for _, b := range o.Beside {
		bytes += MemoryBytes(n, o.alone(b), threads)
	}
	if o.prunes() {
		bytes += hops.NeededBytes(n, n)
	}
	if o.Depths > 0 {
		bytes += historyBytes(n, o)
	}
	return bytes + 4*4096
}

// Sums reports whether hops add up to output rows.
func (s *Smoother) Sums() bool { return s.o.Rule.Sums() }

// Ahead reports whether the caller has memory for hop 0 of the next block ([Options.Ahead]).
func (s *Smoother) Ahead() bool { return s.o.Ahead }

// Layout returns the layout of a block.
func (s *Smoother) Layout() spmv.Layout { return s.o.Layout }

// Hops returns the number of passes of each block.
func (s *Smoother) Hops() (passes int) {
	for _, w := range s.walks() {
		passes += w.hops
	}
	return passes
}

// Replaced returns the largest hop that a target counts if few polynomials take the place of hops, and 0 otherwise. Of several rules it
// means that of the options.
func (s *Smoother) Replaced() int {
	if s.ends == nil {
		return 0
	}
	return s.largest
}

// Moving returns the number of hops that are made one by one before polynomials, and the share of all edges that lead into the rows which
// these compute. Of several rules it means that of the options.
func (s *Smoother) Moving() (plain int, share float64) { return s.plain, s.moving.Share() }

// Each returns the smoother whose output follows one of the rules: number 0 is the rule of the
// options, then come those beside. Its Output refers to the block that was run last.
func (s *Smoother) Each(number int) *Smoother {
	if number == 0 {
		return s
	}
	return s.beside[number-1]
}

// Free returns the memory.
func (s *Smoother) Free() {
	for _, x := range s.beside {
		x.Free()
	}
	if s.rows != nil {
		s.rows.Free()
	}
	if s.sums != nil {
		s.sums.free()
	}
	s.history.free()
	if s.another {
		return
	}
	s.counts.Free()
	s.moving.Free()
	s.needed.Free()
	s.streams.Close()
}

// Run runs one column block, whose rows x puts, through all hops. [Smoother.Output] returns the
// result.
func (s *Smoother) Run(ctx context.Context, x hops.Rows) (hops.Stats, error) {
	return s.Continue(ctx, x, 0, packed.Panels(s.o.Layout.Columns), hops.Checkpoints{})
}

// Continue is [Smoother.Run] for panels [first, last), which x puts as the first columns of the
// block, with checkpoints. It resumes from c.From if that is a state of these panels, perhaps
// together with others, and saves states as c asks. Stats counts the hops made. The error wraps
// hops.ErrStopped if c.Stop ended the run.
func (s *Smoother) Continue(ctx context.Context, x hops.Rows, first, last int, c hops.Checkpoints) (stats hops.Stats, err error) {
	if (len(s.beside) > 0 || s.history != nil) && (c.Save != nil || c.From != nil) {
		return stats, errors.New("the sums of rules beside each other, and the rows of a history, have no checkpoints")
	}
	begin := s.saving().state(first, last, c)
	var from state
	resumed, err := s.g.Begin(ctx, c, func(r *hops.StateReader) (_ []int, err error) {
		from, err = s.saving().header(r, begin)
		return []int{from.Hop}, err
	}, func(r *hops.StateReader) error { return s.saving().resume(r, from, begin) })
	if err != nil {
		return stats, err
	}
	hop := 0
	if resumed {
		hop = from.Hop
	} else if err := s.clear(); err != nil {
		return stats, err
	}
	meter := progress.StartPart(ctx, "hops", int64(s.Hops()), "hops")
	defer meter.Done()
	for _, w := range s.walks() {
		part, err := s.advance(ctx, w, hop, x, meter, func(ctx context.Context, hop int) error {
			now := begin
			now.Hop = hop
			return s.g.After(ctx, c, hop, func(out io.Writer) error { return s.saving().save(out, now) })
		})
		stats.Add(part)
		if err != nil {
			return stats, err
		}
	}
	return stats, nil
}

// advance makes the passes of a walk from a hop on, and calls between after each but the last.
func (s *Smoother) advance(ctx context.Context, w walk, hop int, x hops.Rows, meter *progress.Meter,
	between func(ctx context.Context, hop int) error,
) (hops.Stats, error) {
	var mu sync.Mutex
	var failed error
	all := make([]*turns, len(w.of))
	for i, x := range w.of {
		all[i] = x.newTurns()
		all[i].to(max(hop-w.plain, 0))
	}
	recurs := w.recurs && (w.plain == 0 || hop > w.plain)
	add := func(first int64, rows []float32) {
		var err error
		for i, x := range w.of {
			turn := all[i]
			if !recurs {
				turn = nil
			}
			err = errors.Join(err, x.add(hop, turn, first, rows))
		}
		if err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
	}
	if hop == 0 {
		err := s.begin(ctx, x, add)
		if err = errors.Join(failed, err); err == nil {
			err = s.after(hop)
		}
		if err != nil {
			return hops.Stats{}, err
		}
	}
	s.streams.Restrict(w.moving)
	walk := s.streams.Walk(s.rows, hop)
	walk.Recurs = recurs
	walk.Stats, s.finding = s.finding, hops.Stats{}
	if s.needed != nil && !s.another {
		walk.EdgesStreamed, s.needed.EdgesRead = walk.EdgesStreamed+s.needed.EdgesRead, 0
	}
	meter.Add(int64(hop))
	for hop < w.hops {
		if w.recurs && !recurs && hop == w.plain {
			recurs, walk.Recurs = true, true
			if err := s.leaving().leave(ctx, w, add); err != nil || failed != nil {
				return walk.Stats, errors.Join(failed, err)
			}
		}
		hop++
		for _, t := range all {
			t.to(max(hop-w.plain, 0))
		}
		if _, err := walk.Next(ctx, w.hops-hop+1, add); err != nil || failed != nil {
			return walk.Stats, errors.Join(failed, err)
		}
		if err := s.after(hop); err != nil {
			return walk.Stats, err
		}
		meter.Add(1)
		if hop == w.hops {
			break
		}
		if err := between(ctx, hop); err != nil {
			return walk.Stats, err
		}
	}
	return walk.Stats, nil
}

// after reports that a hop's rows are added.
func (s *Smoother) after(hop int) error {
	if s.o.After == nil || s.history != nil {
		return nil
	}
	return s.o.After(hop)
}

// begin sets the block to hop 0.
func (s *Smoother) begin(ctx context.Context, x hops.Rows, add func(first int64, rows []float32)) error {
	if err := s.g.Fill(ctx, s.rows, x, nil); err != nil {
		return err
	}
	return s.addFirst(add)
}

// clear sets all sums to zero.
func (s *Smoother) clear() error {
	for _, x := range s.beside {
		if err := x.clear(); err != nil {
			return err
		}
	}
	if s.sums == nil || s.history != nil { // every row of a history is replaced
		return nil
	}
	return share.Each(s.g.Threads, packed.Strips(s.n), func(strip int) error {
		return s.sums.with(0, int64(strip)<<packed.StripShift, replace, func(rows []float32) error {
			clear(rows)
			return nil
		})
	})
}

// eachSum calls f for each strip, if there are sums.
func (s *Smoother) eachSum(f func(lo int64) error) error {
	if s.sums == nil {
		return nil
	}
	return s.eachStrip(f)
}

func (s *Smoother) eachStrip(f func(lo int64) error) error {
	for lo := int64(0); lo < s.n; lo += packed.StripRows {
		if err := f(lo); err != nil {
			return err
		}
	}
	return nil
}

// addFirst adds hop 0, strip by strip.
func (s *Smoother) addFirst(add func(first int64, rows []float32)) error {
	return s.rows.Strips(func(first int64, rows []float32) error {
		add(first, rows)
		return nil
	})
}

// add adds the finished rows of a strip to the sums of the targets that still count this hop, or with the weights of its turn.
func (s *Smoother) add(hop int, turn *turns, first int64, rows []float32) error {
	if int(s.most[first>>packed.StripShift]) <= hop || turn == nil && !s.o.Rule.counts(hop) {
		return nil
	}
	if s.history != nil {
		return s.keep(hop, first, rows)
	}
	columns := int64(s.o.Layout.Columns)
	end := first + int64(len(rows))/columns
	counts := s.counts.S[first:end]
	return s.sums.with(0, first, change, func(sum []float32) error {
		if s.o.Targets.All() {
			s.addRows(hop, turn, sum, rows, counts)
			return nil
		}
		s.o.Targets.each(first, end, func(i int64) {
			at := i - first
			if int(counts[at]) <= hop {
				sum = sum[columns:]
				return
			}
			row := rows[at*columns : (at+1)*columns]
			s.addRows(hop, turn, sum[:columns], row, counts[at:at+1])
			sum = sum[columns:]
		})
		return nil
	})
}

// addRows adds rows of a hop to the sums of the targets that still count it. Under a rule that
// repeats hops it replaces the sums.
func (s *Smoother) addRows(hop int, turn *turns, sum, rows []float32, counts []uint16) {
	columns, kernel := s.o.Layout.Columns, s.g.Kernel
	if turn != nil {
		kernel.AddWeighed(sum, rows, counts, turn.weight)
		return
	}
	if s.o.Rule.Repeats() {
		for i, c := range counts {
			if int(c) > hop {
				copy(sum[i*columns:(i+1)*columns], rows[i*columns:])
			}
		}
		return
	}
	w := float32(s.weights[hop])
	if s.finals == nil {
		kernel.AddWhere(sum, rows, counts, uint16(hop), w)
		return
	}
	if w != 0 {
		kernel.AddWhere(sum, rows, counts, uint16(hop)+1, w)
	}
	final := float32(s.finals[hop])
	for i, c := range counts {
		if int(c) == hop+1 {
			at := i * columns
			kernel.AddWhere(sum[at:at+columns], rows[at:at+columns], counts[i:i+1], uint16(hop), final)
		}
	}
}

// Output puts columns [col, col+columns) of the smoothed target rows of the block that was run
// last, in ascending order of node, some at a time. x puts its X^(0) again, for rules that need it.
func (s *Smoother) Output(col, columns int, x hops.Rows, put func(rows []float32) error) error {
	out := outputs{s: s, most: math.MaxInt, col: col, columns: columns, put: put}
	if !s.o.Rule.Residual() {
		return out.each(nil)
	}
	return out.beside(x)
}

// hopRows is the number of rows of a hop that a thread reads at a time.
const hopRows = 32

// Hop puts columns [col, col+columns) of the target rows of the block at the last hop made,
// X^(hop), in ascending order of node, some at a time. [Options.Keep] must list the hop. x puts
// X^(0) again; for hop 0 the rows of x are passed on. Under a rule that repeats hops
// ([Rule.Repeats]) the row of a node is the row of its last hop, if that comes before.
func (s *Smoother) Hop(hop, col, columns int, x hops.Rows, put func(rows []float32) error) error {
	if hop > 0 && s.o.Rule.Repeats() {
		out := outputs{s: s, most: math.MaxInt, col: col, columns: columns, put: put}
		return out.each(nil)
	}
	stride := int64(s.o.Layout.Columns)
	var out []float32
	show := func(first int64, rows []float32, scale func(i int64) float64) error {
		n := len(rows) / int(stride)
		values := int(s.o.Targets.count(first, first+int64(n))) * columns
		out = slices.Grow(out[:0], values)[:values]
		err := share.Ranges(s.g.Threads, n, hopRows, func(lo, hi int) error {
			to := out[int(s.o.Targets.count(first, first+int64(lo)))*columns:]
			large := false
			s.o.Targets.each(first+int64(lo), first+int64(hi), func(i int64) {
				row := rows[(i-first)*stride+int64(col):][:columns]
				if scale == nil {
					copy(to, row)
				} else {
					up := scale(i)
					for c, z := range row {
						to[c] = float32(up * float64(z))
						large = large || !(math.Abs(float64(to[c])) <= math.MaxFloat32)
					}
				}
				to = to[columns:]
			})
			if large {
				return spmv.TooLarge(s.o.Layout.Precision)
			}
			return nil
		})
		if err != nil || values == 0 {
			return err
		}
		return put(out)
	}
	if hop > 0 {
		return s.rows.Visit(func(first int64, rows []float32) error { return show(first, rows, s.g.State.Up) })
	}
	first := int64(0)
	return x(func(rows []float32) error {
		err := show(first, rows, nil)
		first += int64(len(rows)) / stride
		return err
	})
}

// Prefix puts what [Smoother.Output] would put if no node counted hops after the given one. That
// must be the last one made, or any one if [Options.Depths] is given and [Smoother.Replaced] is not
// 0. x returns the row of a target, by its number among the targets, on any thread. For rules
// with a residual that is the row of the block's X^(0); for rules whose last hop
// has a weight of its own ([Rule.Final]) it is the row of the last hop made, which is not read if
// polynomials took the place of hops. For other rules x may be nil.
func (s *Smoother) Prefix(hop, col, columns int, x func(i int64) []float32, put func(rows []float32) error) error {
	out := outputs{s: s, most: hop + 1, col: col, columns: columns, put: put}
	return out.each(x)
}
