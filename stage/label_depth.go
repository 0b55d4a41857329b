package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
)

// labelDepthStage chooses the number of hops of label smoothing by the validation nodes.
//
// The sums of all depths are prefixes of the same sums. So one sweep over the hops up to Kmax computes the smoothed soft labels of the
// validation nodes at each depth. A task writes one file for each panel of 16 classes, with the panel's best class of each validation node
// at each depth. When all files exist, the best classes of all panels are compared with the labels. Test nodes take no part. Of labels and
// numbers the files hold squared errors, added up over the panel's columns, and the depth with the least sum is chosen.
type labelDepthStage struct{ each }

func (labelDepthStage) Name() control.Stage { return control.LabelDepth }

func (labelDepthStage) About() string {
	return "the depth of label smoothing that is best on the validation nodes"
}

func (labelDepthStage) Needs(p plan.Options) []control.Stage {
	needs := []control.Stage{control.Partition}
	if p.Labels.Rule != plan.CorrectSmooth {
		needs = append(needs, control.LSI)
	}
	if ownModel(p) {
		needs = append(needs, control.Predict)
	}
	return needs
}

func (labelDepthStage) Lacks(p plan.Options, f estimate.Facts) string {
	if p.Labels.Depth != plan.AutoDepth {
		return DepthGiven
	}
	return smoothLabelsStage{}.Lacks(p, f)
}

func (labelDepthStage) Options(p plan.Options) map[string]any {
	return map[string]any{"labels": p.Labels, "precision": p.Precision, "tolerance": p.Tolerance}
}

func (labelDepthStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindLabelDepth, Lasting: true},
		{Name: catalog.KindDepthRows},
		{Name: catalog.KindDepthPart},
	}
}

func (labelDepthStage) Shape(p plan.Options, sum shards.Summary) Shape {
	m := runsColumns(p, sum)
	m.Intervals, m.Tiles, m.Parts, m.Rows = 1, []string{catalog.KindDepthRows}, catalog.KindDepthPart, catalog.KindLabelDepth
	return m
}

// Shares implements estimate.Stage; the answer equals that of smooth-labels.
func (labelDepthStage) Shares(p plan.Options) bool { return smoothLabelsStage{}.Shares(p) }

// Cost implements estimate.Stage: the soft labels of all runs are smoothed side by side, with sums of the validation nodes alone.
func (labelDepthStage) Cost(s *estimate.Sheet) {
	splits := int64(s.Plan.NumSplits())
	nodes := min(s.Validation*splits, max(s.Labelled, s.Validation), mostValidation)
	most := s.Plan.Labels.Kmax
	bytes := int64(most+1) * nodes * depthRow // in memory; files hold only the depths that exist
	o := smooth.Options{
		Targets: smooth.CountedTargets(s.Part, min(nodes, s.Part)), PanelBytes: bytes + nodes*panelRow,
		Ahead: !s.Plan.Labels.Corrects(), After: func(int) error { return nil }, Depths: most,
	}
	held := smooth.TargetsBytes(s.Nodes) + smooth.TargetsBytes(s.Part) + (4+splits)*nodes + 2*4096 + answerBytes(s.Plan, s.Classes, nodes)
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
	panels := int64(labelRuns(s.Plan) * packed.Panels(s.Classes))
	files := panels * int64(min(s.Hops, most)+1) * nodes * depthRow
	s.BytesRead += files
	s.BytesWritten += files
	s.PeakDiskBytes = max(s.PeakDiskBytes, s.DiskBytes+s.ScratchBytes+correctedBytes(s)+files)
}

// Run implements Stage: it commits the depth of each run.
func (labelDepthStage) Run(ctx context.Context, env *Env) error {
	run := depthRun{labelsRun{env}}
	if run.isCorrection() {
		return run.correct(ctx)
	}
	return env.outputs().inParts(ctx, env.Summary, run.rows(),
		func(ctx context.Context, first, last int) error { return run.sweep(ctx, first, last) },
		func(ctx context.Context, _, _ int) error { return run.choose(ctx) })
}

// depthRun is the stage while it runs.
type depthRun struct{ labelsRun }

