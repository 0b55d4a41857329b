package stage

import (
	"cmp"
	"context"
	"errors"

	"ndls/estimate"
	"ndls/plan"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

const (
	givenSoftPrefix    = "predictions/given"
	smoothedSoftPrefix = "predictions/tiles"
	// referenceFloor is the smallest probability whose logarithm the rule ndls-reference takes; float32 has no smaller normal numbers.
	referenceFloor = 1e-38
)

// smoothLabelsStage smooths the soft labels of every run (NDLS-L).
type smoothLabelsStage struct{ each }

func (smoothLabelsStage) Name() control.Stage { return control.SmoothLabels }

func (smoothLabelsStage) About() string {
	return "the soft labels, smoothed as features are, and predictions"
}

func (smoothLabelsStage) Needs(p plan.Options) []control.Stage {
	needs := labelDepthStage{}.Needs(p)
	if p.Labels.Depth == plan.AutoDepth {
		needs = append(needs, control.LabelDepth)
	}
	return needs
}

func (smoothLabelsStage) Lacks(p plan.Options, f estimate.Facts) string {
	switch {
	case f.Directed && p.Labels.Rule == plan.CorrectSmooth:
		return directedCorrection
	case f.Directed:
		return directedK
	case p.SomeTargets():
		return someTargets
	case ownModel(p):
		return lacksModel(p, f)
	case corrects(p):
		return lacksTruth(p, f)
	}
	return ""
}

func (smoothLabelsStage) Options(p plan.Options) map[string]any {
	return map[string]any{"labels": p.Labels, "precision": p.Precision, "tolerance": p.Tolerance, "probabilities": cmp.Or(p.Probabilities, plan.AllProbabilities), "predictions": cmp.Or(p.Predictions, plan.AutoPredictions), "auc": p.WantsAUC(), "drop_smoothed": p.DropSmoothed}
}

func (smoothLabelsStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindPredictions, Lasting: true, Rows: countRows},
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

func (smoothLabelsStage) Shape(p plan.Options, sum shards.Summary) Shape {
	m := runsColumns(p, sum)
	m.Intervals, m.Rows = intervals(sum), catalog.KindPredictions
	// Best classes replace the tiles of several panels.
	m.Tiles, m.Parts = []string{catalog.KindSmoothedSoftTile, catalog.KindBestClasses}, catalog.KindSmoothedSoftPart
	m.Tally = &Tally{Counts: catalog.KindLabelTally, Pick: catalog.KindWritten}
	return m
}

// Replaces lists, in order, the stages of the run's own model if a stage smooths the soft labels of another model in its place.
func Replaces(p plan.Options, s control.Stage) []control.Stage {
	if s == control.SmoothLabels && !ownModel(p) {
		return []control.Stage{control.Train, control.Predict}
	}
	return nil
}

// runsColumns returns the columns of a stage that smooths the soft labels of all runs.
func runsColumns(p plan.Options, sum shards.Summary) Matrix {
	each := packed.Panels(len(sum.Classes))
	m := Matrix{Panels: labelRuns(p) * each, Outputs: 1, Together: 1}
	if p.Labels.Rule == "ndls-reference" {
		m.Together = max(each, 1) // K is found from all columns of a run
	}
	if corrects(p) {
		m.Choice = &Choice{Kind: catalog.KindCorrection, Nodes: sum.Nodes}
	}
	return m
}

// Shares implements estimate.Stage. The soft labels of another model, and corrections, need all rows in one place.
func (smoothLabelsStage) Shares(p plan.Options) bool { return ownModel(p) && !corrects(p) }

// Cost implements estimate.Stage: the soft labels of all runs are smoothed side by side.
func (smoothLabelsStage) Cost(s *estimate.Sheet) {
	chooses, most := s.Plan.Labels.Depth == plan.AutoDepth, s.Plan.Labels.Hops()
	switch {
	case !chooses:
	case s.LabelDepth > 0:
		most = s.LabelDepth - 1
	case s.ValidationHops > 0 && s.Plan.NumSplits() == 1 && s.Plan.Labels.TakesK() && s.Plan.Labels.Epsilon == 0:
		most = min(most, s.ValidationHops) // no larger depth is better on the validation nodes
	}
	corrected := correctedBytes(s)
	if corrects(s.Plan) && !chooses {
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
	sets := counted(s.Plan, s.Classes)
	truth := labelledBytes(s.Plan, s.Classes, s.Nodes) + labelledPages(s.Plan)
	count := truth + train.TalliesBytes(sets, s.Classes) + countingBytes(s.Plan, s.Classes, interval)
	making := 4*s.Nodes + truth + writingBytes(s.Plan, s.Classes, interval) + rangesBytes(s.Nodes, s.Classes)
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
		s.BytesRead += tiles / int64(splitsOfLabels(s.Plan))
	default:
		s.BytesRead += tiles / int64(labelRuns(s.Plan))
	}
	s.BytesWritten += tiles + rows + 8*smoothedScores(s) + countBytes(s, sets)
	s.Moves(float64(2*tiles+rows) / 4)
	// One interval has tiles and rows at the same time.
	share := float64(interval) / float64(max(s.Nodes, 1))
	columns := tiles // left by hops for predictions
	if best && alone {
		together := storedPanels(s, most)
		runs, stores := int64(labelRuns(s.Plan)), storesOf(labelRuns(s.Plan), packed.Panels(s.Classes), together)
		columns = runs * s.Nodes * mergedRow
		s.BytesRead += stores * s.Nodes * mergedRow
		s.BytesWritten += stores * s.Nodes * mergedRow
		tiles = columns + interval*(mergedRow+int64(together)*bestRow)
	}
	s.PeakDiskBytes = s.DiskBytes + max(tiles+s.ScratchBytes, columns+int64(float64(rows)*share), rows+int64(float64(columns)*share))
	s.PeakDiskBytes = max(s.PeakDiskBytes+corrected, corrections) + countBytes(s, sets)
	s.DiskBytes += rows + 8*smoothedScores(s) + countBytes(s, sets)
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
		sortingCost(s, held, smoothedScores(s))
	}
}

