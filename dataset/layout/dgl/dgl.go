package dgl

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/source"
	"ndls/dataset/table"
)

const form = "dgl:DIR?relation=NODES:EDGES:NODES"

// Keys are the options of the URI.
var Keys = []string{"relation", "features", "labels"}

// The names of features, labels and masks among the data of nodes, in order of preference.
var (
	FeatureNames = []string{"feat", "features", "node_feat", "x"}
	LabelNames   = []string{"label", "labels", "node_label", "y"}
	maskNames    = map[string]graph.Split{
		"train_mask": graph.Train, "val_mask": graph.Valid, "valid_mask": graph.Valid,
		"test_mask": graph.Test,
	}
)

// metadata is the part of metadata.json that is read.
type metadata struct {
	Name     string                      `json:"graph_name"`
	Nodes    []string                    `json:"node_type"`
	Counts   []int64                     `json:"num_nodes_per_type"`
	Chunks   [][]int64                   `json:"num_nodes_per_chunk"`
	Edges    map[string]files            `json:"edges"`
	NodeData map[string]map[string]files `json:"node_data"`
}

// files are the parts of an array.
type files struct {
	Format struct {
		Name      string `json:"name"`
		Delimiter string `json:"delimiter"`
	} `json:"format"`
	Data []string `json:"data"`
}

// reader opens a graph.
type reader struct {
	*layout.Graph
	dir                        string
	meta                       metadata
	relation, features, labels string
}

// Open opens dgl:DIR.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget(form, rest, Keys...)
	if err != nil {
		return nil, err
	}
	r := &reader{dir: t.Path, Graph: &layout.Graph{Known: graph.Info{Name: t.Base, Identity: "dgl:" + t.Base}}}
	for i, p := range t.Params {
		value, err := graph.PathOf(p.Value)
		if err != nil {
			return nil, err
		}
		*map[string]*string{"relation": &r.relation, "features": &r.features, "labels": &r.labels}[p.Key] = value
		r.Known.Identity += []string{"?", "&"}[min(i, 1)] + p.Key + "=" + graph.EscapePath(value)
	}
	return r.Opened(r.open(ctx, o))
}

func (r *reader) open(ctx context.Context, o graph.Options) error {
	const name = "metadata.json"
	data, err := layout.ReadMetadata(ctx, &r.Files, r.dir, name)
	if err != nil {
		return err
	}
	path := filepath.Join(r.dir, name)
	if err := layout.DecodeJSON(path, data, &r.meta); err != nil {
		return err
	}
	kind, err := r.choose(path)
	if err != nil {
		return err
	}
	if r.Known.NumNodes, err = r.nodes(path, kind); err != nil {
		return err
	}
	r.Stated = fmt.Sprintf("metadata.json states %d nodes", r.Known.NumNodes)
	if err := r.openEdges(ctx, path); err != nil {
		return err
	}
	return r.openData(ctx, path, r.meta.NodeData[kind], o)
}

// choose finds the relation, whose edges join nodes of one kind, and returns that kind.
func (r *reader) choose(path string) (string, error) {
	all := slices.Sorted(maps.Keys(r.meta.Edges))
	same := func(relation string) (string, bool) {
		ends := strings.Split(relation, ":")
		return ends[0], len(ends) == 3 && ends[0] == ends[2]
	}
	if r.relation == "" {
		for _, relation := range all {
			if _, ok := same(relation); !ok {
				continue
			}
			if r.relation != "" {
				return "", graph.BadData(path, "has several kinds of edges: name one, relation=%s; there are %s", r.relation, strings.Join(all, ", "))
			}
			r.relation = relation
		}
	}
	if _, known := r.meta.Edges[r.relation]; !known && r.relation != "" {
		return "", graph.BadData(path, "has no edges %q: there are %s", r.relation, strings.Join(all, ", "))
	}
	kind, ok := same(r.relation)
	if !ok {
		return "", graph.BadData(path, "no edges join nodes of one kind (SAME:EDGES:SAME): graphs of one kind of nodes are read; there are %s", strings.Join(all, ", "))
	}
	if len(all) > 1 {
		r.Note(graph.WarningOf(path, "edges %s are read, the others are not", r.relation))
	}
	return kind, nil
}

// nodes is the number of nodes of a kind.
func (r *reader) nodes(path, kind string) (n int64, err error) {
	i := slices.Index(r.meta.Nodes, kind)
	switch {
	case i >= 0 && i < len(r.meta.Counts):
		n = r.meta.Counts[i]
	case i >= 0 && i < len(r.meta.Chunks):
		for _, c := range r.meta.Chunks[i] {
			if c < 0 || c > graph.MaxID+1 {
				n = -1
				break
			}
			n += c
		}
	default:
		return 0, graph.BadData(path, "does not state the number of nodes of kind %q: num_nodes_per_type has a number for each of node_type", kind)
	}
	if n < 1 || n > graph.MaxID+1 {
		return 0, graph.BadData(path, "states %d nodes of kind %q: from 1 to %d are read", n, kind, int64(graph.MaxID+1))
	}
	return n, nil
}

