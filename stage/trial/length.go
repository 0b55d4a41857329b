package trial

import (
	"context"
	"math"

	"ndls/internal/packed"
	"ndls/stage"
	"ndls/stage/measures"
	"ndls/tiles"
	"ndls/train"
)

// RowLength returns the root mean square length of the imported features of the first split's training nodes, or 0 without features.
// Squares are added panel by panel, in order of node.
func RowLength(ctx context.Context, env *stage.Env) (float64, error) {
	defer env.Release()
	s := env.Summary
	if s.Features == 0 || s.Splits["train"] == 0 {
		return 0, nil
	}
	truth, err := measures.ReadLabelled(ctx, env)
	if err != nil {
		return 0, err
	}
	defer truth.Free()
	m, split := env.FeatureTiles(), truth.Split(0)
	sum, training := 0.0, 0
	for _, x := range split {
		if x == train.Train {
			training++
		}
	}
	for p := 0; p < m.Panels(); p += tiles.Together {
		columns := min(tiles.Together, m.Panels()-p) * packed.PanelColumns
		node := 0
		if err := m.Rows(ctx, p*packed.PanelColumns, columns, func(rows []float32) error {
			for ; len(rows) > 0; rows, node = rows[columns:], node+1 {
				if split[node] != train.Train {
					continue
				}
				for _, x := range rows[:columns] {
					sum += float64(float64(x) * float64(x))
				}
			}
			return nil
		}); err != nil {
			return 0, err
		}
	}
	return math.Sqrt(sum / float64(max(training, 1))), nil
}
