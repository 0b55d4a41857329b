package stage

import (
	"context"

	"ndls/catalog"
	"ndls/tiles"
)

// matrix is a matrix in column tiles with a row for every node, of which the task reads
// and writes its own.
func (env *Env) matrix(l tiles.Layout) *tiles.Matrix {
	s := env.Summary
	l.Starts = []int64{0}
	for lo := int64(0); lo < s.Nodes; lo += s.IntervalRows {
		l.Starts = append(l.Starts, min(lo+s.IntervalRows, s.Nodes))
	}
	lo, hi := env.Span(s.Nodes)
	return tiles.Open(env.Catalog, env.Budget, l).Share(lo, hi)
}

// featureTiles are the tiles of input features.
func (env *Env) featureTiles() *tiles.Matrix {
	s := env.Summary
	return env.matrix(tiles.Layout{Kind: catalog.KindFeatures, Prefix: featurePrefix, Width: s.Features, Half: s.HalfFeatures()})
}

// joinTiles commits the tiles of intervals [first, last) of which there are parts.
func (env *Env) joinTiles(ctx context.Context, m *tiles.Matrix, first, last int) error {
	for i := first; i < last; i++ {
		if err := m.Join(ctx, i); err != nil {
			return err
		}
		env.Disk.Look()
	}
	return nil
}
