package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
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
func (j *job) softTiles(kind, prefix string, s shards.Summary) *tiles {
	t := j.tiles(kind, prefix, j.labelRuns()*packed.Panels(len(s.Classes))*packed.PanelColumns, s)
	if kind == catalog.KindSmoothedSoftTile {
		t.share(catalog.KindSmoothedSoftPart, t.first, t.last)
	}
	return t
}

// softInput are the soft labels that are smoothed: the models' or the user's.
func (j *job) softInput(s shards.Summary) *tiles {
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
func (j *job) smoothedSoft(s shards.Summary) *tiles {
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
			from, to = 0, out.granules()
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
	tiles   *tiles
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

// importSoftLabels commits the soft labels of another model, one row of
// probabilities for each node in any form that features may have, as tiles of
// granules [first, last).
func (j *job) importSoftLabels(ctx context.Context, s shards.Summary, first, last int) (err error) {
	out := j.softInput(s)
	if first = out.firstMissing(first, last); first == last {
		return nil
	}
	file, err := dataset.OpenRows(ctx, j.inputs.SoftLabels)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if classes := len(s.Classes); file.Width() != classes {
		return fmt.Errorf("worker: %s has %d values a row: give %d probabilities, one for each of the classes %v",
			j.inputs.SoftLabels, file.Width(), classes, s.Classes)
	}
	width := (last - first) * packed.PanelColumns
	block, err := mem.Alloc[float32](j.budget, s.Nodes*int64(width), "soft labels")
	if err != nil {
		return err
	}
	defer block.Free()
	rows := spmv.Rows{Stride: width, S: block.S}
	if err := j.readSoftLabels(ctx, file, s.Nodes, first*packed.PanelColumns, rows); err != nil {
		return err
	}
	buf := make([]float32, openTiles*packed.PanelColumns*1024)
	for at := first; at < last; at += openTiles {
		to := min(at+openTiles, last)
		part := int64(to-at) * packed.PanelColumns
		if err := out.store(ctx, at, to, func(put func([]float32) error) error {
			for lo := int64(0); lo < s.Nodes; lo += 1024 {
				n := min(1024, s.Nodes-lo)
				for i := range n {
					copy(buf[i*part:], rows.Slice(lo+i, lo+i+1).S[(at-first)*packed.PanelColumns:(to-first)*packed.PanelColumns])
				}
				if err := put(buf[:n*part]); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// readSoftLabels fills rows by node, with the classes from first on.
func (j *job) readSoftLabels(ctx context.Context, file *dataset.Rows, n int64, first int, rows spmv.Rows) (err error) {
	node, err := j.nodesByID(ctx, n)
	if err != nil {
		return err
	}
	defer node.free()
	seen, err := mem.Alloc[bool](j.budget, n, "soft labels seen")
	if err != nil {
		return err
	}
	defer seen.Free()
	r, err := file.Read(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	bad := func(row int64, format string, a ...any) error {
		return fmt.Errorf("worker: %s row %d: %s", j.inputs.SoftLabels, row, fmt.Sprintf(format, a...))
	}
	count := int64(0)
	for ; ; count++ {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		at, ok := node.of(int64(f.ID))
		if !ok || seen.S[at] {
			return bad(count, "node %d is unknown, or comes twice: give every node of the graph one row", f.ID)
		}
		seen.S[at] = true
		row := rows.Slice(at, at+1).S
		copy(row, f.Dense[min(first, len(f.Dense)):])
		for i, c := range f.Indices {
			if at := int(c) - first; 0 <= at && at < len(row) {
				row[at] = f.Values[i]
			}
		}
		for c, x := range row {
			if x < 0 {
				return bad(count, "%g for class %d: probabilities are at least 0", x, first+c)
			}
		}
	}
	if count != n {
		return fmt.Errorf("worker: %s has %d rows for %d nodes: give every node of the graph one row", j.inputs.SoftLabels, count, n)
	}
	return nil
}
