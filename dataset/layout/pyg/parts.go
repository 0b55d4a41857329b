package pyg

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
	"ndls/dataset/torch"
)

const (
	metaName = "META.json"
	// mostParts bounds the number of parts, whose files are open at a time.
	mostParts = 1 << 12
)

// meta is the part of META.json that is read.
type meta struct {
	Parts  int  `json:"num_parts"`
	Hetero bool `json:"is_hetero"`
	Sorted bool `json:"is_sorted"`
}

// partition is a graph that PyG has cut into parts for distributed training.
type partition struct {
	*layout.Graph
	dir   string // of META.json
	meta  meta
	edges layout.EdgeChunks
	rows  layout.FeatureChunks
	// numRows is the number of rows of features.
	numRows int64
}

func (p *partition) open(ctx context.Context, path string, o graph.Options) error {
	beside, err := p.find(path)
	if err != nil {
		return err
	}
	if err := p.readMeta(ctx); err != nil {
		return err
	}
	for i := range p.meta.Parts {
		if err := p.openPart(ctx, i, o); err != nil {
			return err
		}
	}
	p.EdgeList = p.edges
	if err := p.noteUnread(ctx); err != nil {
		return err
	}
	if len(p.rows) > 0 {
		p.FeatureRows = p.rows
		if err := p.RowsAreNodes(filepath.Join(p.dir, "part_*", "node_feats.pt"), p.numRows); err != nil {
			return err
		}
	}
	if beside == "" {
		return nil
	}
	if err := p.openLabels(ctx, beside+"label"); err != nil {
		return err
	}
	return p.openSplits(ctx, beside)
}

// find finds the folder of META.json: the given one, or the only one in it. In front of the
// names of labels and splits beside it is then its own, without the end.
func (p *partition) find(path string) (beside string, err error) {
	if p.dir = path; source.Exists(filepath.Join(path, metaName)) {
		return "", nil
	}
	const end = "-partitions"
	// An error says that the pattern is wrong, which it is not behind a quoted path.
	found, err := filepath.Glob(filepath.Join(quoted.Replace(path), "*"+end, metaName))
	if err != nil || len(found) != 1 {
		return "", graph.BadData(path, "has %d folders NAME%s with a file %s, and no such file itself: give a folder that torch_geometric.distributed.Partitioner has written, or one above it", len(found), end, metaName)
	}
	p.dir = filepath.Dir(found[0])
	return strings.TrimSuffix(p.dir, "partitions"), nil
}

// quoted takes the special meaning from characters in a pattern.
var quoted = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

func (p *partition) readMeta(ctx context.Context) error {
	data, err := layout.ReadMetadata(ctx, &p.Files, p.dir, metaName)
	if err != nil {
		return err
	}
	path := filepath.Join(p.dir, metaName)
	if err := layout.DecodeJSON(path, data, &p.meta); err != nil {
		return err
	}
	switch {
	case p.meta.Hetero:
		return graph.BadData(path, "is_hetero is true: graphs of one kind of nodes are read; partition data.to_homogeneous(), or one kind of edges")
	case !p.meta.Sorted:
		return graph.BadData(path, "is_sorted is not true: older versions of PyG number the nodes of edges within their part; partition the graph again with PyG 2.5 or later")
	case p.meta.Parts < 1 || p.meta.Parts > mostParts:
		return graph.BadData(path, "num_parts is %d: from 1 to %d parts are read", p.meta.Parts, mostParts)
	}
	return nil
}

// openPart opens the edges and the features of a part.
func (p *partition) openPart(ctx context.Context, i int, o graph.Options) error {
	folder := filepath.Join(p.dir, fmt.Sprintf("part_%d", i))
	edges, err := p.openEdges(ctx, filepath.Join(folder, "graph.pt"))
	if err != nil {
		return err
	}
	p.Known.EdgeHint += edges.M
	list := graph.EdgeSource(edges)
	if p.Weights.Name != "" {
		if list, err = p.openWeights(ctx, filepath.Join(folder, "edge_feats.pt"), edges); err != nil {
			return err
		}
	}
	p.edges = append(p.edges, list)
	if path := filepath.Join(folder, "node_feats.pt"); !o.NoFeatures && source.Exists(path) {
		return p.openRows(ctx, path)
	}
	return nil
}

// openFile opens a file that each part has.
func (p *partition) openFile(ctx context.Context, path string) (*torch.File, error) {
	if !source.Exists(path) {
		return nil, graph.BadData(path, "is missing, and META.json states %d parts: copy all of them to one folder", p.meta.Parts)
	}
	return torch.Open(ctx, &p.Files, path)
}

