package stage

import (
	"cmp"
	"context"
	"errors"
	"math"

	"ndls/estimate"
	"ndls/plan"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/steps"
	"ndls/train"
)

// predictStage computes the soft labels.
type predictStage struct{ each }

func (predictStage) Name() control.Stage { return control.Predict }

func (predictStage) About() string { return "soft labels: what the models say of the smoothed rows" }

func (predictStage) Needs(plan.Options) []control.Stage {
	return []control.Stage{control.Partition, control.Smooth, control.Train}
}

func (predictStage) Lacks(p plan.Options, f estimate.Facts) string { return trainStage{}.Lacks(p, f) }

func (predictStage) Options(p plan.Options) map[string]any {
	return map[string]any{"probabilities": cmp.Or(p.Probabilities, plan.AllProbabilities), "auc": p.WantsAUC()}
}

func (predictStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindTally, Lasting: true},
		{Name: catalog.KindScores, Lasting: true},
		{Name: catalog.KindSoftLabels, Lasting: true, Rows: countRows},
	}
}

func (predictStage) Shape(_ plan.Options, sum shards.Summary) Shape {
	return Steps{Once: true, Next: func(_ context.Context, cat *catalog.Catalog) (steps.Left, error) {
		done := intervalsOf(cat, catalog.KindTally)
		return leftOf(control.Rows, intervals(sum), func(i int) bool { return done[i] }), nil
	}}
}

func (predictStage) Shares(plan.Options) bool { return false }

// Cost implements estimate.Stage: every row passes through all models.
func (predictStage) Cost(s *estimate.Sheet) {
	o, shape := trainOptions(s.Plan), trainShape(s)
	row := softRow(s.Plan, s.Classes)
	models := labelRuns(s.Plan)
	held := labelledBytes(s.Plan, s.Classes, shape.Rows) + labelledPages(s.Plan) + int64(softBatch(s.Plan, s.Classes))*row + 3*4096 +
		scoredBytes(s.Plan) + train.TalliesBytes(models, s.Classes) + breaksDown(s, shape.Rows)
	peak, least := train.PlanPredict(shape, o, models, s.Threads, s.Budget()-held)
	s.Takes(held+peak, held+least)
	s.DiskBytes = row*shape.Rows + 8*scoreCount(s) + tallyBytes(s)
	s.BytesWritten = s.DiskBytes
	s.ReadNodes(1)
	times := int64(max(s.Output().Splits, 1)) // label columns of each split are read by themselves
	s.BytesRead += 8*shape.Rows + times*s.RowBytes() + int64(models)*modelBytes(s)
	if !smoothsLabels(s.Plan) {
		s.BytesRead += 16 * shape.Rows // ids again, to find degrees and K
	}
	s.Multiplies(float64(models) * train.PredictFlops(shape, o))
	s.Moves(float64(models)*float64(shape.Rows)*float64(s.Classes) + float64(row*shape.Rows)/4)
	s.Pieces(int((s.Nodes-1)/s.Interval(s.Nodes)) + 1)
}

// tallyBytes estimates the size of the tallies: the labels that each model got right, by class, split and interval.
func tallyBytes(s *estimate.Sheet) int64 {
	const class = 240 // in a file, as text
	files := (s.Nodes-1)/s.Interval(s.Nodes) + 1
	return files * int64(labelRuns(s.Plan)) * int64(s.Classes) * class
}

