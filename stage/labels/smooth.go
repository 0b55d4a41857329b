package labels

import (
	"cmp"
	"context"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/stage/measures"
	"ndls/tiles"
	"ndls/train"
)

// Smooth smooths the soft labels of every run (NDLS-L).
type Smooth struct {
	stage.InWhole
	// Rows, if not nil, holds the smoothed rows of all nodes in memory, in place of those in files.
	Rows train.Source
}

func (Smooth) Name() control.Stage { return control.SmoothLabels }

func (Smooth) About() string {
	return "the soft labels, smoothed as features are, and predictions"
}

func (Smooth) Needs(p plan.Options) []control.Stage {
	needs := Depth{}.Needs(p)
	if p.Labels.Depth == plan.AutoDepth {
		needs = append(needs, control.LabelDepth)
	}
	return needs
}

func (Smooth) Lacks(p plan.Options, f estimate.Facts) string {
	return stage.LacksSmoothing(p, f)
}

func (Smooth) Options(p plan.Options) map[string]any {
	return map[string]any{"labels": p.Labels, "precision": p.Precision, "tolerance": p.Tolerance, "probabilities": cmp.Or(p.Probabilities, plan.AllProbabilities), "predictions": cmp.Or(p.Predictions, plan.AutoPredictions), "auc": p.WantsAUC(), "drop_smoothed": p.DropSmoothed}
}

func (Smooth) Writes() []stage.Kind {
	return []stage.Kind{
		{Name: catalog.KindPredictions, Lasting: true, Rows: stage.CountRows},
		{Name: catalog.KindGivenSoftTile, Lasting: true},
		{Name: catalog.KindLabelTally, Lasting: true},
		{Name: catalog.KindSmoothedScores, Lasting: true},
		{Name: catalog.KindWritten, Lasting: true},
		{Name: catalog.KindBreakdown, Lasting: true},
		{Name: catalog.KindCorrection, Lasting: true},
		{Name: catalog.KindErrorTile},
		{Name: catalog.KindCorrectedTile},
		{Name: catalog.KindSmoothedSoftTile},
		{Name: catalog.KindSmoothedSoftPart},
		{Name: catalog.KindBestClasses},
	}
}

func (Smooth) Shape(p plan.Options, sum shards.Summary) stage.Shape {
	m := runsColumns(p, sum)
	m.Intervals, m.Rows = stage.Intervals(sum), catalog.KindPredictions
	// Best classes replace the tiles of several panels.
	m.Tiles, m.Parts = []string{catalog.KindSmoothedSoftTile, catalog.KindBestClasses}, catalog.KindSmoothedSoftPart
	m.Tally = &stage.Tally{Counts: catalog.KindLabelTally, Pick: catalog.KindWritten}
	return m
}

// Shares implements estimate.Stage.
func (Smooth) Shares(p plan.Options) bool { return sharesRows(p) }

// Cost implements estimate.Stage: the soft labels of all runs are smoothed side by side.
func (Smooth) Cost(s *estimate.Sheet) {
	chooses, most := s.Plan.Labels.Depth == plan.AutoDepth, s.Plan.Labels.Hops()
	switch {
	case !chooses:
	case s.LabelDepth > 0:
		most = s.LabelDepth - 1
	case s.ValidationHops > 0 && s.Plan.NumSplits() == 1 && s.Plan.Labels.TakesK() && s.Plan.Labels.Epsilon == 0:
		most = min(most, s.ValidationHops) // no larger depth is better on the validation nodes
	}
	corrected := correctedBytes(s)
	if stage.Corrects(s.Plan) && !chooses {
		correctionCost(s)
	}
	corrections := s.PeakDiskBytes
	best, alone := s.Plan.Probabilities == plan.BestProbability, s.Workers == 1 && s.Part == s.Nodes
	held := int64(0)
	if best && s.Part == s.Nodes {
		held = mergeBytes()
	}
	sweepLabels(s, smooth.Options{Targets: smooth.AllTargets(s.Part), Ahead: true}, held, most, !chooses, false)
	tiles, rows := labelTileBytes(s), (12+4*int64(s.Classes))*s.Nodes
	interval := s.Interval(s.Nodes)
	sets := Counted(s.Plan, s.Classes)
	truth := measures.LabelledBytes(s.Plan, s.Classes, s.Nodes) + measures.LabelledPages(s.Plan)
	count := truth + train.TalliesBytes(sets, s.Classes) + countingBytes(s.Plan, s.Classes, interval)
	making := 4*s.Nodes + truth + writingBytes(s.Plan, s.Classes, interval) + measures.RangesBytes(s.Nodes, s.Classes)
	if best {
		rows = 16 * s.Nodes
		s.Takes(max(count, making), max(count, making))
	} else {
		readsAhead(s, count, sideBySideValues(s.Plan, s.Classes, interval))
		more := 4 * int64(s.Classes) * min(int64(shards.BatchRows(s.Classes)), interval)
		if countsMean(s.Plan, s.Classes) {
			more = max(more, sideBySideValues(s.Plan, s.Classes, interval))
		}
		readsAhead(s, making, more)
	}
	pickingCost(s, sets)
	s.ReadNodes(4) // degrees, then ids and labels, then degrees and K for the report
	s.ReadK()
	s.BytesRead += tiles // counted
	switch {             // and written
	case best && alone:
		s.BytesRead += s.Nodes * mergedRow
	case countsMean(s.Plan, s.Classes):
		s.BytesRead += tiles / int64(stage.SplitsOfLabels(s.Plan))
	default:
		s.BytesRead += tiles / int64(stage.LabelRuns(s.Plan))
	}
	s.BytesWritten += tiles + rows + 8*SmoothedScores(s) + countBytes(s, sets)
	s.Moves(float64(2*tiles+rows) / 4)
	// One interval has tiles and rows at the same time.
	share := float64(interval) / float64(max(s.Nodes, 1))
	columns := tiles // left by hops for predictions
	if best && alone {
		together := storedPanels(s, most)
		runs, stores := int64(stage.LabelRuns(s.Plan)), storesOf(stage.LabelRuns(s.Plan), packed.Panels(s.Classes), together)
		columns = runs * s.Nodes * mergedRow
		s.BytesRead += stores * s.Nodes * mergedRow
		s.BytesWritten += stores * s.Nodes * mergedRow
		tiles = columns + interval*(mergedRow+int64(together)*bestRow)
	}
	s.PeakDiskBytes = s.DiskBytes + max(tiles+s.ScratchBytes, columns+int64(float64(rows)*share), rows+int64(float64(columns)*share))
	s.PeakDiskBytes = max(s.PeakDiskBytes+corrected, corrections) + countBytes(s, sets)
	s.DiskBytes += rows + 8*SmoothedScores(s) + countBytes(s, sets)
	if s.Plan.DropSmoothed {
		s.DiskBytes -= s.RowBytes()
	}
}

