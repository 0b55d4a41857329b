package stage

import (
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/shards"
)

// What a run may lack for a stage, and what the user can do.
const (
	noFeatures  = "the run has no features; import a dataset with features, without --features none"
	noLabels    = "the dataset has no labels"
	noSplits    = "the dataset has no splits; partition with --split random:20,30 to draw them"
	otherModel  = "--soft-labels stand in for the run's own model"
	someTargets = "--targets left nodes without soft labels, which are smoothed over the whole graph; use --targets all"
)

// DepthGiven is what a run has no need of label-depth for.
const DepthGiven = "--label-depth gives the depth of label smoothing"

// FactsOf says what an imported graph has.
func FactsOf(s shards.Summary) estimate.Facts {
	return estimate.Facts{Features: s.Features > 0, Labels: s.Labelled > 0, Splits: s.HasSplits}
}

// lacksModel is what a graph lacks for a model of the run's own.
func lacksModel(f estimate.Facts) string {
	if !f.Features {
		return noFeatures
	}
	return lacksTruth(f)
}

// lacksTruth is what a graph lacks for measuring how often classes are right.
func lacksTruth(f estimate.Facts) string {
	switch {
	case !f.Labels:
		return noLabels
	case !f.Splits:
		return noSplits
	}
	return ""
}

// ownModel says whether soft labels are those of the run's own model.
func ownModel(p control.Plan) bool { return p.Labels.SoftLabels == "" }