// Run implements Stage: for each interval it commits the Arrow rows of the chosen run, then the tally of the labels that each run got
// right.
func (predictStage) Run(ctx context.Context, env *Env) (err error) {
	first, last := 0, math.MaxInt
	if !env.Whole() {
		if !env.outputs().isPart(control.Rows, intervals(env.Summary)) {
			return env.NoPart()
		}
		first, last = env.Task.First, env.Task.Last
	}
	src, err := env.openRows(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if env.Whole() {
		env.Report.Rows = src.NumRows()
	}
	done := intervalsOf(env.Catalog, catalog.KindTally)
	var left []int // numbers of files
	for number, part := range src.Parts() {
		if i := int(part.Interval); first <= i && i < last && !done[i] {
			left = append(left, number)
		}
	}
	if len(left) == 0 {
		return nil
	}
	t, err := readIndex(ctx, env.Catalog)
	if err != nil {
		return err
	}
	if err := env.readTruth(ctx, src); err != nil {
		return err
	}
	return prediction{Env: env, src: src, runs: t.Runs, chosen: t.Chosen}.files(ctx, left)
}

// readTruth reads the labels of the rows. If labels are not smoothed, it also reads the ranges by which predictions are broken down. The
// tasks of a worker read both once.
func (env *Env) readTruth(ctx context.Context, src *train.Smoothed) (err error) {
	if env.truth == nil {
		if env.truth, err = env.labelledRows(ctx, src, env.Summary.Nodes); err != nil {
			return err
		}
	}
	if env.counter == nil && !smoothsLabels(env.Plan) && !env.Plan.Answers() {
		env.counter, err = env.newCounter(ctx, env.truth, src.IDs())
	}
	return err
}

// prediction holds what predict needs for every file.
type prediction struct {
	*Env
	src    *train.Smoothed
	runs   []trainedRun
	chosen int // index of the run whose soft labels become Arrow rows
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
	rows, err := p.newSoftRows(len(p.Summary.Classes))
	if err != nil {
		return err
	}
	defer rows.abort()
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
	scores, err := p.scoreFiles().newScoreFile(ctx, catalog.Describe(catalog.KindScores, scoresPath(interval)).In(interval))
	if err != nil {
		return err
	}
	defer scores.close()
	if err := rows.begin(ctx, interval); err != nil {
		return err
	}
	for run := range tallies {
		tallies[run].Reset()
	}
	if p.counter != nil {
		p.counter.breakdown = breakdown{}
	}
	err = p.predict(ctx, p.src.Of(number), models,
		func(row int64, ids []int64, run int, soft []float32) error {
			end := row + int64(len(ids))
			split := p.truth.split(splitOf(p.Plan, run))[row:end]
			p.truth.addTo(&tallies[run], taskOf(p.Plan), row, soft, len(ids), split)
			if err := scores.add(run, soft, p.truth, row, split); err != nil {
				return err
			}
			if run == p.chosen {
				if p.counter != nil {
					p.counter.addSoft(row, soft)
				}
				return rows.write(ids, soft)
			}
			return nil
		})
	if err != nil {
		return err
	}
	if err := errors.Join(scores.flush(), rows.commit(ctx)); err != nil {
		return err
	}
	return p.commitTallies(ctx, interval, tallies, scores)
}

// predict passes rows through the models, as [train.Predict] does. The models of each split read them by themselves if splits have label
// columns of their own.
func (p prediction) predict(ctx context.Context, src train.Source, models []*train.Model,
	emit func(row int64, ids []int64, run int, soft []float32) error,
) error {
	res := train.Resources{Budget: p.Budget, Threads: p.Resources.Threads, Kernel: p.Resources.Kernel}
	splits := max(p.output().Splits, 1)
	each := len(models) / splits
	for split := range splits {
		leave := progress.Enter(ctx, split, splits)
		err := train.Predict(ctx, p.rowsOfSplit(src, split), models[split*each:(split+1)*each], res,
			func(row int64, ids []int64, run int, soft []float32) error {
				return emit(row, ids, split*each+run, soft)
			})
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// commitTallies commits the tallies of an interval together with its scores.
func (p prediction) commitTallies(ctx context.Context, interval int, tallies []train.Tally, scores *scoreFile) error {
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindTally, tallyPath(interval)).In(interval))
	if err != nil {
		return err
	}
	defer f.Abort()
	list := tallyList{w: f}
	for run := range tallies {
		var counted *breakdown
		if run == p.chosen {
			counted = p.counter.counts()
		}
		if err := list.add(&tallies[run], counted, 0); err != nil {
			return err
		}
	}
	if err := list.end(); err != nil {
		return err
	}
	f.Rows = 1
	return p.Catalog.Commit(ctx, scores.with(f)...)
}

func (p prediction) models(ctx context.Context) (models []*train.Model, err error) {
	for _, r := range p.runs {
		m, err := loadModel(ctx, p.Catalog, p.Budget, r.Path)
		if err != nil {
			return models, err
		}
		models = append(models, m)
	}
	return models, nil
}
