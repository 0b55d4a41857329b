package stage

import (
	"cmp"
	"context"

	"ndls/estimate"
	"ndls/plan"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

const smoothedPrefix = "smoothed/tiles"

// smoothStage averages the hops of every node's features.
type smoothStage struct{ each }

func (smoothStage) Name() control.Stage { return control.Smooth }

func (smoothStage) About() string { return "the features of every node, smoothed over its K hops" }

func (smoothStage) Needs(p plan.Options) []control.Stage {
	if followsLSI(p) {
		return []control.Stage{control.Partition, control.LSI}
	}
	return []control.Stage{control.Partition}
}

// followsLSI reports whether the rule of features reads K of each node, or weighs hops by distances from the stationary state that options
// of lsi choose.
func followsLSI(p plan.Options) bool {
	rule, err := RuleOf(p)
	return err == nil && !directed(p) && (rule.NodeDependent || rule.Weighs())
}

func (smoothStage) Lacks(p plan.Options, f estimate.Facts) string {
	switch lack := cmp.Or(LacksDirection(p, f.Directed), lacksFeatures(p, f)); {
	case lack != "":
		return lack
	case p.Smooth.LabelColumns > 0 && !f.Labels:
		return noLabels + "; leave --label-columns out"
	case p.Smooth.LabelColumns > 0 && !f.Splits:
		return noSplits
	}
	return ""
}

func (smoothStage) Options(p plan.Options) map[string]any {
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

func (smoothStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindSmoothed, Lasting: true, Rows: countRows},
		{Name: catalog.KindKeptHops, Lasting: true, Rows: countRows},
		{Name: catalog.KindSmoothedTile},
		{Name: catalog.KindSmoothedPart},
	}
}

func (smoothStage) Shape(p plan.Options, sum shards.Summary) Shape {
	out := estimate.OutputOf(p, sum.Features, len(sum.Classes))
	return Matrix{
		Panels: out.Panels(), Outputs: out.Rows(), Intervals: intervals(sum), Together: 1,
		Tiles: []string{catalog.KindSmoothedTile}, Parts: catalog.KindSmoothedPart, Rows: trainedKind(out),
	}
}

// Shares implements estimate.Stage.
func (smoothStage) Shares(plan.Options) bool { return true }

