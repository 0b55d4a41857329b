package stage

import (
	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/tiles"
)

// softTiles are the soft labels of all runs: those of run r start at panel
// r·packed.Panels(classes).
func softTiles(env *Env, kind, prefix string) *tiles.Matrix {
	l := tiles.Layout{Kind: kind, Prefix: prefix, Width: labelRuns(env.Plan) * packed.Panels(len(env.Summary.Classes)) * packed.PanelColumns}
	if kind == catalog.KindSmoothedSoftTile {
		l.PartKind = catalog.KindSmoothedSoftPart
	}
	return env.matrix(l)
}

// softInput are the soft labels that are smoothed: the models' or the user's.
func softInput(env *Env) *tiles.Matrix {
	if env.Plan.Labels.SoftLabels != "" {
		return softTiles(env, catalog.KindGivenSoftTile, givenSoftPrefix)
	}
	return softTiles(env, catalog.KindSoftTile, softPrefix)
}

// labelRuns is how many sets of soft labels there are under a plan: one a model, or the
// one that the user gave.
func labelRuns(p control.Plan) int {
	if !ownModel(p) {
		return 1
	}
	return p.Train.Runs
}

// smoothedSoft are the smoothed soft labels.
func smoothedSoft(env *Env) *tiles.Matrix {
	return softTiles(env, catalog.KindSmoothedSoftTile, smoothedSoftPrefix)
}
