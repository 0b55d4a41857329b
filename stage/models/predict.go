package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/features"
	"ndls/stage/measures"
	"ndls/steps"
	"ndls/train"
)

// Predict computes the soft labels.
type Predict struct{ stage.InWhole }

func (Predict) Name() control.Stage { return control.Predict }

func (Predict) About() string { return "soft labels: what the models say of the smoothed rows" }

func (Predict) Needs(plan.Options) []control.Stage {
	return []control.Stage{control.Partition, control.Smooth, control.Train}
}

func (Predict) Lacks(p plan.Options, f estimate.Facts) string { return Train{}.Lacks(p, f) }

func (Predict) Options(p plan.Options) map[string]any {
	return map[string]any{"probabilities": cmp.Or(p.Probabilities, plan.AllProbabilities), "auc": p.WantsAUC()}
}

func (Predict) Writes() []stage.Kind {
	return []stage.Kind{
		{Name: catalog.KindTally, Lasting: true},
		{Name: catalog.KindScores, Lasting: true},
		{Name: catalog.KindSoftLabels, Lasting: true, Rows: stage.CountRows},
	}
}

func (Predict) Shape(_ plan.Options, sum shards.Summary) stage.Shape {
	return stage.Steps{Once: true, Next: func(_ context.Context, cat *catalog.Catalog) (steps.Left, error) {
		done := stage.Committed(cat, catalog.KindTally)
		return stage.LeftOf(control.Rows, stage.Intervals(sum), func(i int) bool { return done[i] }), nil
	}}
}

func (Predict) Shares(plan.Options) bool { return false }

// Cost implements estimate.Stage: every row passes through all models.
func (Predict) Cost(s *estimate.Sheet) {
	o, shape := Options(s.Plan), ShapeOf(s)
	row := softRow(s.Plan, s.Classes)
	models := stage.LabelRuns(s.Plan)
	held := measures.LabelledBytes(s.Plan, s.Classes, shape.Rows) + measures.LabelledPages(s.Plan) +
		int64(SoftBatch(s.Plan, s.Classes))*row + 3*4096 +
		measures.ScoredBytes(s.Plan) + train.TalliesBytes(models, s.Classes) + measures.CostOfCounter(s, shape.Rows)
	peak, least := train.PlanPredict(shape, o, models, s.Threads, s.Budget()-held)
	s.Takes(held+peak, held+least)
	s.DiskBytes = row*shape.Rows + 8*measures.ScoreCount(s) + measures.TallyBytes(s)
	s.BytesWritten = s.DiskBytes
	s.ReadNodes(1)
	times := int64(max(s.Output().Splits, 1)) // label columns of each split are read by themselves
	s.BytesRead += 8*shape.Rows + times*s.RowBytes() + int64(models)*Bytes(s)
	if !stage.SmoothsLabels(s.Plan) {
		s.BytesRead += 16 * shape.Rows // ids again, to find degrees and K
	}
	s.Multiplies(float64(models) * train.PredictFlops(shape, o))
	s.Moves(float64(float64(models)*float64(shape.Rows)*float64(s.Classes)) + float64(float64(row*shape.Rows)/4))
	s.Pieces(int((s.Nodes-1)/s.Interval(s.Nodes)) + 1)
}

