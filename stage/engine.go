package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ndls/estimate"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/stationary"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
	"ndls/tiles"
)

// engine joins a task with the stored graph that it works on.
type engine struct {
	*Env
	*graph
}

// smoothColumns smooths the columns of panels [first, last) of in by o.Rule, block by block, and commits each block's tiles. k is nil for
// rules that need no LSI.
func (g engine) smoothColumns(ctx context.Context, o smooth.Options, k []uint16, in input, out *tiles.Matrix, first, last int) error {
	o.Ahead = true
	return g.smoothBlocks(ctx, o, k, in, first, last, func(ctx context.Context, t *team, first, last int) error {
		return t.smoothBlock(ctx, out, 0, first, last)
	})
}

// team smooths some blocks of a task, one after the other, with a share of the threads.
type team struct {
	engine
	s *smooth.Smoother
	// in yields the columns to smooth. With Options.Ahead it reads ahead.
	in    input
	stats hops.Stats
}

// smoothBlocks prepares smoothing of panels [first, last) of in, and calls block for the panels of one block after the other. Different
// teams call block at the same time.
func (g engine) smoothBlocks(ctx context.Context, o smooth.Options, k []uint16, in input, first, last int,
	block func(ctx context.Context, t *team, first, last int) error,
) error {
	if first == last {
		return nil
	}
	state, err := g.stateFor(ctx, o.Rule)
	if err != nil {
		return err
	}
	defer state.Free()
	o.K = func(i int64) int { return int(k[i]) }
	o.Tolerance = g.Plan.Tolerance
	if o, err = g.smoothLayout(ctx, o, (last-first)*packed.PanelColumns); err != nil {
		return err
	}
	threads := func(number int) int {
		return g.Resources.Threads*(number+1)/o.Teams - g.Resources.Threads*number/o.Teams
	}
	graph := g.hops(state)
	graph.Threads = threads(0)
	s, err := smooth.New(ctx, graph, o)
	if err != nil {
		return err
	}
	defer s.Free()
	if hops := s.Replaced(); hops > 0 {
		g.Report.Polynomials = &control.Polynomials{Tolerance: o.Tolerance, Passes: s.Hops(), Hops: hops}
		g.Report.Polynomials.Plain, g.Report.Polynomials.Share = s.Moving()
	}
	width := packed.Panels(o.Layout.Columns)
	teams := make([]*team, o.Teams)
	for i := range teams {
		one := s
		if i > 0 {
			if one, err = s.Another(threads(i)); err != nil {
				return err
			}
			defer one.Free()
		}
		t := &team{engine: g, s: one, in: in}
		if o.Ahead {
			t.in = g.ahead(in, o.Teams*width, last)
			defer t.in.ahead.free()
		}
		teams[i] = t
	}
	err = sideBySide(ctx, teams, func(ctx context.Context, i int) error {
		for at := first + i*width; at < last; at += o.Teams * width {
			// While the first team has one block, the others have the blocks after it.
			leave := progress.EnterRange(ctx, panelShare(at, first, last), panelShare(min(at+o.Teams*width, last), first, last))
			err := block(ctx, teams[i], at, min(at+width, last))
			leave()
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, t := range teams {
		g.passed(t.stats.Beside(o.Teams), o.Layout)
	}
	return err
}

// toleranceOfK returns the share of a hop that may be left out where K is found. Mode influence-exact leaves out nothing.
func toleranceOfK(p plan.Options) float64 {
	if p.LSI.Mode == "influence-exact" {
		return 0
	}
	return p.Tolerance
}

// sideBySide calls work with the number of each team, all at the same time. The first team reports the progress of all. The first error
// cancels the other teams and is returned. If a team stopped on request and saved its state (hops.ErrStopped), the others go on until they
// have saved theirs.
func sideBySide(ctx context.Context, teams []*team, work func(ctx context.Context, number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var first error // hops.ErrStopped is replaced by any other error
	run := func(ctx context.Context, i int) {
		err := work(ctx, i)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
		case errors.Is(err, hops.ErrStopped):
			first = cmp.Or(first, err)
		default:
			if first == nil || errors.Is(first, hops.ErrStopped) {
				first = err
			}
			cancel(err)
		}
	}
	var others sync.WaitGroup
	for i := range len(teams) - 1 {
		others.Go(func() { run(progress.Aside(ctx), i+1) })
	}
	run(ctx, 0)
	others.Wait()
	return first
}

// smoothBlock smooths panels [first, last), which are one block, and commits their tiles. Tile panels are numbered further higher.
func (g *team) smoothBlock(ctx context.Context, out *tiles.Matrix, further, first, last int) error {
	s, in := g.s, g.in
	in.ahead.reads(s.Ahead())
	x := func(put func([]float32) error) error {
		return in.Rows(ctx, first*packed.PanelColumns, s.Layout().Columns, put)
	}
	kinds := in.kinds
	if g.edgesKind != EdgesOf(g.Catalog, plan.In) {
		kinds = append(slices.Clip(kinds), g.edgesKind) // states of the same panels exist for another direction
	}
	states, c, err := g.States.Open(ctx, g.lo, g.hi, first, last, kinds...)
	if err != nil {
		return err
	}
	stats, err := s.Continue(ctx, x, first, last, c)
	states.Close()
	g.stats.Add(stats)
	if err != nil {
		return err
	}
	in.ahead.wait()
	columns := min(s.Layout().Columns, packed.PanelColumns) // per panel
	for at := first; at < last && s.Sums(); at += tiles.Together {
		to := min(at+tiles.Together, last)
		if err := out.Store(ctx, further+at, further+to, func(put func([]float32) error) error {
			return s.Output((at-first)*columns, (to-at)*columns, x, put)
		}); err != nil {
			return err
		}
	}
	return states.Done(ctx)
}

// input yields the columns to smooth.
type input struct {
	lsi.Columns
	// kinds names the kinds of files that decide what the columns hold.
	kinds []string
	// drops says that the tiles of a block are removed once it is smoothed.
	drops bool
	// ahead holds the columns if they may be read ahead, else nil.
	ahead *aheadColumns
}

// smoothLayout plans the column blocks for this number of columns.
func (g engine) smoothLayout(ctx context.Context, o smooth.Options, columns int) (smooth.Options, error) {
	fits, err := g.agree(ctx, g.capacity(columns).Useful(), func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := o.Plan(c)
		return o.Layout, err
	})
	if err != nil {
		return o, err
	}
	fits.Columns = columns
	o, need, err := o.Plan(fits)
	if err != nil {
		return o, g.refused("smoothing", need, err)
	}
	return o, nil
}

// findLSI runs the LSI engine within the free memory; o says what to find.
func (g engine) findLSI(ctx context.Context, probe lsi.Probe, o lsi.Options) (*lsi.Table, lsi.Stats, error) {
	state, err := g.state(ctx)
	if err != nil {
		return nil, lsi.Stats{}, err
	}
	defer state.Free()
	o.Tolerance, o.Standing = toleranceOfK(g.Plan), estimate.StandingOfK(g.Plan)
	free := g.capacity(probe.Columns())
	free.Precision = lsi.Precision(probe.Sketch(), g.summary.Weighted, free.Precision)
	fits, err := g.agree(ctx, free, func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := o.Plan(c)
		return o.Layout, err
	})
	if err != nil {
		return nil, lsi.Stats{}, err
	}
	o, need, err := o.Plan(fits)
	if err != nil {
		return nil, lsi.Stats{}, g.refused("lsi", need, err)
	}
	if g.Resources.Lean {
		g.Resources.Spare /= 2
		o = o.Lean(g.hi-g.lo, lsi.MostOpen(g.hi-g.lo, g.Summary.Nodes), g.Resources.Spare)
	}
	table, stats, err := lsi.Run(ctx, g.hops(state), probe, o)
	g.passed(stats.Stats, o.Layout)
	return table, stats, err
}

// replaced reports it if polynomials took the place of hops from which K was found.
func (env *Env) replaced(o lsi.Options, s lsi.Stats) {
	if s.Polynomials > 0 {
		env.Report.Polynomials = &control.Polynomials{
			Tolerance: o.Tolerance, Passes: s.Plain + s.Polynomials, Hops: o.Kmax, Plain: s.Plain, Share: s.Share,
		}
	}
}

// passed adds the passes of s to the report.
func (g engine) passed(s hops.Stats, l spmv.Layout) {
	g.Report.Passes += s.Passes
	g.Report.ColumnsPerPass = l.Columns
	g.Report.EdgesStreamed += s.EdgesStreamed
	g.Report.KernelSeconds += s.Seconds
	g.Report.Hops.Add(s.ByHop...)
}

// capacity returns the limits that column blocks for this number of columns have to fit.
func (g engine) capacity(columns int) hops.Capacity {
	return hops.Capacity{
		Nodes: g.hi - g.lo, Others: g.summary.Nodes - (g.hi - g.lo), Listed: g.Group.Listed(), Pair: g.Group.Size() == 2,
		Components: g.summary.Components, Free: g.Budget.Free(), Resident: g.stream.Resident(),
		Threads: g.Resources.Threads, Precision: g.precision(), Columns: columns, Asked: g.Resources.BlockColumns,
	}
}

// refused returns an error that names the --memory with room for need bytes beside what is held now.
func (g engine) refused(what string, need int64, err error) error {
	least := g.Resources.Memory - g.Budget.Free() + need
	return fmt.Errorf("%s: %w; --memory %dMiB is enough", what, err, (least+1<<20-1)>>20)
}

// agree returns c for the number of columns that every member has memory for. Each member proposes the largest number that leaves its rows
// in memory, or the least possible; the smallest proposal wins.
func (g engine) agree(ctx context.Context, c hops.Capacity, opts func(hops.Capacity) (spmv.Layout, error)) (hops.Capacity, error) {
	if c.Others == 0 {
		return c, nil
	}
	c = c.Agreed(packed.Panels(c.Columns) * packed.PanelColumns)
	if g.Resources.BlockColumns > 0 {
		c.Asked = min(c.Asked, max(g.Resources.BlockColumns/packed.PanelColumns, 1)*packed.PanelColumns)
	}
	for ; c.Asked > packed.PanelColumns; c.Asked -= packed.PanelColumns {
		if l, err := opts(c); err == nil && l.Residency == spmv.Resident {
			break
		}
	}
	columns, err := group.Min(ctx, g.Group, c.Asked)
	return c.Agreed(columns), err
}

// hops returns the graph as the engines see it.
func (g engine) hops(state *stationary.State) hops.Graph {
	h := g.on(hops.Graph{
		Source: hops.Slice(g.stream, g.lo, g.hi), Kernel: g.kernel, State: state, Budget: g.Budget,
		Threads: g.Resources.Threads, Scratch: g.Resources.Scratch, Group: g.Group, Traffic: g.Traffic,
	})
	if lean := g.Resources.Lean; !lean || g.Resources.Spare > 0 {
		if lean {
			bytes := float64(hops.CopiedBytes(g.stream.Bytes())) / float64(max(g.stream.NumEdges(), 1)) // per edge
			h.Room = max(int64(float64(g.Resources.Spare)/bytes), 1)
		}
		h.Filter = func(ctx context.Context, src packed.Source, keep, from func(row int64) bool, bytes int64) (hops.Stream, error) {
			return shards.FilterHops(ctx, src, keep, from, g.Resources.Scratch, g.Budget, bytes, g.Resources.Threads)
		}
	}
	return h
}

// state prepares the stationary state that the plan asks for.
func (g engine) state(ctx context.Context) (*stationary.State, error) {
	return g.stateOf(ctx, g.Plan.LSI.R)
}

// stateFor prepares the stationary state for the walk of a rule.
func (g engine) stateFor(ctx context.Context, rule smooth.Rule) (*stationary.State, error) {
	if rule.Walk {
		return g.stateOf(ctx, 0)
	}
	return g.state(ctx)
}

func (g engine) stateOf(ctx context.Context, r float64) (*stationary.State, error) {
	return g.stationaryOf(ctx, g.graph, g.Group, r)
}

// stationaryOf prepares the stationary state of a graph whose rows a group shares.
func (env *Env) stationaryOf(ctx context.Context, g *graph, members group.Group, r float64) (*stationary.State, error) {
	nodes := g.scaled()
	if env.Plan.LSI.Stationary == "component" {
		nodes.Component = g.component.S
	}
	return stationary.New(ctx, members, env.Budget, nodes, r)
}

// precision returns the precision of rows between hops.
func (env *Env) precision() spmv.Precision {
	if env.Plan.Precision == "float16" {
		return spmv.Float16
	}
	return spmv.Float32
}
