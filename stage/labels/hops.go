package labels

import (
	"cmp"
	"context"

	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/lsi"
	"ndls/plan"
	"ndls/smooth"
	"ndls/stage/depth"
	"ndls/stage/graph"
	"ndls/stage/measures"
)

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

// labelK returns K for label smoothing, at most most. Under a rule with the same hops for all nodes it is most. With the ε of the K table
// it comes from that table, since K is a first passage. Otherwise it comes from the table that the LSI stage found on the way, or from a
// run of its own.
func (env labelsRun) labelK(ctx context.Context, g graph.Engine, most int) (*mem.Array[uint16], error) {
	if env.Plan.Labels.Rule == plan.CorrectSmooth {
		return env.constantK(most)
	}
	if !OwnEpsilon(env.Plan) && most <= env.Plan.LSI.Kmax {
		return depth.TablesOf(env.Env).K(ctx, most)
	}
	if epsilon := depth.LooserEpsilon(env.Plan); epsilon > 0 && most <= env.Plan.LSI.Kmax {
		if files, ok := depth.TablesOf(env.Env).Looser(epsilon); ok {
			return depth.TablesOf(env.Env).Load(ctx, files, most)
		}
	}
	ids, err := env.Nodes().IDs(ctx)
	if err != nil {
		return nil, err
	}
	defer ids.Free()
	probe, free, err := depth.Probe(ctx, g, ids.S)
	if err != nil {
		return nil, err
	}
	defer free()
	return env.findK(ctx, g, probe, most)
}

// findsLabelK reports whether label smoothing over this number of hops needs a K table that the LSI stage does not make.
func findsLabelK(p plan.Options, most int) bool {
	return OwnEpsilon(p) && depth.LooserEpsilon(p) == 0 || most > p.LSI.Kmax
}

// OwnEpsilon reports whether the ε of label smoothing differs from that of the K table.
func OwnEpsilon(p plan.Options) bool {
	return p.Labels.Epsilon != 0 && p.Labels.Epsilon != p.LSI.Epsilon
}

func (env labelsRun) labelEpsilon() float64 {
	if e := env.Plan.Labels.Epsilon; e != 0 {
		return e
	}
	return env.Plan.LSI.Epsilon
}

// findK runs the LSI engine with the ε of label smoothing, for at most `most` hops.
func (env labelsRun) findK(ctx context.Context, g graph.Engine, probe lsi.Probe, most int) (*mem.Array[uint16], error) {
	table, _, err := depth.Find(ctx, g, probe, lsi.Options{Epsilon: env.labelEpsilon(), Kmax: most})
	if err != nil {
		return nil, err
	}
	defer table.Free()
	k, err := mem.Alloc[uint16](env.Budget, g.Hi-g.Lo, "K table")
	if err != nil {
		return nil, err
	}
	for i := range k.S {
		x, _ := table.K(int64(i))
		k.S[i] = uint16(x)
	}
	return k, nil
}

// logarithms returns the logarithms of one run's soft labels, which begin at panel first.
func logarithms(soft graph.Columns, first, classes int) graph.Columns {
	return soft.Shifted(-first).Each(nil, func(at int, _ int64, row []float32) {
		cols := min(len(row), classes-at)
		for c, p := range row[:cols] {
			row[c] = float32(elementary.Log(max(float64(p), measures.LeastProbability)))
		}
		clear(row[cols:]) // columns of another run
	})
}
