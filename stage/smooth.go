package stage

import (
	"context"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
	"ndls/tiles"
)

const smoothedPrefix = "smoothed/tiles"

// smoothStage averages the hops of every node's features.
type smoothStage struct{ each }

func (smoothStage) Name() control.Stage { return control.Smooth }

func (smoothStage) About() string { return "the features of every node, smoothed over its K hops" }

func (smoothStage) Needs(control.Plan) []control.Stage {
	return []control.Stage{control.Partition, control.LSI}
}

func (smoothStage) Lacks(_ control.Plan, f estimate.Facts) string {
	if !f.Features {
		return noFeatures
	}
	return ""
}

func (smoothStage) Options(p control.Plan) map[string]any {
	return map[string]any{"smooth": p.Smooth, "precision": p.Precision, "deviation": p.Deviation}
}

func (smoothStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindSmoothed, Lasting: true, Rows: countRows},
		{Name: catalog.KindLastHops, Lasting: true},
		{Name: catalog.KindSmoothedTile},
		{Name: catalog.KindSmoothedPart},
	}
}

func (smoothStage) Cut(p control.Plan, sum shards.Summary) Cut {
	c := Cut{
		Panels: packed.Panels(sum.Features), Intervals: intervals(sum), Together: 1,
		Tiles: catalog.KindSmoothedTile, Rows: catalog.KindSmoothed, Parts: catalog.KindSmoothedPart,
		Drops: true, Check: p.Settles(),
	}
	if p.Chooses() {
		c.Chooses = catalog.KindLastHops
	}
	return c
}

// Shares implements estimate.Stage: rows that settle need all of them in one place.
func (smoothStage) Shares(p control.Plan) bool { return !p.Settles() }

// Cost implements estimate.Stage.
func (smoothStage) Cost(s *estimate.Sheet) {
	half, stored := s.HalfRows(), s.Stored()
	o := smooth.Options{Targets: smooth.AllTargets(s.Part), Settled: s.Plan.Settles()}
	held := int64(0)
	if stored < s.Nodes {
		o.Targets = smooth.CountedTargets(s.Part, min(stored, s.Part))
		held = smooth.TargetsBytes(s.Nodes)
		s.ReadNodes(1)
	}
	rule, err := smooth.NewRule(s.Plan.Smooth.Rule, s.Plan.Smooth.Alpha, s.Plan.Smooth.Hops)
	if err != nil {
		return // the plan is not valid
	}
	o.Rule = rule
	last := s.Plan.Smooth.Hops
	if rule.NodeDependent {
		last = s.Hops
		if s.LabelledHops > 0 && s.Plan.Smooth.Targets == control.LabelledTargets {
			last = s.LabelledHops
		}
		last = min(last, s.Plan.LSI.Kmax)
		if rule.Name == "ndls-reference" {
			last = max(last-1, 0) // hop K is not counted
		}
		held += 2 * s.Part
		s.ReadK()
	}
	if s.Plan.Chooses() {
		held += 2 * s.Part // last hops
	}
	s.ReadNodes(2) // degrees, then ids
	s.Columns(o, s.Features, last, held, s.Half)
	tiles, rows := estimate.TileBytes(stored, s.Features, half), s.RowBytes()
	s.ReadsRows(4*stored, stored, s.Features, half)
	s.BytesRead += tiles
	s.BytesWritten += tiles + rows
	if s.Plan.Settles() {
		s.CheckSettled(o, last, held, tiles)
	}
	s.DiskBytes = rows
	// Tiles give way to rows, interval by interval.
	s.PeakDiskBytes = max(s.ScratchBytes+tiles, tiles+int64(float64(rows)*float64(s.Interval(stored))/float64(max(stored, 1))), rows)
}

// Run implements Stage: it commits the smoothed features as Arrow, by way of tiles. Hops
// give columns, a reader wants rows.
func (smoothStage) Run(ctx context.Context, env *Env) error { return smoothRun{env}.run(ctx) }

// smoothRun is the stage being executed.
type smoothRun struct{ *Env }

