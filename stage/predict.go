package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/train"
)

// predictStage computes the soft labels.
type predictStage struct{ each }

func (predictStage) Name() control.Stage { return control.Predict }

func (predictStage) About() string { return "soft labels: what the models say of the smoothed rows" }

func (predictStage) Needs(control.Plan) []control.Stage {
	return []control.Stage{control.Partition, control.Smooth, control.Train}
}

func (predictStage) Lacks(p control.Plan, f estimate.Facts) string { return trainStage{}.Lacks(p, f) }

func (predictStage) Options(p control.Plan) map[string]any {
	return map[string]any{"probabilities": cmp.Or(p.Probabilities, control.AllProbabilities), "auc": p.WantsAUC()}
}

func (predictStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindTally, Lasting: true},
		{Name: catalog.KindScores, Lasting: true},
		{Name: catalog.KindSoftLabels, Lasting: true, Rows: countRows},
	}
}

func (predictStage) Cut(control.Plan, shards.Summary) Cut { return Cut{} }

func (predictStage) Shares(control.Plan) bool { return false }

// Cost implements estimate.Stage: every row passes through all models.
func (predictStage) Cost(s *estimate.Sheet) {
	o, shape := trainOptions(s.Plan), trainShape(s)
	row := softRow(s.Plan, s.Classes)
	models := labelRuns(s.Plan)
	held := labelledBytes(s.Plan, shape.Rows) + labelledPages(s.Plan) + int64(softBatch(s.Plan, s.Classes))*row + 3*4096 + scoredBytes(s.Plan) + train.TalliesBytes(models, s.Classes) + breaksDown(s, shape.Rows)
	peak, least := train.PlanPredict(shape, o, models, s.Threads, s.Budget()-held)
	s.Takes(held+peak, held+least)
	s.DiskBytes = row*shape.Rows + 8*scoreCount(s) + tallyBytes(s)
	s.BytesWritten = s.DiskBytes
	s.ReadNodes(1)
	s.BytesRead += 8*shape.Rows + s.RowBytes()
	if !smoothsLabels(s.Plan) {
		s.BytesRead += 16 * shape.Rows // ids again, to find degrees and K
	}
	s.Computes(float64(shape.Rows)*float64(shape.Width), estimate.CheckedValues)
	s.Computes(float64(models)*train.PredictFlops(shape, o), estimate.PredictedFlops)
	s.Computes(float64(models)*float64(shape.Rows)*float64(s.Classes), estimate.SoftenedValues)
	s.Computes(float64(row*shape.Rows)/4, estimate.AssembledValues)
	s.Piped()
}

// tallyBytes is about how large the files are that say how many labels of each class each model
// got right in each split.
func tallyBytes(s *estimate.Sheet) int64 {
	const class = 240 // in a file, written as text
	return int64(labelRuns(s.Plan)) * int64(s.Classes) * class
}

// Run implements Stage: it commits what the models say of the smoothed rows. These are
// Arrow rows of the chosen run, and how many labels each run got right.
func (predictStage) Run(ctx context.Context, env *Env) (err error) {
	s := env.Summary
	t, err := readIndex(ctx, env.Catalog)
	if err != nil {
		return err
	}
	src, err := env.openRows(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l, err := env.labelledRows(ctx, src, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	env.Report.Rows = src.NumRows()
	p := &prediction{Env: env, src: src, truth: l, chosen: t.Chosen}
	if !smoothsLabels(env.Plan) {
		if p.counter, err = env.newCounter(ctx, l, src.IDs()); err != nil {
			return err
		}
		defer p.counter.free(env.Budget)
	}
	return p.runs(ctx, t.Runs)
}

// prediction is what predict needs for every run.
type prediction struct {
	*Env
	src    *train.Smoothed
	truth  *labelled
	chosen int // index of the run whose soft labels become Arrow rows
	// counter breaks the predictions of that run down, nil where label smoothing makes others.
	counter *counter
}

// runs predicts with the models of some runs, unless that is done. A run is done
// when its tally is committed, which comes last.
func (p *prediction) runs(ctx context.Context, runs []trainedRun) error {
	if !slices.ContainsFunc(runs, func(r trainedRun) bool { _, done := p.Catalog.Lookup(r.tallyPath()); return !done }) {
		return nil
	}
	models, err := p.models(ctx, runs)
	defer func() {
		for _, m := range models {
			m.Free()
		}
	}()
	if err != nil {
		return err
	}
	classes := len(p.Summary.Classes)
	rows, err := p.newSoftRows(p.src.Parts(), classes)
	if err != nil {
		return err
	}
	defer rows.abort()
	scores, err := p.newScoreFile(ctx, catalog.Describe(catalog.KindScores, scoresPath))
	if err != nil {
		return err
	}
	defer scores.close()
	tallies, err := train.NewTallies(p.Budget, len(runs), classes)
	if err != nil {
		return err
	}
	defer tallies.Free()
	first := runs[0].Run
	defer progress.Enter(ctx, 0, 1)()
	err = train.Predict(ctx, p.src, models, train.Resources{Budget: p.Budget, Threads: p.Resources.Threads, Kernel: p.Resources.Kernel},
		func(row int64, ids []int64, run int, soft []float32) error {
			end := row + int64(len(ids))
			label, split := p.truth.label.S[row:end], p.truth.split(splitOf(p.Plan, first+run))[row:end]
			tallies.Of[run].Add(soft, label, split)
			if err := scores.add(first+run, soft, label, split); err != nil {
				return err
			}
			if first+run == p.chosen {
				if p.counter != nil {
					p.counter.addSoft(row, soft)
				}
				return rows.write(ctx, ids, soft)
			}
			return nil
		})
	if err != nil {
		return err
	}
	if err := scores.flush(); err != nil {
		return err
	}
	if files := scores.with(); len(files) > 0 {
		if err := p.Catalog.Commit(ctx, files...); err != nil {
			return err
		}
	}
	for i, r := range runs {
		var counted *breakdown
		if r.Run == p.chosen {
			counted = p.counter.counts()
		}
		if err := p.commitTally(ctx, r, &tallies.Of[i], counted); err != nil {
			return err
		}
	}
	return nil
}

// commitTally commits how many labels a run got right.
func (p *prediction) commitTally(ctx context.Context, r trainedRun, t *train.Tally, counted *breakdown) error {
	f, err := writeFile(ctx, p.Catalog, catalog.KindTally, r.tallyPath(), r.Run, func(w io.Writer) error {
		if err := writeTally(w, t, counted, ""); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n")
		return err
	})
	if err != nil {
		return err
	}
	defer f.Abort()
	return p.Catalog.Commit(ctx, f)
}

func (p *prediction) models(ctx context.Context, runs []trainedRun) (models []*train.Model, err error) {
	for _, r := range runs {
		m, err := loadModel(ctx, p.Catalog, p.Budget, r.Path)
		if err != nil {
			return models, err
		}
		models = append(models, m)
	}
	return models, nil
}

// tallyPath is where the run's right predictions are counted.
func (r trainedRun) tallyPath() string { return fmt.Sprintf("model/run-%03d.tally.json", r.Run) }
