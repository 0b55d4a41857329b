package smooth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// Options say how one rule is applied to the column blocks of a graph.
type Options struct {
	Rule Rule
	// K gives the LSI of each node. New calls it once for each node, in ascending
	// order, from its own goroutine; not for rules that do not depend on it.
	K func(i int64) int
	// Targets are the rows that are written.
	Targets *Targets
	// Settled stops recomputing rows: row i after hop Last[i], or, where Last is nil, Slack
	// hops after its own last one. Without Settled, nobody needs row i after hop Last[i].
	Settled bool
	Slack   int
	Last    []uint16
	// deflated makes hops of deflated rows though no row settles.
	deflated bool
	// Chooses says that the memory is for [Choose].
	Chooses bool
	// Layout is how a column block is laid out, SpilledSums whether the
	// running sums are on disk. The result does not depend on them.
	Layout      spmv.Layout
	SpilledSums bool
	// Blocks is how many column blocks are run, 0 for one. Several blocks share copies of the
	// edges that late hops need. The result does not depend on it.
	Blocks int
	// After, unless nil, is called when the rows of a hop are added to the sums: of hop 0
	// first, then of each hop. It may call [Smoother.Prefix].
	After func(hop int) error
	// PanelBytes is what the caller holds for each panel of a block while that is smoothed.
	PanelBytes int64
}

// Smoother applies one rule to column blocks of one graph.
type Smoother struct {
	g       hops.Graph
	o       Options
	n       int64
	counts  *mem.Array[uint16]
	most    []uint16  // largest count of a target of each strip
	weights []float64 // by hop
	hops    int

	rows    *spmv.Block
	sums    *sums
	mean    *stationary.Mean // nil unless rows are deflated
	closure *hops.Closure    // nil unless Settled
	needed  *hops.Needed     // nil where all rows are computed
	streams *hops.Streams
}

// New prepares smoothing. All workers of the graph's group call it.
func New(ctx context.Context, g hops.Graph, o Options) (_ *Smoother, err error) {
	s := &Smoother{g: g, o: o, n: g.Source.NumNodes()}
	defer func() {
		if err != nil {
			s.Free()
		}
	}()
	if o.Settled && !o.Rule.NodeDependent {
		return nil, fmt.Errorf("rule %s counts the same hops for every node: rows settle under ndls and ndls-reference only", o.Rule.Name)
	}
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	if s.rows, err = g.NewBlock(o.Layout); err != nil {
		return nil, err
	}
	if s.sums, err = newSums(g.Budget, o.Targets, o.Layout.Columns, o.SpilledSums, g.Threads, g.Scratch); err != nil {
		return nil, err
	}
	if !o.Settled && !o.deflated {
		return s, s.prune(ctx)
	}
	if s.mean, err = g.State.NewMean(o.Layout.Columns); err != nil {
		return nil, err
	}
	if o.deflated {
		s.streams = g.NewStreams(o.Blocks, o.held(), nil, false)
		return s, nil
	}
	last := hops.AsLasts(s.until)
	if o.Last != nil {
		last = s.lasts
	}
	s.streams = g.NewStreams(o.Blocks, o.held(), last, true)
	if o.Last != nil {
		s.streams.Shown = s.counts.S
	}
	s.closure, err = hops.NewClosure(g.Budget, s.n, o.Layout.Columns, last)
	return s, err
}

// prunes says whether rows that no later hop needs are left out. Finding them pays for
// several blocks only.
func (o Options) prunes() bool { return o.Blocks > 1 && !o.Settled && !o.deflated }

// prune finds out up to which hop rows are needed.
func (s *Smoother) prune(ctx context.Context) (err error) {
	if s.o.Last != nil {
		s.streams = s.g.NewStreams(s.o.Blocks, s.o.held(), s.lasts, false)
		return nil
	}
	if s.o.prunes() && s.g.Filter != nil {
		s.needed, err = s.g.FindNeeded(ctx, s.hops, func(i int64) int {
			if s.o.Targets.Has(i) {
				return int(s.counts.S[i]) - 1
			}
			return -1
		})
	}
	if err != nil || s.needed == nil {
		s.streams = s.g.NewStreams(s.o.Blocks, s.o.held(), nil, false)
		return err
	}
	s.streams = s.g.NewStreams(s.o.Blocks, s.o.held(), hops.AsLasts(s.needed.Until), false)
	return nil
}

