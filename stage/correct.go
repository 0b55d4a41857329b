package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
	"ndls/train"
)

// Correct & Smooth (Huang et al., ICLR 2021) takes the place of label smoothing under the rules
// cs and cs-nd. With Z the soft labels and Y the labels of the training nodes:
//
//	correct   E = Y − Z for training nodes, 0 for others; E is propagated, scaled, and added to Z
//	smooth    rows of training nodes become Y, and what results is propagated as soft labels are
//	          smoothed: up to the depth that is given or chosen, where depth 0 is Z
//
// Validation and test labels take no part. One task makes the correction before all columns that are smoothed. Errors are propagated column
// block by column block and committed as tiles, because the scale of a row needs all of its columns. Then corrected soft labels replace the
// error tiles of each interval. They are smoothed like given soft labels and removed after the predictions. A task does what the catalogue
// lacks.

const (
	errorPrefix     = "predictions/errors"
	correctedPrefix = "predictions/corrected"
	// largestScale is the largest factor by which the scale auto multiplies an error. Rows that would need more have almost no error and
	// stay unscaled. The authors' code has the same limit.
	largestScale = 1000
)

// correction is the content of predictions/correction-NNNNN.json.
type correction struct {
	Runs []runCorrection `json:"runs"`
}

// runCorrection holds the factor by which the errors of an interval were multiplied.
type runCorrection struct {
	// Size is the mean L1 norm of the errors of training nodes; the scale auto gives all other errors this norm.
	Size float64 `json:"mean_training_error"`
	// Scale is the given factor, 0 for auto.
	Scale float64 `json:"scale,omitempty"`
}

func correctionPath(interval int) string {
	return fmt.Sprintf("predictions/correction-%05d.json", interval)
}

// corrects reports whether the plan corrects soft labels. With a given depth of 0 it does not, because depth 0 leaves them unchanged.
func corrects(p plan.Options) bool { return p.Labels.Corrects() && p.Labels.Hops() > 0 }

// labelRule returns the rule by which soft labels are smoothed.
func labelRule(p plan.Options) (smooth.Rule, error) {
	if !p.Labels.Corrects() {
		rule, err := smooth.NewRule(p.Labels.Rule, p.Labels.Alpha, 0)
		// Averages of neighbours stay among their values, and need no division by the sum over classes.
		rule.Walk = p.Answers()
		return rule, err
	}
	rule := smooth.Propagation(cmp.Or(p.Labels.SmoothAlpha, plan.DefaultSmoothAlpha))
	rule.Name = p.Labels.Rule
	return rule, nil
}

// errorRule returns the rule by which errors are propagated.
func errorRule(p plan.Options) smooth.Rule {
	scale, alpha, _ := p.Labels.Correction()
	rule := smooth.Propagation(alpha)
	if scale > 0 {
		rule = smooth.ClampedPropagation(alpha)
	}
	rule.Name = p.Labels.Rule
	return rule
}

// errorTiles returns the tiles of propagated errors, with one panel per panel of soft labels. Corrected intervals need none.
func errorTiles(env *Env) *tiles.Matrix {
	done := intervalsOf(env.Catalog, catalog.KindCorrection)
	return env.outputs().matrix(tiles.Layout{Kind: catalog.KindErrorTile, Prefix: errorPrefix, Width: softPanels(env) * packed.PanelColumns}).
		Needless(func(p tiles.Place) bool { return done[p.Interval] })
}

// correctedTiles returns the tiles of corrected soft labels.
func correctedTiles(env *Env) *tiles.Matrix {
	width := softPanels(env) * packed.PanelColumns
	return env.outputs().matrix(tiles.Layout{Kind: catalog.KindCorrectedTile, Prefix: correctedPrefix, Width: width})
}

// constantK returns a table with the same number of hops for all nodes of the task.
func (env labelsRun) constantK(hops int) (*mem.Array[uint16], error) {
	lo, hi := env.Span(env.Summary.Nodes)
	k, err := mem.Alloc[uint16](env.Budget, hi-lo, "hops of nodes")
	if err != nil {
		return nil, err
	}
	for i := range k.S {
		k.S[i] = uint16(hops)
	}
	return k, nil
}

// isCorrection reports whether the task is the correction, which comes before all columns.
func (env labelsRun) isCorrection() bool {
	return env.Task.Part == control.Choose && corrects(env.Plan)
}

