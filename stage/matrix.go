package stage

import (
	"context"

	"ndls/tiles"
)

// matrix is a matrix in column tiles with a row for every node, of which the task reads
// and writes its own.
func (env *Env) matrix(l tiles.Layout) *tiles.Matrix {
	s := env.Summary
	l.Starts = tiles.Starts(s.Nodes, s.IntervalRows)
	lo, hi := env.Span(s.Nodes)
	return tiles.Open(env.Catalog, env.Budget, l).Share(lo, hi).On(env.Resources.Threads)
}

// featureTiles are the tiles of input features.
func (env *Env) featureTiles() *tiles.Matrix {
	return env.matrix(tiles.Features(env.Summary))
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