const (
	labelDepthPath = "predictions/depth.json"
	// mostValidation is the largest number of validation nodes that are used. If there are more, those used are spread evenly.
	mostValidation = 1 << 18
	// depthRow is the size of the best class of a node at a depth: its value (float32) and its number among the classes (uint32).
	depthRow = 8
)

// labelDepth is the content of predictions/depth.json.
type labelDepth struct {
	Kmax int `json:"kmax"`
	// ValidationNodes counts the nodes that were used; ValidationNodesOf counts all that validate in some split.
	ValidationNodes   int64      `json:"validation_nodes"`
	ValidationNodesOf int64      `json:"validation_nodes_of"`
	Runs              []runDepth `json:"runs"`
}

// runDepth holds the choice for one run.
type runDepth struct {
	Run   int `json:"run"`
	Depth int `json:"depth"`
	// Nodes counts those of the nodes that validate in the split of the run, if there are several splits.
	Nodes int64 `json:"validation_nodes,omitempty"`
	// Right holds, for each depth from 0, the number of nodes whose class is right.
	Right []int64 `json:"right"`
	// Errors holds, for each depth from 0, the sum of squared errors of labels or numbers, which these have in place of Right.
	Errors []float64 `json:"errors,omitempty"`
}

// choose commits the depth of each run: the smallest depth with the most validation nodes right, or with the least errors.
func (env depthRun) choose(ctx context.Context) error {
	if err := env.States.Drop(ctx); err != nil {
		return err
	}
	var d labelDepth
	if _, done := env.Catalog.Lookup(labelDepthPath); done {
		if err := env.readDepth(ctx, &d); err != nil {
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
		for run := range labelRuns(env.Plan) {
			r, split := runDepth{Run: run, Depth: d.Kmax}, splitOf(env.Plan, run)
			if len(v.in) > 1 {
				r.Nodes = v.in[split].count()
			}
			if v.in[split].count() > 0 {
				if env.Plan.Answers() {
					r.Errors, err = rows.errors(ctx, run, d.Kmax, v, v.in[split])
				} else {
					r.Right, err = rows.right(ctx, run, d.Kmax, v, v.in[split])
				}
				if err != nil {
					return err
				}
				if r.Errors != nil {
					r.Depth = slices.Index(r.Errors, slices.Min(r.Errors))
				} else {
					r.Depth = slices.Index(r.Right, slices.Max(r.Right))
				}
			}
			d.Runs = append(d.Runs, r)
		}
		if err := env.commitDepth(ctx, d); err != nil {
			return err
		}
	}
	env.Report.Rows = d.ValidationNodes
	env.Report.LabelDepth = d.report(modelsOfSplit(env.Plan))
	env.Disk.Look()
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		return e.Kind == catalog.KindDepthRows || e.Kind == catalog.KindDepthPart
	})
}

// commitDepth commits the choice.
func (env depthRun) commitDepth(ctx context.Context, d labelDepth) error {
	return env.Catalog.Write(ctx, catalog.Describe(catalog.KindLabelDepth, labelDepthPath).In(0).Counting(1), writeJSON(d))
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

// readDepth reads the committed choice.
func (env labelsRun) readDepth(ctx context.Context, d *labelDepth) error {
	if err := readJSON(ctx, env.Catalog, labelDepthPath, d); err != nil {
		return err
	}
	if len(d.Runs) != labelRuns(env.Plan) {
		return fmt.Errorf("%s has %d runs of %d: %w", labelDepthPath, len(d.Runs), labelRuns(env.Plan), seal.ErrCorrupt)
	}
	return nil
}

// depths returns the depth of label smoothing of each run.
func (env labelsRun) depths(ctx context.Context) ([]int, error) {
	list := make([]int, labelRuns(env.Plan))
	if env.Plan.Labels.Depth != plan.AutoDepth {
		for i := range list {
			list[i] = env.Plan.Labels.Hops()
		}
		return list, nil
	}
	var d labelDepth
	if err := env.readDepth(ctx, &d); err != nil {
		return nil, err
	}
	for i, r := range d.Runs {
		list[i] = r.Depth
	}
	return list, nil
}

// isValidation reports whether a node takes part in choosing the depth.
func isValidation(split uint8, label int32) bool {
	return dataset.Split(split) == dataset.Valid && label >= 0
}