// correct commits the corrected soft labels of all intervals that lack them.
func (env labelsRun) correct(ctx context.Context) (err error) {
	done := intervalsOf(env.Catalog, catalog.KindCorrection)
	// An attempt that ended after its commit may have left the errors of an interval.
	if err := env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindErrorTile &&
			done[int(e.Interval)]
	}); err != nil {
		return err
	}
	if len(done) == intervals(env.Summary) {
		return nil
	}
	var known []*chosenNodes // by split
	defer func() {
		for _, x := range known {
			x.free()
		}
	}()
	for split := range env.Plan.NumSplits() {
		x, err := env.trainingNodes(ctx, split)
		if err != nil {
			return err
		}
		if known = append(known, x); x.count() == 0 {
			return fmt.Errorf("--label-rule %s corrects by the labels of training nodes, and there are none: partition with --split random:20,30, or leave --label-rule out", env.Plan.Labels.Rule)
		}
	}
	per := packed.Panels(len(env.Summary.Classes))
	for first := 0; first < labelRuns(env.Plan); {
		// The runs of a split follow each other. No column block mixes runs of two splits, because their training nodes differ.
		split, end := splitOf(env.Plan, first), first+1
		for end < labelRuns(env.Plan) && splitOf(env.Plan, end) == split {
			end++
		}
		if err := env.propagateErrors(ctx, first*per, end*per, known[split]); err != nil {
			return err
		}
		first = end
	}
	var sizes []float64
	for i := range intervals(env.Summary) {
		if done[i] {
			continue
		}
		if sizes == nil {
			if sizes, err = env.errorSizes(ctx, known); err != nil {
				return err
			}
		}
		if err := env.correctInterval(ctx, i, known, sizes); err != nil {
			return err
		}
	}
	return env.States.Drop(ctx)
}

// trainingNodes finds the training nodes of a split.
func (env labelsRun) trainingNodes(ctx context.Context, split int) (*chosenNodes, error) {
	return env.someLabelled(ctx, []int{split}, isTraining, math.MaxInt64)
}

// propagateErrors commits the tiles of propagated errors of panels [first, last). The runs of these panels share the training nodes known.
func (env labelsRun) propagateErrors(ctx context.Context, first, last int, known *chosenNodes) (err error) {
	out := errorTiles(env.Env)
	all := out.Panels()
	if first = out.FirstMissing(first, last); first == last {
		return nil
	}
	soft, err := env.softColumns(ctx, first, last, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, soft.free()) }()
	g, err := env.graph(ctx)
	if err != nil {
		return err
	}
	_, alpha, most := env.Plan.Labels.Correction()
	// The session holds the table of label smoothing under a number of its own.
	k, err := env.table(most|errorTable, func() (*mem.Array[uint16], error) { return env.labelK(ctx, g, most) })
	if err != nil {
		return err
	}
	x := errorColumns{soft: soft, known: known, classes: len(env.Summary.Classes)}
	o := smooth.Options{Rule: errorRule(env.Plan), Targets: smooth.AllTargets(env.Summary.Nodes)}
	scale, _, _ := env.Plan.Labels.Correction()
	if scale == 0 {
		in := input{Columns: &shifted{x, all}, kinds: softKinds}
		return g.smoothBlocks(ctx, o, k, in, all+first, all+last, func(ctx context.Context, t *team, first, last int) error {
			return t.smoothBlock(ctx, out, -all, first, last)
		})
	}
	c := &clampedErrors{errorColumns: x, panels: all, alpha: float32(alpha)}
	o.After = func(hop int) error { return c.after(ctx, hop) }
	o.PanelBytes = known.count() * panelRow
	return g.smoothBlocks(ctx, o, k, input{Columns: c, kinds: softKinds}, all+first, all+last,
		func(ctx context.Context, t *team, first, last int) error {
			if err := c.begin(env.Env, t.s, first); err != nil {
				return err
			}
			defer c.rows.Free()
			return t.smoothBlock(ctx, out, -all, first, last)
		})
}

// errorTable marks the number under which the session holds the hops of errors.
const errorTable = 1 << 24

// errorColumns yields the errors of soft labels: label minus soft label for training nodes, 0 for others.
type errorColumns struct {
	soft    lsi.Columns
	known   *chosenNodes
	classes int
}

// Width implements lsi.Columns.
func (e errorColumns) Width() int { return e.soft.Width() }

