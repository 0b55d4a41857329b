package stage

import (
	"context"
	"fmt"

	"ndls/internal/mem"
	"ndls/lsi"
	"ndls/shards"
)

// probe builds the probe of the plan's mode; free returns its memory.
func (env *Env) probe(ctx context.Context, s shards.Summary, ids []uint32) (p lsi.Probe, free func(), err error) {
	o := env.Plan.LSI
	lo, hi := env.Span(s.Nodes)
	free = func() {}
	switch o.Mode {
	case "influence-exact":
		return lsi.IdentityPart(s.Nodes, lo), free, nil
	case "influence-sketch":
		return lsi.Signs(env.Plan.Seed, ids, o.Probes), free, nil
	}
	if s.Features == 0 {
		return nil, nil, fmt.Errorf("--lsi %s measures distances in feature space: %s", o.Mode, noFeatures)
	}
	columns := env.featureTiles()
	var norm *mem.Array[float64]
	var norms []float64
	if !s.Normalized {
		if norm, err = lsi.L1Norms(ctx, columns, hi-lo, env.Budget); err != nil {
			return nil, nil, err
		}
		free, norms = norm.Free, norm.S
	}
	if o.Mode == "feature-sketch" {
		return lsi.FeatureSketch(columns, norms, env.Plan.Seed, o.Probes), free, nil
	}
	return lsi.Features(columns, norms), free, nil
}
