package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/features"
	"ndls/stage/measures"
	"ndls/train"
)

// RowsWithLabels are smoothed rows with their labels and splits.
type RowsWithLabels struct {
	train.Source
	*measures.Labelled
}

// trainingRows holds the rows on which models are trained, with their labels and splits.
type trainingRows struct {
	source train.Source
	*measures.Labelled
	undo []func() error
}

func (r *trainingRows) close() (err error) {
	for _, f := range slices.Backward(r.undo) {
		err = errors.Join(err, f())
	}
	return err
}

// trainingRows opens the rows of the run, or those of the run directories on which the plan trains.
func (env trainRun) trainingRows(ctx context.Context, s shards.Summary) (r *trainingRows, err error) {
	r = &trainingRows{}
	if env.held != nil {
		r.source, r.Labelled = env.held.Source, env.held.Labelled
		return r, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if env.Plan.Train.On != "" {
		return r, env.otherRows(ctx, s, r)
	}
	src, l, err := addRows(ctx, env.Env, r)
	if err != nil {
		return r, err
	}
	r.source, r.Labelled = src, l
	return r, nil
}

// addRows opens the rows of a run; r closes them.
func addRows(ctx context.Context, env *stage.Env, r *trainingRows) (*train.Smoothed, *measures.Labelled, error) {
	src, err := features.OpenRows(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	r.undo = append(r.undo, src.Close)
	l, err := measures.LabelledRows(ctx, env, src)
	if err != nil {
		return nil, nil, err
	}
	r.undo = append(r.undo, func() error { l.Free(); return nil })
	return src, l, nil
}

// otherRows opens the rows of other run directories: the training nodes of the first and the validation nodes of the last.
func (env trainRun) otherRows(ctx context.Context, s shards.Summary, r *trainingRows) error {
	dirs := []string{env.Inputs.TrainRows}
	if env.Inputs.ValidRows != env.Inputs.TrainRows {
		dirs = append(dirs, env.Inputs.ValidRows)
	}
	if dirs[0] == "" {
		return fmt.Errorf("the models of the run are trained on rows of other run directories; give --train-on again")
	}
	if sum, err := RowsHash(ctx, dirs, env.Plan); err != nil {
		return err
	} else if sum != env.Plan.Train.On {
		return fmt.Errorf("the rows of --train-on have changed since the run began; use the run directories as they were, or another --run: %w", control.ErrPlanMismatch)
	}
	var sources []train.Source
	total := int64(0)
	var parts []*measures.Labelled
	for i, dir := range dirs {
		cat, store, err := openOther(ctx, dir)
		if err != nil {
			return err
		}
		r.undo = append(r.undo, func() error { env.Report.BytesRead += store.BytesRead(); return nil })
		other := *env.Env
		other.Catalog = cat
		if other.Summary, err = shards.ReadSummary(ctx, cat); err != nil {
			return err
		}
		if !slices.Equal(other.Summary.Classes, s.Classes) {
			return fmt.Errorf("%s has the classes %v, and this run %v: train on a part of the same dataset", dir, other.Summary.Classes, s.Classes)
		}
		if other.Summary.Normalized != s.Normalized {
			return fmt.Errorf("the features of %s and of this run were normalised differently: import both with the same --normalize", dir)
		}
		if columnsOf(cat) != columnsOf(env.Catalog) {
			return fmt.Errorf("the columns of %s and of this run became features in different ways (graph/columns.json): import both with the same nodes and options", dir)
		}
		other.Plan.Smooth.Targets = plan.LabelledTargets // it accepts fewer rows than nodes
		src, l, err := addRows(ctx, &other, r)
		if err != nil {
			return err
		}
		for row, split := range l.Split(0) {
			split := dataset.Split(split)
			if split == dataset.Train && i == 0 || split == dataset.Valid && i == len(dirs)-1 {
				continue
			}
			l.Split(0)[row] = uint8(dataset.NoSplit)
		}
		sources, parts, total = append(sources, src), append(parts, l), total+src.NumRows()
	}
	all, err := measures.NewLabelled(env.Budget, total, 1)
	if err != nil {
		return err
	}
	r.undo = append(r.undo, func() error { all.Free(); return nil })
	at := 0
	for _, l := range parts {
		copy(all.Label.S[at:], l.Label.S)
		at += copy(all.Split(0)[at:], l.Split(0))
	}
	r.Labelled = all
	r.source, err = train.Together(sources...)
	return err
}

// columnsOf returns the checksum of what says how columns become features, "" if there is nothing.
func columnsOf(cat *catalog.Catalog) string {
	for _, e := range cat.Entries(catalog.KindColumns) {
		return e.Checksum
	}
	return ""
}

// openOther opens the catalogue of another run directory, and a store that counts the bytes read there.
func openOther(ctx context.Context, dir string) (*catalog.Catalog, *storage.Counting, error) {
	store, err := rundir.Open(ctx, dir, false)
	if err != nil {
		return nil, nil, fmt.Errorf("--train-on: %w", err)
	}
	counting := storage.NewCounting(store)
	cat, err := catalog.Open(ctx, counting)
	return cat, counting, err
}

// RowsHash returns the hash of the smoothed rows, labels and splits of the run directories that --train-on names.
func RowsHash(ctx context.Context, dirs []string, p plan.Options) (string, error) {
	sum := sha256.New()
	err := eachOther(ctx, dirs, p, func(_ int, _ shards.Summary, nodes, rows []catalog.Entry) {
		for _, e := range append(nodes, rows...) {
			_, _ = fmt.Fprintf(sum, "%s %s\n", e.Path, e.Checksum)
		}
		_, _ = io.WriteString(sum, "\n")
	})
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), err
}

// TrainedOn returns the counts of the run directories on whose rows models are trained: the training nodes of the first and the validation
// nodes of the last.
func TrainedOn(ctx context.Context, dirs []string, p plan.Options) (o estimate.OtherRows, err error) {
	err = eachOther(ctx, dirs, p, func(i int, s shards.Summary, nodes, rows []catalog.Entry) {
		for _, e := range nodes {
			o.NodeBytes += e.Bytes
		}
		for _, e := range rows {
			o.Rows += e.Rows
		}
		o.Nodes += s.Nodes
		if i == 0 {
			o.Training = s.Splits["train"]
		}
		o.Validation = s.Splits["valid"]
	})
	return o, err
}

// eachOther visits run directories, with the files of their node tables and of their smoothed rows.
func eachOther(ctx context.Context, dirs []string, p plan.Options, visit func(i int, s shards.Summary, nodes, rows []catalog.Entry)) error {
	for i, dir := range dirs {
		cat, _, err := openOther(ctx, dir)
		if err != nil {
			return err
		}
		summary, err := shards.ReadSummary(ctx, cat)
		if err != nil {
			return fmt.Errorf("--train-on %s: %w", dir, err)
		}
		rows := cat.Entries(stage.RowsKind(p))
		if len(rows) == 0 {
			return fmt.Errorf("--train-on %s has no smoothed rows of the rule %s; run ndls smooth there first", dir, p.Smooth.Rule)
		}
		visit(i, summary, cat.Entries(catalog.KindNodes), rows)
	}
	return nil
}

// trainRun is the stage while it runs.
type trainRun struct {
	*stage.Env
	held *RowsWithLabels
}
