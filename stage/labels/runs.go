package labels

import (
	"context"
	"errors"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/depth"
	"ndls/stage/graph"
	"ndls/stage/imports"
	"ndls/stage/models"
	"ndls/tiles"
	"ndls/train"
)

// runsColumns returns the columns of a stage that smooths the soft labels of all runs.
func runsColumns(p plan.Options, sum shards.Summary) stage.Matrix {
	each := packed.Panels(len(sum.Classes))
	m := stage.Matrix{Panels: stage.LabelRuns(p) * each, Outputs: 1, Together: 1}
	if p.Labels.Rule == "ndls-reference" {
		m.Together = max(each, 1) // K is found from all columns of a run
	}
	if stage.Corrects(p) {
		m.Choice = &stage.Choice{Kind: catalog.KindCorrection, Nodes: sum.Nodes}
	}
	return m
}

// sweepLabels adds smoothing the soft labels of all runs over most hops, with options o, beside held bytes. The rule of the authors' code
// finds K for each run. importing says that soft labels of another model are imported first. uncorrected means the same as for smoothRuns.
func sweepLabels(s *estimate.Sheet, o smooth.Options, held int64, most int, importing, uncorrected bool) {
	l := s.Plan.Labels
	rule, err := labelRule(s.Plan)
	if err != nil {
		return // the plan is not valid
	}
	o.Rule = rule
	runs, per := stage.LabelRuns(s.Plan), packed.Panels(s.Classes)*packed.PanelColumns
	s.Pieces(runs * packed.Panels(s.Classes))
	isCorrected := stage.Corrects(s.Plan) && most > 0 // tiles hold the corrected soft labels
	if isCorrected && uncorrected {
		s.BytesRead += estimate.TileBytes(s.Nodes, runs*per, false)
	}
	predicts := stage.OwnModel(s.Plan) && (uncorrected || !isCorrected)
	last := most
	if l.Rule != plan.CorrectSmooth {
		last = min(s.Hops, most)
	}
	if l.Rule == "ndls-reference" {
		last = max(last-1, 0) // hop K is not counted
	}
	soft := int64(0)
	if predicts {
		soft = softHeld(s)
	}
	held += 2*s.Part + soft
	switch {
	case most == 0:
		least := held - 2*s.Part + hops.ReadBytes
		peak := least
		if stage.OwnModel(s.Plan) { // nothing else uses memory while rows go through the model
			more, _ := train.PlanPredict(models.ShapeOf(s), models.Options(s.Plan), 1, s.Threads, s.Budget()-(least-soft))
			peak = max(peak, least-soft+more)
		}
		s.Takes(peak, least)
		s.BytesRead += int64(runs) * estimate.TileBytes(s.Nodes, s.Classes, false)
	case l.Rule == plan.CorrectSmooth:
		s.OnGraph().Columns(o, runs*per, last, held, false)
	case l.Rule == "ndls-reference":
		for range runs {
			s.OnGraph().FindLSI(s.Classes, false, l.Epsilon, depth.Tolerance(s.Plan), most, held-2*s.Part)
			s.BytesRead += estimate.TileBytes(s.Nodes, s.Classes, false)
			s.OnGraph().Columns(o, per, last, held, false)
		}
	case findsLabelK(s.Plan, most):
		depth.CostOfK(s, l.Epsilon, most, held-2*s.Part, false)
		s.OnGraph().Columns(o, runs*per, last, held, false)
	default:
		s.ReadK()
		s.OnGraph().Columns(o, runs*per, last, held, false)
	}
	if predicts {
		block, apart := s.ColumnsPerPass/packed.PanelColumns, false
		if most == 0 {
			block, apart = storedTogether(s.Resources, s.Part, rule), true
		}
		predictsColumns(s, block, apart, l.Rule != "ndls-reference")
	} else if importing && !stage.OwnModel(s.Plan) {
		imports.CostOfRows(s, int64(runs)*estimate.TileBytes(s.Nodes, s.Classes, false))
	}
}

// runColumns holds the soft labels of some runs: panels [first, last).
type runColumns struct {
	g           graph.Engine // opened if there are hops
	o           smooth.Options
	k           []uint16    // most hops of each node; nil without hops
	soft        softColumns // without columns if only corrected ones are wanted
	first, last int
	per         int // panels of a run
	// columns returns the columns to smooth, given the soft labels.
	columns func(graph.Columns) graph.Columns
}

