package stage

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
	"ndls/train"
)

// softRows writes the soft labels of one run as Arrow rows, one file per file of smoothed rows: all probabilities, or the best class and
// its probability.
type softRows struct {
	*Env
	classes int
	schema  shards.RowSchema

	file *catalog.File
	out  *shards.RowWriter
	// closeNames closes the input ids of the file's nodes.
	closeNames func()
	// The next record batch.
	ids    *mem.Array[int64]
	labels *mem.Array[int32]
	values *mem.Array[float32]
	filled int
}

// softSchema returns the schema of soft labels in Arrow rows.
func softSchema(p plan.Options, classes int) shards.RowSchema {
	if p.Probabilities == plan.BestProbability {
		return shards.RowSchema{Column: "probability", Width: 1, Label: true}
	}
	return shards.RowSchema{Column: predictedColumn(p), Width: classes}
}

// softBatch returns the number of soft labels in a record batch.
func softBatch(p plan.Options, classes int) int {
	if p.Probabilities == plan.BestProbability {
		return bestRows
	}
	return shards.BatchRows(classes)
}

// softRow returns the size of a row.
func softRow(p plan.Options, classes int) int64 {
	s := softSchema(p, classes)
	if s.Label {
		return 12 + 4*int64(s.Width)
	}
	return 8 + 4*int64(s.Width)
}

func (env *Env) newSoftRows(classes int) (w *softRows, err error) {
	w = &softRows{Env: env, classes: classes, schema: softSchema(env.Plan, classes)}
	batch := int64(softBatch(env.Plan, classes))
	if w.ids, err = mem.Alloc[int64](env.Budget, batch, "the ids of a record batch"); err != nil {
		return nil, err
	}
	if w.schema.Label {
		w.labels, err = mem.Alloc[int32](env.Budget, batch, "the labels of a record batch")
	}
	if err == nil {
		w.values, err = mem.Alloc[float32](env.Budget, batch*int64(w.schema.Width), "a record batch of soft labels")
	}
	if err != nil {
		w.ids.Free()
		w.labels.Free()
		return nil, err
	}
	return w, nil
}

// write appends rows to the file.
func (w *softRows) write(ids []int64, soft []float32) error {
	for len(ids) > 0 {
		n := copy(w.ids.S[w.filled:], ids)
		w.fill(soft[:n*w.classes])
		ids, soft, w.filled = ids[n:], soft[n*w.classes:], w.filled+n
		if w.filled == len(w.ids.S) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill copies the probabilities of rows into the record batch.
func (w *softRows) fill(soft []float32) {
	if !w.schema.Label {
		copy(w.values.S[w.filled*w.classes:], soft)
		return
	}
	for at := w.filled; len(soft) > 0; at, soft = at+1, soft[w.classes:] {
		best := train.Argmax(soft[:w.classes])
		w.labels.S[at], w.values.S[at] = best, soft[best]
	}
}

// begin creates the file of an interval.
func (w *softRows) begin(ctx context.Context, interval int) (err error) {
	w.file, err = w.Catalog.Create(ctx, catalog.Describe(catalog.KindSoftLabels,
		fmt.Sprintf("soft_labels/part-%05d.arrow", interval)).In(interval))
	if err != nil {
		return err
	}
	names, closeNames, err := w.nodeTable().names(ctx, int64(interval)*w.Summary.IntervalRows)
	if err != nil {
		return err
	}
	w.closeNames = closeNames
	w.out, err = shards.NewRowWriter(w.file, w.schema, names)
	return err
}

// flush writes the record batch.
func (w *softRows) flush() error {
	if w.filled == 0 {
		return nil
	}
	n := w.filled
	w.filled = 0
	var labels []int32
	if w.schema.Label {
		labels = w.labels.S[:n]
	}
	return w.out.Write(w.ids.S[:n], labels, w.values.S[:n*w.schema.Width])
}

// commit commits the file.
func (w *softRows) commit(ctx context.Context) (err error) {
	if err := w.flush(); err != nil {
		return err
	}
	if w.file.Rows, err = w.out.Close(); err != nil {
		return err
	}
	if err := w.Catalog.Commit(ctx, w.file); err != nil {
		return err
	}
	w.closeNames()
	w.file, w.out, w.closeNames = nil, nil, nil
	return nil
}

// abort drops a file that is not committed, and frees the memory.
func (w *softRows) abort() {
	if w.file != nil {
		w.file.Abort()
	}
	if w.closeNames != nil {
		w.closeNames()
	}
	w.ids.Free()
	w.labels.Free()
	w.values.Free()
}
