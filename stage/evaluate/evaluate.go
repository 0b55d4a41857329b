package evaluate

import (
	"context"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/seal"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/labels"
	"ndls/stage/measures"
	"ndls/stage/models"
	"ndls/tiles"
	"ndls/train"
)

// Stage compares predictions with labels.
type Stage struct{ stage.InWhole }

func (Stage) Name() control.Stage { return control.Evaluate }

func (Stage) About() string {
	return "accuracy on each split, before and after label smoothing"
}

func (Stage) Needs(p plan.Options) []control.Stage {
	if !stage.SmoothsLabels(p) {
		return []control.Stage{control.Partition, control.Predict}
	}
	return []control.Stage{control.Partition, control.SmoothLabels}
}

func (Stage) Lacks(p plan.Options, f estimate.Facts) string {
	switch {
	case stage.OwnModel(p):
		return stage.LacksModel(p, f)
	case f.Directed:
		return stage.DirectedK
	}
	return stage.LacksTruth(p, f)
}

func (Stage) Options(p plan.Options) map[string]any {
	return map[string]any{"metrics": p.Metrics}
}

func (Stage) Writes() []stage.Kind { return nil }

func (Stage) Shape(plan.Options, shards.Summary) stage.Shape { return stage.Whole{} }

func (Stage) Shares(plan.Options) bool { return false }

// reportedFiles is the number of bytes per class in run.json and in the report; replacedFiles is the number while they are replaced.
const reportedFiles, replacedFiles = 340, 240

// Cost implements estimate.Stage: it counts reading the soft labels of another model and sorting scores. The stages that computed the other
// figures counted them.
func (Stage) Cost(s *estimate.Sheet) {
	held := measures.ConfusedBytes*int64(s.Classes) + train.TalliesBytes(labels.Counted(s.Plan, s.Classes), s.Classes) + train.TalliesBytes(1,
		s.Classes) + reportedClass*int64(s.Classes)
	if !stage.OwnModel(s.Plan) {
		held += 5*s.Nodes + 2*4096 + measures.ScoredBytes(s.Plan) + measures.CostOfCounter(s, s.Nodes)
		s.ReadsRows(held, s.Nodes, s.Classes, false)
		s.ReadNodes(1)
		s.BytesRead += int64(stage.LabelRuns(s.Plan)) * estimate.TileBytes(s.Nodes, s.Classes, false)
	} else {
		s.Takes(held, held)
		s.BytesRead += 2 * measures.TallyBytes(s) // before label smoothing, and after it
		if !s.Plan.Answers() && measuresJoins(s.Edges, s.Directed) {
			joins := joinsBytes(s.Nodes, s.Classes) + reportedClass*int64(s.Classes)
			s.Takes(joins, joins)
			s.ReadNodes(1)
			s.BytesRead += partition.HopBytes(s.Partitioned())
		}
	}
	s.DiskBytes, s.ScratchBytes = reportedFiles*int64(s.Classes), replacedFiles*int64(s.Classes)
	if n := measures.ScoreCount(s); n > 0 {
		scratch := s.ScratchBytes
		measures.CostOfSorting(s, held, n)
		measures.CostOfSorting(s, held, labels.SmoothedScores(s))
		if s.ScratchBytes > scratch {
			s.ScratchBytes += scratch
		}
	}
}

// Run implements Stage: it compares soft labels with the labels, before and after smoothing. Soft labels of fewer rows than nodes cannot be
// smoothed.
func (Stage) Run(ctx context.Context, env *stage.Env) error { return evaluation{env}.run(ctx) }

// evaluation is the stage while it runs.
type evaluation struct{ *stage.Env }

