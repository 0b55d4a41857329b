package pyg

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/pickle"
	"ndls/dataset/torch"
)

const form = "pyg:FILE?split=N&weight=NAME"

// Keys are the options of the URI.
var Keys = []string{"split", "weight", "repeated"}

// reader opens a graph.
type reader struct {
	*layout.Graph
	file *torch.File
	path string
	data *pickle.Dict
	used []string
}

// Open opens pyg:FILE?split=N&weight=NAME, or the folder of a partitioned graph.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget(form, rest, Keys...)
	if err != nil {
		return nil, err
	}
	opt, err := layout.ParseOptions(t.Params)
	if err != nil {
		return nil, err
	}
	name := graph.Stem(filepath.Base(t.Path))
	g := &layout.Graph{Options: opt, Known: graph.Info{Name: name, Identity: "pyg:" + t.Base + opt.Query(), NumNodes: -1}}
	if st, problem := os.Stat(t.Path); problem == nil && st.IsDir() {
		if opt.Pick.Given {
			return nil, graph.BadURI("%s picks one of the splits in a file; %s is a folder of a partitioned graph, which has at most one", opt.Pick.Option(), t.Base)
		}
		err = (&partition{Graph: g}).open(ctx, t.Path, o)
	} else {
		err = (&reader{Graph: g, path: t.Path}).open(ctx, o)
	}
	return g.Opened(err)
}

func (r *reader) open(ctx context.Context, o graph.Options) (err error) {
	if r.file, err = torch.Open(ctx, &r.Files, r.path); err != nil {
		return err
	}
	if r.data, err = r.single(r.file.Value, mostNested); err != nil {
		return err
	}
	if n, ok := r.get("num_nodes"); ok {
		nodes, isNumber := n.(int64)
		if !isNumber || nodes < 1 || nodes > graph.MaxID+1 {
			return graph.BadData(r.path, "num_nodes is %s: a number from 1 to %d is needed", pickle.Describe(n), int64(graph.MaxID+1))
		}
		r.Known.NumNodes = nodes
	}
	if x, ok := r.get("x"); ok && !o.NoFeatures {
		v, shape, err := r.file.Array(x, "x")
		if err != nil {
			return err
		}
		if err := r.SetDense(v, shape); err != nil {
			return err
		}
	}
	if y, ok := r.get("y"); ok {
		v, shape, err := r.file.Array(y, "y")
		if err != nil {
			return err
		}
		if err := r.SetVectorLabels(ctx, v, shape); err != nil {
			return err
		}
	}
	if err := r.SetSplits(ctx, r.path, layout.MaskNames[1], r.Pick, r.mask); err != nil {
		return err
	}
	if err := r.openEdges(); err != nil {
		return err
	}
	if !o.NoFeatures {
		r.Note(graph.Unread(r.path, unread(r.data, r.used, r.Weights)))
	}
	return nil
}

// mostNested bounds how deep the tensors of a graph lie in objects. PyG has five of them around each other.
const mostNested = 16

// single finds the tensors of the one graph of the file, within so many values around each other.
func (r *reader) single(value any, depth int) (*pickle.Dict, error) {
	if depth == 0 {
		return nil, graph.BadData(r.path, "holds more than %d objects in each other: it is damaged; save torch.save(data.to_dict(), file)", mostNested)
	}
	switch value := value.(type) {
	case pickle.Tuple:
		if len(value) == 0 {
			break
		}
		if len(value) > 1 {
			if err := r.oneGraph(value[1]); err != nil {
				return nil, err
			}
		}
		return r.single(value[0], depth-1)
	case *pickle.List:
		if value.Len() == 1 && len(value.Items) == 1 {
			return r.single(value.Items[0], depth-1)
		}
		return nil, graph.BadData(r.path, "holds a list of %d graphs: a file of one graph is read", value.Len())
	case *pickle.Object:
		if strings.Contains(value.Class.Name, "Hetero") {
			return nil, graph.BadData(r.path, "holds a %s: graphs of one kind of nodes are read; save data.to_homogeneous(), or one kind of edges", value.Class.Name)
		}
		state, ok := value.State.(*pickle.Dict)
		if !ok {
			break
		}
		for _, inner := range []string{"_store", "_mapping"} {
			if v, ok := state.Get(inner); ok {
				if object, isObject := v.(*pickle.Object); isObject {
					return r.single(object, depth-1)
				}
				return r.single(v, depth-1)
			}
		}
		return state, nil
	case *pickle.Dict:
		return value, nil
	case *torch.Tensor:
		return nil, graph.BadData(r.path, "holds one tensor, not a graph: save torch.save({'edge_index': …, 'x': …, 'y': …}, file)")
	}
	return nil, graph.BadData(r.path, "holds no Data object and no dict of tensors: save torch.save(data.to_dict(), file)")
}

