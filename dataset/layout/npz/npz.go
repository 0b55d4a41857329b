package npz

import (
	"context"
	"fmt"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/source"
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
	pick    layout.Pick
	weights layout.Weights
}

// Open opens npz:FILE?split=N&weight=NAME.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget(form, rest, "split", "weight", "repeated")
	if err != nil {
		return nil, err
	}
	r := &reader{Graph: &layout.Graph{Known: graph.Info{Name: graph.Stem(t.Path), Identity: "npz:" + t.Base}}}
	if r.pick, err = layout.ParsePick(t.Params); err != nil {
		return nil, err
	}
	if r.weights, err = layout.ParseWeights(t.Params); err != nil {
		return nil, err
	}
	r.Known.Identity += layout.Query(r.pick, r.weights)
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
		if err := r.SetAdjacency(ctx, adjacency, r.weights); err != nil {
			return err
		}
	} else if err := r.openHeterophilous(ctx, name); err != nil {
		return err
	}
	if !o.NoFeatures {
		if err := r.openAttributes(ctx); err != nil {
			return err
		}
	}
	if err := r.openLabels(ctx); err != nil {
		return err
	}
	if err := r.openSplits(ctx, name); err != nil {
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
	for _, rows := range append(append([]string{}, LabelNames...), "node_features", "x", "train_mask") {
		shape, err := r.Shape(ctx, rows)
		if err != nil {
			return err
		}
		if len(shape) > 0 {
			r.Known.NumNodes = shape[0]
			break
		}
	}
	r.Stated = fmt.Sprintf("the archive has %d rows, one for each node", r.Known.NumNodes)
	for _, edges := range EdgeNames {
		src, err := r.Member(edges)
		if err != nil {
			return err
		}
		if src == nil {
			continue
		}
		return r.openList(ctx, src)
	}
	return graph.BadData(name, "has no adjacency matrix: adj_data … adj_shape, adj_matrix.data … adj_matrix.shape or adj_matrix is needed, or an array edges, or a matrix of scipy.sparse.save_npz; it has %s", strings.Join(r.Names(), ", "))
}

// openList takes a list of edges, and their weights from its third column or from the array that
// the URI names.
func (r *reader) openList(ctx context.Context, src *source.Source) (err error) {
	r.EdgeList, r.Known.EdgeHint, err = layout.ArchiveList(ctx, r.Archive, src, r.weights, r.Limit())
	r.Known.Weighted, r.Known.AddRepeated = r.weights.Name != "", r.weights.Sum
	return err
}

func (r *reader) openAttributes(ctx context.Context) error {
	sparse, dense, err := r.Matrix(ctx, AttributeNames, true)
	switch {
	case err != nil:
		return err
	case sparse != nil:
		return r.SetSparse(sparse)
	case dense != nil:
		r.Known.SparseFeatures = false
		r.Known.NumFeatures, r.FeatureRows = dense.Width, dense
		return r.RowsAreNodes(dense.Vector.Name, dense.Rows())
	}
	r.Known.SparseFeatures = false
	return nil
}

func (r *reader) openLabels(ctx context.Context) error {
	for _, name := range LabelNames {
		src, err := r.Member(name)
		if err != nil {
			return err
		}
		if src == nil {
			continue
		}
		return r.OpenLabels(ctx, src)
	}
	return nil
}

// openSplits takes one of the splits that the archive holds.
func (r *reader) openSplits(ctx context.Context, name string) error {
	lists, note, err := layout.OpenSplits(ctx, r.Archive, r.Known.NumNodes, r.pick)
	switch {
	case err != nil:
		return err
	case lists != nil:
		r.Membership = lists
		r.Note(note)
		if !r.pick.Given {
			r.Another = func(ctx context.Context, number int64) (layout.SplitSource, error) {
				lists, _, err := layout.OpenSplits(ctx, r.Archive, r.Known.NumNodes, layout.Pick{Number: number, Given: true})
				return lists, err
			}
		}
	case r.pick.Given:
		return graph.BadData(name, "holds no split: leave split=%d out, and draw a split with --split", r.pick.Number)
	}
	return nil
}
