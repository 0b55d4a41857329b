package smooth

import (
	"context"
	"math"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Choice says up to which hop each row is computed, so that the mean relative deviation of
// smoothed rows from exact ones stays below a share.
type Choice struct {
	// Last is the last hop at which each row is computed; nil where all rows are computed at
	// all hops. Settles says that rows settle then. Where they do not, no row is needed
	// later, and smoothed rows are exact.
	Last    *mem.Array[uint16]
	Settles bool
	// Exact has the exact rows of the sample, [packed.PanelColumns] values each, of which
	// the first [Combinations] count.
	Exact []float32
	// Mean is the mean relative deviation of the sample in the last trial, Trials the number
	// of trials. Stats are of the trials and of the exact hops.
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

// Combinations is how many columns of a panel are combinations of the columns to smooth. The
// last column is for influences.
const Combinations = packed.PanelColumns - 1

const (
	// firstBound is the bound of the first trial as a multiple of the share. The bound adds
	// up errors as if none cancelled another. The deviation is about a fifteenth of it on
	// graphs that mix slowly, and a quarter on graphs that mix fast.
	firstBound = 3.5
	// Trials end when the deviation is between enough and most of the share, and after
	// mostTrials when it was below most in one of them. Between two trials the bound changes
	// so that the next deviation should be aim of the share, if deviations grow with that
	// power of the bound. It changes by at most largestStep.
	enough, aim, most = 0.5, 0.75, 0.9
	power             = 1.1
	largestStep       = 16
	mostTrials        = 3
	// trialPasses is how many passes trials are expected to take, settledPasses how many a
	// panel with settled rows takes. Rows settle where all of it takes at most gain of the
	// time of an exact run.
	trialPasses, settledPasses = 4, 1.5
	gain                       = 0.8
)

// Choose chooses when rows settle. It makes all hops of one panel, which x gives: random
// combinations of the columns that are to be smoothed, and zeros in the last column.
// o.Targets is the sample of rows on which the deviation is measured, all are the rows that
// are smoothed. The choice serves for that many panels. If it would not save much, no row
// settles.
//
// An error of size e in row j at hop k changes the sum of all relative deviations by at most
// d̃_j v_j^(k) e. The influences v follow from the last hop back:
//
//	v^(k) = D̃⁻¹ Ã v^(k+1) + D̃⁻¹ t^(k)
//
// where t_i^(k) is the factor of hop k in output row i over the length of that row. They are a
// column of the same passes: this column goes from the last hop to the first while the others
// go from the first to the last.
//
// A settled row continues with its own decay ρ. The error of one such step is the length of
// Z_j^(k) − ρ Z_j^(k−1). Later the error is between that and the length of Z_j^(k). The
// geometric mean of both stands for e. A row is computed up to the last hop k at which
// v_j^(k) e_j^(k) is above a limit. The sum of d̃ v e over all other rows and hops is the bound
// that belongs to the limit. Trials run the panel with settled rows, and move the limit until
// the deviation is close to the share.
func Choose(ctx context.Context, g hops.Graph, o Options, all *Targets, share float64, panels int, x hops.Rows) (_ *Choice, err error) {
	p := &pilot{all: all, g: g, o: o}
	defer p.free()
	worth, err := p.start(ctx, panels)
	if err != nil {
		return nil, err
	}
	if !worth {
		return &Choice{Last: p.needed, Stats: p.stats}, nil
	}
	if err := p.run(ctx, x); err != nil {
		return nil, err
	}
	c := &Choice{Settles: true}
	defer func() {
		if err != nil {
			c.Free()
		}
	}()
	if c.Exact, err = p.s.Panel(x); err != nil {
		return nil, err
	}
	p.end()
	if c.Last, err = mem.Alloc[uint16](g.Budget, g.Source.NumNodes(), "last hops of rows"); err != nil {
		return nil, err
	}
	if err := p.try(ctx, c, share, x); err != nil {
		return nil, err
	}
	c.Stats.Add(p.stats)
	return c, nil
}

// Panel is the output of the only panel.
func (s *Smoother) Panel(x hops.Rows) (values []float32, err error) {
	err = s.Output(0, packed.PanelColumns, x, func(rows []float32) error {
		values = append(values, rows...)
		return nil
	})
	return values, err
}

// try makes trials until one gives a deviation below most of the share, and leaves the best
// choice in c.
func (p *pilot) try(ctx context.Context, c *Choice, share float64, x hops.Rows) error {
	bounds, err := p.bounds()
	if err != nil {
		return err
	}
	bound, best, limit := firstBound*share, -1, len(bounds)
	for {
		limit = min(under(bounds, bound), limit)
		if err := p.choose(limit, c.Last.S); err != nil {
			return err
		}
		mean, err := p.trial(ctx, c, x)
		if err != nil {
			return err
		}
		c.Trials++
		good := mean <= most*share || limit == 0
		if good && limit > best {
			best, c.Mean = limit, mean
		}
		switch {
		case good && (mean >= enough*share || c.Trials >= mostTrials):
			return nil
		case best >= 0 && c.Trials >= mostTrials:
			return p.choose(best, c.Last.S)
		}
		step := largestStep * 1.0
		if mean > 0 {
			step = math.Pow(aim*share/mean, 1/power)
		}
		bound *= max(min(step, largestStep), 1.0/largestStep)
		if limit--; good {
			limit = len(bounds)
		}
	}
}

// under is the largest limit with a bound up to the given one.
func under(bounds []float64, bound float64) int {
	limit := 0
	for i, b := range bounds {
		if b <= bound {
			limit = i
		}
	}
	return limit
}

// trial runs the panel with the rows that settle under a choice, and returns the mean
// relative deviation of the sample.
func (p *pilot) trial(ctx context.Context, c *Choice, x hops.Rows) (mean float64, err error) {
	o := p.o
	o.Settled, o.Last, o.Blocks = true, c.Last.S, 1
	s, err := New(ctx, p.g, o)
	if err != nil {
		return 0, err
	}
	defer s.Free()
	stats, err := s.Run(ctx, x)
	p.stats.Add(stats)
	if err != nil {
		return 0, err
	}
	got, err := s.Panel(x)
	if err != nil {
		return 0, err
	}
	errs := Deviations(got, c.Exact)
	for _, e := range errs {
		mean += e / float64(len(errs))
	}
	return mean, nil
}

// Deviations are ‖got − want‖ / ‖want‖ of the rows of a panel of combinations, without the rows
// that should be zero.
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
