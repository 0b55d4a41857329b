package stage

import (
	"ndls/catalog"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/tiles"
)

// givenTiles returns the soft labels that the user gave.
func givenTiles(env *Env) *tiles.Matrix {
	width := softPanels(env) * packed.PanelColumns
	return env.outputs().matrix(tiles.Layout{Kind: catalog.KindGivenSoftTile, Prefix: givenSoftPrefix, Width: width})
}

// labelRuns returns the number of sets of soft labels under a plan: one per model of each split, split by split, or the one that the user
// gave.
func labelRuns(p plan.Options) int {
	if !ownModel(p) {
		return 1
	}
	return p.NumSplits() * p.NumRuns()
}

// smoothedSoft returns the smoothed soft labels; run r starts at panel r·packed.Panels(classes). Intervals that have predictions need none,
// and neither do panels in a file of best classes.
func smoothedSoft(env *Env) *tiles.Matrix {
	l := tiles.Layout{
		Kind: catalog.KindSmoothedSoftTile, PartKind: catalog.KindSmoothedSoftPart, Prefix: smoothedSoftPrefix,
		Width: softPanels(env) * packed.PanelColumns,
	}
	if env.Plan.Probabilities == plan.BestProbability {
		l.Row = bestRow
	}
	done := intervalsOf(env.Catalog, catalog.KindPredictions) // written last
	merged := env.outputs().mergedPanels()
	return env.outputs().matrix(l).Needless(func(p tiles.Place) bool { return done[p.Interval] || merged[p] })
}
