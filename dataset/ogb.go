package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// ogbGraph is a graph of the Open Graph Benchmark (Hu et al., NeurIPS 2020) in
// the folder that its download unpacks to: raw/data.npz and raw/node-label.npz,
// or raw/edge.csv.gz, node-feat.csv.gz, node-label.csv.gz, num-node-list.csv.gz
// and num-edge-list.csv.gz; in both cases split/NAME/train.csv.gz, valid.csv.gz
// and test.csv.gz. Features, labels and splits may be missing.
type ogbGraph struct {
	source.Files
	info     Info
	edges    graph.EdgeSource
	features graph.FeatureSource
	labels   *column.Labels
	splits   []ogbSplit
}

func openOGB(ctx context.Context, rest string, o Options) (Dataset, error) {
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
	g := &ogbGraph{info: Info{Name: name, Identity: "ogb:" + graph.EscapePath(name)}}
	if err := g.open(ctx, dir, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.info.SizeHint = g.Bytes()
	return g, nil
}

func (g *ogbGraph) open(ctx context.Context, dir string, o Options) error {
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
func (g *ogbGraph) states(where string, nodes, edges int64) error {
	if nodes < 1 || nodes > MaxID+1 || edges < 0 {
		return graph.BadData(where, "states %d nodes and %d edges: from 1 to %d nodes are read, fetch the file again", nodes, edges, int64(MaxID+1))
	}
	g.info.NumNodes, g.info.EdgeHint = nodes, edges
	return nil
}

// limit bounds the ids of the graph.
func (g *ogbGraph) limit() graph.IDLimit {
	return graph.IDLimit{N: g.info.NumNodes, Stated: fmt.Sprintf("the folder states %d nodes", g.info.NumNodes)}
}

func (g *ogbGraph) openBinary(ctx context.Context, raw string, o Options) error {
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
	e, err := array.OpenEdges(ctx, index, g.limit())
	if err != nil {
		return err
	}
	if e.M != edges {
		return graph.BadData(index.Name, "holds %d edges, num_edges_list needs shape (2, %d): the arrays do not belong together, fetch the file again", e.M, edges)
	}
	g.edges = e
	if features, err := a.Member("node_feat"); err != nil {
		return err
	} else if features != nil && !o.NoFeatures {
		if err := g.openFeatures(ctx, features); err != nil {
			return err
		}
	}
	g.Note(graph.Unread(a.Name, a.Others()))
	return g.openArrayLabels(ctx, filepath.Join(raw, "node-label.npz"))
}

func (g *ogbGraph) openFeatures(ctx context.Context, src *source.Source) error {
	v, shape, err := array.Open(ctx, src)
	if err != nil {
		return err
	}
	rows, width, err := graph.CheckMatrix(v.Name, shape)
	if err != nil {
		return err
	}
	if rows != g.info.NumNodes {
		return g.rowsDiffer(v.Name, rows)
	}
	g.features, g.info.NumFeatures = &array.Dense{Vector: v, Width: width}, width
	return nil
}

func (g *ogbGraph) rowsDiffer(name string, rows int64) error {
	return graph.BadData(name, "has %d rows, the graph has %d nodes: the files do not belong together, fetch them again", rows, g.info.NumNodes)
}

func (g *ogbGraph) openArrayLabels(ctx context.Context, path string) error {
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
	if len(shape) == 0 || v.N != shape[0] {
		return graph.BadData(v.Name, "has shape %v: one class for each node is read", shape)
	}
	return g.openLabels(ctx, column.Vector{Values: v})
}

// openLabels numbers the classes as the benchmark does: from 0 to the largest
// label, whether or not each one occurs.
func (g *ogbGraph) openLabels(ctx context.Context, c column.Column) error {
	l, err := column.OpenLabels(ctx, c)
	if err != nil {
		return err
	}
	if l.Rows != g.info.NumNodes {
		return g.rowsDiffer(c.Where(), l.Rows)
	}
	var last int64
	for _, name := range l.Classes {
		label, err := strconv.ParseInt(name, 10, 64)
		if err != nil || label < 0 || label >= column.MaxClasses {
			return graph.BadData(c.Where(), "label %s: labels are whole numbers from 0 to %d, NaN or -1 is none; write them so", graph.Shorten([]byte(name)), column.MaxClasses-1)
		}
		l.Index[name], last = int32(label), max(last, label)
	}
	l.Classes = make([]string, last+1)
	for i := range l.Classes {
		l.Classes[i] = strconv.Itoa(i)
	}
	g.labels, g.info.Classes, g.info.HasLabels = l, l.Classes, true
	return nil
}

func (g *ogbGraph) Info() Info { return g.info }

func (g *ogbGraph) Edges(ctx context.Context) (EdgeReader, error) { return g.edges.Open(ctx) }

func (g *ogbGraph) Features(ctx context.Context) (FeatureReader, error) {
	if g.features == nil {
		return nil, graph.NoStream("features", g.info.Name)
	}
	return g.features.Open(ctx)
}

func (g *ogbGraph) Labels(ctx context.Context) (LabelReader, error) {
	if g.labels == nil {
		return nil, graph.NoStream("labels", g.info.Name)
	}
	return g.labels.Open(ctx)
}

func (g *ogbGraph) Splits(ctx context.Context) (SplitReader, error) {
	if g.splits == nil {
		return nil, graph.NoStream("published split", g.info.Name)
	}
	return &ogbSplits{ctx: ctx, left: g.splits, limit: g.limit()}, nil
}

// ogbSplit is a file with one node id a line.
type ogbSplit struct {
	split Split
	src   *source.Source
}

// openSplits takes the one folder of split/, whatever its name.
func (g *ogbGraph) openSplits(dir string) error {
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
	for _, s := range []Split{Train, Valid, Test} {
		src, _, err := g.Open(filepath.Join(dir, folders[0], s.String()+".csv.gz"))
		if err != nil {
			return err
		}
		g.splits = append(g.splits, ogbSplit{s, src})
	}
	g.info.HasSplits = true
	return nil
}

// ogbSplits reads the files of a split one after the other.
type ogbSplits struct {
	ctx   context.Context
	left  []ogbSplit
	lines *source.Lines
	limit graph.IDLimit
}

func (r *ogbSplits) Close() error {
	if r.lines == nil {
		return nil
	}
	return r.lines.Close()
}

func (r *ogbSplits) Next() (uint32, Split, error) {
	for len(r.left) > 0 {
		if r.lines == nil {
			l, err := source.OpenLines(r.ctx, r.left[0].src)
			if err != nil {
				return 0, NoSplit, err
			}
			r.lines = l
		}
		line, err := r.lines.Data()
		if err == nil {
			id, problem := r.limit.Parse(bytes.TrimSpace(line))
			if problem != "" {
				return 0, NoSplit, graph.BadData(r.lines.Where(), "%s", problem)
			}
			return id, r.left[0].split, nil
		}
		if err != io.EOF {
			return 0, NoSplit, err
		}
		if err := r.lines.Close(); err != nil {
			return 0, NoSplit, err
		}
		r.lines, r.left = nil, r.left[1:]
	}
	return 0, NoSplit, io.EOF
}