// countBytes estimates the size of the files of counts that label smoothing leaves for this number of sets.
func countBytes(s *estimate.Sheet, sets int) int64 {
	const breakdown = 8 << 10
	return tallyBytes(s)/int64(labelRuns(s.Plan))*int64(sets) + int64(sets)*100 + ((s.Nodes-1)/s.Interval(s.Nodes)+1)*breakdown
}

// labelTileBytes returns the size of the smoothed soft labels of all runs in tiles.
func labelTileBytes(s *estimate.Sheet) int64 {
	runs := int64(labelRuns(s.Plan))
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

// sweepLabels adds smoothing the soft labels of all runs over most hops, with options o, beside held bytes. The rule of the authors' code
// finds K for each run. imports says that soft labels of another model are imported first. uncorrected means the same as for smoothRuns.
func sweepLabels(s *estimate.Sheet, o smooth.Options, held int64, most int, imports, uncorrected bool) {
	l := s.Plan.Labels
	rule, err := labelRule(s.Plan)
	if err != nil {
		return // the plan is not valid
	}
	o.Rule = rule
	runs, per := labelRuns(s.Plan), packed.Panels(s.Classes)*packed.PanelColumns
	s.Pieces(runs * packed.Panels(s.Classes))
	isCorrected := corrects(s.Plan) && most > 0 // tiles hold the corrected soft labels
	if isCorrected && uncorrected {
		s.BytesRead += estimate.TileBytes(s.Nodes, runs*per, false)
	}
	predicts := ownModel(s.Plan) && (uncorrected || !isCorrected)
	last := most
	if l.Rule != plan.CorrectSmooth {
		last = min(s.Hops, most)
	}
	if l.Rule == "ndls-reference" {
		last = max(last-1, 0) // hop K is not counted
	}
	soft := int64(0)
	if predicts {
		soft = softHeld(s)
	}
	held += 2*s.Part + soft
	switch {
	case most == 0:
		least := held - 2*s.Part + hops.ReadBytes
		peak := least
		if ownModel(s.Plan) { // nothing else uses memory while rows go through the model
			more, _ := train.PlanPredict(trainShape(s), trainOptions(s.Plan), 1, s.Threads, s.Budget()-(least-soft))
			peak = max(peak, least-soft+more)
		}
		s.Takes(peak, least)
		s.BytesRead += int64(runs) * estimate.TileBytes(s.Nodes, s.Classes, false)
	case l.Rule == plan.CorrectSmooth:
		s.OnGraph().Columns(o, runs*per, last, held, false)
	case l.Rule == "ndls-reference":
		for range runs {
			s.OnGraph().FindLSI(s.Classes, false, l.Epsilon, toleranceOfK(s.Plan), most, held-2*s.Part)
			s.BytesRead += estimate.TileBytes(s.Nodes, s.Classes, false)
			s.OnGraph().Columns(o, per, last, held, false)
		}
	case findsLabelK(s.Plan, most) || ownLabelEpsilon(s.Plan) && s.Part < s.Nodes:
		findsK(s, l.Epsilon, most, held-2*s.Part, false)
		s.OnGraph().Columns(o, runs*per, last, held, false)
	default:
		s.ReadK()
		s.OnGraph().Columns(o, runs*per, last, held, false)
	}
	if predicts {
		block, apart := s.ColumnsPerPass/packed.PanelColumns, false
		if most == 0 {
			block, apart = storedTogether(s.Resources, s.Part, rule), true
		}
		predictsColumns(s, block, apart, l.Rule != "ndls-reference")
	} else if imports && !ownModel(s.Plan) {
		importsRows(s, int64(runs)*estimate.TileBytes(s.Nodes, s.Classes, false))
	}
}

// softHeld returns the memory that is held for soft labels while they are smoothed.
func softHeld(s *estimate.Sheet) int64 {
	if !ownModel(s.Plan) {
		return 0
	}
	return softMemory(trainShape(s), trainOptions(s.Plan), s.Threads)
}

// Run implements Stage: it commits the predictions that are best on the validation nodes, or those that the plan names.
func (smoothLabelsStage) Run(ctx context.Context, env *Env) error { return labelsRun{env}.run(ctx) }

// labelsRun is the stage while it runs.
type labelsRun struct{ *Env }

func (env labelsRun) run(ctx context.Context) error {
	if env.isCorrection() {
		return env.correct(ctx)
	}
	s := env.Summary
	switch {
	case env.outputs().isPart(control.Count, intervals(s)):
		return env.countRows(ctx, env.Task.First, env.Task.Last)
	case env.Task.Part == control.Pick:
		return env.pick(ctx)
	}
	return env.outputs().inParts(ctx, s, smoothedSoft(env.Env),
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
			return env.predictionRows(ctx, s, first, last)
		})
}