func (r *reader) openEdges(ctx context.Context, path string) error {
	edges := r.meta.Edges[r.relation]
	var chunks layout.EdgeChunks
	for _, name := range edges.Data {
		e, err := r.OpenEdges(ctx, path, r.path(name), edges.Format.Name, edges.text())
		if err != nil {
			return err
		}
		chunks = append(chunks, e)
	}
	if len(chunks) == 0 {
		return graph.BadData(path, "edges %s have no files", r.relation)
	}
	if r.EdgeList = chunks; len(chunks) == 1 {
		r.EdgeList = chunks[0]
	}
	return nil
}

// text says how files of text are read, which have no header.
func (f files) text() table.Text {
	t := table.Text{List: true, Bare: true, Advice: "write the file again"}
	if d := f.Format.Delimiter; len(d) == 1 && d != " " && d != "\t" {
		t.Delimiter = d[0]
	}
	return t
}

// path is a file that the metadata names, relative to the folder unless it is absolute.
func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

// openData takes features, labels and masks from the data of nodes.
func (r *reader) openData(ctx context.Context, path string, data map[string]files, o graph.Options) error {
	var used []string
	find := func(key, named string, names []string) (string, error) {
		if named != "" {
			names = []string{named}
		}
		for _, name := range names {
			if _, ok := data[name]; ok {
				used = append(used, name)
				return name, nil
			}
		}
		if named != "" {
			return "", graph.BadData(path, "has no data %q of nodes for %s=: there are %s", named, key, strings.Join(slices.Sorted(maps.Keys(data)), ", "))
		}
		return "", nil
	}
	name, err := find("features", r.features, FeatureNames)
	if err != nil {
		return err
	}
	if name != "" && !o.NoFeatures {
		if err := r.openFeatures(ctx, data[name]); err != nil {
			return err
		}
	}
	if name, err = find("labels", r.labels, LabelNames); err != nil {
		return err
	}
	if name != "" {
		if err := r.openLabels(ctx, data[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(maskNames)) {
		if _, ok := data[name]; !ok {
			continue
		}
		used = append(used, name)
		if err := r.addMask(ctx, maskNames[name], data[name]); err != nil {
			return err
		}
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if !slices.Contains(used, name) {
			others = append(others, name)
		}
	}
	r.Note(graph.Unread(path, others))
	return nil
}

// isTable reports whether data of nodes is in tables: otherwise it is in arrays.
func (f files) isTable() bool { return f.Format.Name == "parquet" || f.Format.Name == "csv" }

func (r *reader) openFeatures(ctx context.Context, f files) error {
	if !f.isTable() {
		parts, err := r.tensors(ctx, f)
		if err != nil {
			return err
		}
		return r.SetFeatures(parts)
	}
	t, err := r.table(ctx, f)
	if err != nil {
		return err
	}
	rows, err := t.Matrix(ctx, false)
	if err != nil {
		return err
	}
	r.FeatureRows, r.Known.NumFeatures = rows, rows.Width
	return nil
}

func (r *reader) openLabels(ctx context.Context, f files) (err error) {
	if !f.isTable() {
		parts, err := r.tensors(ctx, f)
		if err != nil {
			return err
		}
		return r.SetLabels(ctx, parts)
	}
	t, err := r.table(ctx, f)
	if err != nil {
		return err
	}
	c, err := t.Single()
	if err == nil {
		r.Classes, err = column.OpenLabels(ctx, c)
	}
	return err
}

// table opens data of nodes in files of Parquet or CSV.
func (r *reader) table(ctx context.Context, f files) (*table.Numbered, error) {
	var parts []*source.Source
	for _, name := range f.Data {
		src, _, err := r.Files.Open(r.path(name))
		if err != nil {
			return nil, err
		}
		parts = append(parts, src)
	}
	if len(parts) == 0 {
		return nil, graph.BadData(filepath.Join(r.dir, "metadata.json"), "names no files for data in %s: name one at least", f.Format.Name)
	}
	t, err := table.OpenNumbered(ctx, "."+f.Format.Name, f.text(), r.Limit(), parts...)
	if err != nil || t.Rows() < 0 {
		return t, err
	}
	return t, r.RowsAreNodes(strings.Join(f.Data, ", "), t.Rows())
}

func (r *reader) addMask(ctx context.Context, split graph.Split, f files) error {
	if f.isTable() {
		t, err := r.table(ctx, f)
		if err != nil {
			return err
		}
		c, err := t.Single()
		if err == nil {
			r.AddPart(column.MaskColumn(split, c))
		}
		return err
	}
	parts, err := r.tensors(ctx, f)
	if err != nil {
		return err
	}
	first := int64(0)
	for _, p := range parts {
		rows := int64(0)
		if len(p.Shape) == 1 {
			rows = p.Shape[0]
		}
		list, _, err := column.MaskOf(split, p.Vector, p.Shape, rows, first, 0)
		if err != nil {
			return err
		}
		first += rows
		r.AddPart(list)
	}
	if len(parts) == 0 {
		return nil
	}
	return r.RowsAreNodes(parts[0].Name, first)
}

func (r *reader) tensors(ctx context.Context, f files) (parts []layout.Tensor, err error) {
	for _, name := range f.Data {
		t, err := layout.OpenTensor(ctx, &r.Files, f.Format.Name, r.path(name))
		if err != nil {
			return nil, err
		}
		parts = append(parts, t)
	}
	return parts, nil
}
