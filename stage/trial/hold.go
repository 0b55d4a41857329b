package trial

import (
	"context"
	"fmt"

	"ndls/estimate"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/depth"
	"ndls/stage/features"
	"ndls/stage/graph"
	"ndls/stage/measures"
	"ndls/train"
)

// FromHops reports whether the smoothed rows of a graph are sums of hops alone. [HoldSmoothed] then makes the rows of several plans from
// the same hops.
func FromHops(p plan.Options, s shards.Summary) bool {
	out := features.OutputOf(p, s)
	return out.Sums && !out.Joins && len(out.Keep) == 0 && out.Parts == 0 && !s.Directed && s.Features > 0 &&
		!p.Embeds() && p.Smooth.Targets == plan.AllTargets && p.Precision != "float16"
}

// SameHops reports whether two plans make the same hops of the features of a graph and measure the same distances from hop to hop. They may
// differ in ε and in the options of smoothing, training and label smoothing.
func SameHops(p, q plan.Options) bool {
	base := func(p plan.Options) plan.Options {
		p.LSI.Epsilon, p.Smooth, p.Train, p.Labels = 0, plan.Options{}.Smooth, plan.Options{}.Train, plan.Options{}.Labels
		return p
	}
	return base(p) == base(q)
}

// TakesK reports whether a plan smooths rows by the K table.
func TakesK(p plan.Options) bool {
	rule, err := features.RuleOf(p)
	return err == nil && rule.NodeDependent
}

// PassesOf returns the number of passes over the edges that the rows of a plan take if the largest K is k.
func PassesOf(p plan.Options, k int) int {
	rule, err := features.RuleOf(p)
	if err != nil {
		return k
	}
	return smooth.Options{Rule: rule, Tolerance: p.Tolerance}.Passes(rule.Hops(k))
}

