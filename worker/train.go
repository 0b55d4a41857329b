package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/train"
)

// modelIndex is model/model.json: what was trained and which run is used.
const modelIndex = "model/model.json"

type trainedRun struct {
	Run       int     `json:"run"`
	Path      string  `json:"path"`
	Epochs    int     `json:"epochs"`
	BestEpoch int     `json:"best_epoch"` // counted from 1
	Valid     float64 `json:"valid_accuracy"`
}

type trained struct {
	// Chosen is the run of the highest validation accuracy, the first of equals.
	Chosen  int                  `json:"chosen"`
	Classes []string             `json:"classes"`
	Options control.TrainOptions `json:"options"`
	Runs    []trainedRun         `json:"runs"`
}

// train fits one model a run on the smoothed rows and commits them.
func (j *job) train(ctx context.Context) (err error) {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	if len(s.Classes) == 0 || s.Splits["train"] == 0 {
		return fmt.Errorf("worker: train: %w", errNoLabels)
	}
	j.report.Rows = int64(j.plan.Train.Runs)
	if _, ok := j.cat.Lookup(modelIndex); ok {
		return nil
	}
	src, err := train.OpenSmoothed(ctx, j.cat)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l, err := j.labelled(ctx, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	o := j.plan.Train
	result, err := train.FitRuns(ctx,
		train.Problem{Source: src, Labels: l.label.S, Splits: l.split.S, Classes: len(s.Classes)},
		train.Options{
			Hidden: o.Hidden, Layers: o.Layers, Dropout: o.Dropout, InputDropout: o.InputDropout, LR: o.LR,
			WeightDecay: o.WeightDecay, Schedule: o.Schedule, Epochs: o.Epochs, Patience: o.Patience,
			BatchSize: o.BatchSize, Runs: o.Runs, Seed: j.plan.Seed,
		},
		train.Resources{Budget: j.budget, Threads: j.res.Threads})
	if err != nil {
		return err
	}
	defer result.Free()
	return j.commitModels(ctx, s, result)
}

// commitModels commits the weights of every run, and last the index.
func (j *job) commitModels(ctx context.Context, s shards.Summary, result *train.Result) error {
	index := trained{Classes: s.Classes, Options: j.plan.Train}
	for i, m := range result.Models {
		h := result.Histories[i]
		path := fmt.Sprintf("model/run-%03d.mlp", h.Run)
		if err := j.commitFile(ctx, path, int32(h.Run), m.Save); err != nil {
			return err
		}
		index.Runs = append(index.Runs, trainedRun{h.Run, path, len(h.Epochs), h.Best + 1, h.ValidAccuracy()})
		if h.ValidAccuracy() > index.Runs[index.Chosen].Valid {
			index.Chosen = i
		}
	}
	return j.commitFile(ctx, modelIndex, shards.NotApplicable, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(index)
	})
}

// commitFile commits one file of the model.
func (j *job) commitFile(ctx context.Context, path string, block int32, write func(io.Writer) error) error {
	f, err := j.cat.Create(ctx, shards.KindModel, path, shards.NotApplicable, block)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	f.Rows = 1
	return j.cat.Commit(ctx, f)
}

// trained reads the index of the committed models.
func (j *job) trained(ctx context.Context) (t trained, err error) {
	e, ok := j.cat.Lookup(modelIndex)
	if !ok {
		return t, errors.New("worker: there is no model: run `ndls train` first")
	}
	r, err := j.cat.Stream(ctx, e)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := json.NewDecoder(r).Decode(&t); err != nil || t.Chosen < 0 || t.Chosen >= len(t.Runs) {
		return t, fmt.Errorf("worker: %s makes no sense (%v): %w", modelIndex, err, shards.ErrCorrupt)
	}
	return t, nil
}

// chosenRun is the run whose soft labels become predictions.
func (j *job) chosenRun(ctx context.Context) (int, error) {
	if j.plan.Labels.SoftLabels != "" {
		return 0, nil
	}
	t, err := j.trained(ctx)
	return t.Chosen, err
}

// openTiles bounds how many tile files are written at a time, because each
// holds buffers.
const openTiles = 8