// Cost implements estimate.Stage.
func (smoothStage) Cost(s *estimate.Sheet) {
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
func (smoothStage) Run(ctx context.Context, env *Env) error { return smoothRun{env}.run(ctx) }

// smoothRun is the stage while it runs.
type smoothRun struct{ *Env }

func (env smoothRun) run(ctx context.Context) error {
	s := env.Summary
	out := env.output()
	if n := out.Trained(); n > shards.MaxValues {
		return failure.Of(failure.ErrOption, "%d hops of %d values make rows of %d values, and a row has %d at most: write fewer hops", out.Lists(), out.Width(), n, shards.MaxValues)
	}
	targets, err := env.targets(ctx, s)
	if err != nil {
		return err
	}
	err = env.outputs().inParts(ctx, s, env.smoothedTiles(s, targets),
		func(ctx context.Context, first, last int) error { return env.smoothFeatures(ctx, s, first, last) },
		func(ctx context.Context, first, last int) error { return env.featureRows(ctx, s, first, last) })
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

// output returns what the stage writes for each target.
func (env *Env) output() estimate.Output {
	return estimate.OutputOf(env.Plan, env.Summary.Features, len(env.Summary.Classes))
}

// trainedKind returns the kind of the rows that models read, which the stage commits last: the rule's sums, or hops if it makes no sums.
func trainedKind(out estimate.Output) string {
	if out.Sums || out.Joins {
		return catalog.KindSmoothed
	}
	return catalog.KindKeptHops
}

// ReadsRows reports whether a stage reads smoothed rows under plan p.
func ReadsRows(p plan.Options, s control.Stage) bool {
	switch s {
	case control.Train:
		return p.Train.On == ""
	case control.Predict:
		return true
	case control.LabelDepth, control.SmoothLabels:
		return ownModel(p)
	}
	return false
}

// RowsKind returns the kind of the smoothed rows that models read, whatever the graph.
func RowsKind(p plan.Options) string { return trainedKind(estimate.OutputOf(p, 0, 0)) }

// RemovedAfter reports whether the files of a kind are removed once a stage is complete, because no later stage reads them.
func RemovedAfter(p plan.Options, kind string, s control.Stage) bool {
	return KindOf(kind).Until == s || s == control.SmoothLabels && p.DropSmoothed && kind == RowsKind(p)
}

// openRows opens the rows that models read.
func (env *Env) openRows(ctx context.Context) (*train.Smoothed, error) {
	return train.OpenRows(ctx, env.Catalog, RowsKind(env.Plan))
}

// smoothFeatures commits the tiles of panels [first, last): features, then labels.
func (env smoothRun) smoothFeatures(ctx context.Context, s shards.Summary, first, last int) error {
	targets, err := env.targets(ctx, s)
	if err != nil {
		return err
	}
	out := env.smoothedTiles(s, targets)
	for begin := first; first < last && err == nil; {
		end := last
		if first, err = env.outputs().firstMissing(ctx, out, first, last); err != nil || first == last {
			return err
		}
		if !env.outputs().isShare() {
			for end = first + 1; end < last && !out.complete(end); {
				end++
			}
		}
		leave := progress.EnterRange(ctx, panelShare(first, begin, last), panelShare(end, begin, last))
		err = env.smoothPanels(ctx, s, targets, out, first, end)
		leave()
		first = end
	}
	return err
}

// smoothPanels commits the tiles of panels [first, last), none of which is complete.
func (env smoothRun) smoothPanels(ctx context.Context, s shards.Summary, targets *smooth.Targets, out *smoothedTiles, first,
	last int,
) error {
	lo, hi := env.Span(s.Nodes)
	mine, err := targets.Part(env.Budget, lo, hi)
	if err != nil {
		return err
	}
	defer mine.Free()
	for d := range out.out.Directions {
		if !env.outputs().isShare() && out.completeTo(d, first, last) {
			continue // this direction was done before an interruption
		}
		leave := progress.Enter(ctx, d, len(out.out.Directions))
		err := env.smoothDirection(ctx, s, mine, out, d, first, last)
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// smoothDirection commits the tiles that hops of a direction yield from panels [first, last).
func (env smoothRun) smoothDirection(ctx context.Context, s shards.Summary, mine *smooth.Targets, out *smoothedTiles, d, first,
	last int,
) error {
	g, o, k, err := env.featureSmoothing(ctx, s, mine, out.out.Directions[d])
	if err != nil {
		return err
	}
	kept, final := &keptHops{out: out, direction: d}, d == len(out.out.Directions)-1
	if o.Keep = out.out.Keep; len(o.Keep) > 0 {
		o.After = func(hop int) error { return kept.after(ctx, hop) }
	}
	begin, end := first, last
	smoothed := func(in input, first, last int) error {
		defer progress.EnterRange(ctx, panelShare(first, begin, end), panelShare(last, begin, end))()
		return g.smoothBlocks(ctx, o, k, in, first, last, func(ctx context.Context, t *team, first, last int) error {
			if len(o.Keep) > 0 {
				kept.s, kept.in, kept.columns, kept.first, kept.last = t.s, t.in, t.s.Layout().Columns, first, last
			}
			if err := t.smoothBlock(ctx, out.Matrix, d*out.Panels(), first, last); err != nil || !in.drops || !final {
				return err
			}
			return env.dropFeatures(ctx, func(e catalog.Entry) bool { return first <= int(e.Block) && int(e.Block) < last })
		})
	}
	if env.Plan.Embeds() {
		random, err := g.random(ctx)
		if err != nil {
			return err
		}
		defer random.free()
		return smoothed(input{Columns: random, kinds: []string{catalog.KindNodes}}, first, last)
	}
	labels := out.out.FeaturePanels()
	o.Ahead, o.SideBySide = true, len(o.Keep) == 0
	if first < labels {
		in := input{Columns: env.outputs().featureTiles(), kinds: []string{catalog.KindFeatures}}
		if in.drops = env.Plan.DropFeatures && !env.outputs().isShare(); in.drops {
			in.kinds = nil // features of other panels are removed meanwhile
		}
		if err := smoothed(in, first, min(last, labels)); err != nil {
			return err
		}
	}
	if first = max(first, labels); first >= last {
		return nil
	}
	o.Ahead, o.SideBySide = false, false // the node table yields these columns
	return smoothed(input{Columns: labelColumns{env.Env, labels}, kinds: []string{catalog.KindNodes}}, first, last)
}

// featureSmoothing returns what smoothing feature columns needs: the graph, the rule, and K of each node if the rule reads it.
func (env smoothRun) featureSmoothing(ctx context.Context, s shards.Summary, targets *smooth.Targets, direction string) (g engine,
	o smooth.Options, k []uint16, err error,
) {
	o.Targets, o.Standing = targets, estimate.Standing(env.Plan)
	if o.Rule, err = RuleOf(env.Plan); err != nil {
		return g, o, nil, err
	}
	if g, err = env.graphOf(ctx, direction); err != nil {
		return g, o, nil, err
	}
	if o.Rule.NodeDependent {
		k, err = env.table(0, func() (*mem.Array[uint16], error) { return env.tablesOfK().kTable(ctx, s.Nodes, env.Plan.LSI.Kmax) })
	}
	return g, o, k, err
}

// featureRows commits the rows of intervals [first, last) and removes their tiles.
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
	m, half := env.smoothedTiles(s, targets), env.Plan.HalfSmoothed()
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
func (env smoothRun) smoothedTiles(s shards.Summary, targets *smooth.Targets) *smoothedTiles {
	out := env.output()
	width := out.Features // of the last row of panels
	if out.Parts > 0 {
		width = out.FeaturePanels()*packed.PanelColumns + out.LabelColumns()
	}
	l := tiles.Layout{
		Kind: catalog.KindSmoothedTile, PartKind: catalog.KindSmoothedPart, Prefix: smoothedPrefix,
		Width: (out.Rows()-1)*out.Panels()*packed.PanelColumns + width, Half: env.Plan.HalfSmoothed(), Starts: []int64{0},
	}
	for i := range intervals(s) {
		l.Starts = append(l.Starts, targets.Before(min(int64(i+1)*s.IntervalRows, s.Nodes)))
	}
	lo, hi := env.Span(s.Nodes)
	done := intervalsOf(env.Catalog, trainedKind(out))
	m := tiles.Open(env.Catalog, env.Budget, l).Share(targets.Before(lo), targets.Before(hi)).On(env.Resources.Threads).
		Needless(func(p tiles.Place) bool { return done[p.Interval] })
	return &smoothedTiles{m, out}
}
