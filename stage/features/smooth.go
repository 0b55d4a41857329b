package features

import (
	"cmp"
	"context"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/tiles"
)

const smoothedPrefix = "smoothed/tiles"

// Stage averages the hops of every node's features.
type Stage struct{ stage.InWhole }

func (Stage) Name() control.Stage { return control.Smooth }

func (Stage) About() string { return "the features of every node, smoothed over its K hops" }

func (Stage) Needs(p plan.Options) []control.Stage {
	if followsLSI(p) {
		return []control.Stage{control.Partition, control.LSI}
	}
	return []control.Stage{control.Partition}
}

func (Stage) Lacks(p plan.Options, f estimate.Facts) string {
	switch lack := cmp.Or(stage.LacksDirection(p, f.Directed), stage.LacksFeatures(p, f)); {
	case lack != "":
		return lack
	case p.Smooth.LabelColumns > 0 && !f.Labels:
		return stage.NoLabels + "; leave --label-columns out"
	case p.Smooth.LabelColumns > 0 && !f.Splits:
		return stage.NoSplits
	}
	return ""
}

func (Stage) Options(p plan.Options) map[string]any {
	o := map[string]any{
		"smooth": p.Smooth, "precision": p.Precision, "tolerance": p.Tolerance, "drop_features": p.DropFeatures,
	}
	if p.Smooth.LabelColumns > 0 || p.Embeds() {
		o["seed"] = p.Seed // the seed divides the training nodes, or makes the random rows
	}
	if !followsLSI(p) && !p.Embeds() {
		o["r"] = p.LSI.R // otherwise it is an option of the lsi stage
	}
	return o
}

func (Stage) Writes() []stage.Kind {
	return []stage.Kind{
		{Name: catalog.KindSmoothed, Lasting: true, Rows: stage.CountRows},
		{Name: catalog.KindKeptHops, Lasting: true, Rows: stage.CountRows},
		{Name: catalog.KindSmoothedTile},
		{Name: catalog.KindSmoothedPart},
	}
}

func (Stage) Shape(p plan.Options, sum shards.Summary) stage.Shape {
	out := OutputOf(p, sum)
	return stage.Matrix{
		Panels: out.Panels(), Outputs: out.Rows(), Intervals: stage.Intervals(sum), Together: 1,
		Tiles: []string{catalog.KindSmoothedTile}, Parts: catalog.KindSmoothedPart, Rows: stage.TrainedKind(out),
	}
}

// Shares implements estimate.Stage.
func (Stage) Shares(plan.Options) bool { return true }

