package ndls

import (
	"context"
	"errors"
	"io"

	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/half"
	"ndls/internal/progress"
	"ndls/partition"
)

// countDataset finds the counts of a dataset, reading what it does not state.
func countDataset(ctx context.Context, uri string, plan Options) (c estimate.Counts, err error) {
	ds, err := dataset.Open(ctx, uri, dataset.Options{NoFeatures: plan.Partition.Features == "none"})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if c, err = statedCounts(ctx, ds, plan); err == nil && (!c.StatedNodes || c.Edges == 0) {
		err = countEdges(ctx, ds, c.Edges, &c)
	}
	return c, err
}

// statedCounts is what a dataset says without its edges being read; Edges is 0
// where it does not say.
func statedCounts(ctx context.Context, ds dataset.Dataset, plan Options) (c estimate.Counts, err error) {
	info := ds.Info()
	c = estimate.Counts{
		Nodes: max(info.NumNodes, 0), StatedNodes: info.NumNodes >= 0, Edges: info.EdgeHint,
		Features: info.NumFeatures, Classes: len(info.Classes), Hops: estimate.DefaultHops,
	}
	if info.HasSplits {
		if err := countSplits(ctx, ds, &c); err != nil {
			return c, err
		}
	}
	if info.NumFeatures > 0 {
		c.Half, err = halfFeatures(ctx, ds, partition.Normalizes(plan.Partition.Normalize, info))
	}
	return c, err
}

// countEdges reads the edge list. The largest id bounds the number of nodes.
func countEdges(ctx context.Context, ds dataset.Dataset, hint int64, c *estimate.Counts) (err error) {
	r, err := ds.Edges(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m := progress.Start(ctx, "count edges", hint, "edges")
	defer m.Done()
	batch := make([]dataset.Edge, 1<<14)
	c.Edges = 0
	for {
		n, err := r.Read(batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			c.Nodes = max(c.Nodes, int64(max(e.U, e.V))+1)
		}
		c.Edges += int64(n)
		m.Add(int64(n))
	}
}

// countSplits reads the splits; labels outside them are not counted.
func countSplits(ctx context.Context, ds dataset.Dataset, c *estimate.Counts) (err error) {
	r, err := ds.Splits(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		_, split, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		c.Labelled++
		switch split {
		case dataset.Train:
			c.Training++
		case dataset.Valid:
			c.Validation++
		}
	}
}

// sampledRows is how many rows tell whether features are float16.
const sampledRows = 256

// halfFeatures says whether the first rows of features are exactly float16, as they are or
// normalised.
func halfFeatures(ctx context.Context, ds dataset.Dataset, normalized bool) (_ bool, err error) {
	r, err := ds.Features(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var values []float32
	for range sampledRows {
		row, err := r.Next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		values = append(append(values[:0], row.Dense...), row.Values...)
		if normalized {
			partition.NormalizeRow(values)
		}
		for _, x := range values {
			if half.Float(half.FromFloat(x)) != x {
				return false, nil
			}
		}
	}
	return true, nil
}
