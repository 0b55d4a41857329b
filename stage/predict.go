package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/tiles"
	"ndls/train"
)

// predictStage computes the soft labels.
type predictStage struct{ each }

func (predictStage) Name() control.Stage { return control.Predict }

func (predictStage) About() string { return "soft labels: what the models say of the smoothed rows" }

func (predictStage) Needs(control.Plan) []control.Stage {
	return []control.Stage{control.Partition, control.Smooth, control.Train}
}

func (predictStage) Lacks(p control.Plan, f estimate.Facts) string { return trainStage{}.Lacks(p, f) }

func (predictStage) Options(control.Plan) map[string]any { return nil }

func (predictStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindTally, Lasting: true},
		{Name: catalog.KindSoftLabels, Lasting: true, Rows: countRows},
		{Name: catalog.KindSoftTile, Lasting: true},
	}
}

func (predictStage) Cut(control.Plan, shards.Summary) Cut { return Cut{} }

func (predictStage) Shares(control.Plan) bool { return false }

// Cost implements estimate.Stage: every row passes through all models, or through as many
// at a time as may write tiles.
func (predictStage) Cost(s *estimate.Sheet) {
	s.Records()
	o, shape := trainOptions(s.Plan), trainShape(s)
	group, written := o.Runs, int64(0)
	if s.Plan.Smooth.Targets == control.AllTargets {
		group = min(max(estimate.OpenTiles/packed.Panels(s.Classes), 1), o.Runs)
		written = int64(o.Runs) * estimate.TileBytes(s.Nodes, s.Classes, false)
	}
	batch := int64(shards.BatchRows(s.Classes))
	held := 5*shape.Rows + batch*(8+4*int64(s.Classes)) + 4*4096
	peak, least := train.PlanPredict(shape, o, group, s.Threads, s.Budget()-held)
	s.Takes(held+peak, held+least)
	s.DiskBytes = (8+4*int64(s.Classes))*shape.Rows + written
	s.BytesWritten = s.DiskBytes
	s.ReadNodes(1)
	s.BytesRead += 8*shape.Rows + int64((o.Runs+group-1)/group)*s.RowBytes()
	s.Computes(float64(o.Runs) * float64(shape.Rows) * 2 * float64(train.NumWeights(shape, o)) / estimate.TrainFlops / float64(s.Threads))
}

// Run implements Stage: it commits what the models say of the smoothed rows. These are
// Arrow rows of the chosen run, how many labels each run got right and, if every node has
// a row, tiles of every run, which label smoothing reads.
func (predictStage) Run(ctx context.Context, env *Env) (err error) {
	s := env.Summary
	t, err := readIndex(ctx, env.Catalog)
	if err != nil {
		return err
	}
	src, err := train.OpenSmoothed(ctx, env.Catalog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l, err := env.labelledRows(ctx, src, s.Nodes)
	if err != nil {
		return err
	}
	defer l.free()
	env.Report.Rows = src.NumRows()
	p := &prediction{Env: env, src: src, truth: l, chosen: t.Chosen, tiles: !env.Plan.SomeTargets()}
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
	*Env
	src    *train.Smoothed
	truth  *labelled
	chosen int // index of the run whose soft labels become Arrow rows
	tiles  bool
}

// runs predicts with the models of some runs, unless that is done. A run is done
// when its tally is committed, which comes last.
func (p *prediction) runs(ctx context.Context, runs []trainedRun) error {
	if !slices.ContainsFunc(runs, func(r trainedRun) bool { _, done := p.Catalog.Lookup(r.tallyPath()); return !done }) {
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
	classes := len(p.Summary.Classes)
	rows, err := p.newSoftRows(p.src.Parts(), classes)
	if err != nil {
		return err
	}
	defer rows.abort()
	first := runs[0].Run
	out := softTiles(p.Env, catalog.KindSoftTile, softPrefix)
	w := &tileWriter{out: out, first: first * packed.Panels(classes), classes: classes, runs: len(runs)}
	defer w.abort()
	tallies := make([]train.Tally, len(runs))
	err = train.Predict(ctx, p.src, models, train.Resources{Budget: p.Budget, Threads: p.Resources.Threads, Kernel: p.Resources.Kernel},
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
		if err := commitJSON(ctx, p.Catalog, catalog.KindTally, r.tallyPath(), r.Run, tallies[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *prediction) models(ctx context.Context, runs []trainedRun) (models []*train.Model, err error) {
	for _, r := range runs {
		m, err := loadModel(ctx, p.Catalog, p.Budget, r.Path)
		if err != nil {
			return models, err
		}
		models = append(models, m)
	}
	return models, nil
}

// tallyPath is where the run's right predictions are counted.
func (r trainedRun) tallyPath() string { return fmt.Sprintf("model/run-%03d.tally.json", r.Run) }

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