// count finds how many hops each node counts.
func (s *Smoother) count(ctx context.Context) (err error) {
	if s.counts, err = mem.Alloc[uint16](s.g.Budget, s.n, "hop counts"); err != nil {
		return err
	}
	s.most = make([]uint16, s.g.Source.Strips())
	most := 0
	for i := range s.n {
		lsi := 0
		if s.o.Rule.NodeDependent {
			lsi = s.o.K(i)
		}
		c := s.o.Rule.count(lsi)
		if c > math.MaxUint16 {
			return fmt.Errorf("%d hops are more than %d", c, math.MaxUint16)
		}
		s.counts.S[i] = uint16(c)
		if s.o.Settled && s.o.Last != nil && !s.o.Targets.Has(i) {
			s.counts.S[i] = 0 // nobody asks for the row
		}
		if s.o.Targets.Has(i) {
			most = max(most, c)
			strip := &s.most[i>>packed.StripShift]
			*strip = max(*strip, uint16(c))
		}
	}
	// Rows are computed for as long as any worker counts them.
	if most, err = group.Max(ctx, s.g.Group, most); err != nil {
		return fmt.Errorf("hops of all workers: %w", err)
	}
	s.hops = max(most-1, 0)
	for hop := range most {
		s.weights = append(s.weights, s.o.Rule.weight(hop))
	}
	return nil
}

// lasts puts the last hops that were chosen.
func (s *Smoother) lasts(first int64, last []uint16) { copy(last, s.o.Last[first:]) }

// until is F(i) where slack says when rows settle: Slack hops after the last that node i
// counts.
func (s *Smoother) until(i int64) int {
	return max(int(s.counts.S[i])-1+s.o.Slack, 1)
}

// MemoryBytes is what a smoother takes beside the column block.
func MemoryBytes(n, components int64, o Options, threads int) int64 {
	bytes := 2*n + sumsBytes(o.Targets, o.Layout.Columns, o.SpilledSums, threads)
	if o.Settled {
		bytes += hops.ClosureBytes(n, o.Layout.Columns) + 8*components*int64(o.Layout.Columns) + hops.StreamsBytes(n)
	}
	if o.prunes() {
		bytes += hops.NeededBytes(n)
	}
	if o.Chooses {
		bytes += chooseBytes(n, threads)
	}
	return bytes + 4*4096
}

// Hops is the number of passes each block takes.
func (s *Smoother) Hops() int { return s.hops }

// Free returns the memory.
func (s *Smoother) Free() {
	s.counts.Free()
	if s.rows != nil {
		s.rows.Free()
	}
	if s.sums != nil {
		s.sums.free()
	}
	if s.mean != nil {
		s.mean.Free()
	}
	s.closure.Free()
	s.needed.Free()
	s.streams.Close()
}

// Run takes one column block, whose rows x puts, through all hops. [Smoother.Output]
// gives the result.
func (s *Smoother) Run(ctx context.Context, x hops.Rows) (hops.Stats, error) {
	return s.Continue(ctx, x, 0, s.o.Layout.Columns/packed.PanelColumns, hops.Checkpoints{})
}

