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
)

// ogbGraph is a graph of the Open Graph Benchmark (Hu et al., NeurIPS 2020) in
// the folder that its download unpacks to: raw/data.npz and raw/node-label.npz,
// or raw/edge.csv.gz, node-feat.csv.gz, node-label.csv.gz, num-node-list.csv.gz
// and num-edge-list.csv.gz; in both cases split/NAME/train.csv.gz, valid.csv.gz
// and test.csv.gz. Features, labels and splits may be missing.
type ogbGraph struct {
	files
	info     Info
	edges    edgeSource
	features featureSource
	labels   *classLabels
	splits   []ogbSplit
}

func openOGB(ctx context.Context, rest string, o Options) (Dataset, error) {
	dir, err := pathOf(rest)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, badURI("ogb: needs a folder: ogb:DIR")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	name := filepath.Base(dir)
	g := &ogbGraph{info: Info{Name: name, Identity: "ogb:" + escapePath(name)}}
	if err := g.open(ctx, dir, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.info.SizeHint = g.bytes()
	return g, nil
}

func (g *ogbGraph) open(ctx context.Context, dir string, o Options) error {
	raw := filepath.Join(dir, "raw")
	var err error
	switch {
	case exists(filepath.Join(raw, "data.npz")):
		err = g.openBinary(ctx, raw, o)
	case exists(filepath.Join(raw, "edge.csv.gz")):
		err = g.openText(ctx, raw, o)
	default:
		err = badData(dir, "has neither raw/data.npz nor raw/edge.csv.gz: give the folder that the download unpacks to")
	}
	if err != nil {
		return err
	}
	return g.openSplits(filepath.Join(dir, "split"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// states notes the number of nodes and of edges of the graph.
func (g *ogbGraph) states(where string, nodes, edges int64) error {
	if nodes < 1 || nodes > MaxID+1 || edges < 0 {
		return badData(where, "states %d nodes and %d edges: from 1 to %d nodes are read, fetch the file again", nodes, edges, int64(MaxID+1))
	}
	g.info.NumNodes, g.info.EdgeHint = nodes, edges
	return nil
}

// limit bounds the ids of the graph.
func (g *ogbGraph) limit() idLimit {
	return idLimit{g.info.NumNodes, fmt.Sprintf("the folder states %d nodes", g.info.NumNodes)}
}

func (g *ogbGraph) openBinary(ctx context.Context, raw string, o Options) error {
	a, err := g.openArchive(filepath.Join(raw, "data.npz"))
	if err != nil {
		return err
	}
	nodes, err := a.single(ctx, "num_nodes_list")
	if err != nil {
		return err
	}
	edges, err := a.single(ctx, "num_edges_list")
	if err != nil {
		return err
	}
	if err := g.states(a.name, nodes, edges); err != nil {
		return err
	}
	index, err := a.need("edge_index")
	if err != nil {
		return err
	}
	e, err := openArrayEdges(ctx, index, g.limit())
	if err != nil {
		return err
	}
	if e.m != edges {
		return badData(index.name, "holds %d edges, num_edges_list needs shape (2, %d): the arrays do not belong together, fetch the file again", e.m, edges)
	}
	g.edges = e
	if features, err := a.member("node_feat"); err != nil {
		return err
	} else if features != nil && !o.NoFeatures {
		if err := g.openFeatures(ctx, features); err != nil {
			return err
		}
	}
	g.note(unread(a.name, a.others()))
	return g.openArrayLabels(ctx, filepath.Join(raw, "node-label.npz"))
}

func (g *ogbGraph) openFeatures(ctx context.Context, src *source) error {
	v, shape, err := openArray(ctx, src)
	if err != nil {
		return err
	}
	rows, width, err := checkMatrix(v.name, shape)
	if err != nil {
		return err
	}
	if rows != g.info.NumNodes {
		return g.rowsDiffer(v.name, rows)
	}
	g.features, g.info.NumFeatures = &denseFile{v, width}, width
	return nil
}

func (g *ogbGraph) rowsDiffer(name string, rows int64) error {
	return badData(name, "has %d rows, the graph has %d nodes: the files do not belong together, fetch them again", rows, g.info.NumNodes)
}

func (g *ogbGraph) openArrayLabels(ctx context.Context, path string) error {
	if !exists(path) {
		return nil
	}
	a, err := g.openArchive(path)
	if err != nil {
		return err
	}
	v, shape, err := a.array(ctx, "node_label")
	if err != nil {
		return err
	}
	if len(shape) == 0 || v.n != shape[0] {
		return badData(v.name, "has shape %v: one class for each node is read", shape)
	}
	return g.openLabels(ctx, vectorColumn{v})
}

// openLabels numbers the classes as the benchmark does: from 0 to the largest
// label, whether or not each one occurs.
func (g *ogbGraph) openLabels(ctx context.Context, c column) error {
	l, err := openLabels(ctx, c)
	if err != nil {
		return err
	}
	if l.rows != g.info.NumNodes {
		return g.rowsDiffer(c.where(), l.rows)
	}
	var last int64
	for _, name := range l.classes {
		label, err := strconv.ParseInt(name, 10, 64)
		if err != nil || label < 0 || label >= maxClasses {
			return badData(c.where(), "label %s: labels are whole numbers from 0 to %d, NaN or -1 is none; write them so", shorten([]byte(name)), maxClasses-1)
		}
		l.index[name], last = int32(label), max(last, label)
	}
	l.classes = make([]string, last+1)
	for i := range l.classes {
		l.classes[i] = strconv.Itoa(i)
	}
	g.labels, g.info.Classes, g.info.HasLabels = l, l.classes, true
	return nil
}

func (g *ogbGraph) Info() Info { return g.info }

func (g *ogbGraph) Edges(ctx context.Context) (EdgeReader, error) { return g.edges.open(ctx) }

func (g *ogbGraph) Features(ctx context.Context) (FeatureReader, error) {
	if g.features == nil {
		return nil, noStream("features", g.info.Name)
	}
	return g.features.open(ctx)
}

func (g *ogbGraph) Labels(ctx context.Context) (LabelReader, error) {
	if g.labels == nil {
		return nil, noStream("labels", g.info.Name)
	}
	return g.labels.open(ctx)
}

func (g *ogbGraph) Splits(ctx context.Context) (SplitReader, error) {
	if g.splits == nil {
		return nil, noStream("published split", g.info.Name)
	}
	return &ogbSplits{ctx: ctx, left: g.splits, limit: g.limit()}, nil
}

func (g *ogbGraph) openArchive(path string) (*archive, error) {
	f, err := g.files.open(path)
	if err != nil {
		return nil, err
	}
	members, err := zipMembers(f, path)
	return &archive{file: f, name: path, members: members}, err
}

// array opens an array that must be there.
func (a *archive) array(ctx context.Context, name string) (vector, []int64, error) {
	src, err := a.need(name)
	if err != nil {
		return vector{}, nil, err
	}
	return openArray(ctx, src)
}

// need returns the source of an array that must be there.
func (a *archive) need(name string) (*source, error) {
	src, err := a.member(name)
	if err == nil && src == nil {
		err = badData(a.name, "has no array %s (it has %s): fetch the file again", name, strings.Join(a.names(), ", "))
	}
	return src, err
}

// single reads an array of one integer.
func (a *archive) single(ctx context.Context, name string) (int64, error) {
	v, _, err := a.array(ctx, name)
	if err != nil {
		return 0, err
	}
	if v.n != 1 || !v.typ.IsInteger() {
		return 0, badData(v.name, "holds %d numbers, dtype %s: datasets of one graph are read, one integer", v.n, v.typ)
	}
	c, err := v.integers(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.next()
}

// ogbSplit is a file with one node id a line.
type ogbSplit struct {
	split Split
	src   *source
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
		return badData(dir, "holds %d folders (%s): keep the one split that is meant", len(folders), strings.Join(folders, ", "))
	}
	for _, s := range []Split{Train, Valid, Test} {
		src, _, err := g.openSource(filepath.Join(dir, folders[0], s.String()+".csv.gz"))
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
	lines *lines
	limit idLimit
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
			l, err := openLines(r.ctx, r.left[0].src)
			if err != nil {
				return 0, NoSplit, err
			}
			r.lines = l
		}
		line, err := r.lines.data()
		if err == nil {
			id, problem := r.limit.parse(bytes.TrimSpace(line))
			if problem != "" {
				return 0, NoSplit, badData(r.lines.where(), "%s", problem)
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
