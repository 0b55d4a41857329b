package stage

import (
	"context"

	"ndls/estimate"

	"ndls/dataset"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
	"ndls/tiles"
	"ndls/train"
)

// evaluateStage compares predictions with labels.
type evaluateStage struct{ each }

func (evaluateStage) Name() control.Stage { return control.Evaluate }

func (evaluateStage) About() string {
	return "accuracy on each split, before and after label smoothing"
}

func (evaluateStage) Needs(p control.Plan) []control.Stage {
	if p.SomeTargets() {
		return []control.Stage{control.Partition, control.Predict}
	}
	return []control.Stage{control.Partition, control.SmoothLabels}
}

func (evaluateStage) Lacks(p control.Plan, f estimate.Facts) string {
	if ownModel(p) {
		return lacksModel(f)
	}
	return lacksTruth(f)
}

func (evaluateStage) Options(control.Plan) map[string]any { return nil }

func (evaluateStage) Writes() []Kind { return nil }

func (evaluateStage) Cut(control.Plan, shards.Summary) Cut { return Cut{} }

func (evaluateStage) Shares(control.Plan) bool { return false }

// Cost implements estimate.Stage: soft labels of another model are read. All others were
// counted when they were computed.
func (evaluateStage) Cost(s *estimate.Sheet) {
	s.Takes(0, 0)
	if ownModel(s.Plan) {
		return
	}
	s.ReadsRows(5*s.Nodes+2*4096, s.Nodes, s.Classes, false)
	s.ReadNodes(1)
	s.BytesRead += int64(labelRuns(s.Plan)) * estimate.TileBytes(s.Nodes, s.Classes, false)
}

// Run implements Stage: it compares soft labels before and after smoothing with the
// labels. Soft labels of fewer rows than there are nodes cannot be smoothed.
func (evaluateStage) Run(ctx context.Context, env *Env) error { return evaluation{env}.run(ctx) }

// evaluation is the stage being executed.
type evaluation struct{ *Env }

func (env evaluation) run(ctx context.Context) (err error) {
	s := env.Summary
	env.Report.Rows = s.Labelled
	r := &control.AccuracyReport{Runs: labelRuns(env.Plan)}
	if r.Base, err = env.baseAccuracy(ctx, s); err != nil {
		return err
	}
	if !env.Plan.SomeTargets() {
		r.Smoothed, err = env.smoothedAccuracy(ctx)
	}
	env.Report.Accuracy = r
	return err
}

// baseAccuracy is that of the soft labels: predict has counted the run's own.
func (env evaluation) baseAccuracy(ctx context.Context, s shards.Summary) (control.SplitAccuracy, error) {
	if env.Plan.Labels.SoftLabels != "" {
		return env.tileAccuracy(ctx, s, givenTiles(env.Env))
	}
	t, err := readIndex(ctx, env.Catalog)
	if err != nil {
		return control.SplitAccuracy{}, err
	}
	var runs []train.Tally
	for _, r := range t.Runs {
		tally, err := r.tally(ctx, env.Catalog)
		if err != nil {
			return control.SplitAccuracy{}, err
		}
		runs = append(runs, tally)
	}
	return spread(runs), nil
}

// smoothedAccuracy is that of the smoothed soft labels: smooth-labels has counted for each
// interval.
func (env evaluation) smoothedAccuracy(ctx context.Context) (control.SplitAccuracy, error) {
	runs := make([]train.Tally, labelRuns(env.Plan))
	for i := range intervals(env.Summary) {
		var t labelTally
		if err := readJSON(ctx, env.Catalog, labelTallyPath(i), &t); err != nil {
			return control.SplitAccuracy{}, err
		}
		if len(t.Runs) != len(runs) {
			return control.SplitAccuracy{}, seal.Corrupt(labelTallyPath(i), "it has %d runs of %d", len(t.Runs), len(runs))
		}
		for run := range runs {
			runs[run].Merge(t.Runs[run])
		}
	}
	return spread(runs), nil
}

// tileAccuracy is that of soft labels of all nodes.
func (env evaluation) tileAccuracy(ctx context.Context, s shards.Summary, t *tiles.Matrix) (control.SplitAccuracy, error) {
	l, err := readLabelled(ctx, env.Catalog, env.Budget, s.Nodes)
	if err != nil {
		return control.SplitAccuracy{}, err
	}
	defer l.free()
	var runs []train.Tally
	for run := range labelRuns(env.Plan) {
		tally, err := env.score(ctx, s, l, t, run)
		if err != nil {
			return control.SplitAccuracy{}, err
		}
		runs = append(runs, tally)
	}
	return spread(runs), nil
}

// score reads one run's soft labels.
func (env evaluation) score(ctx context.Context, s shards.Summary, l *labelled, t *tiles.Matrix, run int) (train.Tally, error) {
	var tally train.Tally
	classes := len(s.Classes)
	for i := range t.Intervals() {
		err := t.Read(ctx, i, run*packed.Panels(classes), classes, shards.BatchRows(classes),
			func(row int64, values []float32) error {
				end := row + int64(len(values)/classes)
				tally.Add(values, l.label.S[row:end], l.split.S[row:end])
				return nil
			})
		if err != nil {
			return tally, err
		}
	}
	return tally, nil
}

// spread is mean and sample standard deviation over runs, split by split.
func spread(runs []train.Tally) control.SplitAccuracy {
	of := func(split dataset.Split) *control.Spread {
		var x []float64
		for _, r := range runs {
			share, rows := r.Accuracy(uint8(split))
			if rows == 0 {
				return nil
			}
			x = append(x, share)
		}
		s := train.Summarize(x)
		return &control.Spread{Mean: s.Mean, Std: s.Std}
	}
	return control.SplitAccuracy{Train: of(dataset.Train), Valid: of(dataset.Valid), Test: of(dataset.Test)}
}
