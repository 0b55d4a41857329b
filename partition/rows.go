package partition

import (
	"context"
	"errors"
	"io"

	"ndls/dataset"
	"ndls/internal/progress"
)

// eachRow calls step for one row of a reader after the other, until that returns io.EOF, and closes the reader; rows count from 1.
func eachRow(ctx context.Context, r io.Closer, meter *progress.Meter, step func(row int64) error) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	for row := int64(1); ; row++ {
		err := step(row)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && row%1024 == 0 {
			meter.Add(1024)
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// eachNode visits the members among the nodes that a reader has, with the value of each; rows count from 1. It closes the reader.
func eachNode[V any](ctx context.Context, j *job, r valueReader[V], visit func(row int64, id uint32, value V) error) error {
	return eachRow(ctx, r, nil, func(row int64) error {
		id, value, err := r.Next()
		if err == nil && j.holds(id) {
			err = visit(row, id, value)
		}
		return err
	})
}

// valueReader reads nodes with a label or a split.
type valueReader[V any] interface {
	Next() (id uint32, value V, err error)
	io.Closer
}

// eachLabel visits the labelled nodes that are members; rows count from 1.
func (j *job) eachLabel(ctx context.Context, visit func(row int64, id uint32, label int32) error) error {
	r, err := j.ds.Labels(ctx)
	if err != nil {
		return err
	}
	return eachNode(ctx, j, r, visit)
}

// eachSplit visits the members in a published split; rows count from 1.
func (j *job) eachSplit(ctx context.Context, number int, visit func(row int64, id uint32, split dataset.Split) error) error {
	r, err := j.ds.Splits(ctx, number)
	if err != nil {
		return err
	}
	return eachNode(ctx, j, r, visit)
}

// noClass returns the error for a label that is not a class.
func (j *job) noClass(row int64, id uint32, label int32) error {
	return badData("%s: label row %d gives node %d class %d of %d: correct the label or the classes",
		j.info.Name, row, id, label, len(j.info.Classes))
}

// drawSplit draws a split among the labelled nodes of a list.
func drawSplit(j *job, number int, ids []uint32, labels []int32, splits []uint8) (warnings []string, err error) {
	if warnings, err = j.split.check(j.info.Classes, classSizes(labels, len(j.info.Classes))); err != nil {
		return nil, err
	}
	return warnings, j.split.draw(j.o.Budget, j.o.Seed+uint64(number), len(j.info.Classes), ids, labels, splits)
}
