package ndls

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"ndls/dataset"
	"ndls/dataset/prepare"
	"ndls/estimate"
	"ndls/internal/half"
	"ndls/internal/progress"
	"ndls/partition"
	"ndls/stage/imports"
)

// countDataset finds the counts of a dataset, reading what it does not state with the given
// resources.
func countDataset(ctx context.Context, uri string, plan Options, r Resources) (c estimate.Counts, err error) {
	pipes, err := r.copyPipes(ctx, uri)
	if err != nil {
		return c, err
	}
	defer pipes.remove()
	ds, err := dataset.Open(ctx, pipes.uri, imports.DatasetOptions(plan))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if plan.Partition.Only != "" {
		return countPart(ctx, ds, plan, r)
	}
	ids := partition.IDCounts{}
	keyed, hasKeys := ds.(dataset.Keyed)
	if hasKeys {
		if ids, err = countIDs(ctx, keyed, r); err != nil {
			return c, err
		}
	}
	if c, err = fittedCounts(ctx, ds, plan, r); err != nil {
		return c, err
	}
	addIDs(ds, ids, &c)
	if !c.StatedNodes || c.Edges <= fewRows {
		if err := countEdges(ctx, ds, c.Edges, !hasKeys, everyNode, &c); err != nil {
			return c, err
		}
	}
	if err := drawnSplits(ds.Info(), plan, &c); err != nil { // now that the nodes are known
		return c, err
	}
	dropEdges(plan, &c)
	return c, nil
}

// addIDs adds what ids are that have to be numbered.
func addIDs(ds dataset.Dataset, ids partition.IDCounts, c *estimate.Counts) {
	if keyed, ok := ds.(dataset.Keyed); ok && !ids.Dense {
		c.IDs, c.NodeTable = ids.Bytes, keyed.OwnNodes()
	}
}

// countPart counts the part of a graph that a plan imports.
func countPart(ctx context.Context, ds dataset.Dataset, plan Options, r Resources) (c estimate.Counts, err error) {
	err = withResources(r, imports.PartitionOptions(plan), func(o partition.Options) (err error) {
		cat, remove, err := temporaryCatalog(ctx, o.Scratch)
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, remove()) }()
		part, err := partition.FindPart(ctx, ds, cat, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, part.Close()) }()
		ids, err := part.CountIDs(ctx)
		if err != nil {
			return err
		}
		if c, err = fittedCounts(ctx, ds, plan, r); err != nil {
			return err
		}
		addIDs(ds, ids, &c)
		if err := countEdges(ctx, ds, c.Edges, true, part.Has, &c); err != nil {
			return err
		}
		train, valid := part.Nodes()
		onlyNodes(plan, train, valid, &c)
		dropEdges(plan, &c)
		return nil
	})
	return c, err
}

// onlyNodes sets the counts of nodes to those of the part of a graph that a plan imports.
func onlyNodes(plan Options, train, valid int64, c *estimate.Counts) {
	if plan.Partition.Only == partition.OnlyTrain {
		valid = 0
	}
	c.Nodes, c.StatedNodes = train+valid, false
	c.Training, c.Validation, c.Labelled = train, valid, min(c.Labelled, train+valid)
}

// dropEdges takes the share of the edges off that a plan leaves out. They are read and sorted
// nonetheless.
func dropEdges(plan Options, c *estimate.Counts) {
	c.InputRows = cmp.Or(c.InputRows, c.Edges)
	c.Edges = int64(math.Round(float64(c.Edges) * (1 - plan.Partition.DropEdges)))
}

// everyNode says that all nodes are in the graph.
func everyNode(uint32) bool { return true }

// drawnSplits counts the nodes of the splits that the plan has drawn, if it has, as if every
// node had a label and every class were large enough.
func drawnSplits(info dataset.Info, plan Options, c *estimate.Counts) error {
	if plan.Partition.Split == "" || !info.HasLabels {
		return nil
	}
	train, valid, err := partition.Drawn(plan.Partition.Split, c.Classes, c.Nodes)
	if err != nil {
		return err
	}
	c.Labelled = c.Nodes
	c.Training = min(train, c.Nodes)
	c.Validation = min(valid, c.Nodes-c.Training)
	return nil
}

// countIDs counts the ids of a dataset, whose streams can be read then: they have nodes
// without their numbers.
func countIDs(ctx context.Context, ds dataset.Keyed, r Resources) (c partition.IDCounts, err error) {
	err = withResources(r, partition.Options{}, func(o partition.Options) (err error) {
		c, err = partition.CountIDs(ctx, ds, o)
		return err
	})
	ds.Number(c.Nodes, func([]byte) (uint32, bool) { return 0, true })
	return c, err
}

