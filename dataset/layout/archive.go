package layout

import (
	"context"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// SetList takes the edges from an array of an archive, and weights from its third column or from another array, where the URI
// asks for them.
func (g *Graph) SetList(ctx context.Context, a *array.Archive, src *source.Source) (err error) {
	name := g.Weights.Name
	if name == "" || name == array.ThirdColumn && a.Has([]string{name}) == 0 {
		g.EdgeList, g.Known.EdgeHint, err = array.OpenList(ctx, src, name, g.Limit())
		return err
	}
	weights, err := a.Member(name)
	if err != nil {
		return err
	}
	if weights == nil {
		return graph.BadData(a.Name, "has no array %q for weight=: it has %s", name, strings.Join(a.Names(), ", "))
	}
	e, err := array.OpenEdges(ctx, src, g.Limit())
	if err != nil {
		return err
	}
	v, shape, err := array.Open(ctx, weights)
	if err != nil {
		return err
	}
	g.Known.EdgeHint = e.M
	g.EdgeList, err = e.WithWeights(v, shape)
	return err
}

// SetMatrix takes the features from a sparse or dense matrix that an archive has under one of the names, if it does.
func (g *Graph) SetMatrix(ctx context.Context, a *array.Archive, names []string) error {
	sparse, dense, err := a.Matrix(ctx, names, true)
	if err != nil {
		return err
	}
	if sparse != nil {
		return g.SetSparse(sparse)
	}
	if g.Known.SparseFeatures = false; dense == nil {
		return nil
	}
	g.FeatureRows, g.Known.NumFeatures = dense, dense.Width
	return g.RowsAreNodes(dense.Vector.Name, dense.Rows())
}
