package dataset

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
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
	ends                                   ends
	nodes                                  int64
	stated                                 string // where nodes is stated
	directed                               bool
}

var edgesKeys = []string{"src", "dst", "features", "labels", "splits", "nodes", "directed"}

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
			var named bool
			p.value, u.label, named = strings.Cut(p.value, "#")
			if u.label, err = pathOf(u.label); err != nil {
				return u, err
			}
			if named && (u.label == "" || p.value == "") {
				return u, badURI("labels=%s#%s: a file and the name of a column are needed on both sides of the #", p.value, u.label)
			}
		}
		value, err := pathOf(p.value)
		if err != nil {
			return u, err
		}
		switch p.key {
		case "src":
			u.ends.src = value
		case "dst":
			u.ends.dst = value
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
			u.stated = "nodes=" + value + " in the URI"
		case "directed":
			if value != "true" && value != "false" {
				return u, badURI("directed=%s: true or false is needed", value)
			}
			u.directed = value == "true"
		}
	}
	return u, u.ends.check()
}

// identity spells the URI with base names, keys in fixed order.
func (u edgesURI) identity(noFeatures bool) string {
	var keys []string
	add := func(key, path, more string) {
		if path != "" {
			keys = append(keys, key+"="+escapePath(filepath.Base(path))+more)
		}
	}
	if u.ends.given() {
		keys = append(keys, "src="+escapePath(u.ends.src), "dst="+escapePath(u.ends.dst))
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

// limit bounds the ids of the files that are opened next.
func (u edgesURI) limit() idLimit {
	if u.nodes >= 0 {
		return idLimit{u.nodes, u.stated}
	}
	return anyID
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
		return badData(name, "has %d rows, one for each node, but there are %d nodes (%s): correct one of the two", rows, u.nodes, u.stated)
	}
	if u.nodes < 0 {
		u.stated = fmt.Sprintf("%s has %d rows, one for each node", filepath.Base(name), rows)
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
		d.note(f.note)
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
		d.note(f.note)
		d.features, d.info.NumFeatures = f, f.width
	}
	return nil
}

// openColumn opens a label or split file.
func (d *edgeFiles) openColumn(ctx context.Context, u *edgesURI, src *source, ext, what, want string, names []string) (column, error) {
	switch ext {
	case ".npy":
	case ".parquet", ".arrow", ".feather", ".npz", ".json":
		return nil, badData(src.name, "labels and splits are read from text and .npy files: write the table as CSV with the columns id and %s (in pandas, read_parquet(…).to_csv('%s.csv', index=False))",
			names[0], stem(src.name))
	default:
		c, err := openTextColumn(ctx, src, want, names, u.limit())
		if err == nil {
			d.note(c.note(what))
		}
		return c, err
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
	c, err := d.openColumn(ctx, u, src, ext, "labels", u.label, labelNames)
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
	c, err := d.openColumn(ctx, u, src, ext, "splits", "", splitNames)
	d.splits, d.info.HasSplits = c, true
	return err
}

func (d *edgeFiles) openEdges(ctx context.Context, u *edgesURI, src *source, ext string) error {
	if u.ends.given() && slices.Contains([]string{".npy", ".npz", ".bin", ".u32", ".u64"}, ext) {
		return badURI("src= and dst= name columns of text and Parquet files; %s has none", filepath.Base(src.name))
	}
	var empty bool
	switch ext {
	case ".npy", ".npz":
		member := src
		if ext == ".npz" {
			var err error
			if member, err = d.edgeIndexMember(src); err != nil {
				return err
			}
		}
		e, err := openArrayEdges(ctx, member, u.limit())
		if err != nil {
			return err
		}
		d.edges, d.info.EdgeHint, empty = e, e.m, e.m == 0
	case ".parquet":
		e, err := openParquetEdges(src, u.limit(), u.ends)
		if err != nil {
			return err
		}
		d.note(e.notes...)
		d.edges, d.info.EdgeHint, empty = e, e.file.rows, e.file.rows == 0
	case ".bin", ".u32", ".u64":
		e, err := openPairs(src, map[string]npy.Type{".bin": npy.Uint32, ".u32": npy.Uint32, ".u64": npy.Uint64}[ext], u.limit())
		if err != nil {
			return err
		}
		d.edges, d.info.EdgeHint, empty = e, e.m, e.m == 0
	case ".arrow", ".feather", ".json":
		return badData(src.name, "edges are not read from %s files: write them as Parquet or CSV", ext)
	default:
		e, err := openTextEdges(ctx, src, u.limit(), u.ends)
		if err != nil {
			return err
		}
		d.note(e.notes...)
		d.edges, empty = e, e.empty
	}
	if empty && u.nodes < 0 && d.features == nil && d.labels == nil && d.splits == nil {
		return badData(src.name, "holds no edge, and nothing else names a node: is this the file that is meant?")
	}
	return nil
}

// openPairs takes a file of nothing but pairs of numbers.
func openPairs(src *source, typ npy.Type, limit idLimit) (*arrayEdges, error) {
	if src.size < 0 {
		return nil, badData(src.name, "is compressed: its length says how many edges it holds, unpack it first")
	}
	pair := 2 * typ.Size()
	if src.size%pair != 0 {
		return nil, badData(src.name, "has %d bytes, no whole number of pairs of %d bytes: it is truncated, or its numbers have another width (.u32 or .bin, .u64)",
			src.size, pair)
	}
	v := vector{src: src, n: src.size / typ.Size(), typ: typ, name: src.name}
	return &arrayEdges{v, src.size / pair, false, limit}, nil
}

// edgeIndexMember finds the array edge_index in an archive.
func (d *edgeFiles) edgeIndexMember(src *source) (member *source, err error) {
	members, err := zipMembers(src.file, src.name)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, m := range members {
		if m.Name != "edge_index.npy" {
			others = append(others, strings.TrimSuffix(path.Base(m.Name), ".npy"))
		} else if member, err = zipSource(src.file, src.name, m); err != nil {
			return nil, err
		}
	}
	if member == nil {
		return nil, badData(src.name, "has no array edge_index (it has %s): for sparse matrices use npz:FILE", strings.Join(others, ", "))
	}
	d.note(unread(src.name, others))
	return member, nil
}

// denseFile is a matrix whose row i belongs to node i.
type denseFile struct {
	v     vector
	width int
}

func (f *denseFile) open(ctx context.Context) (FeatureReader, error) {
	return f.openShare(ctx, share{0, 1, 1})
}

// openShare opens some of the rows.
func (f *denseFile) openShare(ctx context.Context, s share) (FeatureReader, error) {
	rows := f.v.n / int64(f.width)
	lo, hi := s.bounds(rows)
	e, err := f.v.open(ctx, lo*int64(f.width))
	if err != nil {
		return nil, err
	}
	return &denseRows{e: e, row: make([]float32, f.width), next: lo, end: hi, last: hi == rows}, nil
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
