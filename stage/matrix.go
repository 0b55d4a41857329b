package stage

import (
	"context"
	"strings"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/plan"
	"ndls/shards"
	"ndls/tiles"
)

// matrix returns a matrix in column tiles with a row per node, restricted to the task's rows.
func (env outputs) matrix(l tiles.Layout) *tiles.Matrix {
	s := env.Summary
	l.Starts = tiles.Starts(s.Nodes, s.IntervalRows)
	lo, hi := env.Span(s.Nodes)
	return tiles.Open(env.Catalog, env.Budget, l).Share(lo, hi).On(env.Resources.Threads)
}

// featureTiles returns the tiles of the input features.
func (env outputs) featureTiles() *tiles.Matrix {
	return env.matrix(tiles.Features(env.Summary))
}

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
		return onFeatures && p.Labels.TakesK() && (ownLabelEpsilon(p) || p.Labels.Hops() > p.LSI.Kmax)
	}
	return false
}

// joinTiles joins the parts of tiles of intervals [first, last) and commits the tiles.
func (env outputs) joinTiles(ctx context.Context, m *tiles.Matrix, first, last int) error {
	for i := first; i < last; i++ {
		if err := m.Join(ctx, i); err != nil {
			return err
		}
		env.Disk.Look()
	}
	return nil
}
