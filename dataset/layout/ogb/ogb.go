package ogb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/source"
)

// folder is a graph of the Open Graph Benchmark (Hu et al., NeurIPS 2020) in
// the folder that its download unpacks to: raw/data.npz and raw/node-label.npz,
// or raw/edge.csv.gz, node-feat.csv.gz, node-label.csv.gz, num-node-list.csv.gz
// and num-edge-list.csv.gz; in both cases split/NAME/train.csv.gz, valid.csv.gz
// and test.csv.gz. Features, labels and splits may be missing.
type folder struct{ *layout.Graph }

// Open opens ogb:DIR.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	dir, err := graph.PathOf(rest)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, graph.BadURI("ogb: needs a folder: ogb:DIR")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	name := filepath.Base(dir)
	g := &folder{&layout.Graph{Known: graph.Info{Name: name, Identity: "ogb:" + graph.EscapePath(name)}}}
	return g.Opened(g.open(ctx, dir, o))
}

func (g *folder) open(ctx context.Context, dir string, o graph.Options) error {
	raw := filepath.Join(dir, "raw")
	var err error
	switch {
	case source.Exists(filepath.Join(raw, "data.npz")):
		err = g.openBinary(ctx, raw, o)
	case source.Exists(filepath.Join(raw, "edge.csv.gz")):
		err = g.openText(ctx, raw, o)
	default:
		err = graph.BadData(dir, "has neither raw/data.npz nor raw/edge.csv.gz: give the folder that the download unpacks to")
	}
	if err != nil {
		return err
	}
	return g.openSplits(filepath.Join(dir, "split"))
}

// states notes the number of nodes and of edges of the graph.
func (g *folder) states(where string, nodes, edges int64) error {
	if nodes < 1 || nodes > graph.MaxID+1 || edges < 0 {
		return graph.BadData(where, "states %d nodes and %d edges: from 1 to %d nodes are read, fetch the file again", nodes, edges, int64(graph.MaxID+1))
	}
	g.Known.NumNodes, g.Known.EdgeHint, g.Stated = nodes, edges, fmt.Sprintf("the folder states %d nodes", nodes)
	return nil
}

func (g *folder) openBinary(ctx context.Context, raw string, o graph.Options) error {
	a, err := array.OpenArchive(&g.Files, filepath.Join(raw, "data.npz"))
	if err != nil {
		return err
	}
	nodes, err := a.Single(ctx, "num_nodes_list")
	if err != nil {
		return err
	}
	edges, err := a.Single(ctx, "num_edges_list")
	if err != nil {
		return err
	}
	if err := g.states(a.Name, nodes, edges); err != nil {
		return err
	}
	index, err := a.Need("edge_index")
	if err != nil {
		return err
	}
	e, err := array.OpenEdges(ctx, index, g.Limit())
	if err != nil {
		return err
	}
	if e.M != edges {
		return graph.BadData(index.Name, "holds %d edges, num_edges_list needs shape (2, %d): the arrays do not belong together, fetch the file again", e.M, edges)
	}
	g.EdgeList = e
	features, shape, err := a.Vector(ctx, "node_feat")
	if err != nil {
		return err
	}
	if features != nil && !o.NoFeatures {
		if err := g.SetDense(*features, shape); err != nil {
			return err
		}
	}
	g.Note(graph.Unread(a.Name, a.Others()))
	return g.openArrayLabels(ctx, filepath.Join(raw, "node-label.npz"), o)
}

func (g *folder) openArrayLabels(ctx context.Context, path string, o graph.Options) error {
	if !source.Exists(path) {
		return nil
	}
	a, err := array.OpenArchive(&g.Files, path)
	if err != nil {
		return err
	}
	v, shape, err := a.Array(ctx, "node_label")
	if err != nil {
		return err
	}
	if o.Answers != graph.Classes {
		if len(shape) != 2 {
			return graph.BadData(v.Name, "has shape %v: several labels or numbers are a matrix with a row for each node", shape)
		}
		return g.takeAnswers(o.Answers, &array.Dense{Vector: v, Width: int(shape[1]), Holes: true}, v.Name, int(shape[1]), shape[0])
	}
	if len(shape) == 0 || v.N != shape[0] {
		return graph.BadData(v.Name, "has shape %v: one class for each node is read; --task labels and --task regression read several columns", shape)
	}
	return g.openLabels(ctx, column.Vector{Values: v})
}

// takeAnswers takes rows of labels or numbers; their columns have no names.
func (g *folder) takeAnswers(t graph.Answers, rows graph.FeatureSource, name string, width int, n int64) error {
	if err := g.RowsAreNodes(name, n); err != nil {
		return err
	}
	g.AnswerRows, g.AnswerFile, g.Known.Answers, g.Known.Classes = rows, name, t, graph.NamesOfAnswers(width)
	return graph.CheckSize(name, n, int64(width))
}

// openLabels numbers the classes as the benchmark does: from 0 to the largest
// label, whether or not each one occurs.
func (g *folder) openLabels(ctx context.Context, c column.Column) error {
	l, err := column.OpenLabels(ctx, c)
	if err != nil {
		return err
	}
	if err := g.RowsAreNodes(c.Where(), l.Rows); err != nil {
		return err
	}
	g.Classes = l
	return l.Count(0)
}

// openSplits takes the one folder of split/, whatever its name.
func (g *folder) openSplits(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	if len(folders) != 1 {
		return graph.BadData(dir, "holds %d folders (%s): keep the one split that is meant", len(folders), strings.Join(folders, ", "))
	}
	for _, s := range []graph.Split{graph.Train, graph.Valid, graph.Test} {
		src, _, err := g.Open(filepath.Join(dir, folders[0], s.String()+".csv.gz"))
		if err != nil {
			return err
		}
		g.AddPart(column.List{Split: s, Open: func(ctx context.Context) (column.IDs, error) {
			t, err := g.table(ctx, src)
			if err != nil {
				return nil, err
			}
			return t.IDs(ctx)
		}})
	}
	return nil
}
