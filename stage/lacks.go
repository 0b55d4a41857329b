package stage

import (
	"cmp"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
)

// What a run may lack for a stage, and how the user can add it.
const (
	noFeatures  = "the run has no features; import a dataset with features, without --features none, or let --rule fastrp make some from the edges"
	NoLabels    = "the dataset has no labels"
	oneClass    = "all labels are the same, and a model tells at least two classes apart; give other nodes another label, or leave the labels out"
	NoSplits    = "the dataset has no splits; give --split random:20,30 or share:0.6,0.2, which draws them, and another --run or --resume=false"
	OtherModel  = "--soft-labels stand in for the run's own model"
	someTargets = "--targets left nodes without soft labels, which are smoothed over the whole graph; use --targets all"
)

const (
	// DirectedK says why a graph with directions has no K, and so no label smoothing.
	DirectedK = "edges have directions, and K is the number of hops after which a walk on edges without directions is near its stationary state; leave out directed=true to use every edge in both directions"
	// directedCorrection says why soft labels are not corrected in such a graph.
	directedCorrection = "edges have directions, and Correct & Smooth is for edges without; leave out directed=true to use every edge in both directions, or give --label-depth 0 and another --label-rule"
	// undirected says why hops have no direction.
	undirected = "--direction needs edges with directions: write directed=true in the URI of the dataset, or do without --direction"
)

// LacksDirection returns why the rule and the direction of a plan do not fit a graph with or without directions; "" if they fit.
func LacksDirection(p plan.Options, directed bool) string {
	switch {
	case !directed && p.Smooth.Direction != "":
		return undirected
	case !directed:
		return ""
	case slices.Contains(smooth.DependentNames(), p.Smooth.Rule):
		return fmt.Sprintf("--rule %s takes K hops of each node: %s, or give --rule sgc, s2gc, gbp, appnp or sign, which take --hops of all nodes", p.Smooth.Rule, DirectedK)
	case p.Smooth.Depth == plan.NodeDepth:
		return fmt.Sprintf("--depth %s takes K hops of each node: %s, or leave out --depth", p.Smooth.Depth, DirectedK)
	case p.Smooth.Rule == "nafs":
		return fmt.Sprintf("--rule %s weighs hops by their distances from a stationary state, whose rows are known for edges without directions: leave out directed=true to use every edge in both directions, or give --rule sgc, s2gc, gbp, appnp or sign", p.Smooth.Rule)
	case p.Embeds():
		return fmt.Sprintf("--rule %s is for edges without directions: leave out directed=true to use every edge in both directions", p.Smooth.Rule)
	}
	return ""
}

// DepthGiven says why a run skips label-depth.
const DepthGiven = "--label-depth gives the depth of label smoothing"

// FactsOf returns the facts of an imported graph.
func FactsOf(s shards.Summary) estimate.Facts {
	return estimate.Facts{
		Features: s.Features > 0, Labels: s.Labelled > 0, Splits: s.HasSplits, Directed: s.Directed,
		OneClass: len(s.Classes) == 1,
	}
}

// CountsOf returns the counts of an imported graph from its summary and its catalogue.
func CountsOf(cat *catalog.Catalog, s shards.Summary) estimate.Counts {
	return estimate.Counts{
		StatedNodes: s.IDs != "", IDs: partition.IDBytes(cat, s), Nodes: s.Nodes, Edges: s.Edges, Weighted: s.Weighted, Directed: s.Directed, InputRows: s.InputRows, Components: s.Components,
		Features: s.Features, Half: s.HalfFeatures(), Classes: len(s.Classes),
		Training: s.Splits["train"], Validation: s.Splits["valid"], Labelled: s.Labelled,
	}
}

// LacksFeatures returns what a graph lacks for smoothed features.
func LacksFeatures(p plan.Options, f estimate.Facts) string {
	if !f.Features && !p.Embeds() {
		return noFeatures
	}
	return ""
}

// LacksModel returns what a graph lacks for a model of the run.
func LacksModel(p plan.Options, f estimate.Facts) string {
	return cmp.Or(LacksFeatures(p, f), LacksTruth(p, f))
}

// LacksTruth returns what a graph lacks for measuring accuracy.
func LacksTruth(p plan.Options, f estimate.Facts) string {
	switch {
	case !f.Labels:
		return NoLabels
	case f.OneClass && !p.Answers():
		return oneClass
	case !f.Splits:
		return NoSplits
	}
	return ""
}

// LacksSmoothing returns what a graph lacks for smoothing soft labels.
func LacksSmoothing(p plan.Options, f estimate.Facts) string {
	switch {
	case f.Directed && p.Labels.Rule == plan.CorrectSmooth:
		return directedCorrection
	case f.Directed:
		return DirectedK
	case p.SomeTargets():
		return someTargets
	case OwnModel(p):
		return LacksModel(p, f)
	case Corrects(p):
		return LacksTruth(p, f)
	}
	return ""
}