// smoothSoft commits the missing tiles of smoothed soft labels of panels [first, last).
func (env labelsRun) smoothSoft(ctx context.Context, first, last int) (err error) {
	out := smoothedSoft(env.Env)
	if first, err = env.outputs().firstMissing(ctx, out, first, last); err != nil || first == last {
		return err
	}
	depths, err := env.depths(ctx)
	if err != nil {
		return err
	}
	if out.Row > 0 {
		out.Encode = env.encodeBest(depths)
		if !env.outputs().isShare() {
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
		x.o.Targets = smooth.AllTargets(x.g.hi - x.g.lo)
		return x.g.smoothColumns(ctx, x.o, x.k, input{Columns: x.columns(x.soft), kinds: softKinds}, out, x.first, x.last)
	})
}

// runColumns holds the soft labels of some runs: panels [first, last).
type runColumns struct {
	g           engine // opened if there are hops
	o           smooth.Options
	k           []uint16    // most hops of each node; nil without hops
	soft        softColumns // nil if only corrected ones are wanted
	first, last int
	per         int // panels of a run
	// columns returns the columns to smooth, given the soft labels.
	columns func(lsi.Columns) lsi.Columns
}

// store commits the soft labels unsmoothed, at most step panels of a run at a time.
func (x runColumns) store(ctx context.Context, out *tiles.Matrix, step int) error {
	for at, to := x.first, 0; at < x.last; at = to {
		to = min(at+step, (at/x.per+1)*x.per, x.last)
		if err := out.Store(ctx, at, to, func(put func([]float32) error) error {
			return x.soft.Rows(ctx, at*packed.PanelColumns, (to-at)*packed.PanelColumns, put)
		}); err != nil {
			return err
		}
	}
	return nil
}