func (env smoothRun) run(ctx context.Context) error {
	s := env.Summary
	targets, err := env.targets(ctx, s)
	if err != nil {
		return err
	}
	if env.Task.Part == control.Choose && env.Plan.Chooses() {
		_, err := env.choice(ctx, s)
		return err
	}
	out := env.smoothedTiles(s, targets)
	err = env.inParts(ctx, s, out,
		func(ctx context.Context, first, last int) error { return env.smoothFeatures(ctx, s, first, last) },
		func(ctx context.Context, first, last int) error { return env.featureRows(ctx, s, first, last) })
	if err != nil || !env.Whole() || !env.Plan.Settles() {
		return err
	}
	return env.checkSettled(ctx, s)
}

// smoothFeatures commits the tiles of panels [first, last).
func (env smoothRun) smoothFeatures(ctx context.Context, s shards.Summary, first, last int) error {
	targets, err := env.targets(ctx, s)
	if err != nil {
		return err
	}
	out := env.smoothedTiles(s, targets)
	if first, err = env.firstMissing(ctx, out, first, last); err != nil || first == last {
		return err
	}
	lo, hi := env.Span(s.Nodes)
	mine, err := targets.Part(env.Budget, lo, hi)
	if err != nil {
		return err
	}
	defer mine.Free()
	g, o, k, err := env.featureSmoothing(ctx, s, mine)
	if err != nil {
		return err
	}
	c, err := env.choice(ctx, s)
	if err != nil {
		return err
	}
	if c != nil && c.Last != nil {
		o.Settled, o.Last = c.Settles, c.Last.S
	}
	in := input{env.featureTiles(), []string{catalog.KindFeatures}}
	return g.smoothColumns(ctx, o, k, in, out, first, last)
}

// featureSmoothing is what smoothing of feature columns needs: the graph, the
// rule, and the hops of each node where the rule takes them from the K table.
func (env smoothRun) featureSmoothing(ctx context.Context, s shards.Summary, targets *smooth.Targets) (g engine, o smooth.Options, k []uint16, err error) {
	p := env.Plan.Smooth
	o.Targets = targets
	if o.Rule, err = smooth.NewRule(p.Rule, p.Alpha, p.Hops); err != nil {
		return g, o, nil, err
	}
	if g, err = env.graph(ctx); err != nil {
		return g, o, nil, err
	}
	if o.Rule.NodeDependent {
		k, err = env.table(0, func() (*mem.Array[uint16], error) { return env.kTable(ctx, s.Nodes, env.Plan.LSI.Kmax) })
	}
	return g, o, k, err
}

// featureRows commits the rows of intervals [first, last), and removes their
// tiles.
func (env smoothRun) featureRows(ctx context.Context, s shards.Summary, first, last int) error {
	targets, err := env.targets(ctx, s)
	if err != nil {
		return err
	}
	ids, err := env.targetIDs(ctx, s, targets)
	if err != nil {
		return err
	}
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	m := env.smoothedTiles(s, targets)
	a := assembly{
		tiles: m, kind: catalog.KindSmoothed, folder: "smoothed", ids: ids.S,
		schema: shards.RowSchema{Column: "feature", Width: s.Features, Half: env.precision() == spmv.Float16},
		after: func(interval int) error {
			env.Disk.Look()
			return m.Drop(ctx, interval)
		},
	}
	return a.commit(ctx, env.Env, first, last)
}

// smoothedTiles are the tiles of smoothed features: of intervals that have rows none is
// needed.
func (env smoothRun) smoothedTiles(s shards.Summary, targets *smooth.Targets) *tiles.Matrix {
	l := tiles.Layout{
		Kind: catalog.KindSmoothedTile, PartKind: catalog.KindSmoothedPart, Prefix: smoothedPrefix,
		Width: s.Features, Half: env.precision() == spmv.Float16, Starts: []int64{0},
	}
	for i := range intervals(s) {
		l.Starts = append(l.Starts, targets.Before(min(int64(i+1)*s.IntervalRows, s.Nodes)))
	}
	lo, hi := env.Span(s.Nodes)
	return tiles.Open(env.Catalog, env.Budget, l).Share(targets.Before(lo), targets.Before(hi)).Needless(intervalsOf(env.Catalog, catalog.KindSmoothed)).On(env.Resources.Threads)
}