func (env evaluation) run(ctx context.Context) error {
	env.Report.Rows = env.Summary.Labelled
	reported := reportedClass * int64(len(env.Summary.Classes))
	if err := env.Budget.Reserve(reported, "figures by class"); err != nil {
		return err
	}
	defer env.Budget.Release(reported)
	var err error
	index := models.Index{}
	if stage.OwnModel(env.Plan) {
		if index, err = models.ReadIndex(ctx, env.Catalog); err != nil {
			return err
		}
		if len(index.Runs) != env.models() {
			return seal.Corrupt(models.IndexPath, "it has %d models of %d", len(index.Runs), env.models())
		}
	}
	base, err := env.base(ctx, index)
	if err != nil {
		return err
	}
	smoothed, w := figures{}, labels.Written{Predictions: plan.OfModel, Model: index.Chosen}
	var depths []int
	if stage.SmoothsLabels(env.Plan) && len(env.Catalog.Entries(catalog.KindPredictions)) > 0 {
		if w, err = labels.ReadWritten(ctx, env.Plan, env.Catalog); err != nil {
			return err
		}
		if smoothed, err = env.smoothed(ctx, w); err != nil {
			return err
		}
		if depths, err = labels.Depths(ctx, env.Plan, env.Catalog); err != nil {
			return err
		}
	}
	r := env.report(index, base, smoothed, w, depths)
	if stage.OwnModel(env.Plan) && !env.Plan.Answers() && measuresJoins(env.Summary.Edges, env.Summary.Directed) {
		j, err := countJoins(ctx, env.Env)
		if err != nil {
			return err
		}
		if text := j.warning(env.Plan); text != "" {
			r.Warnings = append(r.Warnings, text)
		}
	}
	env.Report.Accuracy = r
	return nil
}

// models returns the number of sets of soft labels.
func (env evaluation) models() int { return stage.LabelRuns(env.Plan) }

// report reports the accuracy of all models together, of each model and of each class, and the predictions that are written.
func (env evaluation) report(index models.Index, base, smoothed figures, w labels.Written, depths []int) *control.AccuracyReport {
	r := &control.AccuracyReport{
		Runs: env.models() / env.Plan.NumSplits(), Warnings: underfitted(env.Plan, index.Runs),
		Base: env.accuracy(base), Smoothed: env.accuracy(smoothed),
		Metrics: control.Metrics[*control.Spread]{Base: env.measured(base), Smoothed: env.measured(smoothed)},
	}
	if n := env.Plan.NumSplits(); n > 1 {
		r.Splits = n
	}
	for m := range env.models() {
		before, after := base.of(m), smoothed.of(m)
		x := control.ModelAccuracy{
			Split: stage.SplitOf(env.Plan, m), Run: m % r.Runs, Seed: env.Plan.Seed,
			Base: before.accuracy, Smoothed: after.accuracy,
			Metrics: control.Metrics[*float64]{Base: before.Measures, Smoothed: after.Measures},
		}
		if m < len(index.Runs) {
			x.Epochs, x.BestEpoch = index.Runs[m].Epochs, index.Runs[m].BestEpoch
		}
		r.Models = append(r.Models, x)
	}
	for m, run := range index.Runs {
		r.Models[m].Curve = run.Curve
	}
	final := base
	if len(smoothed.models) > 0 {
		final = smoothed
	}
	for c, x := range final.classes {
		if measures.TaskOf(env.Plan) == train.Regress {
			break // numbers are not right or wrong
		}
		r.Classes = append(r.Classes, control.ClassFigures{
			Class: env.Summary.Classes[c], Nodes: x.Rows, Precision: x.Precision(), Recall: x.Recall(), F1: x.F1(),
		})
	}
	r.Breakdown = final.breakdown.Report(env.Plan, env.Summary.Classes, final.classes)
	r.Predictions = env.predictionsReport(final, w, depths)
	if !env.Plan.Answers() {
		r.Warnings = append(r.Warnings, allOfOneClass(env.Summary.Classes, final, env.models(), r.Predictions)...)
	}
	return r
}

// predictionsReport reports which predictions are written, and their accuracy.
func (env evaluation) predictionsReport(final figures, w labels.Written, depths []int) *control.PredictionsReport {
	p := &control.PredictionsReport{Kind: w.Predictions, Files: "soft_labels", Measure: env.Plan.Measure()}
	if depths != nil {
		p.Files = "predictions"
	}
	set := w.Set(env.Plan)
	switch {
	case w.Predictions == plan.MeanOfModels:
		p.Models = stage.ModelsOfSplit(env.Plan)
	case !stage.OwnModel(env.Plan):
		p.Kind = control.GivenPredictions
	default:
		p.Model = &w.Model
		if depths != nil {
			p.Depth = &depths[w.Model]
		}
	}
	p.Accuracy, p.Metrics = final.of(set).accuracy, final.of(set).Measures
	return p
}

