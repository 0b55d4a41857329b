package npz

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// The names of the parts in the three layouts: gnn-benchmark's plain arrays,
// SparseGraph's plain arrays, and objects that hold a pickled matrix.
var (
	AdjacencyNames = []string{"adj_", "adj_matrix.", "adj_matrix"}
	AttributeNames = []string{"attr_", "attr_matrix.", "attr_matrix", "node_attr"}
	LabelNames     = []string{"labels", "node_label"}
)

// npzGraph is a graph in one .npz archive.
type npzGraph struct {
	source.Files
	info       graph.Info
	adjacency  *array.CSR
	attributes *array.CSR
	dense      *array.Dense
	labels     *column.Labels
}

func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	name, err := graph.PathOf(rest)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, graph.BadURI("npz: needs a file: npz:FILE")
	}
	g := &npzGraph{info: graph.Info{Name: graph.Stem(name), Identity: "npz:" + graph.EscapePath(filepath.Base(name)), SparseFeatures: true}}
	if err := g.open(ctx, name, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.info.SizeHint = g.Bytes()
	return g, nil
}

func (g *npzGraph) open(ctx context.Context, name string, o graph.Options) error {
	a, err := array.OpenArchive(&g.Files, name)
	if err != nil {
		return err
	}
	if g.adjacency, _, err = a.Matrix(ctx, AdjacencyNames, false); err != nil {
		return err
	}
	if g.adjacency == nil {
		return graph.BadData(name, "has no adjacency matrix: adj_data … adj_shape, adj_matrix.data … adj_matrix.shape or adj_matrix is needed; it has %s", strings.Join(a.Names(), ", "))
	}
	n := g.adjacency.Rows
	if g.adjacency.Cols != n {
		return graph.BadData(g.adjacency.Name, "shape (%d, %d): an adjacency matrix is square", n, g.adjacency.Cols)
	}
	g.info.NumNodes, g.info.EdgeHint = n, g.adjacency.Indices.N
	weighted, err := g.adjacency.Weighted(ctx)
	if err != nil {
		return err
	}
	if weighted {
		g.Note(graph.WarningOf(g.adjacency.Name, "its values are ignored, and not all of them are 1: every stored entry is an edge, without weight"))
	}
	if !o.NoFeatures {
		if err := g.openAttributes(ctx, a); err != nil {
			return err
		}
	}
	if err := g.openLabels(ctx, a); err != nil {
		return err
	}
	if !o.NoFeatures {
		g.Note(graph.Unread(name, a.Others()))
	}
	return nil
}

func (g *npzGraph) openAttributes(ctx context.Context, a *array.Archive) (err error) {
	if g.attributes, g.dense, err = a.Matrix(ctx, AttributeNames, true); err != nil {
		return err
	}
	var name string
	var rows, cols int64
	switch {
	case g.attributes != nil:
		name, rows, cols = g.attributes.Name, g.attributes.Rows, g.attributes.Cols
	case g.dense != nil:
		name, rows, cols = g.dense.Vector.Name, g.dense.Vector.N/int64(g.dense.Width), int64(g.dense.Width)
		g.info.SparseFeatures = false
	default:
		g.info.SparseFeatures = false
		return nil
	}
	if rows != g.info.NumNodes {
		return graph.BadData(name, "has %d rows, the graph has %d nodes: the matrices do not belong together", rows, g.info.NumNodes)
	}
	g.info.NumFeatures = int(cols)
	return graph.CheckSize(name, rows, cols)
}

func (g *npzGraph) openLabels(ctx context.Context, a *array.Archive) error {
	for _, name := range LabelNames {
		src, err := a.Member(name)
		if err != nil {
			return err
		}
		if src == nil {
			continue
		}
		v, shape, err := array.Open(ctx, src)
		if err != nil {
			return err
		}
		if len(shape) != 1 || v.N != g.info.NumNodes {
			return graph.BadData(src.Name, "has shape %v: a vector with one label for each of the %d nodes is needed", shape, g.info.NumNodes)
		}
		g.labels, err = column.OpenLabels(ctx, column.Vector{Values: v})
		if err != nil {
			return err
		}
		g.info.Classes, g.info.HasLabels = g.labels.Classes, true
		return nil
	}
	return nil
}

func (g *npzGraph) Info() graph.Info { return g.info }

func (g *npzGraph) Edges(ctx context.Context) (graph.EdgeReader, error) {
	return g.adjacency.Edges(ctx)
}

func (g *npzGraph) Features(ctx context.Context) (graph.FeatureReader, error) {
	switch {
	case g.attributes != nil:
		return g.attributes.Features(ctx)
	case g.dense != nil:
		return g.dense.Open(ctx)
	}
	return nil, graph.NoStream("features", g.info.Name)
}

func (g *npzGraph) Labels(ctx context.Context) (graph.LabelReader, error) {
	if g.labels == nil {
		return nil, graph.NoStream("labels", g.info.Name)
	}
	return g.labels.Open(ctx)
}

func (g *npzGraph) Splits(context.Context) (graph.SplitReader, error) {
	return nil, graph.NoStream("published split", g.info.Name)
}
