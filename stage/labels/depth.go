package labels

import (
	"cmp"
	"context"
	"math"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/measures"
	"ndls/train"
)

// Depth chooses the number of hops of label smoothing by the validation nodes.
//
// The sums of all depths are prefixes of the same sums. So one sweep over the hops up to Kmax computes the smoothed soft labels of the
// validation nodes at each depth. A task writes one file for each panel of 16 classes, with the panel's best class of each validation node
// at each depth. When all files exist, the best classes of all panels are compared with the labels. Test nodes take no part. Of labels and
// numbers the files hold squared errors, added up over the panel's columns, and the depth with the least sum is chosen.
type Depth struct {
	stage.InWhole
	// Rows, if not nil, holds the smoothed rows of all nodes in memory, in place of those in files.
	Rows train.Source
}

func (Depth) Name() control.Stage { return control.LabelDepth }

func (Depth) About() string {
	return "the depth of label smoothing that is best on the validation nodes"
}

func (Depth) Needs(p plan.Options) []control.Stage {
	needs := []control.Stage{control.Partition}
	if p.Labels.Rule != plan.CorrectSmooth {
		needs = append(needs, control.LSI)
	}
	if stage.OwnModel(p) {
		needs = append(needs, control.Predict)
	}
	return needs
}

func (Depth) Lacks(p plan.Options, f estimate.Facts) string {
	if p.Labels.Depth != plan.AutoDepth {
		return stage.DepthGiven
	}
	return stage.LacksSmoothing(p, f)
}

func (Depth) Options(p plan.Options) map[string]any {
	return map[string]any{"labels": p.Labels, "precision": p.Precision, "tolerance": p.Tolerance}
}

func (Depth) Writes() []stage.Kind {
	return []stage.Kind{
		{Name: catalog.KindLabelDepth, Lasting: true},
		{Name: catalog.KindDepthRows},
		{Name: catalog.KindDepthPart},
	}
}

func (Depth) Shape(p plan.Options, sum shards.Summary) stage.Shape {
	m := runsColumns(p, sum)
	m.Intervals, m.Tiles, m.Parts, m.Rows = 1, []string{catalog.KindDepthRows}, catalog.KindDepthPart, catalog.KindLabelDepth
	return m
}

// Shares implements estimate.Stage.
func (Depth) Shares(p plan.Options) bool { return sharesRows(p) }

// Cost implements estimate.Stage: the soft labels of all runs are smoothed side by side, with sums of the validation nodes alone.
func (Depth) Cost(s *estimate.Sheet) {
	splits := int64(s.Plan.NumSplits())
	nodes := min(s.Validation*splits, max(s.Labelled, s.Validation), mostValidation)
	most := s.Plan.Labels.Kmax
	bytes := int64(most+1) * nodes * depthRow // in memory; files hold only the depths that exist
	o := smooth.Options{
		Targets: smooth.CountedTargets(s.Part, min(nodes, s.Part)), PanelBytes: bytes + nodes*panelRow,
		Ahead: !s.Plan.Labels.Corrects(), After: func(int) error { return nil }, Depths: most,
	}
	held := smooth.TargetsBytes(s.Nodes) + smooth.TargetsBytes(s.Part) + (4+splits)*nodes + 2*4096 +
		measures.AnswerBytes(s.Plan, s.Classes, nodes)
	if s.ValidationHops > 0 && splits == 1 && s.Plan.Labels.TakesK() && s.Plan.Labels.Epsilon == 0 {
		most = min(most, s.ValidationHops) // later hops affect no validation node
	}
	if s.Plan.Labels.Corrects() {
		correctionCost(s)
		rule, _ := labelRule(s.Plan)
		if (smooth.Options{Rule: rule, Tolerance: s.Plan.Tolerance}).Passes(most) == most {
			for hop := range most {
				o.Keep = append(o.Keep, hop+1) // each hop's rows are read once more
			}
		}
	}
	sweepLabels(s, o, held, most, true, true)
	s.ReadNodes(5) // degrees; validation nodes are counted and found, for the sweep and for the choice
	// The best classes of all panels of a run are merged in memory.
	s.Takes(2*bytes+held, 2*bytes+held)
	panels := int64(stage.LabelRuns(s.Plan) * packed.Panels(s.Classes))
	files := panels * int64(min(s.Hops, most)+1) * nodes * depthRow
	s.BytesRead += files
	s.BytesWritten += files
	s.PeakDiskBytes = max(s.PeakDiskBytes, s.DiskBytes+s.ScratchBytes+correctedBytes(s)+files)
}

