package depth

import (
	"context"
	"fmt"
	"strings"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
	"ndls/stage/graph"
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
	// A graph with at most directedWork nodes and directed edges has as many slow directions as random columns (see lsi.Directions), of
	// mostDirected each where it is small. Larger graphs have so many of them, each among a few nodes, that these do not hold them.
	directedWork = 1 << 21
	mostDirected = 128
)

// sized returns o for a graph of this size, with the numbers of probes and directions chosen if the plan leaves them open. It replaces a
// sketch by the exact mode if the sketch would be at least as wide.
func sized(o plan.LSIOptions, nodes, edges int64, features int) plan.LSIOptions {
	if o.Probes > 0 || !sketches(o) {
		return o
	}
	work := nodes + 2*edges
	panels := func(most int64) int {
		return int(max(usualProbes, min(probeWork/work, most))) / packed.PanelColumns * packed.PanelColumns
	}
	switch {
	case work >= manyEdges:
		o.Probes = fewProbes
	case o.Mode == "influence-sketch" && o.Directions == 0 && work <= directedWork:
		o.Probes = panels(mostDirected)
		o.Directions = o.Probes
	default:
		o.Probes = panels(mostProbes)
	}
	switch {
	case o.Mode == "influence-sketch" && int64(o.Probes+o.Directions) >= nodes:
		o.Mode, o.Probes, o.Directions = "influence-exact", 0, 0
	case o.Mode == "feature-sketch" && 0 < features && features <= o.Probes:
		o.Mode, o.Probes = "feature", 0
	}
	return o
}

// sketches reports whether random probes measure the distances.
func sketches(o plan.LSIOptions) bool { return strings.HasSuffix(o.Mode, "-sketch") }

// LSIOptions returns the options with which K is found in a graph: see sized. Exact modes have no probes.
func LSIOptions(p plan.Options, s shards.Summary) plan.LSIOptions {
	o := sized(p.LSI, s.Nodes, s.Edges, s.Features)
	if !sketches(o) {
		o.Probes, o.Directions = 0, 0
	}
	return o
}

// Probe builds the probe of the plan's mode; free returns its memory.
func Probe(ctx context.Context, g graph.Engine, ids []uint32) (p lsi.Probe, free func(), err error) {
	o, s, env := LSIOptions(g.Plan, g.Summary), g.Summary, g.Env
	lo, hi := env.Span(s.Nodes)
	free = func() {}
	switch o.Mode {
	case "influence-exact":
		return lsi.IdentityPart(s.Nodes, lo), free, nil
	case "influence-sketch":
		if o.Directions > 0 {
			return directions(ctx, g, ids, o)
		}
		return lsi.Signs(env.Plan.Seed, ids, o.Probes), free, nil
	}
	if s.Features == 0 {
		return nil, nil, fmt.Errorf("--lsi %s measures distances in feature space, and the run has no features; use --lsi influence-sketch", o.Mode)
	}
	columns := env.FeatureTiles()
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

// directions finds the slow directions of the plan's probe.
func directions(ctx context.Context, g graph.Engine, ids []uint32, o plan.LSIOptions) (p lsi.Probe, free func(), err error) {
	state, err := g.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer state.Free()
	held := lsi.DirectionsBytes(o.Directions, o.Probes)
	opts := func(c hops.Capacity) (spmv.Layout, error) {
		c.Free -= held
		l, _, err := lsi.DirectionsPlan(c, o.Directions)
		return l, err
	}
	fits, err := g.Agree(ctx, g.Capacity(o.Directions), opts)
	if err != nil {
		return nil, nil, err
	}
	fits.Free -= held
	l, need, err := lsi.DirectionsPlan(fits, o.Directions)
	if err != nil {
		return nil, nil, g.Refused("lsi", need+held, err)
	}
	d, stats, err := lsi.NewDirections(ctx, g.Hops(state), g.Plan.Seed, ids, o.Probes, o.Directions, l)
	g.Passed(stats, l)
	if err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}