// Cost implements estimate.Stage.
func (Stage) Cost(s *estimate.Sheet) {
	half, stored := s.Plan.HalfSmoothed(), s.Stored()
	o := smooth.Options{Targets: smooth.AllTargets(s.Part), Standing: estimate.Standing(s.Plan)}
	held := int64(0)
	if stored < s.Nodes {
		o.Targets = smooth.CountedTargets(s.Part, min(stored, s.Part))
		held = smooth.TargetsBytes(s.Nodes)
		s.ReadNodes(1)
	}
	rule, err := RuleOf(s.Plan)
	if err != nil {
		return // the plan is not valid
	}
	o.Rule = rule
	last := s.Plan.Smooth.Hops
	if rule.NodeDependent {
		last = s.Hops
		if s.LabelledHops > 0 && s.Plan.Smooth.Targets == plan.LabelledTargets {
			last = s.LabelledHops
		}
		last = rule.Hops(min(last, s.Plan.LSI.Kmax))
		held += 2 * s.Part
		s.ReadK()
	}
	out, teams := s.Output(), 1
	o.Keep, last = out.Keep, max(last, out.Last())
	s.ReadNodes(2) // degrees, then ids
	if s.Plan.Embeds() {
		held += 4 * s.Part // ids
		last = out.Last()
		s.ReadNodes(1)
		s.OnGraph().Random(o, out.Features, last, held)
	} else {
		o.Ahead, o.SideBySide = true, len(o.Keep) == 0
		for range out.Directions {
			s.OnGraph().Columns(o, s.Features, last, held, s.Half)
			teams = s.Teams
		}
		o.Ahead, o.SideBySide = false, false
	}
	if out.Parts > 0 {
		for range out.Directions {
			s.OnGraph().Labels(o, out.LabelColumns(), last, held)
		}
		s.Records()
		s.ReadNodes(1) // parts of training nodes
	}
	s.Pieces(out.Panels())
	columns := out.Panels() * packed.PanelColumns
	tiles, rows := int64(out.Rows())*estimate.TileBytes(stored, columns, half), int64(0)
	held = 4 * stored
	if out.Parts > 0 {
		held += int64(out.Splits) * (stored + 4096)
	}
	if out.Sums {
		rows += s.StoredBytes(out.SumWidth())
		if out.Parts > 0 || out.SumRows() > 1 {
			s.ReadsLists(held, stored, out.SumWidth(), out.SumRows()*columns, half)
		} else {
			s.ReadsRows(held, stored, out.Width(), half)
		}
	}
	if n := out.Lists(); out.Joins {
		rows += s.StoredBytes(out.Width())
		if rule.Weighs() {
			held = readsLimits(s, rule, held, stored, columns)
		}
		s.Joins(held, stored, out.Width(), n*columns, half)
	} else if n > 0 {
		rows += s.StoredBytes(n * out.Width())
		s.ReadsLists(held, stored, n*out.Width(), n*columns, half)
	}
	s.BytesRead += tiles
	s.BytesWritten += tiles + rows
	s.Moves(3 * float64(stored) * float64(s.Features)) // into tiles, out of them, and into rows
	s.DiskBytes = rows
	// Rows replace tiles, interval by interval.
	share := float64(s.Interval(stored)) / float64(max(stored, 1))
	s.PeakDiskBytes = max(s.ScratchBytes+tiles, tiles+int64(float64(rows)*share), rows)
	if !s.Plan.DropFeatures {
		return
	}
	features := estimate.TileBytes(s.Nodes, s.Features, s.Half)
	s.DiskBytes -= features
	if s.Part == s.Nodes {
		// Features of a block are removed once it is smoothed, and several blocks may be smoothed at the same time.
		whole := int64(max(packed.Panels(s.Features), 1) * packed.PanelColumns)
		block := min(int64(s.Workers*teams)*int64(s.ColumnsPerPass), whole)
		part := func(bytes int64) int64 { return bytes / whole * block }
		smoothing := s.ScratchBytes + max(part(tiles), tiles+part(features)-features)
		s.PeakDiskBytes = max(smoothing, tiles+int64(float64(rows)*share)-features, rows+int64(float64(tiles)*share)-features, 0)
	}
}

// Run implements Stage: it commits the smoothed features as Arrow, by way of tiles, because hops make columns and readers want rows.
func (Stage) Run(ctx context.Context, env *stage.Env) error { return smoothRun{env}.run(ctx) }

func (env smoothRun) run(ctx context.Context) error {
	out := OutputOf(env.Plan, env.Summary)
	if n := out.Trained(); n > shards.MaxValues {
		return failure.Of(failure.ErrOption, "%d hops of %d values make rows of %d values, and a row has %d at most: write fewer hops", out.Lists(), out.Width(), n, shards.MaxValues)
	}
	targets, err := env.targets(ctx)
	if err != nil {
		return err
	}
	err = env.InParts(ctx, env.smoothedTiles(targets),
		func(ctx context.Context, first, last int) error { return env.smoothFeatures(ctx, first, last) },
		func(ctx context.Context, first, last int) error { return env.featureRows(ctx, first, last) })
	if err != nil || !env.Whole() || !env.Plan.DropFeatures {
		return err
	}
	return env.dropFeatures(ctx, func(catalog.Entry) bool { return true })
}

// dropFeatures removes the tiles of input features that match.
func (env smoothRun) dropFeatures(ctx context.Context, match func(catalog.Entry) bool) error {
	env.Disk.Look()
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindFeatures && match(e) })
}

