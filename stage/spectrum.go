package stage

import (
	"context"
	"math"
	"slices"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/lsi"
	"ndls/shards"
)

// Spectrum is the name of the stage that finds λ₂.
const Spectrum control.Stage = "spectrum"

// spectrumStage finds the second largest eigenvalue of the largest component in absolute value, and
// compares K of its nodes with the bound of theorem 3.1 that follows from it.
type spectrumStage struct{}

func (spectrumStage) Name() control.Stage { return Spectrum }

func (spectrumStage) About() string {
	return "the second largest eigenvalue of the graph, and how near K is to the bound that follows from it"
}

func (spectrumStage) Always() bool { return false }

func (spectrumStage) Needs(control.Plan) []control.Stage {
	return []control.Stage{control.Partition, control.LSI}
}

func (spectrumStage) Lacks(_ control.Plan, f estimate.Facts) string {
	if f.Directed {
		return directedK
	}
	return ""
}

func (spectrumStage) Options(p control.Plan) map[string]any { return map[string]any{"seed": p.Seed} }

func (spectrumStage) Writes() []Kind { return nil }

func (spectrumStage) Cut(control.Plan, shards.Summary) Cut { return Cut{} }

func (spectrumStage) Shares(control.Plan) bool { return false }

// Cost implements estimate.Stage: hops of 16 columns.
func (spectrumStage) Cost(s *estimate.Sheet) {
	s.ReadNodes(1)
	s.ReadK()
	s.Spectrum(4 * s.Nodes)
}

// Run implements Stage: it reports λ₂ and the bound.
func (spectrumStage) Run(ctx context.Context, env *Env) error {
	defer env.Release()
	g, err := env.graph(ctx)
	if err != nil {
		return err
	}
	state, err := g.state(ctx)
	if err != nil {
		return err
	}
	defer state.Free()
	k, err := mem.Alloc[int32](env.Budget, g.summary.Nodes, "K table")
	if err != nil {
		return err
	}
	defer k.Free()
	if err := readLSI(ctx, env.Catalog, func(node int64, x int32, isCapped bool) {
		if k.S[node] = x; isCapped {
			k.S[node] = -1
		}
	}); err != nil {
		return err
	}
	number, nodes, err := env.largestComponent(g.component.S, g.summary.Components)
	if err != nil {
		return err
	}
	l, need, err := lsi.SpectrumPlan(g.capacity(1))
	if err != nil {
		return g.refused("spectrum", need, err)
	}
	h := g.hops(state)
	found, stats, err := lsi.SecondEigenvalue(ctx, h, g.component.S, number, env.Plan.Seed, l)
	g.passed(stats, l)
	if err != nil {
		return err
	}
	r := &control.SpectrumReport{
		Component: nodes, Components: g.summary.Components, Lambda2: found.Lambda2, Error: found.Error, Hops: found.Hops,
	}
	if r.WithoutBound = withoutBound(env.Plan, g.summary, found); r.WithoutBound == "" {
		mine := func(i int64) bool { return g.component.S[i] == number }
		r.Bound = boundOf(env.Plan.LSI.Epsilon, found, g.summary.Nodes, mine, h.Degree1, func(i int64) int { return int(k.S[i]) })
	}
	env.Report.Rows, env.Report.Spectrum = nodes, r
	return nil
}

// largestComponent is the number of the component with most nodes, the first of them, and how
// many nodes it has.
func (env *Env) largestComponent(component []uint32, count int64) (number uint32, nodes int64, err error) {
	sizes, err := mem.Alloc[uint32](env.Budget, count, "sizes of components")
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

// withoutBound says why theorem 3.1 says nothing about a K table, "" if it does.
func withoutBound(p control.Plan, s shards.Summary, found lsi.Spectrum) string {
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

// boundOf compares K of nodes with the bound: with λ₂ as large as it may be. K is -1 where a node
// has not settled.
func boundOf(epsilon float64, found lsi.Spectrum, n int64, mine func(i int64) bool, degree1 func(i int64) float64, k func(i int64) int) *control.BoundReport {
	volume := 0.0
	for i := range n {
		if mine(i) {
			volume += degree1(i)
		}
	}
	r, counts := &control.BoundReport{}, map[int]int64{}
	for i := range n {
		switch {
		case !mine(i):
		case k(i) < 0:
			r.Capped++
		default:
			bound, err := lsi.Bound(found.Lambda2+found.Error, epsilon, degree1(i), volume)
			if err != nil {
				continue // withoutBound has seen to that
			}
			slack := int(math.Ceil(bound)) - k(i) // K is a whole number
			counts[slack]++
			r.Nodes++
			if slack >= 0 {
				r.Within++
			}
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
	r.Slack = control.Quantiles{Least: slacks[0], Tenth: quantile(0.1), Median: quantile(0.5), Ninetieth: quantile(0.9), Most: slacks[len(slacks)-1]}
	return r
}
