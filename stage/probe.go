package stage

import (
	"context"
	"fmt"
	"strings"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/shards"
)

const (
	// probeWork is the number of nodes and directed edges, times probes, up to which more than usualProbes pay: some seconds of work for
	// all hops.
	probeWork  = 1 << 24
	mostProbes = 1024
	// usualProbes is the number of probes of graphs of medium size. Graphs with at least manyEdges nodes and directed edges get fewProbes:
	// a pass takes long there, and distances fall so much from hop to hop that the error of a sketch seldom changes K.
	usualProbes = 64
	fewProbes   = 32
	manyEdges   = 1 << 23
)

// sized returns o for a graph of this size, with the number of probes chosen if the plan leaves it open. It replaces a sketch by the exact
// mode if the sketch would be at least as wide.
func sized(o control.LSIOptions, nodes, edges int64, features int) control.LSIOptions {
	if o.Probes > 0 || !sketches(o) {
		return o
	}
	work := nodes + 2*edges
	o.Probes = int(max(usualProbes, min(probeWork/work, mostProbes))) / packed.PanelColumns * packed.PanelColumns
	if work >= manyEdges {
		o.Probes = fewProbes
	}
	switch {
	case o.Mode == "influence-sketch" && int64(o.Probes) >= nodes:
		o.Mode, o.Probes = "influence-exact", 0
	case o.Mode == "feature-sketch" && 0 < features && features <= o.Probes:
		o.Mode, o.Probes = "feature", 0
	}
	return o
}

// sketches reports whether random probes measure the distances.
func sketches(o control.LSIOptions) bool { return strings.HasSuffix(o.Mode, "-sketch") }

// LSIOptions returns the options with which K is found in a graph: see sized. Exact modes have no probes.
func LSIOptions(p control.Plan, s shards.Summary) control.LSIOptions {
	o := sized(p.LSI, s.Nodes, s.Edges, s.Features)
	if !sketches(o) {
		o.Probes = 0
	}
	return o
}

// lsiOptions returns the plan's options for the graph.
func (env *Env) lsiOptions() control.LSIOptions { return LSIOptions(env.Plan, env.Summary) }

// probe builds the probe of the plan's mode; free returns its memory.
func (env *Env) probe(ctx context.Context, s shards.Summary, ids []uint32) (p lsi.Probe, free func(), err error) {
	o := env.lsiOptions()
	lo, hi := env.Span(s.Nodes)
	free = func() {}
	switch o.Mode {
	case "influence-exact":
		return lsi.IdentityPart(s.Nodes, lo), free, nil
	case "influence-sketch":
		return lsi.Signs(env.Plan.Seed, ids, o.Probes), free, nil
	}
	if s.Features == 0 {
		return nil, nil, fmt.Errorf("--lsi %s measures distances in feature space, and the run has no features; use --lsi influence-sketch", o.Mode)
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
