package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/dataset/graph"
)

// RangeReader is a Dataset whose edge list can be read from the middle.
type RangeReader interface {
	// EdgeRange is Edges for the parts [first, last) of the list cut into of parts
	// of about the same length. Each row is in one part, whatever of is. A list
	// that can only be read from its beginning is all in part 0.
	EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error)
}

// EdgeRange reads parts of the edge list of any dataset; see [RangeReader].
func EdgeRange(ctx context.Context, ds Dataset, first, last, of int) (EdgeReader, error) {
	switch r, ok := ds.(RangeReader); {
	case ok:
		return r.EdgeRange(ctx, first, last, of)
	case first > 0:
		return graph.NoEdges{}, nil
	}
	return ds.Edges(ctx)
}

// EachEdges visits the edges of a dataset in batches, in the order of the list.
func EachEdges(ctx context.Context, ds Dataset, visit func([]Edge) error) error {
	return ReadEdges(ctx, ds, graph.Share{Last: 1, Of: 1}, make([]Edge, 1<<14), nil,
		func(edges []Edge, _ []float32) error { return visit(edges) })
}

// ReadEdges visits the edges of a share of the list in batches of up to len(batch), with their
// weights where weights, which is then as long as batch, is not nil. It stops soon after ctx ends.
func ReadEdges(ctx context.Context, ds Dataset, of graph.Share, batch []Edge, weights []float32,
	visit func([]Edge, []float32) error,
) (err error) {
	read, closeList, err := openShare(ctx, ds, of, weights)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeList()) }()
	for {
		n, err := read(batch)
		if err == io.EOF {
			return nil
		}
		if err == nil && weights == nil {
			err = visit(batch[:n], nil)
		} else if err == nil {
			err = visit(batch[:n], weights[:n])
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// openShare opens a share of the list for read, which also fills weights unless that is nil.
func openShare(ctx context.Context, ds Dataset, of graph.Share, weights []float32) (read func([]Edge) (int, error),
	closeList func() error, err error,
) {
	if weights == nil {
		r, err := EdgeRange(ctx, ds, of.First, of.Last, of.Of)
		if err != nil {
			return nil, nil, err
		}
		return r.Read, r.Close, nil
	}
	r, err := WeightedEdgeRange(ctx, ds, of.First, of.Last, of.Of)
	if err != nil {
		return nil, nil, err
	}
	return func(batch []Edge) (int, error) { return r.ReadWeighted(batch, weights) }, r.Close, nil
}

// WeightedEdgeRange is EdgeRange of a dataset whose edges have weights.
func WeightedEdgeRange(ctx context.Context, ds Dataset, first, last, of int) (WeightedReader, error) {
	r, err := EdgeRange(ctx, ds, first, last, of)
	if err != nil {
		return nil, err
	}
	if _, none := r.(graph.NoEdges); none {
		return noEdges{}, nil
	}
	w, ok := r.(WeightedReader)
	if !ok {
		return nil, errors.Join(fmt.Errorf("weights of %s are not read", ds.Info().Name), r.Close())
	}
	return w, nil
}

// noEdges is a part of a list that holds nothing.
type noEdges struct{ graph.NoEdges }

// ReadWeighted implements WeightedReader.
func (noEdges) ReadWeighted([]Edge, []float32) (int, error) { return 0, io.EOF }

// FeatureRangeReader is a Dataset whose feature rows can be read from the middle.
type FeatureRangeReader interface {
	// CutsFeatures reports whether they can: it depends on the file.
	CutsFeatures() bool
	// FeatureRange is Features for the parts [first, last) of the rows cut into of parts
	// of about the same length. Each row is in one part, whatever of is.
	FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error)
}

// CutsFeatures reports whether the feature rows of a dataset can be read from the middle.
func CutsFeatures(ds Dataset) bool {
	r, ok := ds.(FeatureRangeReader)
	return ok && r.CutsFeatures()
}

// EdgeRange implements RangeReader.
func (c *counted) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	lo, hi := graph.Share{First: first, Last: last, Of: of}.Bounds(c.rows)
	return &countedEdges{c: c, ctx: ctx, next: lo, end: hi}, nil
}

// CutsFeatures implements FeatureRangeReader.
func (c *counted) CutsFeatures() bool { return true }

// FeatureRange implements FeatureRangeReader.
func (c *counted) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	if c.feature == nil {
		return nil, graph.NoStream("features", c.info.Name)
	}
	lo, hi := graph.Share{First: first, Last: last, Of: of}.Bounds(c.nodes)
	return &countedFeatures{countedNodes{c, ctx, lo, hi}, 0, make([]float32, c.info.NumFeatures)}, nil
}