// Rows implements lsi.Columns.
func (e errorColumns) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	node, at := int64(0), 0
	return e.soft.Rows(ctx, first, columns, func(rows []float32) error {
		for from := 0; from < len(rows); from += columns {
			row := rows[from : from+columns]
			if e.known.targets.Has(node) {
				e.row(row, first, int(e.known.label.S[at]))
				at++
			} else {
				clear(row)
			}
			node++
		}
		return put(rows)
	})
}

// row turns the soft labels of a training node into errors, beginning at column first.
func (e errorColumns) row(row []float32, first, label int) {
	per := packed.Panels(e.classes) * packed.PanelColumns
	for c, z := range row {
		switch class := (first + c) % per; {
		case class == label:
			row[c] = 1 - z
		case class < e.classes:
			row[c] = -z
		}
	}
}

// clampedErrors restores the errors of training nodes after each hop. Its panels begin where those of soft labels end.
type clampedErrors struct {
	errorColumns
	panels int
	alpha  float32

	s              *smooth.Smoother
	first, columns int
	rows           *mem.Array[float32] // rows of the training nodes
	filled         bool
}

// begin allocates memory for a block.
func (c *clampedErrors) begin(env *Env, s *smooth.Smoother, first int) (err error) {
	c.s, c.first, c.columns, c.filled = s, first, s.Layout().Columns, false
	c.rows, err = mem.Alloc[float32](env.Budget, c.known.count()*int64(c.columns), "errors of training nodes")
	return err
}

// Rows implements lsi.Columns. It keeps the rows of training nodes.
func (c *clampedErrors) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	node, at := int64(0), 0
	err := c.errorColumns.Rows(ctx, first-c.panels*packed.PanelColumns, columns, func(rows []float32) error {
		for from := 0; from < len(rows); from += columns {
			if c.known.targets.Has(node) {
				copy(c.rows.S[at*columns:][:columns], rows[from:])
				at++
			}
			node++
		}
		return put(rows)
	})
	c.filled = err == nil
	return err
}

// after ends a hop: it damps the errors of other nodes and restores those of training nodes.
func (c *clampedErrors) after(ctx context.Context, hop int) error {
	if hop == 0 || hop == c.s.Hops() {
		return nil
	}
	if !c.filled { // the block resumed from a state
		if err := c.Rows(ctx, c.first*packed.PanelColumns, c.columns, func([]float32) error { return nil }); err != nil {
			return err
		}
	}
	return c.s.Clamp(c.alpha, c.known.targets, func(i int64) []float32 { return c.rows.S[i*int64(c.columns):][:c.columns] })
}

// errorSizes returns, for each run, the mean L1 norm of the errors of training nodes.
func (env labelsRun) errorSizes(ctx context.Context, known []*chosenNodes) (sizes []float64, err error) {
	soft, err := env.softColumns(ctx, 0, softPanels(env.Env), true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, soft.free()) }()
	per := packed.Panels(len(env.Summary.Classes))
	for run := range labelRuns(env.Plan) {
		known, sum := known[splitOf(env.Plan, run)], 0.0
		x := errorColumns{soft: soft, known: known, classes: len(env.Summary.Classes)}
		for p := run * per; p < (run+1)*per; p++ {
			// One panel at a time: additions run in order of panel.
			node := int64(0)
			if err := x.Rows(ctx, p*packed.PanelColumns, packed.PanelColumns, func(rows []float32) error {
				for ; len(rows) > 0; rows = rows[packed.PanelColumns:] {
					if known.targets.Has(node) {
						sum += l1(rows[:packed.PanelColumns])
					}
					node++
				}
				return nil
			}); err != nil {
				return nil, err
			}
		}
		sizes = append(sizes, sum/float64(known.count()))
	}
	return sizes, nil
}

// l1 returns the L1 norm of a row.
func l1(row []float32) (sum float64) {
	for _, x := range row {
		sum += math.Abs(float64(x))
	}
	return sum
}

