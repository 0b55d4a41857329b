package stage

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/train"
)

// softRows writes the soft labels of one run as Arrow rows, one file for each of
// the smoothed rows'.
type softRows struct {
	*Env
	parts   []train.Part // not yet written whole
	classes int

	file *catalog.File
	out  *shards.RowWriter
	rows int64 // of the file so far
	// The record batch to come.
	ids    *mem.Array[int64]
	values *mem.Array[float32]
	filled int
}

func (env *Env) newSoftRows(parts []train.Part, classes int) (w *softRows, err error) {
	w = &softRows{Env: env, parts: parts, classes: classes}
	batch := int64(shards.BatchRows(classes))
	if w.ids, err = mem.Alloc[int64](env.Budget, batch, "the ids of a record batch"); err != nil {
		return nil, err
	}
	if w.values, err = mem.Alloc[float32](env.Budget, batch*int64(classes), "a record batch of soft labels"); err != nil {
		w.ids.Free()
		return nil, err
	}
	return w, nil
}

// write takes the rows that follow; they lie in one file.
func (w *softRows) write(ctx context.Context, ids []int64, soft []float32) error {
	for w.parts[0].Rows == 0 {
		if err := w.next(ctx); err != nil {
			return err
		}
	}
	if err := w.start(ctx); err != nil {
		return err
	}
	w.rows += int64(len(ids))
	for len(ids) > 0 {
		n := copy(w.ids.S[w.filled:], ids)
		copy(w.values.S[w.filled*w.classes:], soft[:n*w.classes])
		ids, soft, w.filled = ids[n:], soft[n*w.classes:], w.filled+n
		if w.filled == len(w.ids.S) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	for len(w.parts) > 0 && w.rows == w.parts[0].Rows {
		if err := w.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start opens the file of the first part, unless it is open.
func (w *softRows) start(ctx context.Context) (err error) {
	if w.out != nil {
		return nil
	}
	interval := w.parts[0].Interval
	w.file, err = w.Catalog.Create(ctx, catalog.Describe(catalog.KindSoftLabels, fmt.Sprintf("soft_labels/part-%05d.arrow", interval)).In(int(interval)))
	if err != nil {
		return err
	}
	w.out, err = shards.NewRowWriter(w.file, shards.RowSchema{Column: "probability", Width: w.classes})
	return err
}

// flush writes the record batch.
func (w *softRows) flush() error {
	if w.filled == 0 {
		return nil
	}
	n := w.filled
	w.filled = 0
	return w.out.Write(w.ids.S[:n], nil, w.values.S[:n*w.classes])
}

// next commits the file of the first part.
func (w *softRows) next(ctx context.Context) (err error) {
	if err := w.start(ctx); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.file.Rows, err = w.out.Close(); err != nil {
		return err
	}
	if err := w.Catalog.Commit(ctx, w.file); err != nil {
		return err
	}
	w.parts, w.rows, w.file, w.out = w.parts[1:], 0, nil, nil
	return nil
}

// abort drops what is not committed.
func (w *softRows) abort() {
	if w.file != nil {
		w.file.Abort()
	}
	w.ids.Free()
	w.values.Free()
}
