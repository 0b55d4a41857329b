package stage

import (
	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/tiles"
)

// givenTiles are the soft labels that the user gave.
func givenTiles(env *Env) *tiles.Matrix {
	return env.matrix(tiles.Layout{Kind: catalog.KindGivenSoftTile, Prefix: givenSoftPrefix, Width: softPanels(env) * packed.PanelColumns})
}

// labelRuns is how many sets of soft labels there are under a plan: one a model of each split,
// split by split, or the one that the user gave.
func labelRuns(p control.Plan) int {
	if !ownModel(p) {
		return 1
	}
	return p.NumSplits() * p.Train.Runs
}

// smoothedSoft are the smoothed soft labels: those of run r start at panel
// r·packed.Panels(classes). Of intervals that have predictions none is needed, and no panel that
// is in a file of best classes.
func smoothedSoft(env *Env) *tiles.Matrix {
	l := tiles.Layout{
		Kind: catalog.KindSmoothedSoftTile, PartKind: catalog.KindSmoothedSoftPart, Prefix: smoothedSoftPrefix,
		Width: softPanels(env) * packed.PanelColumns,
	}
	if env.Plan.Probabilities == control.BestProbability {
		l.Row = bestRow
	}
	done := intervalsOf(env.Catalog, catalog.KindPredictions) // which come last
	merged := env.mergedPanels()
	return env.matrix(l).Needless(func(p tiles.Place) bool { return done[p.Interval] || merged[p] })
}
