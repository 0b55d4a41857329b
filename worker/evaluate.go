package worker

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"ndls/dataset"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
	"ndls/tiles"
	"ndls/train"
)

// labelled holds label and split of some rows.
type labelled struct {
	label *mem.Array[int32]
	split *mem.Array[uint8]
}

func (j *job) newLabelled(rows int64) (*labelled, error) {
	label, err := mem.Alloc[int32](j.budget, rows, "labels")
	if err != nil {
		return nil, err
	}
	split, err := mem.Alloc[uint8](j.budget, rows, "splits")
	if err != nil {
		label.Free()
		return nil, err
	}
	return &labelled{label, split}, nil
}

// labelled reads label and split of every node.
func (j *job) labelled(ctx context.Context, n int64) (*labelled, error) {
	l, err := j.newLabelled(n)
	if err != nil {
		return nil, err
	}
	err = j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
		copy(l.label.S[first:], b.Label)
		copy(l.split.S[first:], b.Split)
	})
	if err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// labelledRows finds label and split of every smoothed row by its input id: rows
// and node table are both in order of the nodes. Every node of a split must be
// among the rows, but for test nodes without a label.
func (j *job) labelledRows(ctx context.Context, src *train.Smoothed, nodes int64) (_ *labelled, err error) {
	if !j.plan.SomeTargets() && src.NumRows() != nodes {
		return nil, fmt.Errorf("worker: %d smoothed rows for %d nodes: run ndls smooth again: %w", src.NumRows(), nodes, seal.ErrCorrupt)
	}
	l, err := j.newLabelled(src.NumRows())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.free()
		}
	}()
	next, stop := iter.Pull2(src.IDs())
	defer stop()
	var (
		ids     []int64 // of a piece, from the first row without a node on
		row     int64   // the first row without a node
		readErr error
		missing error
	)
	err = j.readNodes(ctx, func(_ int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if len(ids) == 0 && row < src.NumRows() && readErr == nil {
				ids, readErr, _ = next()
			}
			switch {
			case len(ids) > 0 && ids[0] == id:
				l.label.S[row], l.split.S[row] = b.Label[i], b.Split[i]
				row, ids = row+1, ids[1:]
			case missing == nil && needed(dataset.Split(b.Split[i]), b.Label[i]):
				missing = fmt.Errorf("worker: node %d is in a split and not among the %d smoothed rows: run ndls smooth with --targets all or labelled",
					id, src.NumRows())
			}
		}
	})
	switch {
	case err != nil || readErr != nil:
		return nil, errors.Join(err, readErr)
	case row < src.NumRows():
		return nil, fmt.Errorf("worker: smoothed row %d has an input id that the node table lacks, or has elsewhere: run ndls smooth again: %w", row, seal.ErrCorrupt)
	}
	return l, missing
}

// needed says whether a node is trained on or counts in an accuracy.
func needed(split dataset.Split, label int32) bool {
	return split == dataset.Train || split == dataset.Valid || split == dataset.Test && label >= 0
}

func (l *labelled) free() {
	l.label.Free()
	l.split.Free()
}

// evaluate compares soft labels before and after smoothing with the labels.
// Soft labels of fewer rows than there are nodes cannot be smoothed.
func (j *job) evaluate(ctx context.Context) error {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	if len(s.Classes) == 0 {
		return fmt.Errorf("worker: evaluate: %w", errNoLabels)
	}
	j.report.Rows = s.Labelled
	r := &control.AccuracyReport{Runs: j.labelRuns()}
	if r.Base, err = j.baseAccuracy(ctx, s); err != nil {
		return err
	}
	if !j.plan.SomeTargets() {
		r.Smoothed, err = j.tileAccuracy(ctx, s, j.smoothedSoft(s))
	}
	j.report.Accuracy = r
	return err
}

// baseAccuracy is that of the soft labels: predict has counted the run's own.
func (j *job) baseAccuracy(ctx context.Context, s shards.Summary) (control.SplitAccuracy, error) {
	if j.plan.Labels.SoftLabels != "" {
		return j.tileAccuracy(ctx, s, j.softInput(s))
	}
	t, err := j.trained(ctx)
	if err != nil {
		return control.SplitAccuracy{}, err
	}
	var runs []train.Tally
	for _, r := range t.Runs {
		tally, err := j.tally(ctx, r)
		if err != nil {
			return control.SplitAccuracy{}, err
		}
		runs = append(runs, tally)
	}
	return spread(runs), nil
}

// tileAccuracy is that of soft labels of all nodes.
func (j *job) tileAccuracy(ctx context.Context, s shards.Summary, t *tiles.Matrix) (control.SplitAccuracy, error) {
	l, err := j.labelled(ctx, s.Nodes)
	if err != nil {
		return control.SplitAccuracy{}, err
	}
	defer l.free()
	var runs []train.Tally
	for run := range j.labelRuns() {
		tally, err := j.score(ctx, s, l, t, run)
		if err != nil {
			return control.SplitAccuracy{}, err
		}
		runs = append(runs, tally)
	}
	return spread(runs), nil
}

// score reads one run's soft labels.
func (j *job) score(ctx context.Context, s shards.Summary, l *labelled, t *tiles.Matrix, run int) (train.Tally, error) {
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
