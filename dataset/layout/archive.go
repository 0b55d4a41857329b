package layout

import (
	"context"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// ArchiveList takes a list of edges from an array of an archive, and weights from its third column or
// from another array, where w asks for them. rows is the number of edges.
func ArchiveList(ctx context.Context, a *array.Archive, src *source.Source, w Weights, limit graph.IDLimit) (list graph.EdgeSource,
	rows int64, err error,
) {
	third := w.Name == array.ThirdColumn && a.Has([]string{w.Name}) == 0
	if w.Name == "" || third {
		return array.OpenList(ctx, src, w.Name, limit)
	}
	weights, err := a.Member(w.Name)
	if err != nil {
		return nil, 0, err
	}
	if weights == nil {
		return nil, 0, graph.BadData(a.Name, "has no array %q for weight=: it has %s", w.Name, strings.Join(a.Names(), ", "))
	}
	e, err := array.OpenEdges(ctx, src, limit)
	if err != nil {
		return nil, 0, err
	}
	v, shape, err := array.Open(ctx, weights)
	if err != nil {
		return nil, 0, err
	}
	weighted, err := e.WithWeights(v, shape)
	return weighted, e.M, err
}
