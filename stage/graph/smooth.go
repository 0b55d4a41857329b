package graph

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/plan"
	"ndls/smooth"
	"ndls/spmv"
	"ndls/stage"
	"ndls/tiles"
)

// SmoothColumns smooths the columns of panels [first, last) of in by o.Rule, block by block, and commits each block's tiles. k is nil for
// rules that need no LSI.
func (g Engine) SmoothColumns(ctx context.Context, o smooth.Options, k []uint16, in Input, out *tiles.Matrix, first, last int) error {
	o.Ahead = true
	return g.SmoothBlocks(ctx, o, k, in, first, last, func(ctx context.Context, t *Team, first, last int) error {
		return t.SmoothBlock(ctx, out, 0, first, last)
	})
}

// Team smooths some blocks of a task, one after the other, with a share of the threads.
type Team struct {
	Engine
	Smoother *smooth.Smoother
	// In yields the columns to smooth. With Options.Ahead it reads ahead.
	In    Input
	Stats hops.Stats
}

// SmoothBlocks prepares smoothing of panels [first, last) of in, and calls block for the panels of one block after the other. Different
// teams call block at the same time.
func (g Engine) SmoothBlocks(ctx context.Context, o smooth.Options, k []uint16, in Input, first, last int,
	block func(ctx context.Context, t *Team, first, last int) error,
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
	graph := g.Hops(state)
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
	teams := make([]*Team, o.Teams)
	for i := range teams {
		one := s
		if i > 0 {
			if one, err = s.Another(threads(i)); err != nil {
				return err
			}
			defer one.Free()
		}
		t := &Team{Engine: g, Smoother: one, In: in}
		if o.Ahead {
			t.In = g.ahead(in, o.Teams*width, last)
			defer t.In.ahead.free()
		}
		teams[i] = t
	}
	err = sideBySide(ctx, teams, func(ctx context.Context, i int) error {
		for at := first + i*width; at < last; at += o.Teams * width {
			// While the first team has one block, the others have the blocks after it.
			leave := progress.EnterRange(ctx, stage.PanelShare(at, first, last), stage.PanelShare(min(at+o.Teams*width, last), first, last))
			err := block(ctx, teams[i], at, min(at+width, last))
			leave()
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, t := range teams {
		g.Passed(t.Stats.Beside(o.Teams), o.Layout)
	}
	return err
}

// sideBySide calls work with the number of each team, all at the same time. The first team reports the progress of all. The first error
// cancels the other teams and is returned. If a team stopped on request and saved its state (hops.ErrStopped), the others go on until they
// have saved theirs.
func sideBySide(ctx context.Context, teams []*Team, work func(ctx context.Context, number int) error) error {
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

// SmoothBlock smooths panels [first, last), which are one block, and commits their tiles. Tile panels are numbered further higher.
func (g *Team) SmoothBlock(ctx context.Context, out *tiles.Matrix, further, first, last int) error {
	s, in := g.Smoother, g.In
	in.Ahead(s.Ahead())
	x := in.Block(ctx, first*packed.PanelColumns, s.Layout().Columns)
	kinds := in.Kinds
	if g.edgesKind != stage.EdgesOf(g.Catalog, plan.In) {
		kinds = append(slices.Clip(kinds), g.edgesKind) // states of the same panels exist for another direction
	}
	states, c, err := g.States.Open(ctx, g.Lo, g.Hi, first, last, kinds...)
	if err != nil {
		return err
	}
	stats, err := s.Continue(ctx, x, first, last, c)
	states.Close()
	g.Stats.Add(stats)
	if err != nil {
		return err
	}
	in.Wait()
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

// smoothLayout plans the column blocks for this number of columns.
func (g Engine) smoothLayout(ctx context.Context, o smooth.Options, columns int) (smooth.Options, error) {
	fits, err := g.Agree(ctx, g.Capacity(columns).Useful(), func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := o.Plan(c)
		return o.Layout, err
	})
	if err != nil {
		return o, err
	}
	fits.Columns = columns
	o, need, err := o.Plan(fits)
	if err != nil {
		return o, g.Refused("smoothing", need, err)
	}
	return o, nil
}
