package stage

import (
	"context"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

// predictionRows commits, for the nodes of intervals [first, last), the predictions of the
// chosen run, and how many labels each run got right. Then it removes the tiles.
func (env labelsRun) predictionRows(ctx context.Context, s shards.Summary, first, last int) error {
	ids, err := env.targetIDs(ctx, s, smooth.AllTargets(s.Nodes))
	if err != nil {
		return err
	}
	if env.truth == nil {
		if env.truth, err = env.readLabelled(ctx, s.Nodes); err != nil {
			return err
		}
	}
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	m := smoothedSoft(env.Env)
	p := predictions{labelsRun: env, ids: ids.S, truth: env.truth}
	if p.run, err = chosenRun(ctx, env.Plan, env.Catalog); err != nil {
		return err
	}
	if p.depths, err = env.depths(ctx); err != nil {
		return err
	}
	if p.counter, err = env.newCounter(ctx, env.truth, nil); err != nil {
		return err
	}
	defer p.counter.free(env.Budget)
	for i := first; i < last; i++ {
		lo, hi := m.Bounds(i)
		env.Report.Rows += hi - lo
		if !intervalsOf(env.Catalog, catalog.KindLabelTally)[i] {
			if err := env.joinTiles(ctx, m, i, i+1); err != nil {
				return err
			}
			p.tiles = smoothedSoft(env.Env)
			if err := p.interval(ctx, i); err != nil {
				return err
			}
			env.Disk.Look()
		}
		if err := env.dropTiles(ctx, m, i); err != nil {
			return err
		}
	}
	return nil
}

// dropTiles removes the smoothed soft labels of an interval.
func (env labelsRun) dropTiles(ctx context.Context, m *tiles.Matrix, interval int) error {
	if err := m.Drop(ctx, interval); err != nil {
		return err
	}
	if err := env.dropCorrected(ctx, interval); err != nil {
		return err
	}
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindBestClasses && int(e.Interval) == interval
	})
}

// predictions turns smoothed soft labels into predictions.
type predictions struct {
	labelsRun
	ids    []uint32
	truth  *labelled
	tiles  *tiles.Matrix
	run    int // whose predictions are written
	depths []int
	// counter breaks the predictions of that run down.
	counter *counter
}