// allOfOneClass warns if all labelled nodes are predicted to have the same class.
func allOfOneClass(classes []string, f figures, models int, p *control.PredictionsReport) (warnings []string) {
	help := "accuracy is then the share of that class and says nothing of the model; another --rule, a larger --hidden or another --lr may tell the classes apart"
	if p.Measure == plan.Accuracy {
		help += ", and --metrics auc or f1 chooses weights and predictions by another measure"
	}
	alike := 0
	for _, m := range f.models[:min(models, len(f.models))] {
		if m.only > 0 {
			alike++
		}
	}
	set := models // the mean
	if p.Model != nil {
		set = *p.Model
	} else if p.Kind == control.GivenPredictions {
		set = 0
	}
	var what string
	switch written := set < len(f.models) && f.models[set].only > 0; {
	case written:
		what = fmt.Sprintf("%s are of one class, %q, for all nodes that have a label", map[string]string{"predictions": "the predictions", "soft_labels": "the soft labels"}[p.Files], classes[f.models[set].only-1])
		if models > 1 {
			what += fmt.Sprintf(", and so are those of %d of %d models", alike, models)
		}
	case alike == 1:
		what = fmt.Sprintf("1 of %d models predicts one class for all nodes that have a label", models)
	case alike > 0:
		what = fmt.Sprintf("%d of %d models predict one class for all nodes that have a label", alike, models)
	default:
		return nil
	}
	return []string{what + ": " + help}
}

// lastEpochs is the last share of the epochs. A best epoch in it means that training may have ended too early.
const lastEpochs = 0.2

// underfitted warns of models whose validation accuracy still rose when --epochs ended their training.
func underfitted(p plan.Options, runs []models.Trained) []string {
	rising := 0
	for _, r := range runs {
		if r.Valid > 0 && r.Epochs == p.Train.Epochs && float64(r.BestEpoch) > (1-lastEpochs)*float64(r.Epochs) {
			rising++
		}
	}
	if 2*rising <= len(runs) {
		return nil
	}
	who, their, them := fmt.Sprintf("%d of %d models were", rising, len(runs)), "their", "them"
	if len(runs) == 1 {
		who, their, them = "the model was", "its", "it"
	}
	return []string{fmt.Sprintf("%s best on the validation nodes in the last %g %% of %s %d epochs, so more training may make %s better: give more --epochs or a larger --lr, or another --normalize if features are small numbers",
		who, 100*lastEpochs, their, p.Train.Epochs, them)}
}

// reportedClass bounds the heap bytes per class while the report is made: counts before and after label smoothing, and figures.
const reportedClass = 128

// figures holds the counts of each model.
type figures struct {
	models []modelFigures
	// classes counts the test nodes of each class, by the model of the predictions.
	classes []train.ClassTally
	// breakdown counts the test nodes by degree, K and class.
	breakdown measures.Breakdown
}

// modelFigures holds the measures of a model by split; nil if a split has no rows.
type modelFigures struct {
	accuracy control.OfSplits[*float64]
	control.Measures[*float64]
	// only is the class, counted from 1, that is predicted for all labelled nodes; 0 if there are several.
	only int
}

// add adds the counts and the areas of the next model. If chosen, it also takes its classes, which belong to the predictions.
func (f *figures) add(task train.Task, t *train.Tally, areas measures.Areas, chosen bool) {
	model := len(f.models)
	m := modelFigures{only: onlyClass(t), Measures: control.Measures[*float64]{
		AUC:           bySplit(func(split uint8) (float64, bool) { return areas.Of(model, split) }),
		Determination: bySplit(t.Determination), MeanError: bySplit(t.MeanError),
	}}
	if task != train.Regress { // numbers are not right or wrong
		m.accuracy = bySplit(func(split uint8) (float64, bool) {
			share, rows := t.Accuracy(split)
			return share, rows > 0
		})
		m.MacroF1 = bySplit(func(split uint8) (float64, bool) { return t.MacroF1(split), t.Rows[split] > 0 })
	}
	if task == train.Label {
		m.Precision = bySplit(func(split uint8) (float64, bool) { return areas.Precision(model, split) })
	}
	if f.models = append(f.models, m); chosen {
		f.classes = slices.Clone(t.Classes[train.Test])
	}
}

