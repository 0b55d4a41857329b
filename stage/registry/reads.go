package registry

import (
	"strings"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/labels"
	"ndls/tiles"
)

// HaveFeatures reports whether all tiles of a graph's input features exist.
func HaveFeatures(cat *catalog.Catalog, s shards.Summary) bool {
	if s.Features == 0 || s.IntervalRows < 1 {
		return true
	}
	m := tiles.Open(cat, nil, tiles.Features(s))
	return m.FirstMissing(0, m.Panels()) == m.Panels()
}

// ReadsFeatures reports whether a stage reads tiles of input features under plan p.
func ReadsFeatures(p plan.Options, s control.Stage) bool {
	onFeatures := strings.HasPrefix(p.LSI.Mode, "feature")
	switch s {
	case control.Smooth:
		return !p.Embeds()
	case control.LSI:
		return onFeatures
	case control.LabelDepth, control.SmoothLabels:
		return onFeatures && p.Labels.TakesK() && (labels.OwnEpsilon(p) || p.Labels.Hops() > p.LSI.Kmax)
	}
	return false
}

// ReadsRows reports whether a stage reads smoothed rows under plan p.
func ReadsRows(p plan.Options, s control.Stage) bool {
	switch s {
	case control.Train:
		return p.Train.On == ""
	case control.Predict:
		return true
	case control.LabelDepth, control.SmoothLabels:
		return stage.OwnModel(p)
	}
	return false
}

// RemovedAfter reports whether the files of a kind are removed once a stage is complete, because no later stage reads them.
func RemovedAfter(p plan.Options, kind string, s control.Stage) bool {
	return KindOf(kind).Until == s || s == control.SmoothLabels && p.DropSmoothed && kind == stage.RowsKind(p)
}

// Replaces lists, in order, the stages of the run's own model if a stage smooths the soft labels of another model in its place.
func Replaces(p plan.Options, s control.Stage) []control.Stage {
	if s == control.SmoothLabels && !stage.OwnModel(p) {
		return []control.Stage{control.Train, control.Predict}
	}
	return nil
}
