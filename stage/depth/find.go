package depth

import (
	"context"

	"ndls/estimate"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/lsi"
	"ndls/plan"
	"ndls/spmv"
	"ndls/stage"
	"ndls/stage/graph"
)

// lsiRun is the stage while it runs.
type lsiRun struct{ *stage.Env }

// Tolerance returns the share of a hop that may be left out where K is found. Mode influence-exact leaves out nothing.
func Tolerance(p plan.Options) float64 {
	if p.LSI.Mode == "influence-exact" {
		return 0
	}
	return p.Tolerance
}

// Find runs the LSI engine within the free memory; o says what to find.
func Find(ctx context.Context, g graph.Engine, probe lsi.Probe, o lsi.Options) (*lsi.Table, lsi.Stats, error) {
	state, err := g.State(ctx)
	if err != nil {
		return nil, lsi.Stats{}, err
	}
	defer state.Free()
	o.Tolerance, o.Standing = Tolerance(g.Plan), estimate.StandingOfK(g.Plan)
	free := g.Capacity(probe.Columns())
	free.Precision = lsi.Precision(probe.Sketch(), g.Summary.Weighted, free.Precision)
	fits, err := g.Agree(ctx, free, func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := o.Plan(c)
		return o.Layout, err
	})
	if err != nil {
		return nil, lsi.Stats{}, err
	}
	o, need, err := o.Plan(fits)
	if err != nil {
		return nil, lsi.Stats{}, g.Refused("lsi", need, err)
	}
	if g.Resources.Lean {
		g.Resources.Spare /= 2
		o = o.Lean(g.Hi-g.Lo, lsi.MostOpen(g.Hi-g.Lo, g.Summary.Nodes), g.Resources.Spare)
	}
	table, stats, err := lsi.Run(ctx, g.Hops(state), probe, o)
	g.Passed(stats.Stats, o.Layout)
	return table, stats, err
}

// replaced reports it if polynomials took the place of hops from which K was found.
func replaced(env *stage.Env, o lsi.Options, s lsi.Stats) {
	if s.Polynomials > 0 {
		env.Report.Polynomials = &control.Polynomials{
			Tolerance: o.Tolerance, Passes: s.Plain + s.Polynomials, Hops: o.Kmax, Plain: s.Plain, Share: s.Share,
		}
	}
}

// optionsOfK returns the options of the plan by which polynomials replace hops.
func optionsOfK(p plan.Options) lsi.Options {
	return lsi.Options{Kmax: p.LSI.Kmax, Tolerance: Tolerance(p), Standing: estimate.StandingOfK(p)}
}

// precisionOfK returns the precision of the rows from which K is found.
func (env lsiRun) precisionOfK() spmv.Precision {
	return lsi.Precision(sketches(LSIOptions(env.Plan, env.Summary)), env.Summary.Weighted, graph.Precision(env.Plan))
}