// Continue is [Smoother.Run] of panels [first, last), which x puts as the first
// columns of the block, with checkpoints: it resumes from c.From if that is a state
// of these panels, and maybe of others, and saves states as c asks. Stats are of
// the hops made. The error wraps hops.ErrStopped if c.Stop ended it.
func (s *Smoother) Continue(ctx context.Context, x hops.Rows, first, last int, c hops.Checkpoints) (stats hops.Stats, err error) {
	var mu sync.Mutex
	hop := 0
	add := func(first int64, rows []float32) {
		if e := s.add(hop, first, rows); e != nil {
			mu.Lock()
			err = errors.Join(err, e)
			mu.Unlock()
		}
	}
	begin := s.state(first, last, c)
	var from state
	resumed, e := s.g.Begin(ctx, c, func(r *hops.StateReader) (_ []int, err error) {
		from, err = s.header(r, begin)
		return []int{from.Hop}, err
	}, func(r *hops.StateReader) error { return s.resume(ctx, r, from, begin, x) })
	if e != nil {
		return stats, e
	}
	hop = from.Hop
	if !resumed {
		hop = 0
		e := s.begin(ctx, x, add)
		if e = errors.Join(err, e); e == nil {
			e = s.after(hop)
		}
		if e != nil {
			return stats, e
		}
	}
	walk := s.streams.Walk(s.rows, hop, s.closure)
	if s.needed != nil {
		walk.EdgesStreamed, s.needed.EdgesRead = s.needed.EdgesRead, 0
	}
	meter := progress.Start(ctx, "hops", int64(s.hops), "hops")
	defer meter.Done()
	meter.Add(int64(hop))
	for hop < s.hops {
		hop++
		if _, e := walk.Next(ctx, s.hops-hop+1, add); e != nil || err != nil {
			return walk.Stats, errors.Join(err, e)
		}
		if e := s.after(hop); e != nil {
			return walk.Stats, e
		}
		meter.Add(1)
		if hop == s.hops {
			break
		}
		now := begin
		now.Hop = hop
		if err := s.g.After(ctx, c, hop, func(w io.Writer) error { return s.save(w, now) }); err != nil {
			return walk.Stats, err
		}
	}
	return walk.Stats, nil
}

// after says that a hop's rows are added.
func (s *Smoother) after(hop int) error {
	if s.o.After == nil {
		return nil
	}
	return s.o.After(hop)
}

// begin brings the block to hop 0.
func (s *Smoother) begin(ctx context.Context, x hops.Rows, add func(first int64, rows []float32)) error {
	if err := s.fill(ctx, x); err != nil {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	return s.addFirst(add)
}

func (s *Smoother) fill(ctx context.Context, x hops.Rows) error {
	if s.mean != nil {
		s.mean.Clear()
	}
	return s.g.Fill(ctx, s.rows, x, s.mean)
}

// clear sets all sums to zero.
func (s *Smoother) clear() error {
	return s.eachStrip(func(lo int64) error {
		return s.sums.with(lo, true, func(rows []float32) error {
			clear(rows)
			return nil
		})
	})
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

// add adds the finished rows of a strip to the sums of the targets that still
// count this hop.
func (s *Smoother) add(hop int, first int64, rows []float32) error {
	w := s.weights[hop]
	if w == 0 || int(s.most[first>>packed.StripShift]) <= hop {
		return nil
	}
	columns := int64(s.o.Layout.Columns)
	end := first + int64(len(rows))/columns
	return s.sums.with(first, true, func(sum []float32) error {
		if s.o.Targets.All() {
			s.g.Kernel.AddWhere(sum, rows, s.counts.S[first:end], uint16(hop), float32(w))
			return nil
		}
		s.o.Targets.each(first, end, func(i int64) {
			at := (i - first) * columns
			s.g.Kernel.AddWhere(sum[:columns], rows[at:at+columns], s.counts.S[i:i+1], uint16(hop), float32(w))
			sum = sum[columns:]
		})
		return nil
	})
}

// Output puts columns [col, col+columns) of the smoothed target rows of the block
// that was run last, in ascending order of node, some at a time. x puts its X^(0)
// again, for rules that need it.
func (s *Smoother) Output(col, columns int, x hops.Rows, put func(rows []float32) error) error {
	out := outputs{s: s, most: math.MaxInt, col: col, columns: columns, put: put}
	if !s.o.Rule.Residual() {
		zero := make([]float32, s.o.Layout.Columns)
		return s.eachStrip(func(lo int64) error {
			return out.strip(lo, func(_, _ int64) []float32 { return zero })
		})
	}
	return out.beside(x)
}

// Prefix puts what [Smoother.Output] would put if no node counted more than the hops up to
// the given one, which is the last that was made. x gives the row of a target, by its number
// among the targets, of the block's X^(0), on any thread; for rules that do not need it, it may
// be nil.
func (s *Smoother) Prefix(hop, col, columns int, x func(i int64) []float32, put func(rows []float32) error) error {
	out := outputs{s: s, most: hop + 1, col: col, columns: columns, put: put}
	row := func(_, target int64) []float32 { return x(target) }
	if x == nil {
		zero := make([]float32, s.o.Layout.Columns)
		row = func(_, _ int64) []float32 { return zero }
	}
	return s.eachStrip(func(lo int64) error { return out.strip(lo, row) })
}
