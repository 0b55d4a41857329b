package depth

import (
	"context"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/steps"
)

// Stage finds the local smoothing iteration K of every node.
type Stage struct{ stage.InWhole }

func (Stage) Name() control.Stage { return control.LSI }

func (Stage) About() string { return "the local smoothing iteration K of every node" }

func (Stage) Needs(plan.Options) []control.Stage { return []control.Stage{control.Partition} }

func (Stage) Lacks(_ plan.Options, f estimate.Facts) string {
	if f.Directed {
		return stage.DirectedK
	}
	return ""
}

func (Stage) Options(p plan.Options) map[string]any {
	o := map[string]any{"lsi": p.LSI, "precision": p.Precision}
	if p.LSI.Mode != "influence-exact" {
		o["tolerance"] = p.Tolerance
	}
	if sketches(p.LSI) {
		o["seed"] = p.Seed
	}
	return o
}

func (Stage) Writes() []stage.Kind {
	return []stage.Kind{
		{Name: catalog.KindLSI, Lasting: true, Rows: countLSI},
		{Name: catalog.KindLSISquares},
		{Name: catalog.KindLSIRows},
		{Name: catalog.KindLSIFound},
		{Name: catalog.KindLSISampled},
		{Name: catalog.KindLSISample, Until: control.LSI},
		{Name: catalog.KindLabelLSI, Until: control.SmoothLabels, Rows: countLSI},
	}
}

func (Stage) Shape(p plan.Options, sum shards.Summary) stage.Shape {
	return stage.Steps{
		Panels:   dividedPanels(p, sum.Nodes, sum.Edges, sum.Features),
		Together: panelsTogether(p, sum.Weighted),
		Next:     func(_ context.Context, cat *catalog.Catalog) (steps.Left, error) { return leftOfLSI(p, sum, cat), nil },
	}
}

// Shares implements estimate.Stage.
func (Stage) Shares(plan.Options) bool { return true }

// Cost implements estimate.Stage.
func (Stage) Cost(s *estimate.Sheet) {
	s.ReadNodes(2) // degrees, and ids for the table
	looser := len(loosersOf(s.Plan, s.Facts(s.Plan), s.Epsilons))
	CostOfK(s, s.Plan.LSI.Epsilon, s.Plan.LSI.Kmax, int64(looser)*(2*s.Part+4096), true)
	for range 1 + looser {
		s.WriteK()
	}
	if s.PeakDiskBytes > 0 {
		s.PeakDiskBytes += s.DiskBytes // while the table is made from what workers found
	}
	// The report reads the table, with degrees and labels.
	s.ReadK()
	s.ReadNodes(1)
	if s.Labelled > 0 {
		s.ReadNodes(1)
	}
}

// CostOfK adds one run of the LSI engine with the plan's probe, and reading the probe's inputs, beside held bytes. share says that several
// workers share the panels of the probe.
func CostOfK(s *estimate.Sheet, epsilon float64, kmax int, held int64, share bool) {
	l := sized(s.Plan.LSI, s.Nodes, s.Edges, s.Features)
	width, norms := probeWidth(l, s.Nodes, s.Features), int64(0)
	if l.Mode == "feature" || l.Mode == "feature-sketch" {
		norms = 8 * s.Part
	}
	s.ReadNodes(1) // ids
	held += 4*s.Part + norms
	if l.Directions > 0 {
		s.OnGraph().FindDirections(l.Directions, l.Probes, held)
		held += lsi.DirectionsBytes(l.Directions, l.Probes)
	}
	if panels := sharedPanels(s); panels > 0 && share {
		ends, few := StretchEnds(s.Hops, s.Plan)
		tasks := panels // groups take single panels
		if s.Members() == 1 {
			tasks = tasksOfLSI(s.Plan, s.Weighted, panels, panels)
		}
		s.OnGraph().ShareLSI(panels, tasks, sketches(l), ends, few, held)
	} else {
		s.OnGraph().FindLSI(width, sketches(l), epsilon, Tolerance(s.Plan), kmax, held)
	}
	s.ScratchBytes += 4 * s.Part * int64(l.Directions)
	if norms > 0 {
		s.BytesRead += estimate.TileBytes(s.Nodes, s.Features, s.Half) * int64(1+hops.Blocks(width, spmv.Layout{Columns: s.ColumnsPerPass}))
	}
}