// openEdges opens the edges of a part, whose nodes are numbered as in the whole graph.
func (p *partition) openEdges(ctx context.Context, path string) (*array.Edges, error) {
	f, err := p.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	nodes := int64(0)
	size, _ := torch.Get(f.Value, "size")
	if dims, isTuple := size.(pickle.Tuple); isTuple && len(dims) == 2 {
		nodes, _ = dims[0].(int64)
	}
	switch {
	case nodes < 1 || nodes > graph.MaxID+1:
		return nil, graph.BadData(path, "has no size that states from 1 to %d nodes: PyG has not written it so; partition the graph again", int64(graph.MaxID+1))
	case p.Known.NumNodes >= 0 && nodes != p.Known.NumNodes:
		return nil, graph.BadData(path, "states %d nodes, and part 0 states %d: the parts do not belong together", nodes, p.Known.NumNodes)
	}
	p.Known.NumNodes = nodes
	ends := make([]array.Vector, 2)
	for i, name := range []string{"row", "col"} {
		if ends[i], err = vectorOf(f, f.Value, path, name); err != nil {
			return nil, err
		}
	}
	return array.EdgesBetween(ends[0], ends[1], p.Limit())
}

// vectorOf opens an entry of a dict.
func vectorOf(f *torch.File, dict any, path, name string) (v array.Vector, err error) {
	value, _ := torch.Get(dict, name)
	if value == nil {
		return v, graph.BadData(path, "has no tensor %q: PyG has not written it so; partition the graph again", name)
	}
	v, _, err = f.Array(value, name)
	return v, err
}

// openWeights takes the weights of the edges of a part, which are in the order of its edges.
func (p *partition) openWeights(ctx context.Context, path string, edges *array.Edges) (graph.EdgeSource, error) {
	f, err := p.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	feats, _ := torch.Get(f.Value, "feats")
	weights, _ := torch.Get(feats, p.Weights.Name)
	if weights == nil {
		return nil, graph.BadData(path, "has no tensor %q of edges for weight=: PyG partitions edge_attr", p.Weights.Name)
	}
	v, shape, err := f.Array(weights, p.Weights.Name)
	if err != nil {
		return nil, err
	}
	return edges.WithWeights(v, shape)
}

// noteUnread says that data of edges is left out, where part 0 has some.
func (p *partition) noteUnread(ctx context.Context) error {
	path := filepath.Join(p.dir, "part_0", "edge_feats.pt")
	if p.Weights.Name != "" || !source.Exists(path) {
		return nil
	}
	f, err := torch.Open(ctx, &p.Files, path)
	if err != nil {
		return err
	}
	feats, _ := torch.Get(f.Value, "feats")
	if d, isDict := feats.(*pickle.Dict); isDict {
		p.Note(graph.Unread(path, unread(d, nil, p.Weights)))
	}
	return nil
}

// openRows takes the features of a part, and the nodes to which they belong.
func (p *partition) openRows(ctx context.Context, path string) error {
	f, err := torch.Open(ctx, &p.Files, path)
	if err != nil {
		return err
	}
	feats, _ := torch.Get(f.Value, "feats")
	x, _ := torch.Get(feats, "x")
	if x == nil {
		return nil
	}
	v, shape, err := f.Array(x, "x")
	if err != nil {
		return err
	}
	rows, width, err := graph.CheckMatrix(v.Name, shape)
	if err != nil {
		return err
	}
	nodes, err := vectorOf(f, f.Value, path, "global_id")
	switch {
	case err != nil:
		return err
	case !nodes.Type.IsInteger() || nodes.N != rows:
		return graph.BadData(nodes.Name, "has %d numbers of type %s: a node is needed for each of the %d rows of features", nodes.N, nodes.Type, rows)
	case len(p.rows) > 0 && width != p.Known.NumFeatures:
		return graph.BadData(v.Name, "has %d columns, and another part has %d: the parts do not belong together", width, p.Known.NumFeatures)
	}
	p.Known.NumFeatures = width
	ids, err := column.VectorList(graph.NoSplit, nodes, []int64{rows})
	of := column.Nodes{IDs: ids.Open, Limit: p.Limit()}
	p.rows = append(p.rows, layout.FeatureChunk{Rows: &array.Dense{Vector: v, Width: width}, Nodes: of})
	p.numRows += rows
	return err
}

// openLabels takes the labels of all nodes from label.pt in a folder, if it is there.
func (p *partition) openLabels(ctx context.Context, folder string) error {
	path := filepath.Join(folder, "label.pt")
	if !source.Exists(path) {
		return nil
	}
	t, err := layout.OpenTensor(ctx, &p.Files, "torch", path)
	if err != nil {
		return err
	}
	return p.SetVectorLabels(ctx, t.Vector, t.Shape)
}

// openSplits takes the lists of nodes in the files partition0.pt, partition1.pt, … of folders
// for training, validation and test, where they are there.
func (p *partition) openSplits(ctx context.Context, beside string) error {
	for _, part := range []struct {
		name  string
		split graph.Split
	}{{"train", graph.Train}, {"val", graph.Valid}, {"test", graph.Test}} {
		for i := range p.meta.Parts {
			path := filepath.Join(beside+part.name+"-partitions", fmt.Sprintf("partition%d.pt", i))
			if !source.Exists(path) {
				continue
			}
			t, err := layout.OpenTensor(ctx, &p.Files, "torch", path)
			if err != nil {
				return err
			}
			list, err := column.VectorList(part.split, t.Vector, t.Shape)
			if err != nil {
				return err
			}
			p.AddPart(list)
		}
	}
	return nil
}
