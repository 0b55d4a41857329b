package worker

import (
	"context"

	"ndls/shards"
	"ndls/tiles"
)

// matrix is a matrix in column tiles with a row for every node, of which the task reads
// and writes its own.
func (j *job) matrix(l tiles.Layout, s shards.Summary) *tiles.Matrix {
	l.Starts = tiles.Starts(s.Nodes, s.IntervalRows)
	lo, hi := j.span(s.Nodes)
	return tiles.Open(j.cat, j.budget, l).Share(lo, hi)
}

// featureTiles are the tiles of input features.
func (j *job) featureTiles(s shards.Summary) *tiles.Matrix {
	return j.matrix(tiles.Features(s), s)
}

// joinTiles commits the tiles of intervals [first, last) of which there are parts.
func (j *job) joinTiles(ctx context.Context, m *tiles.Matrix, first, last int) error {
	for i := first; i < last; i++ {
		if err := m.Join(ctx, i); err != nil {
			return err
		}
		j.disk.look()
	}
	return nil
}