// smoothFeatures commits the tiles of panels [first, last): features, then labels.
func (env smoothRun) smoothFeatures(ctx context.Context, first, last int) error {
	targets, err := env.targets(ctx)
	if err != nil {
		return err
	}
	out := env.smoothedTiles(targets)
	for begin := first; first < last && err == nil; {
		end := last
		if first, err = env.FirstMissing(ctx, out, first, last); err != nil || first == last {
			return err
		}
		if !env.IsShare() {
			for end = first + 1; end < last && !out.complete(end); {
				end++
			}
		}
		leave := progress.EnterRange(ctx, stage.PanelShare(first, begin, last), stage.PanelShare(end, begin, last))
		err = env.smoothPanels(ctx, targets, out, first, end)
		leave()
		first = end
	}
	return err
}

// smoothPanels commits the tiles of panels [first, last), none of which is complete.
func (env smoothRun) smoothPanels(ctx context.Context, targets *smooth.Targets, out *smoothedTiles, first,
	last int,
) error {
	lo, hi := env.Span(env.Summary.Nodes)
	mine, err := targets.Part(env.Budget, lo, hi)
	if err != nil {
		return err
	}
	defer mine.Free()
	for d := range out.out.Directions {
		if !env.IsShare() && out.completeTo(d, first, last) {
			continue // this direction was done before an interruption
		}
		leave := progress.Enter(ctx, d, len(out.out.Directions))
		err := env.smoothDirection(ctx, mine, out, d, first, last)
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// smoothDirection commits the tiles that hops of a direction yield from panels [first, last).
func (env smoothRun) smoothDirection(ctx context.Context, mine *smooth.Targets, out *smoothedTiles, d, first,
	last int,
) error {
	g, o, k, err := env.featureSmoothing(ctx, mine, out.out.Directions[d])
	if err != nil {
		return err
	}
	kept, final := &keptHops{out: out, direction: d}, d == len(out.out.Directions)-1
	if o.Keep = out.out.Keep; len(o.Keep) > 0 {
		o.After = func(hop int) error { return kept.after(ctx, hop) }
	}
	begin, end := first, last
	smoothed := func(in graph.Input, first, last int) error {
		defer progress.EnterRange(ctx, stage.PanelShare(first, begin, end), stage.PanelShare(last, begin, end))()
		return g.SmoothBlocks(ctx, o, k, in, first, last, func(ctx context.Context, t *graph.Team, first, last int) error {
			if len(o.Keep) > 0 {
				kept.s, kept.in, kept.columns, kept.first, kept.last = t.Smoother, t.In, t.Smoother.Layout().Columns, first, last
			}
			if err := t.SmoothBlock(ctx, out.Matrix, d*out.Panels(), first, last); err != nil || !in.Drops || !final {
				return err
			}
			return env.dropFeatures(ctx, func(e catalog.Entry) bool { return first <= int(e.Block) && int(e.Block) < last })
		})
	}
	if env.Plan.Embeds() {
		random, err := newRandom(ctx, g)
		if err != nil {
			return err
		}
		defer random.free()
		return smoothed(graph.Input{Columns: random.columns, Kinds: []string{catalog.KindNodes}}, first, last)
	}
	labels := out.out.FeaturePanels()
	o.Ahead, o.SideBySide = true, len(o.Keep) == 0
	if first < labels {
		in := graph.Input{Columns: env.FeatureTiles().Rows, Kinds: []string{catalog.KindFeatures}}
		if in.Drops = env.Plan.DropFeatures && !env.IsShare(); in.Drops {
			in.Kinds = nil // features of other panels are removed meanwhile
		}
		if err := smoothed(in, first, min(last, labels)); err != nil {
			return err
		}
	}
	if first = max(first, labels); first >= last {
		return nil
	}
	o.Ahead, o.SideBySide = false, false // the node table yields these columns
	return smoothed(graph.Input{Columns: labelColumns{env.Env, labels}.read, Kinds: []string{catalog.KindNodes}}, first, last)
}

// featureSmoothing returns what smoothing feature columns needs: the graph, the rule, and K of each node if the rule reads it.
func (env smoothRun) featureSmoothing(ctx context.Context, targets *smooth.Targets, direction string) (g graph.Engine,
	o smooth.Options, k []uint16, err error,
) {
	o.Targets, o.Standing = targets, estimate.Standing(env.Plan)
	if o.Rule, err = RuleOf(env.Plan); err != nil {
		return g, o, nil, err
	}
	if g, err = graph.OpenDirection(ctx, env.Env, direction); err != nil {
		return g, o, nil, err
	}
	if o.Rule.NodeDependent {
		k, err = env.table(ctx)
	}
	return g, o, k, err
}

// featureRows commits the rows of intervals [first, last) and removes their tiles.
func (env smoothRun) featureRows(ctx context.Context, first, last int) error {
	targets, err := env.targets(ctx)
	if err != nil {
		return err
	}
	ids, err := env.targetIDs(ctx, targets)
	if err != nil {
		return err
	}
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	m, half := env.smoothedTiles(targets), env.Plan.HalfSmoothed()
	a := assembly{tiles: m.Matrix, ids: ids.S, panels: m.out.Panels()}
	if m.out.Parts > 0 {
		parts, err := env.labelParts(ctx, targets)
		if err != nil {
			return err
		}
		defer parts.free()
		rows := joined{m.out.Features, m.out.FeaturePanels() * packed.PanelColumns, m.out.Classes, m.out.Parts, parts}
		a.picker = func() pick { return rows.pick }
	}
	for i := first; i < last; i++ {
		lo, hi := m.Bounds(i)
		env.Report.Rows += hi - lo
		if m.out.Joins {
			joining, err := env.joinedRows(ctx, m, a, half)
			if err != nil {
				return err
			}
			if err := joining.commit(ctx, env.Env, i); err != nil {
				return err
			}
		} else if len(m.out.Keep) > 0 {
			hops := a
			hops.first, hops.kind, hops.folder = m.kept(0), catalog.KindKeptHops, "hops"
			hops.schema = shards.NamedHops(m.out.HopNames(), m.out.Width(), half)
			if err := hops.commit(ctx, env.Env, i); err != nil {
				return err
			}
		}
		if m.out.Sums {
			sums := a.sideBySide(m.out.SumRows(), m.out.Width())
			sums.kind, sums.folder = catalog.KindSmoothed, "smoothed"
			sums.schema = shards.RowSchema{Column: "feature", Width: m.out.SumWidth(), Half: half}
			if err := sums.commit(ctx, env.Env, i); err != nil {
				return err
			}
		}
		env.Disk.Look()
		if env.Plan.DropFeatures {
			// They still exist if workers shared rows, or if the last attempt ended in between.
			if err := env.dropFeatures(ctx, func(e catalog.Entry) bool { return int(e.Interval) == i }); err != nil {
				return err
			}
		}
		if err := m.Drop(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// joinedRows returns how hops become rows of features if each row is made from all of them.
func (env smoothRun) joinedRows(ctx context.Context, m *smoothedTiles, a assembly, half bool) (assembly, error) {
	if env.Plan.Embeds() {
		return env.embedding(m, a, half), nil
	}
	return env.blending(ctx, m, a, half)
}

// smoothedTiles returns the tiles of smoothed features. Intervals that have rows need none.
func (env smoothRun) smoothedTiles(targets *smooth.Targets) *smoothedTiles {
	out := OutputOf(env.Plan, env.Summary)
	width := out.Features // of the last row of panels
	if out.Parts > 0 {
		width = out.FeaturePanels()*packed.PanelColumns + out.LabelColumns()
	}
	l := tiles.Layout{
		Kind: catalog.KindSmoothedTile, PartKind: catalog.KindSmoothedPart, Prefix: smoothedPrefix,
		Width: (out.Rows()-1)*out.Panels()*packed.PanelColumns + width, Half: env.Plan.HalfSmoothed(), Starts: []int64{0},
	}
	for i := range stage.Intervals(env.Summary) {
		l.Starts = append(l.Starts, targets.Before(min(int64(i+1)*env.Summary.IntervalRows, env.Summary.Nodes)))
	}
	lo, hi := env.Span(env.Summary.Nodes)
	done := stage.Committed(env.Catalog, stage.TrainedKind(out))
	m := tiles.Open(env.Catalog, env.Budget, l).Share(targets.Before(lo), targets.Before(hi)).On(env.Resources.Threads).
		Needless(func(p tiles.Place) bool { return done[p.Interval] })
	return &smoothedTiles{m, out}
}
