package dataset

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"ndls/dataset/npy"
)

// labelNames are headers of a label column, in order of preference.
var labelNames = []string{"label", "class", "target", "page_type", "community", "faction", "y"}

var splitNames = []string{"split", "set", "part"}

// opener opens one of the streams.
type (
	edgeSource interface {
		open(context.Context) (EdgeReader, error)
	}
	featureSource interface {
		open(context.Context) (FeatureReader, error)
	}
)

// edgeFiles is a dataset of an edge file and files beside it.
type edgeFiles struct {
	files
	info     Info
	edges    edgeSource
	features featureSource
	labels   *classLabels
	splits   column
}

// edgesURI is a parsed edges: URI.
type edgesURI struct {
	edges, features, labels, label, splits string
	nodes                                  int64
	directed                               bool
}

var edgesKeys = []string{"features", "labels", "splits", "nodes", "directed"}

func parseEdgesURI(rest string) (u edgesURI, err error) {
	file, query, _ := strings.Cut(rest, "?")
	if file == "" {
		return u, badURI("edges: needs a file: edges:FILE?features=F&labels=L&splits=S")
	}
	u.nodes = -1
	if u.edges, err = pathOf(file); err != nil {
		return u, err
	}
	params, err := parseParams(query, "&", edgesKeys)
	if err != nil {
		return u, err
	}
	for _, p := range params {
		if p.key == "labels" {
			p.value, u.label, _ = strings.Cut(p.value, "#")
			if u.label, err = pathOf(u.label); err != nil {
				return u, err
			}
		}
		value, err := pathOf(p.value)
		if err != nil {
			return u, err
		}
		switch p.key {
		case "features":
			u.features = value
		case "labels":
			u.labels = value
		case "splits":
			u.splits = value
		case "nodes":
			if u.nodes, err = parseCount(p.key, value, 1, MaxID+1); err != nil {
				return u, err
			}
		case "directed":
			if value != "true" && value != "false" {
				return u, badURI("directed=%s: true or false is needed", value)
			}
			u.directed = value == "true"
		}
	}
	return u, nil
}

// identity spells the URI with base names, keys in fixed order.
func (u edgesURI) identity(noFeatures bool) string {
	var keys []string
	add := func(key, path, more string) {
		if path != "" {
			keys = append(keys, key+"="+escapePath(filepath.Base(path))+more)
		}
	}
	if !noFeatures {
		add("features", u.features, "")
	}
	label := ""
	if u.label != "" {
		label = "#" + escapePath(u.label)
	}
	add("labels", u.labels, label)
	add("splits", u.splits, "")
	if u.nodes >= 0 {
		keys = append(keys, fmt.Sprintf("nodes=%d", u.nodes))
	}
	if u.directed {
		keys = append(keys, "directed=true")
	}
	text := "edges:" + escapePath(filepath.Base(u.edges))
	if len(keys) > 0 {
		text += "?" + strings.Join(keys, "&")
	}
	return text
}

// limit is one above the largest id.
func (u edgesURI) limit() int64 {
	if u.nodes >= 0 {
		return u.nodes
	}
	return MaxID + 1
}

func openEdges(ctx context.Context, rest string, o Options) (Dataset, error) {
	u, err := parseEdgesURI(rest)
	if err != nil {
		return nil, err
	}
	d := &edgeFiles{info: Info{Name: stem(u.edges), Identity: u.identity(o.NoFeatures), NumNodes: u.nodes, Directed: u.directed}}
	if o.NoFeatures {
		u.features = ""
	}
	if err := d.openAll(ctx, &u); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.info.SizeHint = d.bytes()
	return d, nil
}