// correctInterval commits the corrected soft labels of an interval, and removes its errors.
func (env labelsRun) correctInterval(ctx context.Context, i int, known []*chosenNodes, sizes []float64) (err error) {
	propagated := errorTiles(env.Env)
	lo, hi := propagated.Bounds(i)
	factors, err := mem.Alloc[float32](env.Budget, hi-lo, "scales of errors")
	if err != nil {
		return err
	}
	defer factors.Free()
	given, _, _ := env.Plan.Labels.Correction()
	c := correction{}
	for run, size := range sizes {
		if given > 0 {
			for r := range factors.S {
				factors.S[r] = float32(given)
			}
		} else if err := env.scales(ctx, propagated, i, run, size, factors.S); err != nil {
			return err
		}
		if err := env.correctRun(ctx, i, run, known[splitOf(env.Plan, run)], factors.S); err != nil {
			return err
		}
		c.Runs = append(c.Runs, runCorrection{Size: size, Scale: given})
	}
	e := catalog.Describe(catalog.KindCorrection, correctionPath(i)).In(i).Holding(lo, hi)
	if err := env.Catalog.Write(ctx, e, writeJSON(c)); err != nil {
		return err
	}
	env.Disk.Look()
	return propagated.Drop(ctx, i)
}

// scales computes the factor for the errors of each node of an interval that gives them the L1 norm size.
func (env labelsRun) scales(ctx context.Context, propagated *tiles.Matrix, i, run int, size float64, factors []float32) error {
	classes := len(env.Summary.Classes)
	lo, _ := propagated.Bounds(i)
	return propagated.Read(ctx, i, run*packed.Panels(classes), classes, shards.BatchRows(classes), func(row int64, values []float32) error {
		for r := row - lo; len(values) > 0; r, values = r+1, values[classes:] {
			factor := size / l1(values[:classes])
			if !(factor <= largestScale) {
				factor = 1
			}
			factors[r] = float32(factor)
		}
		return nil
	})
}

// correctRun commits the corrected soft labels of a run in an interval.
func (env labelsRun) correctRun(ctx context.Context, i, run int, known *chosenNodes, factors []float32) (err error) {
	lo, hi := correctedTiles(env.Env).Bounds(i)
	per := packed.Panels(len(env.Summary.Classes))
	soft, err := env.softRows(ctx, lo, hi, (run+1)*per)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, soft.free()) }()
	for p := run * per; p < (run+1)*per; {
		end := min(p+tiles.Together, (run+1)*per)
		if err := env.correctPanels(ctx, i, p, end, soft, known, factors); err != nil {
			return err
		}
		p = end
	}
	env.Disk.Look() // peak: errors, corrected soft labels and soft labels of the run
	return nil
}

