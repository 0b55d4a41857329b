package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/shards"
)

// MeasureOptions are the shape of a measurement.
type MeasureOptions struct {
	Rows                   int64
	Width, Hidden, Classes int
	Half                   bool // rows are stored as float16
	Rounds                 int
}

// Measure commits random rows to an empty run directory and goes through all of
// them, once each in every round, in turn: the bytes of the file; rows read and
// checked; the minibatches of an epoch that streams them; predictions by all
// threads; an epoch of training by one thread with the rows in memory, for which
// the budget must have room.
func Measure(ctx context.Context, c *catalog.Catalog, o MeasureOptions, res Resources) ([]shards.Measured, error) {
	if err := writeMeasuredRows(ctx, c, o, res.Budget); err != nil {
		return nil, err
	}
	src, err := OpenSmoothed(ctx, c)
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
		splits.S[i] = Train
	}
	return measure(ctx, src, Problem{Source: src, Labels: labels.S, Splits: splits.S, Classes: o.Classes}, o, res)
}

func measure(ctx context.Context, src *Smoothed, p Problem, o MeasureOptions, res Resources) ([]shards.Measured, error) {
	options := DefaultOptions()
	options.Hidden, options.Runs = o.Hidden, 1
	f, err := newFitting(p, options, res.Budget)
	if err != nil {
		return nil, err
	}
	defer f.free()
	if err := f.load(ctx); err != nil {
		return nil, err
	}
	if f.train.values == nil {
		return nil, fmt.Errorf("train: %s of rows in memory: give more --memory or fewer --rows: %w", mem.Bytes(f.train.bytes()), mem.ErrBudget)
	}
	t := &trainer{fitting: f}
	defer t.free()
	if err := t.allocate(); err != nil {
		return nil, err
	}
	t.model.initialise(0)
	streamed := newRowSet(p, Train)
	s, err := newSampler(res.Budget, o.Width, o.Rows, true, true)
	if err != nil {
		return nil, err
	}
	defer s.free()
	steps := []struct {
		what string
		do   func(round int) error
	}{
		{"the same bytes", func(int) error { return shards.ReadPlain(src.parts[0].file) }},
		{"rows checked", func(int) error { return check(ctx, res.Budget, src, streamed) }},
		{"minibatches", func(round int) error {
			return s.epoch(ctx, streamed, uint64(round), func([]float32, []int32) error { return nil })
		}},
		{"predictions", func(int) error {
			return Predict(ctx, src, []*Model{t.model}, res, func(int64, []int64, int, []float32) error { return nil })
		}},
		{"training", func(round int) error { _, err := t.epoch(ctx, round); return err }},
	}
	all := make([]shards.Measured, len(steps))
	for round := range o.Rounds {
		for i, s := range steps {
			start := time.Now()
			if err := errors.Join(ctx.Err(), s.do(round)); err != nil {
				return nil, err
			}
			all[i].What, all[i].Rows, all[i].Bytes = s.what, o.Rows, src.parts[0].file.Size()
			all[i].Seconds = append(all[i].Seconds, time.Since(start).Seconds())
		}
	}
	return all, nil
}

// writeMeasuredRows commits rows of random values, the same in every record
// batch.
func writeMeasuredRows(ctx context.Context, c *catalog.Catalog, o MeasureOptions, b *mem.Budget) error {
	f, err := c.Create(ctx, catalog.Describe(catalog.KindSmoothed, "smoothed/part-00000.arrow").In(0))
	if err != nil {
		return err
	}
	defer f.Abort()
	w, err := shards.NewRowWriter(f, shards.RowSchema{Column: "feature", Width: o.Width, Half: o.Half})
	if err != nil {
		return err
	}
	batch := int64(shards.BatchRows(o.Width))
	values, err := mem.Alloc[float32](b, batch*int64(o.Width), "a record batch")
	if err != nil {
		return err
	}
	defer values.Free()
	for i := range values.S {
		values.S[i] = float32(rng.Normal(uint64(i)))
	}
	ids := make([]int64, batch)
	for at := int64(0); at < o.Rows; at += batch {
		n := min(batch, o.Rows-at)
		for i := range n {
			ids[i] = at + i
		}
		if err := errors.Join(ctx.Err(), w.Write(ids[:n], nil, values.S[:n*int64(o.Width)])); err != nil {
			return err
		}
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	return c.Commit(ctx, f)
}
