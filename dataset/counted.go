package dataset

import (
	"context"
	"io"

	"ndls/dataset/graph"
)

// counted is a dataset whose parts are functions of a position: nothing is
// stored.
type counted struct {
	info  Info
	nodes int64
	rows  int64
	edge  func(i int64) Edge
	// weight gives that of an edge; nil without weights. Both directions have the same.
	weight func(e Edge) float32
	// feature fills columns first, first+1, … of the row of a node; label and split
	// give its class and split.
	feature func(node int64, first int, row []float32)
	label   func(node int64) int32
	split   func(node int64) Split
}

func (c *counted) Info() Info { return c.info }

func (c *counted) Close() error { return nil }

func (c *counted) Edges(ctx context.Context) (EdgeReader, error) {
	return &countedEdges{c: c, ctx: ctx, end: c.rows}, nil
}

func (c *counted) Features(ctx context.Context) (FeatureReader, error) {
	return c.FeatureRange(ctx, 0, 1, 1)
}

func (c *counted) Labels(ctx context.Context) (LabelReader, error) {
	return &countedLabels{countedNodes{c: c, ctx: ctx, end: c.nodes}}, nil
}

func (c *counted) Splits(ctx context.Context) (SplitReader, error) {
	if c.split == nil {
		return nil, graph.NoStream("published split", c.info.Name)
	}
	return &countedSplits{countedNodes{c: c, ctx: ctx, end: c.nodes}}, nil
}

type countedEdges struct {
	c         *counted
	ctx       context.Context
	next, end int64
}

func (r *countedEdges) Close() error { return nil }

func (r *countedEdges) Read(batch []Edge) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n := int(min(int64(len(batch)), r.end-r.next))
	if n == 0 && len(batch) > 0 {
		return 0, io.EOF
	}
	for i := range n {
		batch[i] = r.c.edge(r.next + int64(i))
	}
	r.next += int64(n)
	return n, nil
}

// ReadWeighted implements WeightedReader.
func (r *countedEdges) ReadWeighted(batch []Edge, weights []float32) (int, error) {
	n, err := r.Read(batch)
	for i, e := range batch[:n] {
		weights[i] = r.c.weight(e)
	}
	return n, err
}

// countedNodes counts the nodes of a stream.
type countedNodes struct {
	c         *counted
	ctx       context.Context
	next, end int64
}

func (r *countedNodes) Close() error { return nil }

func (r *countedNodes) node() (int64, error) {
	if r.next == r.end {
		return 0, io.EOF
	}
	r.next++
	return r.next - 1, r.ctx.Err()
}

type countedFeatures struct {
	countedNodes
	first int
	row   []float32
}

// SelectColumns implements ColumnSelector.
func (r *countedFeatures) SelectColumns(first, last int) {
	r.first, r.row = first, make([]float32, last-first)
}

func (r *countedFeatures) Next() (FeatureRow, error) {
	node, err := r.node()
	if err != nil {
		return FeatureRow{}, err
	}
	r.c.feature(node, r.first, r.row)
	return FeatureRow{ID: uint32(node), Dense: r.row}, nil
}

type countedLabels struct{ countedNodes }

func (r *countedLabels) Next() (uint32, int32, error) {
	node, err := r.node()
	if err != nil {
		return 0, 0, err
	}
	return uint32(node), r.c.label(node), nil
}

type countedSplits struct{ countedNodes }

func (r *countedSplits) Next() (uint32, Split, error) {
	for {
		node, err := r.node()
		if err != nil {
			return 0, NoSplit, err
		}
		if s := r.c.split(node); s != NoSplit {
			return uint32(node), s, nil
		}
	}
}