// correctPanels commits panels [first, last), of one run, of the corrected soft labels of an interval. soft yields the soft labels of the
// interval's rows.
func (env labelsRun) correctPanels(ctx context.Context, i, first, last int, soft softColumns, known *chosenNodes, factors []float32) error {
	out := correctedTiles(env.Env)
	to, err := out.Create(ctx, i, first, last)
	if err != nil {
		return err
	}
	defer to.Abort()
	if to.Whole() {
		return nil
	}
	lo, hi := out.Bounds(i)
	per := packed.Panels(len(env.Summary.Classes)) * packed.PanelColumns
	columns, at := (last-first)*packed.PanelColumns, first*packed.PanelColumns
	propagated := pull(ctx, func(ctx context.Context, put func([]float32) error) error {
		return errorTiles(env.Env).Share(lo, hi).Rows(ctx, at, columns, put)
	})
	defer propagated.close()
	node, label := lo, known.targets.Before(lo)
	if err := soft.Rows(ctx, at, columns, func(rows []float32) error {
		for left := rows; len(left) > 0; left = left[columns:] {
			row := left[:columns]
			e, err := propagated.next(columns)
			if err != nil {
				return err
			}
			if known.targets.Has(node) {
				for c := range row {
					row[c] = 0
					if (at+c)%per == int(known.label.S[label]) {
						row[c] = 1
					}
				}
				label++
			} else {
				f := float64(factors[node-lo])
				for c, z := range row {
					row[c] = float32(float64(z) + float64(f*float64(e[c])))
				}
			}
			node++
		}
		for p := first; p < last; p++ {
			if err := to.Put(p, rows, columns, (p-first)*packed.PanelColumns); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := propagated.finish(); err != nil {
		return err
	}
	return to.Commit(ctx)
}

// softRows opens the soft labels of rows [lo, hi) and of panels below last.
func (env labelsRun) softRows(ctx context.Context, lo, hi int64, last int) (softColumns, error) {
	if !ownModel(env.Plan) {
		return givenColumns{givenTiles(env.Env).Share(lo, hi)}, nil
	}
	m, err := env.modelColumns(ctx, last, true)
	if err != nil {
		return nil, err
	}
	m.lo, m.hi = lo, hi
	return m, nil
}

// dropCorrected removes the corrected soft labels of an interval, which later predictions do not read.
func (env labelsRun) dropCorrected(ctx context.Context, interval int) error {
	return correctedTiles(env.Env).Drop(ctx, interval)
}

// sumsOfSigned replaces negative sums so that the row can be normalised; the largest value keeps its place.
func sumsOfSigned(row []float32) {
	best := slices.Max(row)
	for c, x := range row {
		switch {
		case best > 0:
			row[c] = max(x, 0)
		case x == best:
			row[c] = 1
		default:
			row[c] = 0
		}
	}
}

// correctionCost adds the cost of the correction to the stage that makes it.
func correctionCost(s *estimate.Sheet) {
	scale, _, most := s.Plan.Labels.Correction()
	known := int64(s.Plan.NumSplits()) * (smooth.TargetsBytes(s.Nodes) + 5*s.Training + 2*4096)
	o := smooth.Options{Targets: smooth.AllTargets(s.Part), Rule: errorRule(s.Plan)}
	if scale > 0 {
		o.PanelBytes = s.Training * panelRow
	}
	if s.Plan.Labels.TakesK() {
		s.ReadK()
		if s.Plan.Labels.Epsilon == 0 {
			most = min(most, s.Hops)
		}
	}
	s.ReadNodes(1 + 2*int64(s.Plan.NumSplits())) // degrees, and training nodes are counted and found
	runs, per := labelRuns(s.Plan), packed.Panels(s.Classes)*packed.PanelColumns
	before := s.PeakBytes
	s.PeakBytes = 0
	s.OnGraph().Columns(o, runs*per, most, 2*s.Part+softHeld(s)+known, false)
	if ownModel(s.Plan) {
		// Predicting uses the memory that a block leaves.
		more, _ := train.PlanPredict(trainShape(s), trainOptions(s.Plan), 1, s.Threads, s.Resources.Memory-s.PeakBytes+softHeld(s))
		s.PeakBytes += max(more-softHeld(s), 0)
	}
	s.PeakBytes = max(s.PeakBytes, before)
	interval := s.Interval(s.Nodes)
	held := known + 4*interval + 2*4096
	s.ReadsRows(held, interval, s.Classes, false)
	together := min(packed.Panels(s.Classes), tiles.Together) * packed.PanelColumns
	reading := tiles.ReadBytes(together, int(min(batchValues/int64(together), interval)), int64(shards.TileRowBytes(false)))
	s.Takes(held+softHeld(s)+2*reading, held+softHeld(s)+2*reading)
	bytes := int64(runs) * estimate.TileBytes(s.Nodes, s.Classes, false)
	scratch := s.ScratchBytes // the correction's scratch ends here
	if ownModel(s.Plan) {
		// While the sizes of errors are computed, rows that go through the model may use the memory that is left.
		more, _ := train.PlanPredict(trainShape(s), trainOptions(s.Plan), 1, s.Threads, s.Budget()-known)
		s.Takes(known+more, known+softHeld(s))
		most := int64(0)
		for _, x := range []struct {
			block       int
			apart, once bool
		}{{s.ColumnsPerPass / packed.PanelColumns, false, false}, {1, false, true}, {tiles.Together, true, true}} {
			s.ScratchBytes = scratch
			predictsColumns(s, x.block, x.apart, x.once) // errors, their sizes, and corrected soft labels
			most = max(most, s.ScratchBytes)
		}
		s.ScratchBytes = most
	}
	s.BytesRead += 2 * bytes // soft labels, for the sizes of errors and for the correction
	s.BytesRead += 2 * bytes // errors, for scales and for the correction
	s.BytesWritten += 2 * bytes
	s.Moves(float64(bytes))
	beside := int64(float64(bytes) * float64(interval) / float64(max(s.Nodes, 1)))
	s.PeakDiskBytes = max(s.PeakDiskBytes, s.DiskBytes+s.ScratchBytes+bytes+beside)
	s.ScratchBytes = scratch
}

// correctedBytes returns the size of corrected soft labels, which stay until predictions are made.
func correctedBytes(s *estimate.Sheet) int64 {
	if !corrects(s.Plan) {
		return 0
	}
	return int64(labelRuns(s.Plan)) * estimate.TileBytes(s.Nodes, s.Classes, false)
}
