package stage

import (
	"context"
	"math/bits"

	"ndls/estimate"
	"ndls/plan"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/shards"
)

// Degrees is the name of the stage that describes the graph.
const Degrees control.Stage = "degrees"

// degreesStage reports the distributions of degrees and of component sizes.
type degreesStage struct{}

func (degreesStage) Name() control.Stage { return Degrees }

func (degreesStage) About() string {
	return "how the degrees of nodes and the sizes of components are spread"
}

func (degreesStage) Always() bool { return false }

func (degreesStage) Needs(plan.Options) []control.Stage { return []control.Stage{control.Partition} }

func (degreesStage) Lacks(plan.Options, estimate.Facts) string { return "" }

func (degreesStage) Options(plan.Options) map[string]any { return nil }

func (degreesStage) Writes() []Kind { return nil }

func (degreesStage) Shape(plan.Options, shards.Summary) Shape { return Whole{} }

func (degreesStage) Shares(plan.Options) bool { return false }

// Cost implements estimate.Stage: one reading of the node table, and a count per component.
func (degreesStage) Cost(s *estimate.Sheet) {
	s.Takes(8*s.Components+4096, 8*s.Components+4096)
	s.ReadNodes(1)
}

// Run implements Stage: it reports the two histograms.
func (degreesStage) Run(ctx context.Context, env *Env) error {
	sizes, err := mem.Alloc[int64](env.Budget, env.Summary.Components, "sizes of components")
	if err != nil {
		return err
	}
	defer sizes.Free()
	var degrees, components histogram
	r := &control.DegreesReport{}
	err = env.nodeTable().readNodes(ctx, shards.NodeDegree|shards.NodeComponent, func(_ int64, b shards.NodeBatch) {
		for i, d := range b.Degree {
			degrees.add(int64(d))
			r.Largest = max(r.Largest, int64(d))
			sizes.S[b.Component[i]]++
		}
	})
	if err != nil {
		return err
	}
	for _, n := range sizes.S {
		components.add(n)
	}
	r.Mean = 2 * float64(env.Summary.Edges) / float64(env.Summary.Nodes)
	r.Degrees, r.Components = degrees.lines(), components.lines()
	env.Report.Rows, env.Report.Degrees = env.Summary.Nodes, r
	return nil
}

// histogram counts numbers: 0, and those from each power of two to below the next.
type histogram [64]int64

func (h *histogram) add(n int64) { h[bits.Len64(uint64(n))]++ }

// lines returns the ranges that hold a number, in ascending order.
func (h *histogram) lines() (list []control.Range) {
	for power, n := range h {
		if from, to := powerRange(power); n > 0 {
			list = append(list, control.Range{From: from, To: to, Count: n})
		}
	}
	return list
}

// powerRange returns the smallest and the largest number with this number of bits; 0 bits holds 0 alone.
func powerRange(power int) (from, to int64) { return 1 << power >> 1, 1<<power - 1 }
