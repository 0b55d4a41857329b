package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
	"ndls/tiles"
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

// modelPath is where the weights of a run are.
func modelPath(run int) string { return fmt.Sprintf("model/run-%03d.mlp", run) }

// trainedPath is where, until the index is there, the line of the index for a run is.
func trainedPath(run int) string { return fmt.Sprintf("model/run-%03d.json", run) }

// train fits one model a run on the smoothed rows. It commits each model when that is
// trained, and last the index. It does not train models again that are committed.
func (j *job) train(ctx context.Context) (err error) {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	if len(s.Classes) == 0 || s.Splits["train"] == 0 {
		return fmt.Errorf("worker: train: %w", errNoLabels)
	}
	j.report.Rows = int64(j.plan.Train.Runs)
	if _, ok := j.cat.Lookup(modelIndex); !ok {
		if err := j.fit(ctx, s, j.untrained()); err != nil {
			return err
		}
		if err := j.commitIndex(ctx, s); err != nil {
			return err
		}
	}
	return j.cat.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindModel && e.Path == trainedPath(int(e.Run))
	})
}

// untrained lists the runs whose models are not committed.
func (j *job) untrained() (runs []int) {
	for run := range j.plan.Train.Runs {
		if _, ok := j.cat.Lookup(trainedPath(run)); !ok {
			runs = append(runs, run)
		}
	}
	return runs
}

// fit trains the models of some runs and commits each when it is trained.
func (j *job) fit(ctx context.Context, s shards.Summary, runs []int) (err error) {
	if len(runs) == 0 {
		return nil
	}
	src, err := train.OpenSmoothed(ctx, j.cat)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l, err := j.labelledRows(ctx, src, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	o := j.plan.Train
	return train.FitEach(ctx,
		train.Problem{Source: src, Labels: l.label.S, Splits: l.split.S, Classes: len(s.Classes)},
		train.Options{
			Hidden: o.Hidden, Layers: o.Layers, Dropout: o.Dropout, InputDropout: o.InputDropout, LR: o.LR,
			WeightDecay: o.WeightDecay, Schedule: o.Schedule, Epochs: o.Epochs, Patience: o.Patience,
			BatchSize: o.BatchSize, Runs: o.Runs, Seed: j.plan.Seed,
		},
		runs, train.Resources{Budget: j.budget, Threads: j.res.Threads},
		func(m *train.Model, h train.History) error { return j.commitModel(ctx, m, h) })
}

// commitModel commits the weights of a run, together with what the index says of it.
func (j *job) commitModel(ctx context.Context, m *train.Model, h train.History) error {
	weights, err := j.writeFile(ctx, catalog.KindModel, modelPath(h.Run), h.Run, m.Save)
	if err != nil {
		return err
	}
	defer weights.Abort()
	line := trainedRun{h.Run, modelPath(h.Run), len(h.Epochs), h.Best + 1, h.ValidAccuracy()}
	about, err := j.writeFile(ctx, catalog.KindModel, trainedPath(h.Run), h.Run, writeJSON(line))
	if err != nil {
		return err
	}
	defer about.Abort()
	return j.cat.Commit(ctx, weights, about)
}

// commitIndex commits the index of the models, all of which are committed.
func (j *job) commitIndex(ctx context.Context, s shards.Summary) error {
	index := trained{Classes: s.Classes, Options: j.plan.Train}
	for run := range j.plan.Train.Runs {
		var line trainedRun
		if err := j.readJSON(ctx, trainedPath(run), &line); err != nil {
			return err
		}
		index.Runs = append(index.Runs, line)
		if line.Valid > index.Runs[index.Chosen].Valid {
			index.Chosen = run
		}
	}
	return j.commitJSON(ctx, catalog.KindModel, modelIndex, catalog.NotApplicable, index)
}

func (j *job) commitJSON(ctx context.Context, kind, path string, run int, v any) error {
	f, err := j.writeFile(ctx, kind, path, run, writeJSON(v))
	if err != nil {
		return err
	}
	defer f.Abort()
	return j.cat.Commit(ctx, f)
}

// writeJSON writes v as the JSON files of the model are written.
func writeJSON(v any) func(io.Writer) error {
	return func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
}

// writeFile writes one file of the model, which the caller commits and aborts.
func (j *job) writeFile(ctx context.Context, kind, path string, run int, write func(io.Writer) error) (*catalog.File, error) {
	f, err := j.cat.Create(ctx, catalog.Describe(kind, path).OfRun(run))
	if err != nil {
		return nil, err
	}
	if err := write(f); err != nil {
		f.Abort()
		return nil, err
	}
	f.Rows = 1
	return f, nil
}

// trained reads the index of the committed models.
func (j *job) trained(ctx context.Context) (t trained, err error) {
	if err = j.readJSON(ctx, modelIndex, &t); err == nil && (t.Chosen < 0 || t.Chosen >= len(t.Runs)) {
		err = fmt.Errorf("worker: %s names run %d of %d: %w", modelIndex, t.Chosen, len(t.Runs), seal.ErrCorrupt)
	}
	return t, err
}

// readJSON reads a file of the model.
func (j *job) readJSON(ctx context.Context, path string, v any) (err error) {
	e, ok := j.cat.Lookup(path)
	if !ok {
		return fmt.Errorf("worker: there is no %s: run `ndls train` first", path)
	}
	r, err := j.cat.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("worker: %s makes no sense (%v): %w", path, err, seal.ErrCorrupt)
	}
	return nil
}

