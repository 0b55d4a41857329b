package smooth

import (
	"context"
	"math"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Choice holds the hop up to which each row is computed, so that the mean relative deviation of
// smoothed rows from exact ones stays below a share.
type Choice struct {
	// Last holds the last hop at which each row is computed; it is nil if all rows are computed at
	// all hops. Settles says that rows settle after that hop. Otherwise no row is needed later, and
	// smoothed rows are exact.
	Last    *mem.Array[uint16]
	Settles bool
	// Exact has the exact rows of the sample, [packed.PanelColumns] values each; the first
	// [Combinations] of them are valid.
	Exact []float32
	// Mean is the mean relative deviation of the sample in the last trial, Trials the number of
	// trials. Stats counts the trials and the exact hops.
	Mean   float64
	Trials int
	hops.Stats
}

// Free returns the memory. It may be called on nil.
func (c *Choice) Free() {
	if c != nil {
		c.Last.Free()
	}
}

// Combinations is the number of columns of a panel that hold combinations of the columns to smooth.
// The last column holds influences.
const Combinations = packed.PanelColumns - 1

const (
	// firstBound is the bound of the first trial as a multiple of the share. The bound adds errors
	// as if none cancelled another. The deviation is about a fifteenth of it on graphs that mix
	// slowly, and a quarter on graphs that mix fast.
	firstBound = 3.5
	// The last trial is one whose deviation is between enough and most of the share, one after
	// which another trial would read more edges than it is expected to save, or the last of
	// mostTrials. Between two trials the bound changes so that the expected deviation is aim times
	// the share, if deviations grow with that power of the bound. It changes at most by the factor
	// largestStep.
	enough, aim, most = 0.5, 0.75, 0.9
	power             = 1.1
	largestStep       = 16
	mostTrials        = 3
	// A trial costs trialCost times its edges, because it copies edges for a single panel.
	trialCost = 1.5
	// Before errors are known, a panel with settled rows is expected to need settledPasses passes.
	// Rows settle if all of it costs at most gain of an exact run.
	settledPasses = 1.5
	gain          = 0.8
)

// Choose chooses the hop after which each row settles. It makes all hops of one panel, which x
// gives: random combinations of the columns to smooth, and zeros in the last column. o.Targets is
// the sample of rows on which the deviation is measured; all lists the smoothed rows. The choice
// serves for that many panels. If it would save little, no row settles. All workers of the graph's
// group call Choose, and each gets the choice for its own rows.
//
// An error of size e in row j at hop k changes the sum of all relative deviations by at most
// d̃_j v_j^(k) e. The influences v follow from the last hop back:
//
//	v^(k) = D̃⁻¹ Ã v^(k+1) + D̃⁻¹ t^(k)
//
// where t_i^(k) is the factor of hop k in output row i divided by the length of that row. They are
// a column of the same passes: this column goes from the last hop to the first while the others go
// from the first to the last. If the last hops need few rows, influences begin that many passes
// earlier than the others, so that a pass either needs few rows or serves both.
//
// A settled row continues with its own decay ρ. The error of one such step is the length of
// Z_j^(k) − ρ Z_j^(k−1). Later the error lies between that and the length of Z_j^(k); e is the
// geometric mean of both. A row is computed up to the last hop k at which v_j^(k) e_j^(k) exceeds a
// limit. With weights, d̃_j counts weights, but a row costs as many edges as it has: then v_j e_j
// times the mean weight of its edges, the self-loop included, is compared with the limit. The bound
// of a limit is the sum of d̃ v e over all other rows and hops. Trials run the panel with settled
// rows, and move the limit until the deviation is close to the share.
//
// States are saved between two passes and between two trials, as c asks.
func Choose(ctx context.Context, g hops.Graph, o Options, all *Targets, share float64, panels int, x hops.Rows,
	c hops.Checkpoints,
) (_ *Choice, err error) {
	p := &pilot{all: all, g: g, o: o, share: share, panels: panels, checkpoints: c}
	defer p.free()
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	if !p.worth() {
		return p.exactly()
	}
	if err := p.prepare(ctx, x); err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return p.settle(ctx)
}

// exactly returns the choice that no row settles.
func (p *pilot) exactly() (_ *Choice, err error) {
	c := &Choice{Stats: p.stats}
	if p.needed == nil {
		return c, nil
	}
	if c.Last, err = mem.Alloc[uint16](p.g.Budget, p.g.Source.NumNodes(), "last hops of rows"); err != nil {
		return nil, err
	}
	hops.AsLasts(p.needed.Until)(0, c.Last.S)
	return c, nil
}

// Panel returns the output of the only panel.
func (s *Smoother) Panel(x hops.Rows) (values []float32, err error) {
	err = s.Output(0, packed.PanelColumns, x, func(rows []float32) error {
		values = append(values, rows...)
		return nil
	})
	return values, err
}

// trial holds the result of one run with settled rows.
type trial struct {
	Limit int     `json:"limit"`
	Mean  float64 `json:"mean"`
}

// settle makes the choice after all hops are made.
func (p *pilot) settle(ctx context.Context) (_ *Choice, err error) {
	bounds, edges, err := p.limits(ctx)
	if err != nil {
		return nil, err
	}
	if limit := under(bounds, firstBound*p.share); float64(float64(p.panels)*edges[limit])+float64(trialCost*edges[limit]) >
		gain*float64(p.panels)*p.exactEdges() {
		return p.exactly()
	}
	c := &Choice{Settles: true, Exact: p.exact}
	if c.Last, err = mem.Alloc[uint16](p.g.Budget, p.g.Source.NumNodes(), "last hops of rows"); err != nil {
		return nil, err
	}
	best, err := p.try(ctx, c, bounds, edges)
	if err == nil {
		err = p.choose(best.Limit, c.Last.S)
	}
	if err != nil {
		c.Free()
		return nil, err
	}
	c.Mean, c.Trials, c.Stats = best.Mean, len(p.trials), p.stats
	return c, nil
}

// try makes trials until one is good enough, and returns the best.
func (p *pilot) try(ctx context.Context, c *Choice, bounds, edges []float64) (best trial, err error) {
	best.Limit = -1
	bound, largest := firstBound*p.share, len(bounds)
	for n := 0; ; n++ {
		t := trial{Limit: min(under(bounds, bound), largest)}
		if n < len(p.trials) {
			t = p.trials[n] // from a state
		} else if t.Mean, err = p.trial(ctx, t.Limit, c); err != nil {
			return best, err
		}
		good := t.Mean <= most*p.share || t.Limit == 0
		if good && t.Limit > best.Limit {
			best = t
		}
		step := largestStep * 1.0
		if t.Mean > 0 {
			step = elementary.Pow(aim*p.share/t.Mean, 1/power)
		}
		bound *= max(min(step, largestStep), 1.0/largestStep)
		if largest = t.Limit - 1; good {
			largest = len(bounds)
		}
		if best.Limit < 0 {
			continue
		}
		next := edges[min(under(bounds, bound), largest)]
		pays := float64(p.panels)*(edges[best.Limit]-next) > trialCost*next
		if n+1 >= mostTrials || good && t.Mean >= enough*p.share || !pays {
			return best, nil
		}
	}
}

// under returns the largest limit whose bound is at most the given one.
func under(bounds []float64, bound float64) int {
	limit := 0
	for i, b := range bounds {
		if b <= bound {
			limit = i
		}
	}
	return limit
}

// trial runs the panel with the rows that settle under a limit, and returns the mean relative
// deviation of the sample.
func (p *pilot) trial(ctx context.Context, limit int, c *Choice) (mean float64, err error) {
	if err := p.choose(limit, c.Last.S); err != nil {
		return 0, err
	}
	o := p.o
	o.Settled, o.Last, o.Blocks = true, c.Last.S, 1
	s, err := New(ctx, p.g, o)
	if err != nil {
		return 0, err
	}
	defer s.Free()
	stats, err := s.Run(ctx, p.rows.put)
	p.stats.Add(stats)
	if err != nil {
		return 0, err
	}
	got, err := s.Panel(p.rows.put)
	if err != nil {
		return 0, err
	}
	if mean, err = meanOf(ctx, p.g.Group, Deviations(got, c.Exact)); err != nil {
		return 0, err
	}
	p.trials = append(p.trials, trial{limit, mean})
	return mean, p.after(ctx)
}

// meanOf returns the mean of the numbers of all workers, added in order of the workers.
func meanOf(ctx context.Context, g group.Group, errs []float64) (float64, error) {
	count := []float64{float64(len(errs))}
	if err := group.Totals(ctx, g, count); err != nil || count[0] == 0 {
		return 0, err
	}
	mean := []float64{0}
	err := g.OrderedSum(ctx, mean, func() error {
		for _, e := range errs {
			mean[0] += e / count[0]
		}
		return nil
	})
	return mean[0], err
}

// Deviations returns ‖got − want‖ / ‖want‖ for the rows of a panel of combinations. It skips rows
// of want that are zero.
func Deviations(got, want []float32) (errs []float64) {
	for at := 0; at < len(want); at += packed.PanelColumns {
		var d, w float64
		for c, x := range want[at : at+Combinations] {
			delta := float64(got[at+c]) - float64(x)
			d += float64(delta * delta)
			w += float64(float64(x) * float64(x))
		}
		if w > 0 {
			errs = append(errs, math.Sqrt(d/w))
		}
	}
	return errs
}