// oneGraph looks at the slices of an InMemoryDataset: a vector of k+1 bounds for k graphs.
func (r *reader) oneGraph(slices any) error {
	d, ok := slices.(*pickle.Dict)
	if !ok {
		return nil
	}
	bounds, ok := d.Get("edge_index")
	if !ok {
		return nil
	}
	v, _, err := r.file.Array(bounds, "slices of edge_index")
	if err == nil && v.N != 2 {
		err = graph.BadData(r.path, "holds %d graphs: a file of one graph is read", v.N-1)
	}
	return err
}

// get returns a part of the graph; None is none.
func (r *reader) get(key string) (any, bool) {
	r.used = append(r.used, key)
	v, ok := r.data.Get(key)
	return v, ok && v != nil
}

// unread names the tensors of a dict that were not used.
func unread(d *pickle.Dict, used []string, w layout.Weights) (names []string) {
	for _, p := range d.Pairs {
		_, isTensor := p.Value.(*torch.Tensor)
		if key, isText := p.Key.(pickle.Bytes); isText && isTensor && !slices.Contains(used, key.Text) {
			name := key.Text
			if (name == "edge_attr" || name == "edge_weight") && w.Name == "" {
				name += " (weight=" + name + " reads weights)"
			}
			names = append(names, name)
		}
	}
	return names
}

// mask opens the mask of a split. It says how many nodes there are where features and labels do not.
func (r *reader) mask(_ context.Context, key string) (*array.Vector, []int64, error) {
	mask, ok := r.get(key)
	if !ok {
		return nil, nil, nil
	}
	v, shape, err := r.file.Array(mask, key)
	if err == nil && r.Known.NumNodes < 0 && len(shape) > 0 {
		r.Known.NumNodes = shape[0]
	}
	return &v, shape, err
}

func (r *reader) openEdges() error {
	index, ok := r.get("edge_index")
	if !ok {
		return graph.BadData(r.path, "has no edge_index (it has %s): a graph needs one; an adjacency as SparseTensor is not read", strings.Join(r.keys(), ", "))
	}
	v, shape, fortran, err := r.file.Matrix(index, "edge_index")
	if err != nil {
		return err
	}
	e, err := array.EdgesOf(v, shape, fortran, r.Limit())
	if err != nil {
		return err
	}
	r.EdgeList, r.Known.EdgeHint = e, e.M
	if r.Weights.Name != "" {
		return r.openWeights(e)
	}
	return nil
}

func (r *reader) openWeights(e *array.Edges) error {
	weights, ok := r.get(r.Weights.Name)
	if !ok {
		return graph.BadData(r.path, "has no tensor %q for weight=: it has %s", r.Weights.Name, strings.Join(r.keys(), ", "))
	}
	v, shape, err := r.file.Array(weights, r.Weights.Name)
	if err != nil {
		return err
	}
	weighted, err := e.WithWeights(v, shape)
	if err != nil {
		return err
	}
	r.EdgeList = weighted
	r.Note(graph.NoteOf(r.path, "tensor %q has the weights of edges", r.Weights.Name))
	return nil
}

func (r *reader) keys() (keys []string) {
	for _, p := range r.data.Pairs {
		if key, isText := p.Key.(pickle.Bytes); isText {
			keys = append(keys, key.Text)
		}
	}
	return keys
}
