package worker

import (
	"context"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

const (
	softPrefix         = "soft_labels/tiles"
	givenSoftPrefix    = "predictions/given"
	smoothedSoftPrefix = "predictions/tiles"
	// referenceFloor is the smallest probability whose logarithm the rule
	// ndls-reference takes; below it float32 has none.
	referenceFloor = 1e-38
)

// softTiles are the soft labels of all runs: those of run r start at granule
// r·packed.Panels(classes).
func (j *job) softTiles(kind, prefix string, s shards.Summary) *tiles.Matrix {
	l := tiles.Layout{Kind: kind, Prefix: prefix, Width: j.labelRuns() * packed.Panels(len(s.Classes)) * packed.PanelColumns}
	if kind == catalog.KindSmoothedSoftTile {
		l.PartKind = catalog.KindSmoothedSoftPart
	}
	return j.matrix(l, s)
}

// softInput are the soft labels that are smoothed: the models' or the user's.
func (j *job) softInput(s shards.Summary) *tiles.Matrix {
	if j.plan.Labels.SoftLabels != "" {
		return j.softTiles(catalog.KindGivenSoftTile, givenSoftPrefix, s)
	}
	return j.softTiles(catalog.KindSoftTile, softPrefix, s)
}

// labelRuns is how many sets of soft labels there are: one a model, or the one
// that the user gave.
func (j *job) labelRuns() int {
	if j.plan.Labels.SoftLabels != "" {
		return 1
	}
	return j.plan.Train.Runs
}

// smoothLabels smooths the soft labels of every run (NDLS-L) and commits the
// predictions of the chosen one.
func (j *job) smoothLabels(ctx context.Context) error {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	if len(s.Classes) == 0 {
		return fmt.Errorf("worker: smooth-labels: %w", errNoLabels)
	}
	if j.plan.SomeTargets() {
		return fmt.Errorf("worker: smooth-labels: %w", errSomeTargets)
	}
	return j.inParts(ctx, s, j.smoothedSoft(s),
		func(ctx context.Context, first, last int) error { return j.smoothSoft(ctx, s, first, last) },
		func(ctx context.Context, first, last int) error { return j.predictionRows(ctx, s, first, last) })
}

// smoothedSoft are the smoothed soft labels.
func (j *job) smoothedSoft(s shards.Summary) *tiles.Matrix {
	return j.softTiles(catalog.KindSmoothedSoftTile, smoothedSoftPrefix, s)
}

// predictionRows commits the predictions for the nodes of intervals [first, last).
func (j *job) predictionRows(ctx context.Context, s shards.Summary, first, last int) error {
	run, err := j.chosenRun(ctx)
	if err != nil {
		return err
	}
	ids, err := j.targetIDs(ctx, s, smooth.AllTargets(s.Nodes))
	if err != nil {
		return err
	}
	if err := j.dropCheckpoints(ctx); err != nil {
		return err
	}
	if err := j.joinTiles(ctx, j.smoothedSoft(s), first, last); err != nil {
		return err
	}
	classes := len(s.Classes)
	labels := make([]int32, shards.BatchRows(classes))
	return j.assemble(ctx, assembly{
		tiles: j.smoothedSoft(s), first: run * packed.Panels(classes),
		kind: catalog.KindPredictions, folder: "predictions", ids: ids.S,
		schema: shards.RowSchema{Column: "probability", Width: classes, Label: true},
		labels: func(values []float32) []int32 {
			n := len(values) / classes
			for i := range n {
				row := values[i*classes : (i+1)*classes]
				labels[i] = train.Argmax(row)
				j.normalise(row)
			}
			return labels[:n]
		},
	}, first, last)
}

// smoothSoft commits the tiles of smoothed soft labels of granules [first, last)
// that are not committed yet.
func (j *job) smoothSoft(ctx context.Context, s shards.Summary, first, last int) error {
	out := j.smoothedSoft(s)
	first, err := j.firstMissing(ctx, out, first, last)
	if err != nil || first == last {
		return err
	}
	rule, err := smooth.NewRule(j.plan.Labels.Rule, j.plan.Labels.Alpha, 0)
	if err != nil {
		return err
	}
	reference := rule.Name != "ndls"
	if j.plan.Labels.SoftLabels != "" {
		from, to := first, last
		if reference {
			from, to = 0, out.Panels()
		}
		if err := j.importSoftLabels(ctx, s, from, to); err != nil {
			return err
		}
	}
	g, err := j.graph(ctx)
	if err != nil {
		return err
	}
	in := j.softInput(s)
	o := smooth.Options{Rule: rule, Targets: smooth.AllTargets(g.hi - g.lo)}
	if !reference {
		k, err := j.table(0, func() (*mem.Array[uint16], error) { return j.labelK(ctx, g) })
		if err != nil {
			return err
		}
		return j.smoothColumns(ctx, g, o, k, in, out, first, last)
	}
	// The authors' code looks at each model's outputs by themselves: their
	// logarithms decide K, and are what is averaged.
	per := packed.Panels(len(s.Classes))
	for ; first < last; first = (first/per + 1) * per {
		run := first / per
		columns := &logColumns{in, run * per, len(s.Classes)}
		k, err := j.table(run, func() (*mem.Array[uint16], error) { return j.findK(ctx, g, lsi.Features(columns, nil)) })
		if err != nil {
			return err
		}
		if err := j.smoothColumns(ctx, g, o, k, &shifted{columns, run * per}, out, first, min((run+1)*per, last)); err != nil {
			return err
		}
	}
	return nil
}

// shifted shows columns as if there were granules before them.
type shifted struct {
	lsi.Columns
	granules int
}

// Rows implements lsi.Columns.
func (s *shifted) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return s.Columns.Rows(ctx, first-s.granules*packed.PanelColumns, columns, put)
}

