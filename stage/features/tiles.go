package features

import (
	"context"

	"ndls/estimate"
	"ndls/internal/packed"
	"ndls/smooth"
	"ndls/stage/graph"
	"ndls/tiles"
)

// smoothedTiles are the tiles that the smooth stage writes. Each panel of columns yields one tile for every row of the output: first the
// sums of the rule, then the kept hops.
type smoothedTiles struct {
	*tiles.Matrix
	out estimate.Output
}

// Panels returns the number of panels of columns.
func (m *smoothedTiles) Panels() int { return m.out.Panels() }

// FirstMissing returns the first panel of columns, from first on, with a tile that is not committed.
func (m *smoothedTiles) FirstMissing(first, last int) int {
	for first < last && m.complete(first) {
		first++
	}
	return first
}

// complete reports whether all tiles of a panel of columns are committed.
func (m *smoothedTiles) complete(panel int) bool {
	for row := range m.out.Rows() {
		if !m.Complete(row*m.Panels() + panel) {
			return false
		}
	}
	return true
}

// kept returns the first tile panel of the kept hop i.
func (m *smoothedTiles) kept(i int) int { return (m.out.SumRows() + i) * m.Panels() }

// completeTo reports whether all tiles that hops of a direction yield from panels [first, last) are committed.
func (m *smoothedTiles) completeTo(direction, first, last int) bool {
	for panel := first; panel < last; panel++ {
		if m.out.Sums && !m.Complete(direction*m.Panels()+panel) {
			return false
		}
		for _, hop := range m.out.Keep {
			if i, ok := m.out.List(direction, hop); ok && !m.Complete(m.kept(i)+panel) {
				return false
			}
		}
	}
	return true
}

// keptHops commits the tiles of kept hops while a block is smoothed. The tiles of a hop are committed before a later state of the block is
// saved, so that work which resumes from a state makes all missing tiles.
type keptHops struct {
	out       *smoothedTiles
	direction int // index among those of the output

	s       *smooth.Smoother
	in      graph.Input
	columns int // of the block
	first   int // first panel
	last    int
}

// after commits the tiles of a hop, if it is kept.
func (k *keptHops) after(ctx context.Context, hop int) error {
	i, keep := k.out.out.List(k.direction, hop)
	if !keep {
		return nil
	}
	x := k.in.Block(ctx, k.first*packed.PanelColumns, k.columns)
	to := k.out.kept(i)
	for at := k.first; at < k.last; at += tiles.Together {
		end := min(at+tiles.Together, k.last)
		if err := k.out.Store(ctx, to+at, to+end, func(put func([]float32) error) error {
			return k.s.Hop(hop, (at-k.first)*packed.PanelColumns, (end-at)*packed.PanelColumns, x, put)
		}); err != nil {
			return err
		}
	}
	return nil
}