// Run implements Stage: it computes and commits the K table.
func (Stage) Run(ctx context.Context, env *stage.Env) error { return lsiRun{env}.run(ctx) }

func (env lsiRun) run(ctx context.Context) (err error) {
	s := env.Summary
	x := lsiProgressOf(env.Plan, s, env.Catalog)
	complete := len(env.Catalog.Entries(catalog.KindLSI)) == stage.Intervals(s)
	switch {
	case !env.Whole():
		return env.part(ctx, x, complete || x.from == x.kmax)
	case complete:
	case x.from == x.kmax:
		err = env.joinFound(ctx)
	default:
		// The stage finds all K anew, so what several workers found so far is removed.
		if err = env.Catalog.Remove(ctx, func(e catalog.Entry) bool { return isLSIShare(e.Kind) }); err == nil {
			err = env.findAll(ctx)
		}
	}
	if err != nil {
		return err
	}
	env.Report.Rows = s.Nodes
	if env.Report.LSI, err = env.report(ctx); err != nil {
		return err
	}
	if err := env.Catalog.Remove(ctx, func(e catalog.Entry) bool { return isLSIShare(e.Kind) }); err != nil {
		return err
	}
	// This also drops states of an attempt that ended after its commit.
	return env.States.Drop(ctx)
}

// part executes a part of the stage, unless it is done: all hops of a worker in a group that has all panels, or what takers that share the
// panels do in a stretch.
func (env lsiRun) part(ctx context.Context, x lsiProgress, done bool) error {
	t, panels := env.Task, len(x.at)
	columns, rows := env.IsPart(control.Columns, panels), env.IsPart(control.Rows, len(x.known))
	var do func(context.Context) error
	switch {
	case env.IsShare() && t.LastPanel == 0:
		do = env.findAll
	case panels == 1:
		return env.NoPart()
	case env.IsShare() && 0 <= t.FirstPanel && t.FirstPanel < t.LastPanel && t.LastPanel <= panels:
		do = func(ctx context.Context) error { return env.stretch(ctx, t.FirstPanel, t.LastPanel) }
		done = done || slices.Min(x.at[t.FirstPanel:t.LastPanel]) >= x.to
	case columns:
		do = func(ctx context.Context) error { return env.stretch(ctx, t.First, t.Last) }
	case rows:
		do = func(ctx context.Context) error { return env.find(ctx, t.First, t.Last) }
	default:
		return env.NoPart()
	}
	switch {
	case done:
		return nil
	case env.IsShare():
		return env.Peers.Work(ctx, x.nodes, do)
	}
	return do(ctx)
}

// findAll finds K of the task's rows with all panels, and commits it: the tables if these are all rows.
func (env lsiRun) findAll(ctx context.Context) error {
	defer env.Release()
	g, err := graph.Open(ctx, env.Env)
	if err != nil {
		return err
	}
	ids, err := env.Nodes().IDs(ctx)
	if err != nil {
		return err
	}
	defer ids.Free()
	probe, free, err := Probe(ctx, g, ids.S)
	if err != nil {
		return err
	}
	defer free()
	states, c, err := env.States.Open(ctx, g.Lo, g.Hi, 0, 1, catalog.KindFeatures)
	if err != nil {
		return err
	}
	o := lsi.Options{
		Epsilon: env.Plan.LSI.Epsilon, Kmax: env.Plan.LSI.Kmax, Looser: Tables(env).looserEpsilons(),
		Sample: env.sample(g.Lo, g.Hi), Checkpoints: c,
	}
	table, stats, err := Find(ctx, g, probe, o)
	states.Close()
	if err != nil {
		return err
	}
	defer table.Free()
	replaced(env.Env, optionsOfK(env.Plan), stats)
	if g.Hi-g.Lo == env.Summary.Nodes {
		err = env.commitTables(ctx, ids.S, o.Epsilons(), table)
	} else {
		k := catalog.Describe(catalog.KindLSIFound, "").Holding(g.Lo, g.Hi).AtHop(env.Plan.LSI.Kmax)
		err = env.commitFound(ctx, k, catalog.Describe(catalog.KindLSISampled, ""), o.Epsilons(), table)
	}
	if err != nil {
		return err
	}
	return states.Done(ctx)
}
