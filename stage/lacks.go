package stage

import (
	"cmp"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
)

// What a run may lack for a stage, and how the user can add it.
const (
	noFeatures  = "the run has no features; import a dataset with features, without --features none, or let --rule fastrp make some from the edges"
	noLabels    = "the dataset has no labels"
	oneClass    = "all labels are the same, and a model tells at least two classes apart; give other nodes another label, or leave the labels out"
	noSplits    = "the dataset has no splits; partition with --split random:20,30 to draw them"
	otherModel  = "--soft-labels stand in for the run's own model"
	someTargets = "--targets left nodes without soft labels, which are smoothed over the whole graph; use --targets all"
)

const (
	// directedK says why a graph with directions has no K, and so no label smoothing.
	directedK = "edges have directions, and K is the number of hops after which a walk on edges without directions is near its stationary state; leave out directed=true to use every edge in both directions"
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
		return fmt.Sprintf("--rule %s takes K hops of each node: %s, or give --rule sgc, s2gc, gbp, appnp or sign, which take --hops of all nodes", p.Smooth.Rule, directedK)
	case p.Smooth.Depth == plan.NodeDepth:
		return fmt.Sprintf("--depth %s takes K hops of each node: %s, or leave out --depth", p.Smooth.Depth, directedK)
	case p.Smooth.Rule == "nafs":
		return fmt.Sprintf("--rule %s weighs hops by their distances from a stationary state, whose rows are known for edges without directions: leave out directed=true to use every edge in both directions, or give --rule sgc, s2gc, gbp, appnp or sign", p.Smooth.Rule)
	case p.Embeds():
		return fmt.Sprintf("--rule %s is for edges without directions: leave out directed=true to use every edge in both directions", p.Smooth.Rule)
	}
	return ""
}

// directed reports whether the plan's graph has edges with directions.
func directed(p plan.Options) bool { return dataset.IsDirected(p.Partition.Dataset) }

// smoothsLabels reports whether a run smooths its own soft labels.
func smoothsLabels(p plan.Options) bool { return !p.SomeTargets() && !directed(p) }

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

// lacksFeatures returns what a graph lacks for smoothed features.
func lacksFeatures(p plan.Options, f estimate.Facts) string {
	if !f.Features && !p.Embeds() {
		return noFeatures
	}
	return ""
}

// lacksModel returns what a graph lacks for a model of the run.
func lacksModel(p plan.Options, f estimate.Facts) string {
	return cmp.Or(lacksFeatures(p, f), lacksTruth(p, f))
}

// lacksTruth returns what a graph lacks for measuring accuracy.
func lacksTruth(p plan.Options, f estimate.Facts) string {
	switch {
	case !f.Labels:
		return noLabels
	case f.OneClass && !p.Answers():
		return oneClass
	case !f.Splits:
		return noSplits
	}
	return ""
}

// ownModel reports whether the run's own model makes the soft labels.
func ownModel(p plan.Options) bool { return p.Labels.SoftLabels == "" }