// HoldSmoothed smooths the features of the graph by several plans, for which [FromHops] and [SameHops] hold, in one pass over the hops, and
// holds the rows of each plan in memory: all rows, or those that train or validate in some split. The run directory has the K tables of the
// plans; env.Plan is its own plan. Rows and chunks equal those that stage smooth commits. The caller frees the result.
func HoldSmoothed(ctx context.Context, env *stage.Env, plans []plan.Options, all bool) (held []*Held, err error) {
	defer env.Release()
	defer func() {
		if err != nil {
			for _, h := range held {
				h.Free()
			}
			held = nil
		}
	}()
	s := env.Summary
	of, err := measures.ReadLabelled(ctx, env)
	if err != nil {
		return nil, err
	}
	defer of.Free()
	targets, err := heldTargets(env, of, all)
	if err != nil {
		return nil, err
	}
	defer targets.Free()
	width := features.TrainedWidth(plans[0], s)
	first := chunksOf(s, targets, width)
	for range plans {
		h, err := newHeldRows(ctx, env, of, targets, first, width, all)
		if err != nil {
			return held, err
		}
		held = append(held, h)
	}
	o := smooth.Options{Targets: targets}
	tables := map[float64]*mem.Array[uint16]{}
	defer func() {
		for _, k := range tables {
			k.Free()
		}
	}()
	var k []uint16
	for i, p := range plans {
		b := smooth.Beside{Standing: estimate.Standing(p)}
		if b.Rule, err = features.RuleOf(p); err != nil {
			return held, err
		}
		var table []uint16
		if b.Rule.NodeDependent {
			if table, err = tableFor(ctx, env, tables, p); err != nil {
				return held, err
			}
			b.K = func(i int64) int { return int(table[i]) }
		}
		if i == 0 {
			o.Rule, o.Standing, k = b.Rule, b.Standing, table
			continue
		}
		o.Beside = append(o.Beside, b)
	}
	env.Plan = plans[0]
	g, err := graph.Open(ctx, env)
	if err != nil {
		return held, err
	}
	features := env.FeatureTiles()
	block := func(ctx context.Context, t *graph.Team, first, last int) error {
		sm, from := t.Smoother, first*packed.PanelColumns
		x := graph.Columns(features.Rows).Block(ctx, from, sm.Layout().Columns)
		stats, err := sm.Run(ctx, x)
		t.Stats.Add(stats)
		if err != nil {
			return err
		}
		columns := (last - first) * packed.PanelColumns
		for i, h := range held {
			row := int64(0)
			if err := sm.Each(i).Output(0, columns, x, func(rows []float32) error {
				h.source.Put(row, from, columns, rows)
				row += int64(len(rows) / columns)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}
	return held, g.SmoothBlocks(ctx, o, k, graph.Input{}, 0, packed.Panels(width), block)
}

// tableFor returns the K table for the ε of a plan; it reads each table once.
func tableFor(ctx context.Context, env *stage.Env, tables map[float64]*mem.Array[uint16], p plan.Options) ([]uint16, error) {
	if k := tables[p.LSI.Epsilon]; k != nil {
		return k.S, nil
	}
	files, ok := depth.TablesOf(env).Files(p.LSI.Epsilon)
	if !ok {
		return nil, fmt.Errorf("there is no K table for ε %g: run `ndls lsi` again: %w", p.LSI.Epsilon, seal.ErrCorrupt)
	}
	k, err := depth.TablesOf(env).Load(ctx, files, p.LSI.Kmax)
	if err != nil {
		return nil, err
	}
	tables[p.LSI.Epsilon] = k
	return k.S, nil
}

// heldTargets returns the nodes whose rows are held.
func heldTargets(env *stage.Env, of *measures.Labelled, all bool) (*smooth.Targets, error) {
	n := env.Summary.Nodes
	if all {
		return smooth.AllTargets(n), nil
	}
	t, err := smooth.NewTargets(env.Budget, n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if of.InSplit(i) {
			t.Add(i)
		}
	}
	t.Finish()
	return t, nil
}

// chunksOf returns the number of held rows before each record batch of the files that stage smooth commits, then the number of all. Each
// interval has full batches and a last, smaller one.
func chunksOf(s shards.Summary, held *smooth.Targets, width int) []int64 {
	first, n := []int64{0}, int64(0)
	batch := int64(shards.BatchRows(width))
	for lo := int64(0); lo < s.Nodes; lo += s.IntervalRows {
		end := min(lo+s.IntervalRows, s.Nodes)
		for from := lo; from < end; from += batch {
			for i := from; i < min(from+batch, end); i++ {
				if held.Has(i) {
					n++
				}
			}
			first = append(first, n)
		}
	}
	return first
}

// newHeldRows allocates some rows and reads their ids, labels and splits.
func newHeldRows(ctx context.Context, env *stage.Env, of *measures.Labelled, targets *smooth.Targets, first []int64, width int,
	all bool,
) (h *Held, err error) {
	h = &Held{all: all}
	defer func() {
		if err != nil {
			h.Free()
			h = nil
		}
	}()
	if h.Labelled, err = of.Like(env.Budget, targets.Len()); err != nil {
		return h, err
	}
	if h.source, err = train.NewHeld(env.Budget, first, width); err != nil {
		return h, err
	}
	row := int64(0)
	err = env.Nodes().Read(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			node := first + int64(i)
			if !targets.Has(node) {
				continue
			}
			h.source.SetID(row, id)
			h.Take(row, of, node)
			row++
		}
	})
	return h, err
}

// KindBytes returns the memory that each further plan uses in [HoldSmoothed], with this number of held rows of width values.
func KindBytes(p plan.Options, s shards.Summary, rows int64, width int) int64 {
	sums := 4*rows*packed.PanelColumns + 2*s.Nodes
	return HeldBytes(p, s, rows, width) + sums + 2*s.Nodes + 4*4096
}

// HopWork returns the number of values that this number of hops of the features of a graph adds up.
func HopWork(s shards.Summary, hops int) float64 {
	return float64(2*s.Edges+s.Nodes) * float64(s.Features) * float64(hops)
}