// storedTogether returns the number of panels of unsmoothed soft labels that are stored together: at most as many as are predicted
// together. Under the rule of the paper they need no scratch space.
func storedTogether(r control.Resources, rows int64, rule smooth.Rule) int {
	if rule.Name != "ndls-reference" {
		return tiles.Together
	}
	return int(min(max(softSpace(r)/softPanelBytes(rows), 1), tiles.Together))
}

// correctionShare is the assumed share of the correction in the time of label smoothing, for reports of its progress.
const correctionShare = 0.5

// smoothRuns prepares smoothing panels [first, last) of soft labels, and calls use for runs of the same depth and the same K, one after the
// other. uncorrected says that use also reads the soft labels as they were before the correction.
func (env labelsRun) smoothRuns(ctx context.Context, first, last int, depth func(run int) int, uncorrected bool,
	use func(runColumns) error,
) (err error) {
	rule, err := labelRule(env.Plan)
	if err != nil {
		return err
	}
	begin := 0.0
	if corrects(env.Plan) {
		begin = correctionShare
		leave := progress.EnterRange(ctx, 0, begin)
		err := env.correct(ctx)
		if leave(); err != nil {
			return err
		}
	}
	// The authors' code treats each model's outputs separately: their logarithms decide K, and are averaged.
	reference := rule.Name == "ndls-reference"
	classes := len(env.Summary.Classes)
	per := packed.Panels(classes)
	for all := first; first < last; {
		run := first / per
		most, end := depth(run), min((run+1)*per, last)
		for !reference && end < last && depth(end/per) == most {
			end = min(end+per, last)
		}
		x := runColumns{o: smooth.Options{Rule: rule}, first: first, last: end, per: per, columns: func(c lsi.Columns) lsi.Columns { return c }}
		find := func() (*mem.Array[uint16], error) { return env.labelK(ctx, x.g, most) }
		isCorrected := corrects(env.Plan) && most > 0
		if isCorrected {
			x.columns = func(lsi.Columns) lsi.Columns { return correctedTiles(env.Env) }
		}
		from, to := first, end
		if reference {
			from, to = run*per, (run+1)*per
		}
		if uncorrected || !isCorrected {
			if x.soft, err = env.softColumns(ctx, from, to, !reference); err != nil {
				return err
			}
		}
		number := most
		if reference {
			x.columns = func(c lsi.Columns) lsi.Columns { return &shifted{&logColumns{c, run * per, classes}, run * per} }
			find = func() (*mem.Array[uint16], error) {
				return env.findK(ctx, x.g, lsi.Features(&logColumns{x.soft, run * per, classes}, nil), most)
			}
			number |= run << 16
		}
		err := func() (err error) {
			if x.soft != nil {
				defer func() { err = errors.Join(err, x.soft.free()) }()
			}
			if most > 0 {
				if x.g, err = env.graph(ctx); err != nil {
					return err
				}
				if x.k, err = env.table(number, find); err != nil {
					return err
				}
			}
			share := func(panel int) float64 { return begin + (1-begin)*panelShare(panel, all, last) }
			defer progress.EnterRange(ctx, share(first), share(end))()
			return use(x)
		}()
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// shifted yields columns whose numbers begin after some panels.
type shifted struct {
	lsi.Columns
	panels int
}

// Rows implements lsi.Columns.
func (s *shifted) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return s.Columns.Rows(ctx, first-s.panels*packed.PanelColumns, columns, put)
}

// labelK returns K for label smoothing, at most most. Under a rule with the same hops for all nodes it is most. With the ε of the K table
// it comes from that table, since K is a first passage. Otherwise it comes from the table that the LSI stage found on the way, or from a
// run of its own.
func (env labelsRun) labelK(ctx context.Context, g engine, most int) (*mem.Array[uint16], error) {
	if env.Plan.Labels.Rule == plan.CorrectSmooth {
		return env.constantK(most)
	}
	if !ownLabelEpsilon(env.Plan) && most <= env.Plan.LSI.Kmax {
		return env.tablesOfK().kTable(ctx, g.summary.Nodes, most)
	}
	if epsilon := looserEpsilon(env.Plan); epsilon > 0 && most <= env.Plan.LSI.Kmax {
		if files, ok := env.tablesOfK().labelLSI(epsilon); ok {
			return env.tablesOfK().loadK(ctx, files, g.summary.Nodes, most)
		}
	}
	ids, err := env.nodeTable().ids(ctx, g.summary.Nodes)
	if err != nil {
		return nil, err
	}
	defer ids.Free()
	probe, free, err := g.probe(ctx, ids.S)
	if err != nil {
		return nil, err
	}
	defer free()
	return env.findK(ctx, g, probe, most)
}

// findsLabelK reports whether label smoothing over this number of hops needs a K table that the LSI stage does not make. Workers that share
// rows make only the table of features.
func findsLabelK(p plan.Options, most int) bool {
	return ownLabelEpsilon(p) && looserEpsilon(p) == 0 || most > p.LSI.Kmax
}

// ownLabelEpsilon reports whether the ε of label smoothing differs from that of the K table.
func ownLabelEpsilon(p plan.Options) bool {
	return p.Labels.Epsilon != 0 && p.Labels.Epsilon != p.LSI.Epsilon
}

func (env labelsRun) labelEpsilon() float64 {
	if e := env.Plan.Labels.Epsilon; e != 0 {
		return e
	}
	return env.Plan.LSI.Epsilon
}

// findK runs the LSI engine with the ε of label smoothing, for at most `most` hops.
func (env labelsRun) findK(ctx context.Context, g engine, probe lsi.Probe, most int) (*mem.Array[uint16], error) {
	table, _, err := g.findLSI(ctx, probe, lsi.Options{Epsilon: env.labelEpsilon(), Kmax: most})
	if err != nil {
		return nil, err
	}
	defer table.Free()
	k, err := mem.Alloc[uint16](env.Budget, g.hi-g.lo, "K table")
	if err != nil {
		return nil, err
	}
	for i := range k.S {
		x, _ := table.K(int64(i))
		k.S[i] = uint16(x)
	}
	return k, nil
}

// logColumns yields the logarithms of one run's soft labels.
type logColumns struct {
	soft    lsi.Columns
	first   int // first panel
	classes int
}

// Width implements lsi.Columns.
func (l *logColumns) Width() int { return l.classes }

// Rows implements lsi.Columns.
func (l *logColumns) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return l.soft.Rows(ctx, l.first*packed.PanelColumns+first, columns, func(rows []float32) error {
		cols := min(columns, l.classes-first)
		for at := 0; at < len(rows); at += columns {
			row := rows[at : at+cols]
			for c, p := range row {
				row[c] = float32(elementary.Log(max(float64(p), referenceFloor)))
			}
			clear(rows[at+cols : at+columns]) // columns of another run
		}
		return put(rows)
	})
}
