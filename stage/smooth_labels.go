package stage

import (
	"context"
	"math"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/control"
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

// smoothLabelsStage smooths the soft labels of every run (NDLS-L).
type smoothLabelsStage struct{ each }

func (smoothLabelsStage) Name() control.Stage { return control.SmoothLabels }

func (smoothLabelsStage) About() string {
	return "the soft labels, smoothed as features are, and predictions"
}

func (smoothLabelsStage) Needs(p control.Plan) []control.Stage {
	if !ownModel(p) {
		return []control.Stage{control.Partition, control.LSI}
	}
	return []control.Stage{control.Partition, control.LSI, control.Predict}
}

func (smoothLabelsStage) Lacks(p control.Plan, f estimate.Facts) string {
	switch {
	case p.SomeTargets():
		return someTargets
	case ownModel(p):
		return lacksModel(f)
	}
	return ""
}

func (smoothLabelsStage) Options(p control.Plan) map[string]any {
	return map[string]any{"labels": p.Labels, "precision": p.Precision}
}

func (smoothLabelsStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindPredictions, Lasting: true, Rows: countRows},
		{Name: catalog.KindGivenSoftTile, Lasting: true},
		{Name: catalog.KindSmoothedSoftTile, Lasting: true},
		{Name: catalog.KindSmoothedSoftPart},
	}
}

func (smoothLabelsStage) Cut(p control.Plan, sum shards.Summary) Cut {
	each := packed.Panels(len(sum.Classes))
	c := Cut{
		Panels: labelRuns(p) * each, Intervals: intervals(sum), Together: 1,
		Tiles: catalog.KindSmoothedSoftTile, Rows: catalog.KindPredictions, Parts: catalog.KindSmoothedSoftPart,
	}
	if p.Labels.Rule == "ndls-reference" {
		c.Together = max(each, 1) // K is found from all columns of a run
	}
	return c
}

// Shares implements estimate.Stage: rows that settle, and soft labels from elsewhere,
// need all of them in one place.
func (smoothLabelsStage) Shares(p control.Plan) bool {
	return p.LSI.Active != "settled" && ownModel(p)
}

// Cost implements estimate.Stage: the soft labels of all runs are smoothed side by side.
// The rule of the authors' code finds K for each of them.
func (smoothLabelsStage) Cost(s *estimate.Sheet) {
	l := s.Plan.Labels
	rule, err := smooth.NewRule(l.Rule, l.Alpha, 0)
	if err != nil {
		return // the plan is not valid
	}
	runs, per := labelRuns(s.Plan), packed.Panels(s.Classes)*packed.PanelColumns
	last := min(s.Hops, l.Kmax)
	if l.Rule != "ndls" {
		last = max(last-1, 0) // hop K is not counted
	}
	o := smooth.Options{Rule: rule, Targets: smooth.AllTargets(s.Part)}
	held := 2 * s.Part
	switch {
	case l.Rule != "ndls":
		for range runs {
			s.FindLSI(s.Classes, l.Epsilon, l.Kmax, 0)
			s.BytesRead += estimate.TileBytes(s.Nodes, s.Classes, false)
			s.Columns(o, per, last, held, false)
		}
	case l.Epsilon != 0 && l.Epsilon != s.Plan.LSI.Epsilon || l.Kmax > s.Plan.LSI.Kmax:
		s.FindLSI(s.Plan.LSI.Probes, l.Epsilon, l.Kmax, 4*s.Part)
		s.ReadNodes(1)
		s.Columns(o, runs*per, last, held, false)
	default:
		s.ReadK()
		s.Columns(o, runs*per, last, held, false)
	}
	tiles := int64(runs) * estimate.TileBytes(s.Nodes, s.Classes, false)
	if l.SoftLabels != "" {
		// Nodes are found by id, and rows are put in their order, as many as fit.
		byID, sorting := 9*s.Nodes, 16*s.Nodes+4096
		s.Takes(max(byID+min(tiles, estimate.OpenTiles*estimate.TileBytes(s.Nodes, 1, false), (s.Budget()-byID)/2), sorting), sorting)
		s.BytesWritten += tiles
		s.DiskBytes += tiles
	}
	ids := 4*s.Nodes + estimate.ReadRows(s.Nodes, s.Classes, false)
	s.Takes(ids, ids)
	s.ReadNodes(2) // degrees, then ids
	rows := (12 + 4*int64(s.Classes)) * s.Nodes
	s.BytesRead += estimate.TileBytes(s.Nodes, s.Classes, false)
	s.BytesWritten += tiles + rows
	s.DiskBytes += tiles + rows
}

// Run implements Stage: it commits the predictions of the chosen run.
func (smoothLabelsStage) Run(ctx context.Context, env *Env) error { return labelsRun{env}.run(ctx) }

// labelsRun is the stage being executed.
type labelsRun struct{ *Env }

func (env labelsRun) run(ctx context.Context) error {
	s := env.Summary
	return env.inParts(ctx, s, smoothedSoft(env.Env),
		func(ctx context.Context, first, last int) error { return env.smoothSoft(ctx, s, first, last) },
		func(ctx context.Context, first, last int) error { return env.predictionRows(ctx, s, first, last) })
}

