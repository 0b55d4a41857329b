package imports

import (
	"context"
	"math/bits"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
)

// Degrees is the name of the stage that describes the graph.
const Degrees control.Stage = "degrees"

// DegreesStage reports the distributions of degrees and of component sizes.
type DegreesStage struct{}

func (DegreesStage) Name() control.Stage { return Degrees }

func (DegreesStage) About() string {
	return "how the degrees of nodes and the sizes of components are spread"
}

func (DegreesStage) Always() bool { return false }

func (DegreesStage) Needs(plan.Options) []control.Stage { return []control.Stage{control.Partition} }

func (DegreesStage) Lacks(plan.Options, estimate.Facts) string { return "" }

func (DegreesStage) Options(plan.Options) map[string]any { return nil }

func (DegreesStage) Writes() []stage.Kind { return nil }

func (DegreesStage) Shape(plan.Options, shards.Summary) stage.Shape { return stage.Whole{} }

func (DegreesStage) Shares(plan.Options) bool { return false }

// Cost implements estimate.Stage: one reading of the node table, and a count per component.
func (DegreesStage) Cost(s *estimate.Sheet) {
	s.Takes(8*s.Components+4096, 8*s.Components+4096)
	s.ReadNodes(1)
}

// Run implements Stage: it reports the two histograms.
func (DegreesStage) Run(ctx context.Context, env *stage.Env) error {
	sizes, err := mem.Alloc[int64](env.Budget, env.Summary.Components, "sizes of components")
	if err != nil {
		return err
	}
	defer sizes.Free()
	var degrees, components histogram
	r := &control.DegreesReport{}
	err = env.Nodes().Read(ctx, shards.NodeDegree|shards.NodeComponent, func(_ int64, b shards.NodeBatch) {
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
		if from, to := stage.PowerRange(power); n > 0 {
			list = append(list, control.Range{From: from, To: to, Count: n})
		}
	}
	return list
}
