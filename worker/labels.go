package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset"
	"ndls/internal/mem"
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
// r·granulesOf(classes).
func (j *job) softTiles(kind, prefix string, s shards.Summary) *tiles {
	return j.tiles(kind, prefix, j.labelRuns()*granulesOf(len(s.Classes))*spmv.Granule, s)
}

// softInput are the soft labels that are smoothed: the models' or the user's.
func (j *job) softInput(s shards.Summary) *tiles {
	if j.plan.Labels.SoftLabels != "" {
		return j.softTiles(shards.KindGivenSoftTile, givenSoftPrefix, s)
	}
	return j.softTiles(shards.KindSoftTile, softPrefix, s)
}

func granulesOf(columns int) int { return (columns + spmv.Granule - 1) / spmv.Granule }

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
	j.report.Rows = s.Nodes
	if j.plan.SomeTargets() {
		return fmt.Errorf("worker: smooth-labels: %w", errSomeTargets)
	}
	if j.plan.Labels.SoftLabels != "" {
		if err := j.importSoftLabels(ctx, s); err != nil {
			return err
		}
	}
	in := j.softInput(s)
	out := j.softTiles(shards.KindSmoothedSoftTile, smoothedSoftPrefix, s)
	if err := j.smoothLabelTiles(ctx, s, in, out); err != nil {
		return err
	}
	run, err := j.chosenRun(ctx)
	if err != nil {
		return err
	}
	classes := len(s.Classes)
	out = j.softTiles(shards.KindSmoothedSoftTile, smoothedSoftPrefix, s)
	ids, err := j.ids(ctx, s.Nodes)
	if err != nil {
		return err
	}
	defer ids.Free()
	labels := make([]int32, shards.BatchRows(classes))
	schema := shards.RowSchema{Column: "probability", Width: classes, Label: true}
	return j.assemble(ctx, out, shards.KindPredictions, "predictions", run*granulesOf(classes), ids.S, schema,
		func(values []float32) []int32 {
			n := len(values) / classes
			for i := range n {
				row := values[i*classes : (i+1)*classes]
				labels[i] = train.Argmax(row)
				j.normalise(row)
			}
			return labels[:n]
		})
}

// smoothLabelTiles smooths what is not committed yet.
func (j *job) smoothLabelTiles(ctx context.Context, s shards.Summary, in, out *tiles) error {
	first := out.firstMissing()
	if first == out.granules() {
		return nil
	}
	g, err := j.openGraph(ctx)
	if err != nil {
		return err
	}
	defer g.close()
	rule, err := smooth.NewRule(j.plan.Labels.Rule, j.plan.Labels.Alpha, 0)
	if err != nil {
		return err
	}
	if rule.Name == "ndls" {
		k, err := j.labelK(ctx, g)
		if err != nil {
			return err
		}
		defer k.Free()
		return j.smoothColumns(ctx, g, smooth.Options{Rule: rule, Targets: smooth.AllTargets(s.Nodes)}, k.S, in, out, first, in.granules())
	}
	// The authors' code looks at each model's outputs by themselves: their
	// logarithms decide K, and are what is averaged.
	per := granulesOf(len(s.Classes))
	for run := first / per; run < j.labelRuns(); run++ {
		if err := j.smoothReference(ctx, g, rule, &logColumns{in, run * per, len(s.Classes)}, out, run*per); err != nil {
			return err
		}
	}
	return nil
}

// smoothReference finds K of one run's log-probabilities by their distance in
// label space, and smooths them.
func (j *job) smoothReference(ctx context.Context, g *graph, rule smooth.Rule, in *logColumns, out *tiles, first int) error {
	k, err := j.findK(ctx, g, lsi.Features(in, nil))
	if err != nil {
		return err
	}
	defer k.Free()
	o := smooth.Options{Rule: rule, Targets: smooth.AllTargets(g.summary.Nodes)}
	return j.smoothColumns(ctx, g, o, k.S, &shifted{in, first}, out, first, first+granulesOf(in.classes))
}

// shifted shows columns as if there were granules before them.
type shifted struct {
	lsi.Columns
	granules int
}

// Rows implements lsi.Columns.
func (s *shifted) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return s.Columns.Rows(ctx, first-s.granules*spmv.Granule, columns, put)
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
	table, err := j.findLSI(ctx, g, probe, j.labelEpsilon(), j.plan.Labels.Kmax)
	if err != nil {
		return nil, err
	}
	defer table.Free()
	k, err := mem.Alloc[uint16](j.budget, g.summary.Nodes, "K table")
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
	return l.tiles.Rows(ctx, l.first*spmv.Granule+first, columns, func(rows []float32) error {
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
// probabilities for each node in any form that features may have, as tiles.
func (j *job) importSoftLabels(ctx context.Context, s shards.Summary) (err error) {
	out := j.softInput(s)
	if out.firstMissing() == out.granules() {
		return nil
	}
	file, err := dataset.OpenRows(ctx, j.res.SoftLabels)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if classes := len(s.Classes); file.Width() != classes {
		return fmt.Errorf("worker: %s has %d values a row: give %d probabilities, one for each of the classes %v",
			j.res.SoftLabels, file.Width(), classes, s.Classes)
	}
	block, err := mem.Alloc[float32](j.budget, s.Nodes*int64(out.width), "soft labels")
	if err != nil {
		return err
	}
	defer block.Free()
	rows := spmv.Rows{Stride: out.width, S: block.S}
	if err := j.readSoftLabels(ctx, file, s.Nodes, rows); err != nil {
		return err
	}
	buf := make([]float32, openTiles*spmv.Granule*1024)
	for first := 0; first < out.granules(); first += openTiles {
		last := min(first+openTiles, out.granules())
		width := (last - first) * spmv.Granule
		if err := out.store(ctx, first, last, func(put func([]float32) error) error {
			for lo := int64(0); lo < s.Nodes; lo += 1024 {
				n := min(1024, s.Nodes-lo)
				for i := range n {
					copy(buf[i*int64(width):], rows.Slice(lo+i, lo+i+1).S[first*spmv.Granule:last*spmv.Granule])
				}
				if err := put(buf[:n*int64(width)]); err != nil {
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

// readSoftLabels fills rows by node.
func (j *job) readSoftLabels(ctx context.Context, file *dataset.Rows, n int64, rows spmv.Rows) (err error) {
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
		return fmt.Errorf("worker: %s row %d: %s", j.res.SoftLabels, row, fmt.Sprintf(format, a...))
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
		copy(row, f.Dense)
		for i, c := range f.Indices {
			row[c] = f.Values[i]
		}
		for c, x := range row {
			if x < 0 {
				return bad(count, "%g for class %d: probabilities are at least 0", x, c)
			}
		}
	}
	if count != n {
		return fmt.Errorf("worker: %s has %d rows for %d nodes: give every node of the graph one row", j.res.SoftLabels, count, n)
	}
	return nil
}