// labelK is K for label smoothing: that of the K table where ε is the same, since
// K is a first passage, and a table of its own otherwise.
func (j *job) labelK(ctx context.Context, g *graph) (*mem.Array[uint16], error) {
	o := j.plan.Labels
	if j.labelEpsilon() == j.plan.LSI.Epsilon && o.Kmax <= j.plan.LSI.Kmax {
		return j.kTable(ctx, g.summary.Nodes, o.Kmax)
	}
	ids, err := j.ids(ctx, g.summary.Nodes)
	if err != nil {
		return nil, err
	}
	defer ids.Free()
	probe, free, err := j.probe(ctx, g.summary, ids.S)
	if err != nil {
		return nil, err
	}
	defer free()
	return j.findK(ctx, g, probe)
}

func (j *job) labelEpsilon() float64 {
	if e := j.plan.Labels.Epsilon; e != 0 {
		return e
	}
	return j.plan.LSI.Epsilon
}

// findK runs the LSI engine with the options of label smoothing.
func (j *job) findK(ctx context.Context, g *graph, probe lsi.Probe) (*mem.Array[uint16], error) {
	table, err := j.findLSI(ctx, g, probe, j.labelEpsilon(), j.plan.Labels.Kmax, hops.Checkpoints{})
	if err != nil {
		return nil, err
	}
	defer table.Free()
	k, err := mem.Alloc[uint16](j.budget, g.hi-g.lo, "K table")
	if err != nil {
		return nil, err
	}
	for i := range k.S {
		x, _ := table.K(int64(i))
		k.S[i] = uint16(x)
	}
	return k, nil
}

// logColumns shows the logarithms of one run's soft labels.
type logColumns struct {
	tiles   *tiles.Matrix
	first   int // granule
	classes int
}

// Width implements lsi.Columns.
func (l *logColumns) Width() int { return l.classes }

// Rows implements lsi.Columns.
func (l *logColumns) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return l.tiles.Rows(ctx, l.first*packed.PanelColumns+first, columns, func(rows []float32) error {
		cols := min(columns, l.classes-first)
		for at := 0; at < len(rows); at += columns {
			row := rows[at : at+cols]
			for c, p := range row {
				row[c] = float32(math.Log(max(float64(p), referenceFloor)))
			}
			clear(rows[at+cols : at+columns]) // another run's columns
		}
		return put(rows)
	})
}

// normalise turns a row of smoothed soft labels into probabilities that sum to
// 1: averages of probabilities are divided by their sum, averages of
// log-probabilities go through softmax.
func (j *job) normalise(row []float32) {
	if j.plan.Labels.Rule == "ndls-reference" {
		most := row[train.Argmax(row)]
		for c, x := range row {
			row[c] = float32(math.Exp(float64(x - most)))
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