// Run implements Stage: for each interval it commits the Arrow rows of the chosen run, then the tally of the labels that each run got
// right.
func (Predict) Run(ctx context.Context, env *stage.Env) (err error) {
	first, last := 0, math.MaxInt
	if !env.Whole() {
		if !env.IsPart(control.Rows, stage.Intervals(env.Summary)) {
			return env.NoPart()
		}
		first, last = env.Task.First, env.Task.Last
	}
	src, err := features.OpenRows(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if env.Whole() {
		env.Report.Rows = src.NumRows()
	}
	done := stage.Committed(env.Catalog, catalog.KindTally)
	var left []int // numbers of files
	for number, part := range src.Parts() {
		if i := int(part.Interval); first <= i && i < last && !done[i] {
			left = append(left, number)
		}
	}
	if len(left) == 0 {
		return nil
	}
	t, err := ReadIndex(ctx, env.Catalog)
	if err != nil {
		return err
	}
	p := prediction{Env: env, src: src, runs: t.Runs, chosen: t.Chosen}
	if p.truth, err = stage.Keep(env.Session, "labels of rows", nil, func() (*measures.Labelled, error) { return measures.LabelledRows(ctx, env, src) }); err != nil {
		return err
	}
	if !stage.SmoothsLabels(env.Plan) && !env.Plan.Answers() {
		if p.counter, err = stage.Keep(env.Session, "counter", nil, func() (*measures.Counter, error) {
			return measures.NewCounter(ctx, env, p.truth, src.IDs())
		}); err != nil {
			return err
		}
	}
	return p.files(ctx, left)
}

// prediction holds what predict needs for every file.
type prediction struct {
	*stage.Env
	src    *train.Smoothed
	runs   []Trained
	chosen int // index of the run whose soft labels become Arrow rows
	truth  *measures.Labelled
	// counter breaks predictions down; nil if labels are smoothed, or answered.
	counter *measures.Counter
}

// files predicts the rows of some files with the models of all runs.
func (p prediction) files(ctx context.Context, numbers []int) error {
	models, err := p.models(ctx)
	defer func() {
		for _, m := range models {
			m.Free()
		}
	}()
	if err != nil {
		return err
	}
	rows, err := newSoftRows(p.Env, len(p.Summary.Classes))
	if err != nil {
		return err
	}
	defer rows.free()
	tallies, err := train.NewTallies(p.Budget, len(p.runs), len(p.Summary.Classes))
	if err != nil {
		return err
	}
	defer tallies.Free()
	for i, number := range numbers {
		leave := progress.Enter(ctx, i, len(numbers))
		err := p.file(ctx, number, models, rows, tallies.Of)
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// file commits the soft labels of the rows of a file.
func (p prediction) file(ctx context.Context, number int, models []*train.Model, rows *softRows, tallies []train.Tally) error {
	interval := int(p.src.Parts()[number].Interval)
	files := p.Catalog.Batch()
	defer files.Abort()
	e := catalog.Describe(catalog.KindScores, measures.ScoresPath(interval)).In(interval)
	scores, err := measures.ScoresOf(p.Env).NewScoreFile(ctx, files, e)
	if err != nil {
		return err
	}
	defer scores.Free()
	for run := range tallies {
		tallies[run].Reset()
	}
	if p.counter != nil {
		p.counter.Breakdown = measures.Breakdown{}
	}
	e = catalog.Describe(catalog.KindSoftLabels, fmt.Sprintf("soft_labels/part-%05d.arrow", interval)).In(interval)
	if err := p.Nodes().WriteRows(ctx, p.Catalog.Write, e, rows.schema, func(put stage.PutRows) error {
		rows.put = put
		if err := p.predict(ctx, p.src.Of(number), models, func(row int64, ids []int64, run int, soft []float32) error {
			end := row + int64(len(ids))
			split := p.truth.Split(stage.SplitOf(p.Plan, run))[row:end]
			p.truth.AddTo(&tallies[run], measures.TaskOf(p.Plan), row, soft, len(ids), split)
			if err := scores.Add(run, soft, p.truth, row, split); err != nil || run != p.chosen {
				return err
			}
			if p.counter != nil {
				p.counter.AddSoft(row, soft)
			}
			return rows.write(ids, soft)
		}); err != nil {
			return err
		}
		return errors.Join(scores.Flush(), rows.flush())
	}); err != nil {
		return err
	}
	// The tally is committed last: it says that the interval is done.
	e = catalog.Describe(catalog.KindTally, measures.TallyPath(interval)).In(interval)
	if err := measures.WriteTallies(ctx, files, e, tallies, func(run int) (*measures.Breakdown, float64) {
		if run != p.chosen {
			return nil, 0
		}
		return p.counter.Counts(), 0
	}); err != nil {
		return err
	}
	return files.Commit(ctx)
}

// predict passes rows through the models, as [train.Predict] does. The models of each split read them by themselves if splits have label
// columns of their own.
func (p prediction) predict(ctx context.Context, src train.Source, models []*train.Model,
	emit func(row int64, ids []int64, run int, soft []float32) error,
) error {
	res := train.Resources{Budget: p.Budget, Threads: p.Resources.Threads, Kernel: p.Resources.Kernel}
	splits := max(features.OutputOf(p.Plan, p.Summary).Splits, 1)
	each := len(models) / splits
	for split := range splits {
		leave := progress.Enter(ctx, split, splits)
		err := train.Predict(ctx, features.RowsOfSplit(p.Env, src, split), models[split*each:(split+1)*each], res,
			func(row int64, ids []int64, run int, soft []float32) error {
				return emit(row, ids, split*each+run, soft)
			})
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

func (p prediction) models(ctx context.Context) (models []*train.Model, err error) {
	for _, r := range p.runs {
		m, err := Load(ctx, p.Catalog, p.Budget, r.Path)
		if err != nil {
			return models, err
		}
		models = append(models, m)
	}
	return models, nil
}
