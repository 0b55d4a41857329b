package depth

import (
	"context"

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
		{Name: catalog.KindLSIPart},
		{Name: catalog.KindLSISquares},
		{Name: catalog.KindLSIRows},
		{Name: catalog.KindLSIFound},
		{Name: catalog.KindLSISampled},
		{Name: catalog.KindLSISample, Until: control.LSI},
		{Name: catalog.KindLabelLSI, Until: control.SmoothLabels, Rows: countLSI},
	}
}

func (Stage) Shape(p plan.Options, sum shards.Summary) stage.Shape {
	strips := &stage.Strips{Kind: catalog.KindLSI, Intervals: stage.Intervals(sum)}
	if panels := probePanels(p, sum.Nodes, sum.Edges, sum.Features); sharesPanels(panels) {
		strips.Panels, strips.Together = panels, panelsTogether(p, sum.Weighted)
	}
	return stage.Steps{Strips: strips, Next: func(_ context.Context, cat *catalog.Catalog) (steps.Left, error) {
		return leftOfLSI(p, sum, cat), nil
	}}
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
	summary := env.Summary
	complete := len(env.Catalog.Entries(catalog.KindLSI)) == stage.Intervals(summary)
	shares, shared := env.lsiShares(summary.Nodes)
	switch {
	case env.IsShare():
		if complete || shared {
			return nil
		}
		if env.Task.LastPanel > 0 {
			return env.panelsOfGroup(ctx)
		}
		return env.Peers.Work(ctx, summary.Nodes, func(ctx context.Context) error { return env.computeLSI(ctx, env.commitShare) })
	case !env.Whole():
		return env.part(ctx, complete)
	case complete:
	case shared:
		err = env.joinLSI(ctx, catalog.KindLSI, lsiFolder, shares)
	default:
		if pieces, ok := env.found(0); ok {
			err = env.joinFound(ctx, pieces)
			break
		}
		// The stage finds all K anew, so what several workers found so far is removed.
		if err = env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
			return isLSIShare(e.Kind) || e.Kind == catalog.KindLSISample
		}); err == nil {
			err = env.computeLSI(ctx, env.commitLSI)
		}
	}
	if err != nil {
		return err
	}
	env.Report.Rows = summary.Nodes
	if env.Report.LSI, err = env.report(ctx); err != nil {
		return err
	}
	if err := env.Catalog.Remove(ctx, func(e catalog.Entry) bool { return isLSIShare(e.Kind) }); err != nil {
		return err
	}
	// This also drops states of an attempt that ended after its commit.
	return env.States.Drop(ctx)
}

// part executes a part of the stage for workers that share the panels of the probe, unless it is done.
func (env lsiRun) part(ctx context.Context, complete bool) error {
	s := env.Summary
	x := lsiProgressOf(env.Plan, s, env.Catalog)
	columns, rows := env.IsPart(control.Columns, len(x.at)), env.IsPart(control.Rows, len(x.known))
	switch {
	case !sharesPanels(len(x.at)) || !columns && !rows:
		return env.NoPart()
	case complete || x.from == x.kmax:
		return nil
	case columns:
		return env.stretch(ctx, env.Task.First, env.Task.Last)
	}
	return env.find(ctx, env.Task.First, env.Task.Last)
}

// computeLSI finds K of the task's rows and calls commit with it.
func (env lsiRun) computeLSI(ctx context.Context, commit func(context.Context, graph.Engine, []uint32, *lsi.Table) error) error {
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
	o := lsi.Options{Epsilon: env.Plan.LSI.Epsilon, Kmax: env.Plan.LSI.Kmax, Sample: env.sample(g.Lo, g.Hi), Checkpoints: c}
	if !env.IsShare() {
		o.Looser = Tables(env).looserEpsilons()
	}
	table, stats, err := Find(ctx, g, probe, o)
	states.Close()
	if err != nil {
		return err
	}
	defer table.Free()
	replaced(env.Env, optionsOfK(env.Plan), stats)
	if err := commit(ctx, g, ids.S, table); err != nil {
		return err
	}
	return states.Done(ctx)
}

// commitLSI writes the table and the tables of looser ε, one file per interval each, and commits them together.
func (env lsiRun) commitLSI(ctx context.Context, g graph.Engine, ids []uint32, table *lsi.Table) (err error) {
	s := g.Summary
	files := env.Catalog.Batch()
	defer files.Abort()
	write := func(kind, folder string, k func(i int64) (int, bool)) error {
		for lo, i := int64(0), 0; lo < s.Nodes; lo, i = lo+s.IntervalRows, i+1 {
			rows := min(s.IntervalRows, s.Nodes-lo)
			if err := files.Write(ctx, fileOfK(kind, folder, i).Counting(rows), func(f *catalog.File) error {
				return env.writeLSI(ctx, f, lo, ids[lo:lo+rows], func(i int64) (int, bool) { return k(lo + i) })
			}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(catalog.KindLSI, lsiFolder, table.K); err != nil {
		return err
	}
	for number, epsilon := range Tables(env).looserEpsilons() {
		if err := write(catalog.KindLabelLSI, labelTable(epsilon), func(i int64) (int, bool) { return table.Looser(number, i) }); err != nil {
			return err
		}
	}
	if err := env.addSample(ctx, files, g, table); err != nil {
		return err
	}
	return files.Commit(ctx)
}
