package depth

import (
	"context"
	"math"
	"slices"
	"sync"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/graph"
)

// Spectrum is the name of the stage that computes λ₂.
const Spectrum control.Stage = "spectrum"

// SpectrumStage computes the second largest eigenvalue, in absolute value, of the largest component, and compares K of its nodes with the
// bound of theorem 3.1.
type SpectrumStage struct{}

func (SpectrumStage) Name() control.Stage { return Spectrum }

func (SpectrumStage) About() string {
	return "the second largest eigenvalue of the graph, and how near K is to the bound that follows from it"
}

func (SpectrumStage) Always() bool { return false }

func (SpectrumStage) Needs(plan.Options) []control.Stage {
	return []control.Stage{control.Partition, control.LSI}
}

func (SpectrumStage) Lacks(_ plan.Options, f estimate.Facts) string {
	if f.Directed {
		return stage.DirectedK
	}
	return ""
}

func (SpectrumStage) Options(p plan.Options) map[string]any { return map[string]any{"seed": p.Seed} }

func (SpectrumStage) Writes() []stage.Kind { return nil }

func (SpectrumStage) Shape(plan.Options, shards.Summary) stage.Shape { return stage.Whole{} }

func (SpectrumStage) Shares(plan.Options) bool { return false }

// Cost implements estimate.Stage: hops of 16 columns.
func (SpectrumStage) Cost(s *estimate.Sheet) {
	s.ReadNodes(1)
	s.ReadK()
	s.OnGraph().Spectrum(4 * s.Nodes)
}

// Run implements Stage: it reports λ₂ and the bound.
func (SpectrumStage) Run(ctx context.Context, env *stage.Env) error {
	defer env.Release()
	g, err := graph.Open(ctx, env)
	if err != nil {
		return err
	}
	state, err := g.State(ctx)
	if err != nil {
		return err
	}
	defer state.Free()
	k, err := mem.Alloc[int32](env.Budget, g.Summary.Nodes, "K table")
	if err != nil {
		return err
	}
	defer k.Free()
	if err := (Tables{env}).readLSI(ctx, func(node int64, x int32, isCapped bool) {
		if k.S[node] = x; isCapped {
			k.S[node] = -1
		}
	}); err != nil {
		return err
	}
	number, nodes, err := largestComponent(env.Budget, g.Component.S, g.Summary.Components)
	if err != nil {
		return err
	}
	l, need, err := lsi.SpectrumPlan(g.Capacity(1))
	if err != nil {
		return g.Refused("spectrum", need, err)
	}
	h := g.Hops(state)
	found, stats, err := lsi.SecondEigenvalue(ctx, h, g.Component.S, number, env.Plan.Seed, l)
	g.Passed(stats, l)
	if err != nil {
		return err
	}
	r := &control.SpectrumReport{
		Component: nodes, Components: g.Summary.Components, Lambda2: found.Lambda2, Error: found.Error, Hops: found.Hops,
	}
	if r.WithoutBound = withoutBound(env.Plan, g.Summary, found); r.WithoutBound == "" {
		r.Bound = boundedNodes{
			component: g.Component.S, number: number, volume: state.Volume(number), degree1: h.Degree1, k: k.S,
		}.bound(env.Resources.Threads, env.Plan.LSI.Epsilon, found)
	}
	env.Report.Rows, env.Report.Spectrum = nodes, r
	return nil
}

// largestComponent returns the number of the first component with the most nodes, and its number of nodes.
func largestComponent(budget *mem.Budget, component []uint32, count int64) (number uint32, nodes int64, err error) {
	sizes, err := mem.Alloc[uint32](budget, count, "sizes of components")
	if err != nil {
		return 0, 0, err
	}
	defer sizes.Free()
	for _, c := range component {
		sizes.S[c]++
	}
	most := slices.Max(sizes.S)
	return uint32(slices.Index(sizes.S, most)), int64(most), nil
}

// withoutBound returns why theorem 3.1 does not apply to a K table, "" if it does.
func withoutBound(p plan.Options, s shards.Summary, found lsi.Spectrum) string {
	switch {
	case p.LSI.R != 0:
		return "the theorem is about --r 0"
	case p.LSI.Mode != "influence-exact" && p.LSI.Mode != "influence-sketch":
		return "the theorem is about distances of influence, which --lsi influence-exact and influence-sketch measure"
	case p.LSI.Stationary != "component" && s.Components > 1:
		return "the theorem is about connected graphs, and with --stationary component about each component"
	case found.Lambda2+found.Error >= 1:
		return "the eigenvalue cannot be told from 1"
	}
	return ""
}

// boundedNodes holds the nodes of a component, to which theorem 3.1 applies.
type boundedNodes struct {
	component []uint32 // of all nodes
	number    uint32   // number of the component
	volume    float64  // Σ d̃ over the component
	degree1   func(i int64) float64
	k         []int32 // -1 if a node has not settled
}

// slackCounts counts the nodes by slack, and those that have not settled.
type slackCounts struct {
	of     map[int]int64
	capped int64
}

// count counts nodes [lo, hi).
func (b boundedNodes) count(lo, hi int, epsilon float64, found lsi.Spectrum) (c slackCounts) {
	c.of = map[int]int64{}
	for i := lo; i < hi; i++ {
		switch {
		case b.component[i] != b.number:
		case b.k[i] < 0:
			c.capped++
		default:
			bound, err := lsi.Bound(found.Lambda2+found.Error, epsilon, b.degree1(int64(i)), b.volume)
			if err != nil {
				continue // withoutBound has excluded this
			}
			c.of[int(math.Ceil(bound))-int(b.k[i])]++ // K is a whole number
		}
	}
	return c
}

// bound compares K of the nodes with the bound, for the largest λ₂ within its error.
func (b boundedNodes) bound(threads int, epsilon float64, found lsi.Spectrum) *control.BoundReport {
	r, counts := &control.BoundReport{}, map[int]int64{}
	var mu sync.Mutex
	_ = share.Ranges(threads, len(b.k), boundedNodesAtATime, func(lo, hi int) error {
		c := b.count(lo, hi, epsilon, found)
		mu.Lock()
		defer mu.Unlock()
		r.Capped += c.capped
		for slack, nodes := range c.of {
			counts[slack] += nodes
		}
		return nil
	})
	for slack, nodes := range counts {
		r.Nodes += nodes
		if slack >= 0 {
			r.Within += float64(nodes)
		}
	}
	if r.Nodes == 0 {
		return r
	}
	r.Within /= float64(r.Nodes)
	slacks := make([]int, 0, len(counts))
	for s := range counts {
		slacks = append(slacks, s)
	}
	slices.Sort(slacks)
	quantile := func(q float64) int {
		left := int64(q * float64(r.Nodes-1))
		for _, s := range slacks {
			if left -= counts[s]; left < 0 {
				return s
			}
		}
		return slacks[len(slacks)-1]
	}
	r.Slack = control.Quantiles{
		Least: slacks[0], Tenth: quantile(0.1), Median: quantile(0.5), Ninetieth: quantile(0.9),
		Most: slacks[len(slacks)-1],
	}
	return r
}

// boundedNodesAtATime is the number of nodes that a thread counts at a time.
const boundedNodesAtATime = 1 << 13
