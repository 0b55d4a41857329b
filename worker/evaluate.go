package worker

import (
	"context"
	"fmt"

	"ndls/dataset"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/train"
)

// labelled holds label and split of every node.
type labelled struct {
	label *mem.Array[int32]
	split *mem.Array[uint8]
}

func (j *job) labelled(ctx context.Context, n int64) (*labelled, error) {
	label, err := mem.Alloc[int32](j.budget, n, "labels")
	if err != nil {
		return nil, err
	}
	split, err := mem.Alloc[uint8](j.budget, n, "splits")
	if err != nil {
		label.Free()
		return nil, err
	}
	l := &labelled{label, split}
	err = j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
		copy(label.S[first:], b.Label)
		copy(split.S[first:], b.Split)
	})
	if err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

func (l *labelled) free() {
	l.label.Free()
	l.split.Free()
}

// evaluate compares soft labels before and after smoothing with the labels.
func (j *job) evaluate(ctx context.Context) error {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	if len(s.Classes) == 0 {
		return fmt.Errorf("worker: evaluate: %w", errNoLabels)
	}
	l, err := j.labelled(ctx, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	runs := j.labelRuns()
	var base, smoothed []train.Tally
	for run := range runs {
		b, err := j.score(ctx, s, l, j.softInput(s), run)
		if err != nil {
			return err
		}
		a, err := j.score(ctx, s, l, j.softTiles(shards.KindSmoothedSoftTile, smoothedSoftPrefix, s), run)
		if err != nil {
			return err
		}
		base, smoothed = append(base, b), append(smoothed, a)
	}
	j.report.Rows = s.Labelled
	j.report.Accuracy = &control.AccuracyReport{Base: spread(base), Smoothed: spread(smoothed), Runs: runs}
	return nil
}

// score reads one run's soft labels.
func (j *job) score(ctx context.Context, s shards.Summary, l *labelled, t *tiles, run int) (train.Tally, error) {
	var tally train.Tally
	classes := len(s.Classes)
	for i := range t.intervals() {
		err := t.visitRows(ctx, j.budget, i, run*granulesOf(classes), classes, shards.BatchRows(classes),
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
