package stage

import (
	"ndls/dataset"
	"ndls/plan"
)

// SplitOf returns the split of a model; models are numbered split by split.
func SplitOf(p plan.Options, model int) int {
	if !OwnModel(p) {
		return 0
	}
	return model / p.NumRuns()
}

// Directed reports whether the plan's graph has edges with directions.
func Directed(p plan.Options) bool { return dataset.IsDirected(p.Partition.Dataset) }

// SmoothsLabels reports whether a run smooths its own soft labels.
func SmoothsLabels(p plan.Options) bool { return !p.SomeTargets() && !Directed(p) }

// OwnModel reports whether the run's own model makes the soft labels.
func OwnModel(p plan.Options) bool { return p.Labels.SoftLabels == "" }

// Corrects reports whether the plan corrects soft labels. With a given depth of 0 it does not, because depth 0 leaves them unchanged.
func Corrects(p plan.Options) bool { return p.Labels.Corrects() && p.Labels.Hops() > 0 }

// LabelRuns returns the number of sets of soft labels under a plan: one per model of each split, split by split, or the one that the user
// gave.
func LabelRuns(p plan.Options) int {
	if !OwnModel(p) {
		return 1
	}
	return p.NumSplits() * p.NumRuns()
}

// ModelsOfSplit returns the number of sets of soft labels of each split.
func ModelsOfSplit(p plan.Options) int { return LabelRuns(p) / SplitsOfLabels(p) }

// SplitsOfLabels returns the number of splits with soft labels of their own.
func SplitsOfLabels(p plan.Options) int {
	if !OwnModel(p) {
		return 1
	}
	return p.NumSplits()
}