// withResources gives a function options with a memory budget and a scratch folder, both of which
// are released when it returns.
func withResources(r Resources, o partition.Options, use func(partition.Options) error) error {
	scratch, remove, err := r.scratch()
	if err != nil {
		return err
	}
	defer remove()
	budget, err := r.Budget()
	if err != nil {
		return err
	}
	defer budget.Close()
	o.Budget, o.Threads, o.Scratch = budget, threads(r.Threads), scratch
	return use(o)
}

// fittedCounts is statedCounts of a dataset whose features are read if that tells their number.
func fittedCounts(ctx context.Context, ds dataset.Dataset, plan Options, r Resources) (c estimate.Counts, err error) {
	var columns *prepare.Columns
	if err := withResources(r, imports.PartitionOptions(plan), func(o partition.Options) (err error) {
		columns, err = partition.FitColumns(ctx, ds, o)
		return err
	}); err != nil {
		return c, err
	}
	return statedCounts(ctx, ds, columns, plan)
}

// statedCounts returns what a dataset states without its edges being read; Edges is 0 if it does
// not state it. columns says how its columns become features; nil if they are features.
func statedCounts(ctx context.Context, ds dataset.Dataset, columns *prepare.Columns, plan Options) (c estimate.Counts, err error) {
	info := ds.Info()
	c = estimate.Counts{
		Nodes: max(info.NumNodes, 0), StatedNodes: info.NumNodes >= 0, Weighted: info.Weighted, Directed: info.Directed, Edges: info.EdgeHint,
		Features: info.NumFeatures, RowMemory: info.RowMemory, EdgeMemory: info.EdgeMemory, Classes: len(info.Classes),
	}
	if info.HasSplits && plan.Partition.Split == "" {
		if err := countSplits(ctx, ds, &c); err != nil {
			return c, err
		}
		if n := int64(plan.Partition.LabelsPerClass); n > 0 { // of the labelled nodes that neither validate nor test
			c.Training = min(n*int64(c.Classes), max(c.Nodes-c.Labelled+c.Training, 0))
		}
	}
	if err := drawnSplits(info, plan, &c); err != nil {
		return c, err
	}
	if columns != nil {
		c.Features = columns.Width()
	}
	if partition.FitReads(info.Identity, imports.PartitionOptions(plan)) {
		c.Fitted = info.NumFeatures + len(info.Categories)
	}
	if columns.FromNeighbours() {
		c.Filled = len(columns.Missing)
	}
	if c.Features > 0 {
		l1, _, err := partition.Normalizes(ctx, plan.Partition.Normalize, ds, columns)
		if err != nil {
			return c, err
		}
		if c.Half, err = halfFeatures(ctx, ds, columns, l1); err != nil {
			return c, err
		}
		c.Half = c.Half && !columns.FromNeighbours()
	}
	return c, nil
}

// fewRows is the number of rows of an edge list up to which they are read to count its edges
// exactly, even if the dataset states the number of rows: that takes a second.
const fewRows = 1 << 22

// countEdges counts the edges between nodes that has names: it reads the edge list. The largest id
// bounds the number of nodes. Of few rows,
// edges that are there again, in this direction or, unless edges have directions, the other, count
// once, and self-loops do not count, unless nodes have no numbers yet.
func countEdges(ctx context.Context, ds dataset.Dataset, hint int64, numbered bool, has func(id uint32) bool, c *estimate.Counts) error {
	m := progress.Start(ctx, "count edges", hint, "edges")
	defer m.Done()
	c.Edges, c.InputRows = 0, 0
	var pairs []uint64
	if err := dataset.EachEdges(ctx, ds, func(batch []dataset.Edge) error {
		for _, e := range batch {
			if !has(e.U) || !has(e.V) {
				continue
			}
			c.InputRows++
			c.Nodes = max(c.Nodes, int64(max(e.U, e.V))+1)
			if numbered && e.U != e.V && c.InputRows <= fewRows {
				if !c.Directed {
					e.U, e.V = min(e.U, e.V), max(e.U, e.V)
				}
				pairs = append(pairs, uint64(e.U)<<32|uint64(e.V))
			}
		}
		m.Add(int64(len(batch)))
		return nil
	}); err != nil {
		return err
	}
	if c.Edges = c.InputRows; numbered && c.Edges <= fewRows {
		slices.Sort(pairs)
		c.Edges = int64(len(slices.Compact(pairs)))
	}
	return nil
}

// countSplits reads the splits; labels outside them are not counted.
func countSplits(ctx context.Context, ds dataset.Dataset, c *estimate.Counts) (err error) {
	r, err := ds.Splits(ctx, 0)
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

// sampledRows is the number of rows that tell whether features are float16.
const sampledRows = 256

// halfFeatures reports whether the first rows of features are exactly float16, as they are or
// normalised.
func halfFeatures(ctx context.Context, ds dataset.Dataset, columns *prepare.Columns, normalized bool) (_ bool, err error) {
	r, err := ds.Features(ctx, dataset.Whole)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if columns != nil {
		r = columns.Read(r)
	}
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
