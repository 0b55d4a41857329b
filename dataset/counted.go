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
	// feature fills columns first, first+1, … of the row of a node.
	feature func(node int64, first int, row []float32)
	// labelled is the number of labelled nodes, and labelledNode gives one of them; nil where node i is the one.
	labelled     int64
	labelledNode func(i int64) int64
	// label gives the class of a node, split the split of a labelled node.
	label func(node int64) int32
	split func(i int64) Split
}

func (c *counted) Info() Info { return c.info }

func (c *counted) Close() error { return nil }

func (c *counted) Edges(ctx context.Context, s Share) (EdgeReader, error) {
	lo, hi := s.Bounds(c.rows)
	return &countedEdges{countedItems{c, ctx, lo, hi}}, nil
}

func (c *counted) Features(ctx context.Context, s Share) (FeatureReader, error) {
	if c.feature == nil {
		return nil, graph.NoStream("features", c.info.Name)
	}
	lo, hi := s.Bounds(c.nodes)
	return &countedFeatures{countedItems{c, ctx, lo, hi}, 0, make([]float32, c.info.NumFeatures)}, nil
}

func (c *counted) Labels(ctx context.Context) (LabelReader, error) {
	return &countedLabels{countedItems{c: c, ctx: ctx, end: c.labelled}}, nil
}

func (c *counted) Splits(ctx context.Context, number int) (SplitReader, error) {
	if c.split == nil {
		return nil, graph.NoStream("published split", c.info.Name)
	}
	return &countedSplits{countedItems{c: c, ctx: ctx, end: c.labelled}}, graph.CheckSplit(c.info.Name, number)
}

// countedItems counts the items of a stream.
type countedItems struct {
	c         *counted
	ctx       context.Context
	next, end int64
}

func (r *countedItems) Close() error { return nil }

// step returns the number of the next item, or io.EOF.
func (r *countedItems) step() (int64, error) {
	if r.next == r.end {
		return 0, io.EOF
	}
	r.next++
	return r.next - 1, r.ctx.Err()
}

// node is the labelled node with a number.
func (r *countedItems) node(i int64) int64 {
	if r.c.labelledNode == nil {
		return i
	}
	return r.c.labelledNode(i)
}

type countedEdges struct{ countedItems }

func (r *countedEdges) Read(edges []Edge, weights []float32) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n := int(min(int64(len(edges)), r.end-r.next))
	if n == 0 && len(edges) > 0 {
		return 0, io.EOF
	}
	for i := range n {
		edges[i] = r.c.edge(r.next + int64(i))
	}
	for i := range weights[:min(n, len(weights))] {
		weights[i] = r.c.weight(edges[i])
	}
	r.next += int64(n)
	return n, nil
}

type countedFeatures struct {
	countedItems
	first int
	row   []float32
}

// SelectColumns implements ColumnSelector.
func (r *countedFeatures) SelectColumns(first, last int) {
	r.first, r.row = first, make([]float32, last-first)
}

func (r *countedFeatures) Next() (FeatureRow, error) {
	node, err := r.step()
	if err != nil {
		return FeatureRow{}, err
	}
	r.c.feature(node, r.first, r.row)
	return FeatureRow{ID: uint32(node), Dense: r.row}, nil
}

type countedLabels struct{ countedItems }

func (r *countedLabels) Next() (uint32, int32, error) {
	i, err := r.step()
	if err != nil {
		return 0, 0, err
	}
	node := r.node(i)
	return uint32(node), r.c.label(node), nil
}

type countedSplits struct{ countedItems }

func (r *countedSplits) Next() (uint32, Split, error) {
	for {
		i, err := r.step()
		if err != nil {
			return 0, NoSplit, err
		}
		if s := r.c.split(i); s != NoSplit {
			return uint32(r.node(i)), s, nil
		}
	}
}