// interval commits what an interval still lacks, the tally last.
func (p predictions) interval(ctx context.Context, i int) error {
	rows := intervalsOf(p.Catalog, catalog.KindPredictions)[i]
	scores, err := p.newScoreFile(ctx, catalog.Describe(catalog.KindSmoothedScores, smoothedScoresPath(i)).In(i))
	if err != nil {
		return err
	}
	defer scores.close()
	tally, err := train.NewTallies(p.Budget, 1, len(p.Summary.Classes))
	if err != nil {
		return err
	}
	defer tally.Free()
	t := &tally.Of[0]
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindLabelTally, labelTallyPath(i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	tallies := tallyList{w: f}
	for run := range p.depths {
		t.Reset()
		var counted *breakdown
		if run == p.run {
			counted = p.counter.counts()
			*counted = breakdown{}
		}
		count := func(row int64, labels []int32, values []float32) error {
			if counted != nil {
				p.counter.add(row, labels)
			}
			end := row + int64(len(labels))
			label, split := p.truth.label.S[row:end], p.truth.split(splitOf(p.Plan, run))[row:end]
			t.Count(labels, label, split)
			return scores.add(run, values, label, split)
		}
		read := func(visit func(int64, []int32, []float32) error) error { return p.read(ctx, i, run, visit) }
		if run == p.run && !rows {
			read = func(visit func(int64, []int32, []float32) error) error { return p.write(ctx, i, visit) }
		}
		if err := read(count); err != nil {
			return err
		}
		if err := tallies.add(t, counted); err != nil {
			return err
		}
	}
	if err := errors.Join(scores.flush(), tallies.end()); err != nil {
		return err
	}
	f.Rows = 1
	return p.Catalog.Commit(ctx, scores.with(f)...)
}

// width is the number of probabilities that are written for each node.
func (p predictions) width() int {
	if p.Plan.Probabilities == control.BestProbability {
		return 1
	}
	return len(p.Summary.Classes)
}

// write commits the predictions of the nodes of an interval, and shows them to visit.
func (p predictions) write(ctx context.Context, i int, visit func(row int64, labels []int32, values []float32) error) error {
	f, err := p.Catalog.Create(ctx, catalog.Describe(catalog.KindPredictions, fmt.Sprintf("predictions/part-%05d.arrow", i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	names, closeNames, err := p.names(ctx, int64(i)*p.Summary.IntervalRows)
	if err != nil {
		return err
	}
	defer closeNames()
	w, err := shards.NewRowWriter(f, shards.RowSchema{Column: "probability", Width: p.width(), Label: true}, names)
	if err != nil {
		return err
	}
	ids, err := mem.Alloc[int64](p.Budget, int64(p.batch()), "ids of predictions")
	if err != nil {
		return err
	}
	defer ids.Free()
	if err := p.read(ctx, i, p.run, func(row int64, labels []int32, values []float32) error {
		for r := range labels {
			ids.S[r] = int64(p.ids[row+int64(r)])
		}
		if err := w.Write(ids.S[:len(labels)], labels, values); err != nil {
			return err
		}
		return visit(row, labels, values)
	}); err != nil {
		return err
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	return p.Catalog.Commit(ctx, f)
}

// batch is how many predictions are made at a time.
func (p predictions) batch() int {
	return softBatch(p.Plan, len(p.Summary.Classes))
}

// predictionBytes is the memory for making predictions, beside reading tiles.
func predictionBytes(plan control.Plan, classes int) int64 {
	if plan.Probabilities == control.BestProbability {
		return bestRows*8 + 4096 + bestBytes(packed.Panels(classes), bestRows) + train.TalliesBytes(1, classes)
	}
	return int64(shards.BatchRows(classes))*(8+4) + 2*4096 + scoredBytes(plan) + train.TalliesBytes(1, classes)
}

// read gives the predictions of a run for the nodes of an interval, some at a time.
func (p predictions) read(ctx context.Context, i, run int, visit func(row int64, labels []int32, values []float32) error) error {
	if p.Plan.Probabilities == control.BestProbability {
		return p.readBest(ctx, i, run, visit)
	}
	labels, err := mem.Alloc[int32](p.Budget, int64(p.batch()), "labels of predictions")
	if err != nil {
		return err
	}
	defer labels.Free()
	classes := len(p.Summary.Classes)
	first := run * packed.Panels(classes)
	return p.tiles.Read(ctx, i, first, classes, p.batch(), func(row int64, values []float32) error {
		n := len(values) / classes
		if err := share.Ranges(p.Resources.Threads, n, sharedRows, func(lo, hi int) error {
			for r := lo; r < hi; r++ {
				x := values[r*classes : (r+1)*classes]
				labels.S[r] = train.Argmax(x)
				if run == p.run || p.Plan.WantsAUC() { // who counts right predictions needs the best class alone
					if signed(p.Plan, p.depths[run]) {
						sumsOfSigned(x)
					}
					normalise(x, p.averagesLogs(run))
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return visit(row, labels.S[:n], values)
	})
}

// sharedRows is how many rows a thread takes at a time.
const sharedRows = 1 << 10

// averagesLogs says whether what was averaged are logarithms of probabilities.
func (p predictions) averagesLogs(run int) bool { return averagesLogs(p.Plan, p.depths[run]) }

// averagesLogs says whether smoothing to a depth averages logarithms of probabilities: the
// rule of the authors' code does, and at depth 0 nothing is averaged.
func averagesLogs(p control.Plan, depth int) bool {
	return p.Labels.Rule == "ndls-reference" && depth > 0
}

// signed says whether what was smoothed to a depth may be below 0: corrected soft labels may.
func signed(p control.Plan, depth int) bool { return corrects(p) && depth > 0 }

// normalise turns a row of smoothed soft labels into probabilities that sum to
// 1: averages of probabilities are divided by their sum, averages of
// logarithms go through softmax.
func normalise(row []float32, logs bool) {
	if logs {
		most := row[train.Argmax(row)]
		for c, x := range row {
			row[c] = float32(elementary.Exp(float64(x - most)))
		}
	}
	sum := 0.0
	for _, x := range row {
		sum += float64(x)
	}
	for c, x := range row {
		row[c] = float32(float64(x) / sum)
	}
}