// bySplit returns a measure of each split, nil if it is undefined there.
func bySplit(measure func(split uint8) (x float64, ok bool)) control.OfSplits[*float64] {
	of := func(split uint8) *float64 {
		if x, ok := measure(split); ok {
			return &x
		}
		return nil
	}
	return control.OfSplits[*float64]{Train: of(train.Train), Valid: of(train.Valid), Test: of(train.Test)}
}

// of returns the figures of a model, without values where there are none.
func (f figures) of(model int) (m modelFigures) {
	if model < len(f.models) {
		return f.models[model]
	}
	return m
}

// onlyClass returns the class, counted from 1, that is predicted for all rows; 0 if there are several or none.
func onlyClass(t *train.Tally) (only int) {
	for _, classes := range t.Classes {
		for c, x := range classes {
			switch {
			case x.Predicted == 0 || only == c+1:
			case only > 0:
				return 0
			default:
				only = c + 1
			}
		}
	}
	return only
}

// spreads returns the spread of a measure over all models, by split; nil if a model lacks the measure.
func (env evaluation) spreads(measure func(model int) control.OfSplits[*float64]) control.SplitAccuracy {
	models := make([]control.OfSplits[*float64], env.models())
	for m := range models {
		models[m] = measure(m)
	}
	return control.Spreads(models, env.Plan.NumSplits())
}

// accuracy returns the accuracy over all models.
func (env evaluation) accuracy(f figures) control.SplitAccuracy {
	return env.spreads(func(m int) control.OfSplits[*float64] { return f.of(m).accuracy })
}

// measured returns the further measures over all models.
func (env evaluation) measured(f figures) control.Measures[*control.Spread] {
	return control.Measures[*control.Spread]{
		MacroF1:       env.spreads(func(m int) control.OfSplits[*float64] { return f.of(m).MacroF1 }),
		AUC:           env.spreads(func(m int) control.OfSplits[*float64] { return f.of(m).AUC }),
		Precision:     env.spreads(func(m int) control.OfSplits[*float64] { return f.of(m).Precision }),
		Determination: env.spreads(func(m int) control.OfSplits[*float64] { return f.of(m).Determination }),
		MeanError:     env.spreads(func(m int) control.OfSplits[*float64] { return f.of(m).MeanError }),
	}
}

// base counts the soft labels. Predict has counted the run's own, interval by interval.
func (env evaluation) base(ctx context.Context, index models.Index) (figures, error) {
	if !stage.OwnModel(env.Plan) {
		return env.givenFigures(ctx, labels.GivenTiles(env.Env))
	}
	return env.counted(ctx, catalog.KindTally, catalog.KindScores, env.models(), index.Chosen)
}

// smoothed counts the smoothed soft labels. Smooth-labels has counted each interval, and broken the written predictions down by degree, K
// and class.
func (env evaluation) smoothed(ctx context.Context, w labels.Written) (f figures, err error) {
	sets := labels.Counted(env.Plan, len(env.Summary.Classes))
	f, err = env.counted(ctx, catalog.KindLabelTally, catalog.KindSmoothedScores, sets, w.Set(env.Plan))
	for _, e := range env.Catalog.Entries(catalog.KindBreakdown) {
		var b measures.Breakdown
		if err == nil {
			err = stage.ReadJSON(ctx, env.Catalog, e.Path, &b)
		}
		f.breakdown.Merge(&b)
	}
	return f, err
}

// counted adds up the tallies of all intervals: files of one kind with this number of sets of soft labels. chosen is one of the sets.
func (env evaluation) counted(ctx context.Context, tallies, scores string, sets, chosen int) (f figures, err error) {
	sums, err := measures.SumTallies(ctx, env.Env, tallies, sets)
	if err != nil {
		return f, err
	}
	defer sums.Free()
	areas, err := measures.ScoresOf(env.Env).StoredAreas(ctx, scores)
	f.breakdown = sums.Breakdown
	for set := range sums.Of[:sums.Sets] {
		f.add(measures.TaskOf(env.Plan), &sums.Of[set], areas, set == chosen)
	}
	return f, err
}