// readsAhead adds reading rows of tiles in least bytes, and in more bytes if the budget has room for reading ahead.
func readsAhead(s *estimate.Sheet, least, more int64) {
	peak := least
	if more += 4096; s.Threads > 1 && least+more <= s.Budget() {
		peak += more
	}
	s.Takes(peak, least)
}

// pickingCost adds the cost of picking among this number of sets of predictions.
func pickingCost(s *estimate.Sheet, sets int) {
	held := train.TalliesBytes(sets, s.Classes) + train.TalliesBytes(1, s.Classes)
	s.Takes(held, held)
	if m := s.Plan.Measure(); m == plan.AUC || m == plan.Precision {
		measures.CostOfSorting(s, held, SmoothedScores(s))
	}
}

// countBytes estimates the size of the files of counts that label smoothing leaves for this number of sets.
func countBytes(s *estimate.Sheet, sets int) int64 {
	const breakdown = 8 << 10
	return measures.TallyBytes(s)/int64(stage.LabelRuns(s.Plan))*int64(sets) + int64(sets)*100 + ((s.Nodes-1)/s.Interval(s.Nodes)+1)*breakdown
}

// labelTileBytes returns the size of the smoothed soft labels of all runs in tiles.
func labelTileBytes(s *estimate.Sheet) int64 {
	runs := int64(stage.LabelRuns(s.Plan))
	if s.Plan.Probabilities == plan.BestProbability {
		return runs * int64(packed.Panels(s.Classes)) * s.Nodes * bestRow
	}
	return runs * estimate.TileBytes(s.Nodes, s.Classes, false)
}

// storedPanels returns the number of panels of smoothed soft labels that are stored at a time, once ColumnsPerPass is known.
func storedPanels(s *estimate.Sheet, most int) int {
	panels := packed.Panels(s.Classes)
	if most == 0 {
		rule, _ := labelRule(s.Plan)
		return min(storedTogether(s.Resources, s.Part, rule), panels)
	}
	return max(min(s.ColumnsPerPass/packed.PanelColumns, tiles.Together, panels), 1)
}

// storesOf returns the number of times that panels of runs are stored, together panels at a time.
func storesOf(runs, panels, together int) int64 {
	return int64(runs) * int64((panels+together-1)/together)
}

// Run implements Stage: it commits the predictions that are best on the validation nodes, or those that the plan names.
func (x Smooth) Run(ctx context.Context, env *stage.Env) error {
	return labelsRun{env, x.Rows}.run(ctx)
}

func (env labelsRun) run(ctx context.Context) error {
	if env.isCorrection() {
		return env.correct(ctx)
	}
	s := env.Summary
	switch {
	case env.IsPart(control.Count, stage.Intervals(s)):
		return env.countRows(ctx, env.Task.First, env.Task.Last)
	case env.Task.Part == control.Pick:
		return env.pick(ctx)
	}
	return env.InParts(ctx, smoothedSoft(env.Env),
		func(ctx context.Context, first, last int) error { return env.smoothSoft(ctx, first, last) },
		func(ctx context.Context, first, last int) error {
			if env.Whole() {
				if err := env.countRows(ctx, first, last); err != nil {
					return err
				}
				if err := env.pick(ctx); err != nil {
					return err
				}
			}
			return env.predictionRows(ctx, first, last)
		})
}

// smoothSoft commits the missing tiles of smoothed soft labels of panels [first, last).
func (env labelsRun) smoothSoft(ctx context.Context, first, last int) (err error) {
	out := smoothedSoft(env.Env)
	if first, err = env.FirstMissing(ctx, out, first, last); err != nil || first == last {
		return err
	}
	depths, err := Depths(ctx, env.Plan, env.Catalog)
	if err != nil {
		return err
	}
	if out.Row > 0 {
		out.Encode = env.encodeBest(depths)
		if !env.IsShare() {
			stop, err := env.merges(out, depths)
			if err != nil {
				return err
			}
			defer stop()
		}
	}
	return env.smoothRuns(ctx, first, last, func(run int) int { return depths[run] }, false, func(x runColumns) error {
		if x.k == nil {
			lo, hi := env.Span(env.Summary.Nodes)
			return x.store(ctx, out, storedTogether(env.Resources, hi-lo, x.o.Rule))
		}
		x.o.Targets = smooth.AllTargets(x.g.Hi - x.g.Lo)
		return x.g.SmoothColumns(ctx, x.o, x.k, graph.Input{Columns: x.columns(x.soft.Columns), Kinds: softKinds}, out, x.first, x.last)
	})
}
