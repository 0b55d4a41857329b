package models

import (
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/measures"
	"ndls/train"
)

// PredictedColumn names the values of soft labels and predictions.
func PredictedColumn(p plan.Options) string {
	if measures.TaskOf(p) == train.Regress {
		return "value"
	}
	return "probability"
}

// softRows gathers the soft labels of one run in record batches: all probabilities, or the best class and its probability.
type softRows struct {
	classes int
	schema  shards.RowSchema
	put     stage.PutRows // takes a record batch

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
	return shards.RowSchema{Column: PredictedColumn(p), Width: classes}
}

// BestRows is the number of predictions that are made at a time if no other probabilities are stored.
const BestRows = 1 << 18

// SoftBatch returns the number of soft labels in a record batch.
func SoftBatch(p plan.Options, classes int) int {
	if p.Probabilities == plan.BestProbability {
		return BestRows
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

func newSoftRows(env *stage.Env, classes int) (w *softRows, err error) {
	w = &softRows{classes: classes, schema: softSchema(env.Plan, classes)}
	batch := int64(SoftBatch(env.Plan, classes))
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
		w.free()
		return nil, err
	}
	return w, nil
}

// write adds rows.
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

// flush puts the record batch.
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
	return w.put(w.ids.S[:n], labels, w.values.S[:n*w.schema.Width])
}

func (w *softRows) free() {
	w.ids.Free()
	w.labels.Free()
	w.values.Free()
}
