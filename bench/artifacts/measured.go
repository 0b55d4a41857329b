package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/storage"
)

// Measured holds the times of the rounds of a measurement.
type Measured struct {
	What    string
	Rows    int64     // edges or rows of a round
	Bytes   int64     // their size in the file
	Seconds []float64 // of each round
}

// step is one thing that is measured: something done with a file.
type step struct {
	what, path string
	rows       int64
	do         func(round int) (time.Duration, error)
}

// measure does all steps in turn, once in each round.
func measure(ctx context.Context, c *catalog.Catalog, rounds int, steps []step) ([]Measured, error) {
	all := make([]Measured, len(steps))
	for round := range rounds {
		for i, s := range steps {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took, err := s.do(round)
			if err != nil {
				return nil, err
			}
			e, _ := c.Lookup(s.path)
			all[i].What, all[i].Rows, all[i].Bytes = s.what, s.rows, e.Bytes
			all[i].Seconds = append(all[i].Seconds, took.Seconds())
		}
	}
	return all, nil
}

// timed measures all of what a step does.
func timed(do func(round int) error) func(round int) (time.Duration, error) {
	return func(round int) (time.Duration, error) {
		start := time.Now()
		err := do(round)
		return time.Since(start), err
	}
}

// reading is a step that opens a file of the catalogue and reads it.
func reading(ctx context.Context, c *catalog.Catalog, path string, read func(r storage.Reader) error) func(round int) (time.Duration, error) {
	return timed(func(int) error {
		e, _ := c.Lookup(path)
		r, err := c.Open(ctx, e)
		if err != nil {
			return err
		}
		return errors.Join(read(r), r.Close())
	})
}

// plain reads a file from start to end by aligned transfers of direct.BufferSize and looks
// at nothing: what a reader is measured against.
func plain(r storage.Reader) error {
	buf := direct.AlignedBytes(direct.BufferSize)
	for off := int64(0); off < r.Size(); off += int64(len(buf)) {
		if _, err := r.ReadAt(buf, off); err != nil && err != io.EOF {
			return fmt.Errorf("plain read: %w", err)
		}
	}
	return nil
}