// predictionRows commits the predictions for the nodes of intervals [first, last).
func (env labelsRun) predictionRows(ctx context.Context, s shards.Summary, first, last int) error {
	run, err := chosenRun(ctx, env.Plan, env.Catalog)
	if err != nil {
		return err
	}
	ids, err := env.targetIDs(ctx, s, smooth.AllTargets(s.Nodes))
	if err != nil {
		return err
	}
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	if err := env.joinTiles(ctx, smoothedSoft(env.Env), first, last); err != nil {
		return err
	}
	classes := len(s.Classes)
	labels := make([]int32, shards.BatchRows(classes))
	a := assembly{
		tiles: smoothedSoft(env.Env), first: run * packed.Panels(classes),
		kind: catalog.KindPredictions, folder: "predictions", ids: ids.S,
		schema: shards.RowSchema{Column: "probability", Width: classes, Label: true},
		labels: func(values []float32) []int32 {
			n := len(values) / classes
			for i := range n {
				row := values[i*classes : (i+1)*classes]
				labels[i] = train.Argmax(row)
				env.normalise(row)
			}
			return labels[:n]
		},
	}
	return a.commit(ctx, env.Env, first, last)
}

// smoothSoft commits the tiles of smoothed soft labels of panels [first, last)
// that are not committed yet.
func (env labelsRun) smoothSoft(ctx context.Context, s shards.Summary, first, last int) error {
	out := smoothedSoft(env.Env)
	first, err := env.firstMissing(ctx, out, first, last)
	if err != nil || first == last {
		return err
	}
	rule, err := smooth.NewRule(env.Plan.Labels.Rule, env.Plan.Labels.Alpha, 0)
	if err != nil {
		return err
	}
	reference := rule.Name != "ndls"
	if env.Plan.Labels.SoftLabels != "" {
		from, to := first, last
		if reference {
			from, to = 0, out.Panels()
		}
		if err := env.importSoftLabels(ctx, s, from, to); err != nil {
			return err
		}
	}
	g, err := env.graph(ctx)
	if err != nil {
		return err
	}
	in := softInput(env.Env)
	o := smooth.Options{Rule: rule, Targets: smooth.AllTargets(g.hi - g.lo)}
	if !reference {
		k, err := env.table(0, func() (*mem.Array[uint16], error) { return env.labelK(ctx, g) })
		if err != nil {
			return err
		}
		return g.smoothColumns(ctx, o, k, in, out, first, last)
	}
	// The authors' code looks at each model's outputs by themselves: their
	// logarithms decide K, and are what is averaged.
	per := packed.Panels(len(s.Classes))
	for ; first < last; first = (first/per + 1) * per {
		run := first / per
		columns := &logColumns{in, run * per, len(s.Classes)}
		k, err := env.table(run, func() (*mem.Array[uint16], error) { return env.findK(ctx, g, lsi.Features(columns, nil)) })
		if err != nil {
			return err
		}
		if err := g.smoothColumns(ctx, o, k, &shifted{columns, run * per}, out, first, min((run+1)*per, last)); err != nil {
			return err
		}
	}
	return nil
}

// shifted shows columns as if there were panels before them.
type shifted struct {
	lsi.Columns
	panels int
}

// Rows implements lsi.Columns.
func (s *shifted) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return s.Columns.Rows(ctx, first-s.panels*packed.PanelColumns, columns, put)
}

// labelK is K for label smoothing: that of the K table where ε is the same, since
// K is a first passage, and a table of its own otherwise.
func (env labelsRun) labelK(ctx context.Context, g engine) (*mem.Array[uint16], error) {
	o := env.Plan.Labels
	if env.labelEpsilon() == env.Plan.LSI.Epsilon && o.Kmax <= env.Plan.LSI.Kmax {
		return env.kTable(ctx, g.summary.Nodes, o.Kmax)
	}
	ids, err := env.ids(ctx, g.summary.Nodes)
	if err != nil {
		return nil, err
	}
	defer ids.Free()
	probe, free, err := env.probe(ctx, g.summary, ids.S)
	if err != nil {
		return nil, err
	}
	defer free()
	return env.findK(ctx, g, probe)
}

func (env labelsRun) labelEpsilon() float64 {
	if e := env.Plan.Labels.Epsilon; e != 0 {
		return e
	}
	return env.Plan.LSI.Epsilon
}

// findK runs the LSI engine with the options of label smoothing.
func (env labelsRun) findK(ctx context.Context, g engine, probe lsi.Probe) (*mem.Array[uint16], error) {
	table, err := g.findLSI(ctx, probe, env.labelEpsilon(), env.Plan.Labels.Kmax, hops.Checkpoints{})
	if err != nil {
		return nil, err
	}
	defer table.Free()
	k, err := mem.Alloc[uint16](env.Budget, g.hi-g.lo, "K table")
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
	first   int // panel
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
func (env labelsRun) normalise(row []float32) {
	if env.Plan.Labels.Rule == "ndls-reference" {
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
