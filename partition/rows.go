package partition

import (
	"context"
	"errors"
	"io"

	"ndls/dataset"
	"ndls/internal/extsort"
)

// eachLabel visits the labelled nodes that are members; rows count from 1.
func (j *job) eachLabel(ctx context.Context, visit func(row int64, id uint32, label int32) error) (err error) {
	r, err := j.ds.Labels(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for row := int64(1); ; row++ {
		id, label, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && j.holds(id) {
			err = visit(row, id, label)
		}
		if err == nil && row%extsort.BatchKeys == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// openSplit opens one of the published splits.
func (j *job) openSplit(ctx context.Context, number int) (dataset.SplitReader, error) {
	if number == 0 {
		return j.ds.Splits(ctx)
	}
	several, ok := j.ds.(dataset.Several)
	if !ok {
		return nil, badData("%s has one published split: leave --splits out, or draw splits with --split", j.info.Name)
	}
	return several.SplitNumber(ctx, number)
}

// eachSplit visits the members in a published split; rows count from 1.
func (j *job) eachSplit(ctx context.Context, number int, visit func(row int64, id uint32, split dataset.Split) error) (err error) {
	r, err := j.openSplit(ctx, number)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for row := int64(1); ; row++ {
		id, split, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && j.holds(id) {
			err = visit(row, id, split)
		}
		if err == nil && row%extsort.BatchKeys == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// noClass returns the error for a label that is not a class.
func (j *job) noClass(row int64, id uint32, label int32) error {
	return badData("%s: label row %d gives node %d class %d of %d: correct the label or the classes",
		j.info.Name, row, id, label, len(j.info.Classes))
}
