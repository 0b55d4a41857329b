package labels

import (
	"slices"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/elementary"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/stage"
	"ndls/tiles"
	"ndls/train"
)

// If only the best class of each node is wanted, panels of smoothed soft labels do not wait until all of them exist. A tile then holds the
// best class of its panel for each row. Once the tiles of an interval are committed, they are merged into one file per run, which holds the
// best class among the panels so far, and removed. Panels are merged in ascending order, whoever smooths them, so that sums have the same
// bits. Tiles whose panels are not next stay until predictions are made, and so do tiles of workers that share rows.

// bestRow is the size of a tile's row if only the best class is wanted: its value and the sum of the values of the panel's classes, as
// float32, then the number of the class in the panel, as a byte. The sum leaves out negative values, which corrected soft labels may have.
// For averages of logarithms the sum adds exp(value − best value).
const bestRow = 9

// mergedRow is the size of a row of a file of best classes so far: the value of the best class (float32), its number (uint32), and the sum
// of the values of all classes so far (float64). For averages of logarithms the sum adds exp(value − best value).
const mergedRow = 16

// mergedPanels returns the panels that files of best classes hold, by interval.
func mergedPanels(cat *catalog.Catalog) map[tiles.Place]bool {
	merged := map[tiles.Place]bool{}
	for _, e := range cat.Entries(catalog.KindBestClasses) {
		for p := e.First; p < e.Last; p++ {
			merged[tiles.Place{Interval: int(e.Interval), Panel: int(p)}] = true
		}
	}
	return merged
}

// sumsOfSigned replaces negative sums so that the row can be normalised; the largest value keeps its place.
func sumsOfSigned(row []float32) {
	best := slices.Max(row)
	for c, x := range row {
		switch {
		case best > 0:
			row[c] = max(x, 0)
		case x == best:
			row[c] = 1
		default:
			row[c] = 0
		}
	}
}

// sharedRows is the number of rows that a thread takes at a time.
const sharedRows = 1 << 10

// averagesLogs reports whether smoothing to a depth averages logarithms of probabilities. The rule of the authors' code does; depth 0
// averages nothing.
func averagesLogs(p plan.Options, depth int) bool {
	return p.Labels.Rule == "ndls-reference" && depth > 0
}

// signed reports whether smoothing to a depth may yield negative values, as corrected soft labels do.
func signed(p plan.Options, depth int) bool { return stage.Corrects(p) && depth > 0 }

// normalise turns a row of smoothed soft labels into probabilities that sum to 1: it divides averages of probabilities by their sum, and
// applies softmax to averages of logarithms.
func normalise(row []float32, logs bool) {
	if logs {
		most := row[train.Argmax(row)]
		for c, x := range row {
			row[c] = float32(elementary.Exp(float64(x - most)))
		}
	}
	sum := 0.0
	for _, x := range row {
		sum += float64(x)
	}
	for c, x := range row {
		row[c] = float32(float64(x) / sum)
	}
}

const (
	givenSoftPrefix    = "predictions/given"
	smoothedSoftPrefix = "predictions/tiles"
)

// labelsRun is the stage while it runs.
type labelsRun struct {
	*stage.Env
	rows train.Source // of all nodes, in memory; nil if they are in files
}

// GivenTiles returns the soft labels that the user gave.
func GivenTiles(env *stage.Env) *tiles.Matrix {
	width := softPanels(env) * packed.PanelColumns
	return env.Matrix(tiles.Layout{Kind: catalog.KindGivenSoftTile, Prefix: givenSoftPrefix, Width: width})
}

// smoothedSoft returns the smoothed soft labels; run r starts at panel r·packed.Panels(classes). Intervals that have predictions need none,
// and neither do panels in a file of best classes.
func smoothedSoft(env *stage.Env) *tiles.Matrix {
	l := tiles.Layout{
		Kind: catalog.KindSmoothedSoftTile, PartKind: catalog.KindSmoothedSoftPart, Prefix: smoothedSoftPrefix,
		Width: softPanels(env) * packed.PanelColumns,
	}
	if env.Plan.Probabilities == plan.BestProbability {
		l.Row = bestRow
	}
	done := stage.Committed(env.Catalog, catalog.KindPredictions) // written last
	merged := mergedPanels(env.Catalog)
	return env.Matrix(l).Needless(func(p tiles.Place) bool { return done[p.Interval] || merged[p] })
}

// softKinds lists the kinds of files that decide the soft labels.
var softKinds = []string{catalog.KindSmoothed, catalog.KindKeptHops, catalog.KindModel, catalog.KindGivenSoftTile, catalog.KindCorrection}

// softPanels returns the number of panels of the soft labels of all runs.
func softPanels(env *stage.Env) int {
	return stage.LabelRuns(env.Plan) * packed.Panels(len(env.Summary.Classes))
}

const (
	// panelRow is the size of a panel's row; alignedRows is the number of rows that fill a page.
	panelRow    = packed.PanelColumns * 4
	alignedRows = direct.Align / panelRow
)
