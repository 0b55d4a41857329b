package labels

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/depth"
	"ndls/stage/graph"
	"ndls/stage/models"
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
func errorTiles(env *stage.Env) *tiles.Matrix {
	done := stage.Committed(env.Catalog, catalog.KindCorrection)
	return env.Matrix(tiles.Layout{Kind: catalog.KindErrorTile, Prefix: errorPrefix, Width: softPanels(env) * packed.PanelColumns}).
		Needless(func(p tiles.Place) bool { return done[p.Interval] })
}

// correctedTiles returns the tiles of corrected soft labels.
func correctedTiles(env *stage.Env) *tiles.Matrix {
	width := softPanels(env) * packed.PanelColumns
	return env.Matrix(tiles.Layout{Kind: catalog.KindCorrectedTile, Prefix: correctedPrefix, Width: width})
}

// isCorrection reports whether the task is the correction, which comes before all columns.
func (env labelsRun) isCorrection() bool {
	return env.Task.Part == control.Choose && stage.Corrects(env.Plan)
}

// correct commits the corrected soft labels of all intervals that lack them.
func (env labelsRun) correct(ctx context.Context) (err error) {
	done := stage.Committed(env.Catalog, catalog.KindCorrection)
	// An attempt that ended after its commit may have left the errors of an interval.
	if err := env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindErrorTile &&
			done[int(e.Interval)]
	}); err != nil {
		return err
	}
	if len(done) == stage.Intervals(env.Summary) {
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
	for first := 0; first < stage.LabelRuns(env.Plan); {
		// The runs of a split follow each other. No column block mixes runs of two splits, because their training nodes differ.
		split, end := stage.SplitOf(env.Plan, first), first+1
		for end < stage.LabelRuns(env.Plan) && stage.SplitOf(env.Plan, end) == split {
			end++
		}
		if err := env.propagateErrors(ctx, first*per, end*per, known[split]); err != nil {
			return err
		}
		first = end
	}
	var sizes []float64
	for i := range stage.Intervals(env.Summary) {
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
	return env.someLabelled(ctx, []int{split}, stage.IsTraining, math.MaxInt64)
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
	g, err := graph.Open(ctx, env.Env)
	if err != nil {
		return err
	}
	_, alpha, most := env.Plan.Labels.Correction()
	// The session holds the table of label smoothing under a number of its own.
	k, err := depth.KeptHops(env.Session, most|errorTable, func() (*mem.Array[uint16], error) { return env.labelK(ctx, g, most) })
	if err != nil {
		return err
	}
	x := errorColumns{soft: soft.Columns, known: known, classes: len(env.Summary.Classes)}
	o := smooth.Options{Rule: errorRule(env.Plan), Targets: smooth.AllTargets(env.Summary.Nodes)}
	scale, _, _ := env.Plan.Labels.Correction()
	if scale == 0 {
		in := graph.Input{Columns: x.columns().Shifted(all), Kinds: softKinds}
		return g.SmoothBlocks(ctx, o, k, in, all+first, all+last, func(ctx context.Context, t *graph.Team, first, last int) error {
			return t.SmoothBlock(ctx, out, -all, first, last)
		})
	}
	c := &clampedErrors{errorColumns: x, panels: all, alpha: float32(alpha)}
	o.After = func(hop int) error { return c.after(ctx, hop) }
	o.PanelBytes = known.count() * panelRow
	return g.SmoothBlocks(ctx, o, k, graph.Input{Columns: c.read, Kinds: softKinds}, all+first, all+last,
		func(ctx context.Context, t *graph.Team, first, last int) error {
			if err := c.begin(env.Env, t.Smoother, first); err != nil {
				return err
			}
			defer c.rows.Free()
			return t.SmoothBlock(ctx, out, -all, first, last)
		})
}

// errorTable marks the number under which the session holds the hops of errors.
const errorTable = 1 << 24

// errorColumns are the errors of soft labels: label minus soft label for training nodes, 0 for others.
type errorColumns struct {
	soft    graph.Columns
	known   *chosenNodes
	classes int
}

// columns returns the errors.
func (e errorColumns) columns() graph.Columns {
	return e.soft.Each(e.known.targets, func(first int, target int64, row []float32) {
		if target < 0 {
			clear(row)
		} else {
			e.row(row, first, int(e.known.label.S[target]))
		}
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

	s            *smooth.Smoother
	first, width int                 // of the block: panel, and columns
	rows         *mem.Array[float32] // rows of the training nodes
	filled       bool
}

// begin allocates memory for a block.
func (c *clampedErrors) begin(env *stage.Env, s *smooth.Smoother, first int) (err error) {
	c.s, c.first, c.width, c.filled = s, first, s.Layout().Columns, false
	c.rows, err = mem.Alloc[float32](env.Budget, c.known.count()*int64(c.width), "errors of training nodes")
	return err
}

// read reads some of the errors, and keeps the rows of training nodes.
func (c *clampedErrors) read(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	kept := c.columns().Each(c.known.targets, func(_ int, target int64, row []float32) {
		if target >= 0 {
			copy(c.rows.S[target*int64(columns):], row)
		}
	})
	err := kept.Shifted(c.panels)(ctx, first, columns, put)
	c.filled = err == nil
	return err
}

// after ends a hop: it damps the errors of other nodes and restores those of training nodes.
func (c *clampedErrors) after(ctx context.Context, hop int) error {
	if hop == 0 || hop == c.s.Hops() {
		return nil
	}
	if !c.filled { // the block resumed from a state
		if err := c.read(ctx, c.first*packed.PanelColumns, c.width, func([]float32) error { return nil }); err != nil {
			return err
		}
	}
	return c.s.Clamp(c.alpha, c.known.targets, func(i int64) []float32 { return c.rows.S[i*int64(c.width):][:c.width] })
}

// errorSizes returns, for each run, the mean L1 norm of the errors of training nodes.
func (env labelsRun) errorSizes(ctx context.Context, known []*chosenNodes) (sizes []float64, err error) {
	soft, err := env.softColumns(ctx, 0, softPanels(env.Env), true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, soft.free()) }()
	per := packed.Panels(len(env.Summary.Classes))
	for run := range stage.LabelRuns(env.Plan) {
		known, sum := known[stage.SplitOf(env.Plan, run)], 0.0
		x := errorColumns{soft: soft.Columns, known: known, classes: len(env.Summary.Classes)}.columns()
		for p := run * per; p < (run+1)*per; p++ {
			// One panel at a time: additions run in order of panel.
			node := int64(0)
			if err := x(ctx, p*packed.PanelColumns, packed.PanelColumns, func(rows []float32) error {
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
		if err := env.correctRun(ctx, i, run, known[stage.SplitOf(env.Plan, run)], factors.S); err != nil {
			return err
		}
		c.Runs = append(c.Runs, runCorrection{Size: size, Scale: given})
	}
	e := catalog.Describe(catalog.KindCorrection, correctionPath(i)).In(i).Holding(lo, hi)
	if err := env.Catalog.Write(ctx, e, stage.WriteJSON(c)); err != nil {
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
	propagated, stop := iter.Pull2(graph.Columns(errorTiles(env.Env).Share(lo, hi).Rows).Rows(ctx, at, columns))
	defer stop()
	node, label := lo, known.targets.Before(lo)
	if err := soft.Columns(ctx, at, columns, func(rows []float32) error {
		for left := rows; len(left) > 0; left = left[columns:] {
			row := left[:columns]
			e, err, more := propagated()
			if err == nil && !more {
				err = seal.Corrupt(errorPrefix, "there are fewer rows than nodes")
			}
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
	if _, err, _ := propagated(); err != nil { // the end of the files, where checksums are checked
		return err
	}
	return to.Commit(ctx)
}

// softRows opens the soft labels of rows [lo, hi) and of panels below last.
func (env labelsRun) softRows(ctx context.Context, lo, hi int64, last int) (softColumns, error) {
	if !stage.OwnModel(env.Plan) {
		return givenColumns(GivenTiles(env.Env).Share(lo, hi)), nil
	}
	m, err := env.modelColumns(ctx, last, true)
	if err != nil {
		return softColumns{}, err
	}
	m.lo, m.hi = lo, hi
	return softColumns{m.columns, m.free}, nil
}

// dropCorrected removes the corrected soft labels of an interval, which later predictions do not read.
func (env labelsRun) dropCorrected(ctx context.Context, interval int) error {
	return correctedTiles(env.Env).Drop(ctx, interval)
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
	runs, per := stage.LabelRuns(s.Plan), packed.Panels(s.Classes)*packed.PanelColumns
	before := s.PeakBytes
	s.PeakBytes = 0
	s.OnGraph().Columns(o, runs*per, most, 2*s.Part+softHeld(s)+known, false)
	if stage.OwnModel(s.Plan) {
		// Predicting uses the memory that a block leaves.
		more, _ := train.PlanPredict(models.ShapeOf(s), models.Options(s.Plan), 1, s.Threads, s.Resources.Memory-s.PeakBytes+softHeld(s))
		s.PeakBytes += max(more-softHeld(s), 0)
	}
	s.PeakBytes = max(s.PeakBytes, before)
	interval := s.Interval(s.Nodes)
	held := known + 4*interval + 2*4096
	s.ReadsRows(held, interval, s.Classes, false)
	together := min(packed.Panels(s.Classes), tiles.Together) * packed.PanelColumns
	reading := tiles.ReadBytes(together, int(min(hops.BatchValues/2/int64(together), interval)), int64(shards.TileRowBytes(false)))
	s.Takes(held+softHeld(s)+2*reading, held+softHeld(s)+2*reading)
	bytes := int64(runs) * estimate.TileBytes(s.Nodes, s.Classes, false)
	scratch := s.ScratchBytes // the correction's scratch ends here
	if stage.OwnModel(s.Plan) {
		// While the sizes of errors are computed, rows that go through the model may use the memory that is left.
		more, _ := train.PlanPredict(models.ShapeOf(s), models.Options(s.Plan), 1, s.Threads, s.Budget()-known)
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
	if !stage.Corrects(s.Plan) {
		return 0
	}
	return int64(stage.LabelRuns(s.Plan)) * estimate.TileBytes(s.Nodes, s.Classes, false)
}