// store commits the soft labels unsmoothed, at most step panels of a run at a time.
func (x runColumns) store(ctx context.Context, out *tiles.Matrix, step int) error {
	for at, to := x.first, 0; at < x.last; at = to {
		to = min(at+step, (at/x.per+1)*x.per, x.last)
		if err := out.Store(ctx, at, to, x.soft.Block(ctx, at*packed.PanelColumns, (to-at)*packed.PanelColumns)); err != nil {
			return err
		}
	}
	return nil
}

// storedTogether returns the number of panels of unsmoothed soft labels that are stored together: at most as many as are predicted
// together. Under the rule of the paper they need no scratch space.
func storedTogether(r control.Resources, rows int64, rule smooth.Rule) int {
	if rule.Name != "ndls-reference" {
		return tiles.Together
	}
	return int(min(max(softSpace(r)/softPanelBytes(rows), 1), tiles.Together))
}

// correctionShare is the assumed share of the correction in the time of label smoothing, for reports of its progress.
const correctionShare = 0.5

// smoothRuns prepares smoothing panels [first, last) of soft labels, and calls use for runs of the same depth and the same K, one after the
// other. uncorrected says that use also reads the soft labels as they were before the correction.
func (env labelsRun) smoothRuns(ctx context.Context, first, last int, hops func(run int) int, uncorrected bool,
	use func(runColumns) error,
) (err error) {
	rule, err := labelRule(env.Plan)
	if err != nil {
		return err
	}
	begin := 0.0
	if stage.Corrects(env.Plan) {
		begin = correctionShare
		leave := progress.EnterRange(ctx, 0, begin)
		err := env.correct(ctx)
		if leave(); err != nil {
			return err
		}
	}
	// The authors' code treats each model's outputs separately: their logarithms decide K, and are averaged.
	reference := rule.Name == "ndls-reference"
	classes := len(env.Summary.Classes)
	per := packed.Panels(classes)
	for all := first; first < last; {
		run := first / per
		most, end := hops(run), min((run+1)*per, last)
		for !reference && end < last && hops(end/per) == most {
			end = min(end+per, last)
		}
		x := runColumns{o: smooth.Options{Rule: rule}, first: first, last: end, per: per}
		x.columns = func(c graph.Columns) graph.Columns { return c }
		find := func() (*mem.Array[uint16], error) { return env.labelK(ctx, x.g, most) }
		isCorrected := stage.Corrects(env.Plan) && most > 0
		if isCorrected {
			x.columns = func(graph.Columns) graph.Columns { return correctedTiles(env.Env).Rows }
		}
		from, to := first, end
		if reference {
			from, to = run*per, (run+1)*per
		}
		if uncorrected || !isCorrected {
			if x.soft, err = env.softColumns(ctx, from, to, !reference); err != nil {
				return err
			}
		}
		number := most
		if reference {
			x.columns = func(c graph.Columns) graph.Columns { return logarithms(c, run*per, classes).Shifted(run * per) }
			find = func() (*mem.Array[uint16], error) {
				return env.findK(ctx, x.g, lsi.Features(logarithms(x.soft.Columns, run*per, classes).Wide(classes), nil), most)
			}
			number |= run << 16
		}
		err := func() (err error) {
			if x.soft.Columns != nil {
				defer func() { err = errors.Join(err, x.soft.free()) }()
			}
			if most > 0 {
				if x.g, err = graph.Open(ctx, env.Env); err != nil {
					return err
				}
				if x.k, err = depth.KeptHops(env.Session, number, find); err != nil {
					return err
				}
			}
			share := func(panel int) float64 { return begin + (1-begin)*stage.PanelShare(panel, all, last) }
			defer progress.EnterRange(ctx, share(first), share(end))()
			return use(x)
		}()
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// sharesRows reports whether workers may share the rows of soft labels while these are smoothed. The soft labels of another model, and
// corrections, need all rows in one place.
func sharesRows(p plan.Options) bool { return stage.OwnModel(p) && !stage.Corrects(p) }