// Run implements Stage: it commits the depth of each run.
func (x Depth) Run(ctx context.Context, env *stage.Env) error {
	run := depthRun{labelsRun{env, x.Rows}}
	if run.isCorrection() {
		return run.correct(ctx)
	}
	return env.InParts(ctx, run.rows(),
		func(ctx context.Context, first, last int) error { return run.sweep(ctx, first, last) },
		func(ctx context.Context, _, _ int) error { return run.choose(ctx) })
}

// choose commits the depth of each run: the smallest depth with the most validation nodes right, or with the least errors.
func (env depthRun) choose(ctx context.Context) error {
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	var d labelDepth
	if _, done := env.Catalog.Lookup(labelDepthPath); done {
		var err error
		if d, err = readDepth(ctx, env.Plan, env.Catalog); err != nil {
			return err
		}
	} else {
		v, err := env.validation(ctx)
		if err != nil {
			return err
		}
		defer v.free()
		d = labelDepth{Kmax: env.Plan.Labels.Kmax, ValidationNodes: v.count(), ValidationNodesOf: v.of}
		rows := env.rows()
		for run := range stage.LabelRuns(env.Plan) {
			r, split := runDepth{Run: run, Depth: d.Kmax}, stage.SplitOf(env.Plan, run)
			if len(v.in) > 1 {
				r.Nodes = v.in[split].count()
			}
			if v.in[split].count() > 0 {
				if env.Plan.Answers() {
					r.Errors = make([]float64, d.Kmax+1)
					err = rows.count(ctx, run, d.Kmax, v, v.in[split], func(depth, _ int, sum uint64) {
						r.Errors[depth] += math.Float64frombits(sum)
					})
					r.Depth = slices.Index(r.Errors, slices.Min(r.Errors))
				} else {
					r.Right = make([]int64, d.Kmax+1)
					err = rows.count(ctx, run, d.Kmax, v, v.in[split], func(depth, node int, best uint64) {
						if int32(uint32(best)) == v.label.S[node] {
							r.Right[depth]++
						}
					})
					r.Depth = slices.Index(r.Right, slices.Max(r.Right))
				}
				if err != nil {
					return err
				}
			}
			d.Runs = append(d.Runs, r)
		}
		if err := env.commitDepth(ctx, d); err != nil {
			return err
		}
	}
	env.Report.Rows = d.ValidationNodes
	env.Report.LabelDepth = d.report(stage.ModelsOfSplit(env.Plan))
	env.Disk.Look()
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindDepthRows || e.Kind == catalog.KindDepthPart
	})
}

// commitDepth commits the choice.
func (env depthRun) commitDepth(ctx context.Context, d labelDepth) error {
	return env.Catalog.Write(ctx, catalog.Describe(catalog.KindLabelDepth, labelDepthPath).In(0).Counting(1), stage.WriteJSON(d))
}

// report returns the choice for report.json. The first `models` runs belong to the first split.
func (d labelDepth) report(models int) *control.LabelDepthReport {
	nodes := func(x runDepth) int64 { return cmp.Or(x.Nodes, d.ValidationNodes) }
	chosen := 0
	best := func(x runDepth) int64 {
		if x.Depth >= len(x.Right) {
			return 0 // no validation node has a label
		}
		return x.Right[x.Depth]
	}
	loss := func(x runDepth, depth int) float64 {
		if depth >= len(x.Errors) {
			return 0
		}
		return x.Errors[depth] / float64(nodes(x))
	}
	for i, x := range d.Runs[:models] {
		if y := d.Runs[chosen]; best(x) > best(y) || loss(x, x.Depth) < loss(y, y.Depth) {
			chosen = i
		}
	}
	r := &control.LabelDepthReport{
		Chosen: d.Runs[chosen].Depth, Kmax: d.Kmax, ValidationNodes: nodes(d.Runs[chosen]), Run: chosen,
		Curve: []control.DepthAccuracy{},
	}
	for _, x := range d.Runs {
		r.Depths = append(r.Depths, x.Depth)
		if n := nodes(x); n > 0 {
			r.Mean += float64(best(x)) / float64(n) / float64(len(d.Runs))
			r.MeanError += loss(x, x.Depth) / float64(len(d.Runs))
		}
	}
	for depth := range d.Runs[chosen].Errors {
		sum := 0.0
		for _, x := range d.Runs {
			sum += loss(x, depth) / float64(len(d.Runs))
		}
		r.Errors = append(r.Errors, sum)
	}
	for depth := range d.Runs[chosen].Right {
		sum, runs := 0.0, 0
		for _, x := range d.Runs {
			if depth < len(x.Right) {
				sum, runs = sum+float64(x.Right[depth])/float64(nodes(x)), runs+1
			}
		}
		valid := float64(d.Runs[chosen].Right[depth]) / float64(r.ValidationNodes)
		r.Curve = append(r.Curve, control.DepthAccuracy{Depth: depth, Valid: valid, Mean: sum / float64(runs)})
	}
	return r
}