// predict commits soft labels of all rows: tiles for every run, which label
// smoothing reads, and Arrow rows of the chosen run.
func (j *job) predict(ctx context.Context) error {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	t, err := j.trained(ctx)
	if err != nil {
		return err
	}
	j.report.Rows = s.Nodes
	classes := len(s.Classes)
	per := granulesOf(classes)
	out := j.softTiles(shards.KindSoftTile, softPrefix, s)
	for run := 0; run < len(t.Runs); {
		group := min(max(openTiles/per, 1), len(t.Runs)-run)
		if err := j.predictRuns(ctx, out, t.Runs[run:run+group], run*per, classes); err != nil {
			return err
		}
		run += group
	}
	out = j.softTiles(shards.KindSoftTile, softPrefix, s)
	return j.assemble(ctx, out, shards.KindSoftLabels, "soft_labels", t.Chosen*per,
		shards.RowSchema{Column: "probability", Width: classes}, nil)
}

// predictRuns writes the tiles of some runs, from granule first on, unless they
// are all there.
func (j *job) predictRuns(ctx context.Context, out *tiles, runs []trainedRun, first, classes int) (err error) {
	done := true
	for g := range len(runs) * granulesOf(classes) {
		done = done && out.complete(first+g)
	}
	if done {
		return nil
	}
	src, err := train.OpenSmoothed(ctx, j.cat)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	var models []*train.Model
	defer func() {
		for _, m := range models {
			m.Free()
		}
	}()
	for _, r := range runs {
		m, err := j.loadModel(ctx, r.Path)
		if err != nil {
			return err
		}
		models = append(models, m)
	}
	w := &tileWriter{j: j, out: out, first: first, classes: classes, runs: len(runs)}
	defer w.abort()
	return train.Predict(ctx, src, models, train.Resources{Budget: j.budget, Threads: j.res.Threads},
		func(row int64, _ []int64, run int, p []float32) error { return w.write(ctx, row, run, p) })
}

func (j *job) loadModel(ctx context.Context, path string) (m *train.Model, err error) {
	e, ok := j.cat.Lookup(path)
	if !ok {
		return nil, fmt.Errorf("worker: %s is not in the catalogue: %w", path, shards.ErrCorrupt)
	}
	r, err := j.cat.Stream(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return train.LoadModel(r, path, j.budget)
}

// tileWriter cuts rows of soft labels, that come in order for every run, into
// tiles.
type tileWriter struct {
	j        *job
	out      *tiles
	first    int // granule of run 0
	runs     int
	classes  int
	interval int
	files    []*shards.File // by run and granule
	buf      []byte
}

// write takes rows that lie in one interval, as the files they come from do.
func (w *tileWriter) write(ctx context.Context, row int64, run int, p []float32) error {
	per := granulesOf(w.classes)
	if w.files == nil {
		for g := range w.runs * per {
			f, err := w.out.create(ctx, w.interval, w.first+g)
			if err != nil {
				return err
			}
			w.files = append(w.files, f)
		}
	}
	for g := range per {
		if err := w.writeGranule(w.files[run*per+g], p, g*shards.TileColumns); err != nil {
			return err
		}
	}
	// The last run ends an interval for all of them.
	_, hi := w.out.bounds(w.interval)
	if row+int64(len(p)/w.classes) == hi && run == w.runs-1 {
		if err := w.j.cat.Commit(ctx, w.files...); err != nil {
			return err
		}
		w.files = nil
		w.interval++
	}
	return nil
}

// writeGranule writes the 16 columns from at on, zeros past the last class.
func (w *tileWriter) writeGranule(f *shards.File, p []float32, at int) error {
	w.buf = w.buf[:0]
	var row [shards.TileColumns]float32
	for ; len(p) > 0; p = p[w.classes:] {
		copy(row[:], p[at:min(at+shards.TileColumns, w.classes)])
		w.buf = append(w.buf, mem.AsBytes(row[:])...)
	}
	_, err := f.Write(w.buf)
	return err
}

func (w *tileWriter) abort() {
	for _, f := range w.files {
		f.Abort()
	}
}
