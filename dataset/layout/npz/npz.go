package npz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
)

// The names of the parts: of gnn-benchmark's plain arrays, of SparseGraph's plain
// arrays, of objects that hold a pickled matrix, of the heterophilous graphs, and of PyTorch Geometric's data.
var (
	AdjacencyNames = []string{"adj_", "adj_matrix.", "adj_matrix"}
	EdgeNames      = []string{"edges", "edge_index"}
	AttributeNames = []string{"attr_", "attr_matrix.", "attr_matrix", "node_attr", "node_features", "x"}
	LabelNames     = []string{"labels", "node_label", "node_labels", "y"}
)

const form = "npz:FILE?split=N&weight=NAME"

// reader opens a graph in one .npz archive.
type reader struct {
	*layout.Graph
	*array.Archive
}

// Open opens npz:FILE?split=N&weight=NAME.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget(form, rest, "split", "weight", "repeated")
	if err != nil {
		return nil, err
	}
	r := &reader{Graph: &layout.Graph{Known: graph.Info{Name: graph.Stem(t.Path), Identity: "npz:" + t.Base}}}
	if r.Options, err = layout.ParseOptions(t.Params); err != nil {
		return nil, err
	}
	r.Known.Identity += r.Query()
	return r.Opened(r.open(ctx, t.Path, o))
}

func (r *reader) open(ctx context.Context, name string, o graph.Options) (err error) {
	if r.Archive, err = array.OpenArchive(&r.Files, name); err != nil {
		return err
	}
	names := AdjacencyNames
	if r.IsMatrix() {
		names = []string{""} // a matrix of SciPy, without a name
	}
	adjacency, _, err := r.Matrix(ctx, names, false)
	if err != nil {
		return err
	}
	if adjacency != nil {
		r.Known.SparseFeatures = true // until dense ones are found, also where features are left out
		if err := r.SetAdjacency(ctx, adjacency); err != nil {
			return err
		}
	} else if err := r.openHeterophilous(ctx, name); err != nil {
		return err
	}
	if !o.NoFeatures {
		if err := r.SetMatrix(ctx, r.Archive, AttributeNames); err != nil {
			return err
		}
	}
	if err := r.openLabels(ctx); err != nil {
		return err
	}
	if err := r.SetSplits(ctx, name, layout.SplitNames(r.Archive), r.Pick, r.Vector); err != nil {
		return err
	}
	if !o.NoFeatures {
		r.Note(graph.Unread(name, r.Others()))
	}
	return nil
}

// openHeterophilous reads the edges as a list of pairs. The number of nodes is the number of
// labels, or else of feature rows.
func (r *reader) openHeterophilous(ctx context.Context, name string) error {
	r.Known.NumNodes = -1
	shape, err := r.Shape(ctx, append(slices.Clone(LabelNames), "node_features", "x", "train_mask")...)
	if err != nil {
		return err
	}
	if len(shape) > 0 {
		r.Known.NumNodes = shape[0]
	}
	r.Stated = fmt.Sprintf("the archive has %d rows, one for each node", r.Known.NumNodes)
	edges, err := r.First(EdgeNames...)
	switch {
	case err != nil:
		return err
	case edges == nil:
		return graph.BadData(name, "has no adjacency matrix: adj_data … adj_shape, adj_matrix.data … adj_matrix.shape or adj_matrix is needed, or an array edges, or a matrix of scipy.sparse.save_npz; it has %s", strings.Join(r.Names(), ", "))
	}
	return r.SetList(ctx, r.Archive, edges)
}

func (r *reader) openLabels(ctx context.Context) error {
	src, err := r.First(LabelNames...)
	if src == nil || err != nil {
		return err
	}
	return r.OpenLabels(ctx, src)
}
