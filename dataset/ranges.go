package dataset

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/graph"
)

// EachEdges visits the edges of a dataset in batches, in the order of the list.
func EachEdges(ctx context.Context, ds Dataset, visit func([]Edge) error) error {
	return ReadEdges(ctx, ds, graph.Whole, make([]Edge, 1<<14), nil, func(edges []Edge, _ []float32) error { return visit(edges) })
}

// ReadEdges visits the edges of a share of the list in batches of up to len(batch), with their
// weights where weights, which is then as long as batch, is not nil. It stops soon after ctx ends.
func ReadEdges(ctx context.Context, ds Dataset, of graph.Share, batch []Edge, weights []float32,
	visit func([]Edge, []float32) error,
) (err error) {
	r, err := ds.Edges(ctx, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		n, err := r.Read(batch, weights)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(batch[:n], weights[:min(n, len(weights))])
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}
