package layout

import (
	"context"
	"fmt"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
)

// SetAdjacency takes the edges from a matrix with a row and a column for each node.
func (g *Graph) SetAdjacency(ctx context.Context, m *array.CSR) error {
	if m.Cols != m.Rows {
		return graph.BadData(m.Name, "shape (%d, %d): an adjacency matrix is square", m.Rows, m.Cols)
	}
	g.EdgeList, g.Known.NumNodes, g.Known.EdgeHint = graph.EdgeFunc(m.Edges), m.Rows, m.Indices.N
	weighted, err := m.Weighted(ctx)
	if weighted {
		g.Note(graph.WarningOf(m.Name, "its values are ignored, and not all of them are 1: every stored entry is an edge, without weight"))
	}
	return err
}

// OpenMasks takes number pick of the splits in the masks for training, validation and
// test of an archive. Without any of these arrays, lists is nil.
func OpenMasks(ctx context.Context, a *array.Archive, names [3]string, nodes, pick int64) (lists *column.Lists, splits int64, err error) {
	found := &column.Lists{Limit: graph.IDLimit{N: nodes, Stated: fmt.Sprintf("the masks have %d rows", nodes)}}
	for i, split := range []graph.Split{graph.Train, graph.Valid, graph.Test} {
		src, err := a.Member(names[i])
		if err != nil {
			return nil, 0, err
		}
		if src == nil {
			continue
		}
		v, shape, err := array.Open(ctx, src)
		if err != nil {
			return nil, 0, err
		}
		m, n, err := column.OpenMask(split, v, shape, nodes, pick)
		if err != nil {
			return nil, 0, err
		}
		if splits = max(splits, n); n > 0 && n != splits {
			return nil, 0, graph.BadData(src.Name, "has %d splits, another mask has %d: the masks do not belong together", n, splits)
		}
		found.Parts = append(found.Parts, m.List())
	}
	if found.Parts == nil {
		return nil, 0, nil
	}
	return found, splits, nil
}

// OpenDense takes the features from a file whose row i belongs to node i. The number of
// nodes is known, or else that of its rows.
func (g *Graph) OpenDense(ctx context.Context, path string) error {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	v, shape, err := array.Open(ctx, src)
	if err != nil {
		return err
	}
	return g.SetDense(v, shape)
}

// SetDense takes the features from a matrix whose row i belongs to node i.
func (g *Graph) SetDense(v array.Vector, shape []int64) error {
	rows, width, err := graph.CheckMatrix(v.Name, shape)
	if err != nil {
		return err
	}
	if err := g.RowsAreNodes(v.Name, rows); err != nil {
		return err
	}
	g.FeatureRows, g.Known.NumFeatures = &array.Dense{Vector: v, Width: width}, width
	return nil
}

// RowsAreNodes compares the rows of a part with the number of nodes, where that is known;
// otherwise the part states it.
func (g *Graph) RowsAreNodes(name string, rows int64) error {
	if g.Known.NumNodes < 0 {
		g.Known.NumNodes = rows
	}
	if rows != g.Known.NumNodes {
		return graph.BadData(name, "has %d rows, the graph has %d nodes: they do not belong together", rows, g.Known.NumNodes)
	}
	return nil
}