// givenFigures counts the soft labels of all nodes that the user gave.
func (env evaluation) givenFigures(ctx context.Context, t *tiles.Matrix) (f figures, err error) {
	l, err := measures.ReadLabelled(ctx, env.Env)
	if err != nil {
		return f, err
	}
	defer l.Free()
	tallies, err := train.NewTallies(env.Budget, 1, len(env.Summary.Classes))
	if err != nil {
		return f, err
	}
	defer tallies.Free()
	tally := &tallies.Of[0]
	var b *measures.Counter
	if !stage.SmoothsLabels(env.Plan) {
		if b, err = measures.NewCounter(ctx, env.Env, l, nil); err != nil {
			return f, err
		}
		defer b.Free()
	}
	count := func(add func([]uint64) error) error {
		scores, err := measures.ScoresOf(env.Env).NewScores(add)
		if err != nil {
			return err
		}
		defer scores.Free()
		if err := env.score(ctx, l, t, tally, scores, b); err != nil {
			return err
		}
		return scores.Flush()
	}
	var areas measures.Areas
	if env.Plan.WantsAUC() {
		areas, err = measures.ScoresOf(env.Env).SortScores(ctx, env.Summary.Labelled*int64(len(env.Summary.Classes)), count)
	} else {
		err = count(nil)
	}
	f.add(measures.TaskOf(env.Plan), tally, areas, true)
	if b != nil {
		f.breakdown = b.Breakdown
	}
	return f, err
}

// score reads the soft labels that the user gave, and breaks them down with b, unless b is nil.
func (env evaluation) score(ctx context.Context, l *measures.Labelled, t *tiles.Matrix, tally *train.Tally, scores *measures.Scores,
	b *measures.Counter,
) error {
	classes := len(env.Summary.Classes)
	for i := range t.Intervals() {
		err := t.Read(ctx, i, 0, classes, shards.BatchRows(classes),
			func(row int64, values []float32) error {
				end := row + int64(len(values)/classes)
				label, split := l.Label.S[row:end], l.Split(0)[row:end]
				l.AddTo(tally, measures.TaskOf(env.Plan), row, values, len(label), split)
				if b != nil {
					b.AddSoft(row, values)
				}
				return scores.Add(0, values, l, row, split)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// Validated returns the measures of the trained models on the validation nodes: accuracy, or the plan's measure in its place.
func Validated(ctx context.Context, of *stage.Env, smoothed bool) (*control.AccuracyReport, error) {
	env := evaluation{of}
	index, err := models.ReadIndex(ctx, env.Catalog)
	if err != nil {
		return nil, err
	}
	after := figures{}
	if smoothed {
		if after, err = env.smoothed(ctx, labels.Written{Predictions: plan.OfModel, Model: index.Chosen}); err != nil {
			return nil, err
		}
	}
	base := func(model int) control.OfSplits[*float64] {
		return control.OfSplits[*float64]{Valid: &index.Runs[model].Measured}
	}
	afterwards := func(model int) control.OfSplits[*float64] {
		m := after.of(model)
		if env.Plan.Measure() == plan.Accuracy {
			return control.OfSplits[*float64]{Valid: m.accuracy.Valid}
		}
		return control.OfSplits[*float64]{Valid: m.Of(env.Plan.Measure()).Valid}
	}
	r := &control.AccuracyReport{
		Runs: env.Plan.NumRuns(), Splits: env.Plan.Partition.Splits, Base: env.spreads(base),
		Smoothed: env.spreads(afterwards),
	}
	for m, x := range index.Runs {
		r.Models = append(r.Models, control.ModelAccuracy{
			Split: stage.SplitOf(env.Plan, m), Run: m % r.Runs, Seed: env.Plan.Seed,
			Base: base(m), Smoothed: afterwards(m), Epochs: x.Epochs, BestEpoch: x.BestEpoch, ValidLoss: &x.Loss,
		})
	}
	return r, nil
}