// openAll opens the edges last: a file whose rows are the nodes in order states
// their number, below which the other ids must stay.
func (d *edgeFiles) openAll(ctx context.Context, u *edgesURI) error {
	steps := []struct {
		path string
		open func(ctx context.Context, u *edgesURI, src *source, ext string) error
	}{{u.features, d.openFeatures}, {u.labels, d.openLabels}, {u.splits, d.openSplits}, {u.edges, d.openEdges}}
	for _, s := range steps {
		if s.path == "" {
			continue
		}
		src, ext, err := d.openSource(s.path)
		if err == nil {
			err = s.open(ctx, u, src, ext)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// states notes that a file has one row for each node.
func (d *edgeFiles) states(u *edgesURI, name string, rows int64) error {
	if u.nodes >= 0 && u.nodes != rows {
		return badData(name, "has %d rows, one for each node, but there are %d nodes: correct the file, or the nodes= of the URI", rows, u.nodes)
	}
	u.nodes, d.info.NumNodes = rows, rows
	return nil
}

func (d *edgeFiles) openFeatures(ctx context.Context, u *edgesURI, src *source, ext string) error {
	switch ext {
	case ".npy":
		v, shape, err := openArray(ctx, src)
		if err != nil {
			return err
		}
		rows, width, err := checkMatrix(src.name, shape)
		if err != nil {
			return err
		}
		d.features, d.info.NumFeatures = &denseFile{v, width}, width
		return d.states(u, src.name, rows)
	case ".json":
		f, err := openJSONFeatures(ctx, src, u.limit())
		if err != nil {
			return err
		}
		d.features, d.info.NumFeatures, d.info.SparseFeatures = f, f.width, true
	case ".parquet":
		f, err := openParquetFeatures(src, u.limit())
		if err != nil {
			return err
		}
		d.features, d.info.NumFeatures = f, f.width
	case ".arrow", ".feather":
		f, err := openArrowFeatures(src, u.limit())
		if err != nil {
			return err
		}
		d.features, d.info.NumFeatures = f, f.width
	default:
		f, err := openTextFeatures(ctx, src, u.limit())
		if err != nil {
			return err
		}
		d.features, d.info.NumFeatures = f, f.width
	}
	return nil
}

// openColumn opens a label or split file.
func (d *edgeFiles) openColumn(ctx context.Context, u *edgesURI, src *source, ext, want string, names []string) (column, error) {
	if ext != ".npy" {
		return openTextColumn(ctx, src, want, names, u.limit())
	}
	v, shape, err := openArray(ctx, src)
	if err != nil {
		return nil, err
	}
	if len(shape) == 0 || v.n != shape[0] {
		return nil, badData(src.name, "has shape %v: a vector with one number for each node is needed", shape)
	}
	return vectorColumn{v}, d.states(u, src.name, v.n)
}

func (d *edgeFiles) openLabels(ctx context.Context, u *edgesURI, src *source, ext string) error {
	c, err := d.openColumn(ctx, u, src, ext, u.label, labelNames)
	if err != nil {
		return err
	}
	if d.labels, err = openLabels(ctx, c); err != nil {
		return err
	}
	d.info.Classes, d.info.HasLabels = d.labels.classes, true
	if t, ok := c.(*textColumn); ok && t.id < 0 {
		return d.states(u, src.name, d.labels.rows)
	}
	return nil
}

func (d *edgeFiles) openSplits(ctx context.Context, u *edgesURI, src *source, ext string) error {
	c, err := d.openColumn(ctx, u, src, ext, "", splitNames)
	d.splits, d.info.HasSplits = c, true
	return err
}

func (d *edgeFiles) openEdges(ctx context.Context, u *edgesURI, src *source, ext string) error {
	var err error
	switch ext {
	case ".npy":
		d.edges, d.info.EdgeHint, err = openEdgeArray(ctx, src, u.limit())
	case ".npz":
		var member *source
		if member, err = edgeIndexMember(src); err == nil {
			d.edges, d.info.EdgeHint, err = openEdgeArray(ctx, member, u.limit())
		}
	case ".parquet":
		var e *parquetEdges
		if e, err = openParquetEdges(src, u.limit()); err == nil {
			d.edges, d.info.EdgeHint = e, e.file.rows
		}
	case ".bin", ".u32":
		d.edges, d.info.EdgeHint, err = openPairs(src, npy.Uint32, u.limit())
	case ".u64":
		d.edges, d.info.EdgeHint, err = openPairs(src, npy.Uint64, u.limit())
	default:
		d.edges, err = openTextEdges(ctx, src, u.limit())
	}
	return err
}

func openEdgeArray(ctx context.Context, src *source, limit int64) (edgeSource, int64, error) {
	v, shape, err := openArray(ctx, src)
	if err != nil {
		return nil, 0, err
	}
	e, err := newArrayEdges(v, shape, limit)
	if err != nil {
		return nil, 0, err
	}
	return e, e.m, nil
}

// openPairs takes a file of nothing but pairs of numbers.
func openPairs(src *source, typ npy.Type, limit int64) (edgeSource, int64, error) {
	if src.size < 0 {
		return nil, 0, badData(src.name, "is compressed: its length says how many edges it holds, unpack it first")
	}
	pair := 2 * typ.Size()
	if src.size%pair != 0 {
		return nil, 0, badData(src.name, "has %d bytes, no whole number of pairs of %d bytes: it is truncated, or its numbers have another width (.u32 or .bin, .u64)",
			src.size, pair)
	}
	v := vector{src: src, n: src.size / typ.Size(), typ: typ, name: src.name}
	return &arrayEdges{v, src.size / pair, false, limit}, src.size / pair, nil
}

// edgeIndexMember finds the array edge_index in an archive.
func edgeIndexMember(src *source) (*source, error) {
	members, err := zipMembers(src.file, src.name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range members {
		if m.Name == "edge_index.npy" {
			return zipSource(src.file, src.name, m)
		}
		names = append(names, strings.TrimSuffix(path.Base(m.Name), ".npy"))
	}
	return nil, badData(src.name, "has no array edge_index (it has %s): for sparse matrices use npz:FILE", strings.Join(names, ", "))
}

// denseFile is a matrix whose row i belongs to node i.
type denseFile struct {
	v     vector
	width int
}

func (f *denseFile) open(ctx context.Context) (FeatureReader, error) {
	return openDense(ctx, f.v, f.width)
}

func (d *edgeFiles) Info() Info { return d.info }

func (d *edgeFiles) Edges(ctx context.Context) (EdgeReader, error) { return d.edges.open(ctx) }

func (d *edgeFiles) Features(ctx context.Context) (FeatureReader, error) {
	if d.features == nil {
		return nil, noStream("features", d.info.Name)
	}
	return d.features.open(ctx)
}

func (d *edgeFiles) Labels(ctx context.Context) (LabelReader, error) {
	if d.labels == nil {
		return nil, noStream("labels", d.info.Name)
	}
	return d.labels.open(ctx)
}

func (d *edgeFiles) Splits(ctx context.Context) (SplitReader, error) {
	if d.splits == nil {
		return nil, noStream("splits", d.info.Name)
	}
	r, err := d.splits.open(ctx)
	return splitReader{r}, err
}
