package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/internal/ahead"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/shards"
	"ndls/train"
)

// TrainingOptions are the shape of what [Training] measures.
type TrainingOptions struct {
	Rows                   int64
	Width, Hidden, Classes int
	Half                   bool // rows are stored as float16
	Rounds                 int
}

const smoothedPath = "smoothed/part-00000.arrow"

// Training commits random rows to an empty run directory and goes through all of them,
// once each in every round, in turn: the bytes of the file; rows read and checked; the
// minibatches of an epoch that streams them; predictions by all threads; an epoch of
// training by one thread with the rows in memory, for which the budget must have room.
func Training(ctx context.Context, c *catalog.Catalog, o TrainingOptions, res train.Resources) ([]Measured, error) {
	if err := writeRows(ctx, c, o, res.Budget); err != nil {
		return nil, err
	}
	src, err := train.OpenRows(ctx, c, catalog.KindSmoothed)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	labels, err := mem.Alloc[int32](res.Budget, o.Rows, "labels")
	if err != nil {
		return nil, err
	}
	defer labels.Free()
	splits, err := mem.Alloc[uint8](res.Budget, o.Rows, "splits")
	if err != nil {
		return nil, err
	}
	defer splits.Free()
	for i := range labels.S {
		labels.S[i] = int32(rng.Below(rng.Hash(uint64(i)), uint64(o.Classes)))
		splits.S[i] = train.Train
	}
	p := train.Problem{Source: src, Labels: labels.S, Splits: splits.S, Classes: o.Classes}
	options := train.Options{
		Hidden: o.Hidden, Layers: 2, Dropout: 0.4, InputDropout: 0.4, LR: 0.01, WeightDecay: 5e-4, Schedule: train.Constant,
		Epochs: 500, Patience: 200, BatchSize: 4096, Runs: 1,
	}
	t, err := train.Begin(ctx, p, options, 0, res)
	if err != nil {
		return nil, err
	}
	defer t.Free()
	if !t.InMemory() {
		return nil, fmt.Errorf("%s of rows in memory: give more --memory or fewer --rows: %w", mem.Bytes(o.Rows*(4*int64(o.Width)+4)), mem.ErrBudget)
	}
	return measure(ctx, c, o.Rounds, []step{
		{"the same bytes", smoothedPath, o.Rows, reading(ctx, c, smoothedPath, plain)},
		{"rows checked", smoothedPath, o.Rows, timed(func(int) error { return readChunks(ctx, src, res.Budget) })},
		{"minibatches", smoothedPath, o.Rows, timed(func(round int) error {
			return train.Minibatches(ctx, p, uint64(round), res.Budget, func([]float32, []int32) error { return nil })
		})},
		{"predictions", smoothedPath, o.Rows, timed(func(int) error {
			return train.Predict(ctx, src, []*train.Model{t.Model()}, res, func(int64, []int64, int, []float32) error { return nil })
		})},
		{"training", smoothedPath, o.Rows, timed(func(round int) error { _, err := t.Epoch(ctx, round); return err })},
	})
}

// writeRows commits the rows.
func writeRows(ctx context.Context, c *catalog.Catalog, o TrainingOptions, b *mem.Budget) error {
	batch, err := newBatch(b, o.Width)
	if err != nil {
		return err
	}
	defer batch.free()
	return batch.write(ctx, c, smoothedPath, shards.RowSchema{Column: "feature", Width: o.Width, Half: o.Half}, o.Rows)
}

// readChunks reads all rows and compares them with their checksums, a chunk ahead.
func readChunks(ctx context.Context, src train.Source, b *mem.Budget) error {
	var space [2]shards.RowBatch
	for i := range space {
		rows := int64(shards.BatchRows(src.Width()))
		ids, err := mem.Alloc[int64](b, rows, "the ids of a record batch")
		if err != nil {
			return err
		}
		defer ids.Free()
		values, err := mem.Alloc[float32](b, rows*int64(src.Width())+shards.RowSlack, "a record batch")
		if err != nil {
			return err
		}
		defer values.Free()
		space[i] = shards.RowBatch{ID: ids.S[:0], Values: values.S[:0]}
	}
	chunk := 0
	chunks := ahead.New(2, space[:], func(r *shards.RowBatch) error {
		if chunk == src.NumChunks() {
			return io.EOF
		}
		r.Values = r.Values[:0]
		chunk++
		return src.ReadChunk(chunk-1, r)
	})
	defer chunks.Close()
	for {
		if _, err := chunks.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