// chosenRun is the run whose soft labels become predictions.
func (j *job) chosenRun(ctx context.Context) (int, error) {
	if j.plan.Labels.SoftLabels != "" {
		return 0, nil
	}
	t, err := j.trained(ctx)
	return t.Chosen, err
}

// predict commits what the models say of the smoothed rows: Arrow rows of the
// chosen run, how many labels each run got right and, if every node has a row,
// tiles of every run, which label smoothing reads.
func (j *job) predict(ctx context.Context) (err error) {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	t, err := j.trained(ctx)
	if err != nil {
		return err
	}
	src, err := train.OpenSmoothed(ctx, j.cat)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l, err := j.labelledRows(ctx, src, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	j.report.Rows = src.NumRows()
	p := &prediction{job: j, summary: s, src: src, truth: l, chosen: t.Chosen, tiles: !j.plan.SomeTargets()}
	group := len(t.Runs)
	if p.tiles {
		group = max(tiles.Together/packed.Panels(len(s.Classes)), 1)
	}
	for runs := range slices.Chunk(t.Runs, group) {
		if err := p.runs(ctx, runs); err != nil {
			return err
		}
	}
	return nil
}

// prediction is what predict needs for every group of runs.
type prediction struct {
	*job
	summary shards.Summary
	src     *train.Smoothed
	truth   *labelled
	chosen  int // index of the run whose soft labels become Arrow rows
	tiles   bool
}

// runs predicts with the models of some runs, unless that is done. A run is done
// when its tally is committed, which comes last.
func (p *prediction) runs(ctx context.Context, runs []trainedRun) error {
	if !slices.ContainsFunc(runs, func(r trainedRun) bool { _, done := p.cat.Lookup(r.tallyPath()); return !done }) {
		return nil
	}
	models, err := p.models(ctx, runs)
	defer func() {
		for _, m := range models {
			m.Free()
		}
	}()
	if err != nil {
		return err
	}
	classes := len(p.summary.Classes)
	rows, err := p.newSoftRows(p.src.Parts(), classes)
	if err != nil {
		return err
	}
	defer rows.abort()
	first := runs[0].Run
	out := p.softTiles(catalog.KindSoftTile, softPrefix, p.summary)
	w := &tileWriter{out: out, first: first * packed.Panels(classes), classes: classes, runs: len(runs)}
	defer w.abort()
	tallies := make([]train.Tally, len(runs))
	err = train.Predict(ctx, p.src, models, train.Resources{Budget: p.budget, Threads: p.res.Threads},
		func(row int64, ids []int64, run int, soft []float32) error {
			end := row + int64(len(ids))
			tallies[run].Add(soft, p.truth.label.S[row:end], p.truth.split.S[row:end])
			if p.tiles {
				if err := w.write(ctx, row, run, soft); err != nil {
					return err
				}
			}
			if first+run == p.chosen {
				return rows.write(ctx, ids, soft)
			}
			return nil
		})
	if err != nil {
		return err
	}
	for i, r := range runs {
		if err := p.commitJSON(ctx, catalog.KindTally, r.tallyPath(), r.Run, tallies[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *prediction) models(ctx context.Context, runs []trainedRun) (models []*train.Model, err error) {
	for _, r := range runs {
		m, err := p.loadModel(ctx, r.Path)
		if err != nil {
			return models, err
		}
		models = append(models, m)
	}
	return models, nil
}

// tallyPath is where the run's right predictions are counted.
func (r trainedRun) tallyPath() string { return fmt.Sprintf("model/run-%03d.tally.json", r.Run) }

// tally reads how many labels a run got right.
func (j *job) tally(ctx context.Context, r trainedRun) (t train.Tally, err error) {
	err = j.readJSON(ctx, r.tallyPath(), &t)
	return t, err
}

func (j *job) loadModel(ctx context.Context, path string) (m *train.Model, err error) {
	e, ok := j.cat.Lookup(path)
	if !ok {
		return nil, fmt.Errorf("worker: %s is not in the catalogue: %w", path, seal.ErrCorrupt)
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
	out      *tiles.Matrix
	first    int // panel of run 0
	runs     int
	classes  int
	interval int
	group    *tiles.Group // of all runs
}

// write takes rows that lie in one interval, as the files they come from do.
func (w *tileWriter) write(ctx context.Context, row int64, run int, p []float32) (err error) {
	per := packed.Panels(w.classes)
	if w.group == nil {
		if w.group, err = w.out.Create(ctx, w.interval, w.first, w.first+w.runs*per); err != nil {
			return err
		}
	}
	for i := range per {
		if err := w.group.Put(w.first+run*per+i, p, w.classes, i*shards.TileColumns); err != nil {
			return err
		}
	}
	// The last run ends an interval for all of them.
	if _, hi := w.out.Bounds(w.interval); row+int64(len(p)/w.classes) < hi || run < w.runs-1 {
		return nil
	}
	if err := w.group.Commit(ctx); err != nil {
		return err
	}
	w.group = nil
	w.interval++
	return nil
}

func (w *tileWriter) abort() { w.group.Abort() }
