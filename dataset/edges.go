package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/layout/textgraph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
	"ndls/dataset/table"
)

// edgeFiles is a dataset of an edge file and files beside it.
type edgeFiles struct{ layout.Graph }

// edgesURI is a parsed edges: URI.
type edgesURI struct {
	table.Keyed
	kind                                   string // of the URI: edges, or a text form of graphs
	edges, features, labels, label, splits string
	nodes                                  int64
	stated                                 string // where nodes is stated
	pick                                   layout.Pick
}

var edgesKeys = append(slices.Clone(table.SharedKeys), "features", "labels", "splits", "nodes", "split")

// headed are the files that may have a header.
var headed = []string{"edges", "features", "labels", "splits"}

func parseEdgesURI(rest string) (u edgesURI, err error) {
	file, query, _ := strings.Cut(rest, "?")
	if file == "" {
		return u, graph.BadURI("edges: needs a file: edges:FILE?features=F&labels=L&splits=S")
	}
	u.nodes, u.kind = -1, "edges"
	if u.edges, err = graph.PathOf(file); err != nil {
		return u, err
	}
	params, err := graph.ParseParams(query, "&", edgesKeys)
	if err != nil {
		return u, err
	}
	for _, p := range params {
		if p.Key == "labels" {
			var named bool
			p.Value, u.label, named = strings.Cut(p.Value, "#")
			if u.label, err = graph.PathOf(u.label); err != nil {
				return u, err
			}
			if named && (u.label == "" || p.Value == "") {
				return u, graph.BadURI("labels=%s#%s: a file and the name of a column are needed on both sides of the #", p.Value, u.label)
			}
		}
		if file, _, named := strings.Cut(p.Value, "#"); named && p.Key == "splits" {
			return u, graph.BadURI("splits=%s: leave out what follows %s; the column is found by its name, which is %s (a # in the name of a file is written %%23)", p.Value, file, strings.Join(table.SplitNames, ", "))
		}
		if slices.Contains(table.SharedKeys, p.Key) {
			if err := u.Set(p.Key, p.Value, headed); err != nil {
				return u, err
			}
			continue
		}
		value, err := graph.PathOf(p.Value)
		if err != nil {
			return u, err
		}
		if to, named := map[string]*string{"features": &u.features, "labels": &u.labels, "splits": &u.splits}[p.Key]; named {
			*to = value
		}
		if p.Key == "nodes" {
			if u.nodes, err = graph.ParseCount(p.Key, value, 1, MaxID+1); err != nil {
				return u, err
			}
			u.stated = "nodes=" + value + " in the URI"
		}
	}
	if u.pick, err = layout.ParsePick(params); err == nil && u.pick.Given && u.splits == "" {
		err = graph.BadURI("%s picks one of the splits in a file: splits=FILE is missing", u.pick.Option())
	}
	if err == nil {
		err = u.Check()
	}
	return u, err
}

// form is the text form of graphs that the edge file has, "" for none. A MatrixMarket file
// is one whatever the URI says; other forms look like lists of pairs.
func (u edgesURI) form() string {
	switch {
	case u.kind != "edges":
		return u.kind
	case slices.Contains(strings.Split(strings.ToLower(filepath.Base(u.edges)), "."), "mtx"):
		return "mtx"
	}
	return ""
}

// identity spells the URI with base names, keys in fixed order.
func (u edgesURI) identity(noFeatures bool) string {
	keys := u.Identity()
	add := func(key, path, more string) {
		if path != "" {
			keys = append(keys, key+"="+graph.EscapePath(filepath.Base(path))+more)
		}
	}
	if !noFeatures {
		add("features", u.features, "")
		if u.Nulls != "" {
			keys = append(keys, "nulls="+u.Nulls)
		}
	}
	label := ""
	if u.label != "" {
		label = "#" + graph.EscapePath(u.label)
	}
	add("labels", u.labels, label)
	add("splits", u.splits, "")
	if u.nodes >= 0 {
		keys = append(keys, fmt.Sprintf("nodes=%d", u.nodes))
	}
	if u.Directed {
		keys = append(keys, "directed=true")
	}
	if u.pick.Given {
		keys = append(keys, u.pick.Option())
	}
	keys = append(keys, u.Form.Identity()...)
	text := u.kind + ":" + graph.EscapePath(filepath.Base(u.edges))
	if len(keys) > 0 {
		text += "?" + strings.Join(keys, "&")
	}
	return text
}

// openEdges opens an edge file, where the kind is a text form of graphs in that, and files beside it.
func openEdges(kind string) func(ctx context.Context, rest string, o Options) (Dataset, error) {
	return func(ctx context.Context, rest string, o Options) (Dataset, error) {
		u, err := parseEdgesURI(rest)
		if err != nil {
			return nil, err
		}
		u.kind = kind
		if u.Ends[0] != "" && kind != "edges" {
			return nil, graph.BadURI("src= and dst= name columns of tables; %s files have none", kind)
		}
		return openFiles(ctx, u, o)
	}
}

func openFiles(ctx context.Context, u edgesURI, o Options) (Dataset, error) {
	d := &edgeFiles{}
	d.Known = Info{
		Name: graph.Stem(u.edges), Identity: u.identity(o.NoFeatures), NumNodes: u.nodes,
		Directed: u.Directed,
	}
	if o.NoFeatures {
		u.features = ""
	}
	d.Stated = u.stated
	d.Weights = layout.Weights{Name: u.Weight, Sum: u.Repeated != ""}
	if u.splits != "" && !u.pick.Given {
		d.Another = func(ctx context.Context, number int64) (layout.SplitSource, error) {
			u := u
			u.pick = layout.Pick{Number: number, Given: true}
			src, ext, err := d.Open(u.splits)
			if err != nil {
				return nil, err
			}
			src.Encoding = u.Form.Encoding
			first := d.Membership
			defer func() { d.Membership = first }()
			err = d.openSplits(ctx, &u, src, ext)
			return d.Membership, err
		}
	}
	return d.Opened(d.openAll(ctx, &u))
}

// openAll opens the edges last: a file whose rows are the nodes in order states
// their number, below which the other ids must stay. Edges in a text form of graphs state
// it, too, and come first.
func (d *edgeFiles) openAll(ctx context.Context, u *edgesURI) error {
	steps := []struct {
		path string
		open func(ctx context.Context, u *edgesURI, src *source.Source, ext string) error
	}{{u.features, d.openFeatures}, {u.labels, d.openLabels}, {u.splits, d.openSplits}, {u.edges, d.openEdges}}
	if d.statesNodes(u) {
		last := len(steps) - 1
		steps = append(steps[last:], steps[:last]...)
	}
	for _, s := range steps {
		if s.path == "" {
			continue
		}
		src, ext, err := d.Open(s.path)
		if err == nil {
			src.Encoding = u.Form.Encoding
			err = s.open(ctx, u, src, ext)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *edgeFiles) openFeatures(ctx context.Context, u *edgesURI, src *source.Source, ext string) error {
	if u.Nulls != "" && slices.Contains([]string{".npy", ".pt", ".npz", ".json"}, ext) {
		return graph.BadURI("nulls= says what null features of tables are; %s is none", filepath.Base(src.Name))
	}
	switch ext {
	case ".npy", ".pt":
		v, shape, err := d.openArray(ctx, src, ext)
		if err == nil {
			err = array.CheckNumbers(v)
		}
		if err != nil {
			return err
		}
		return d.SetDense(v, shape)
	case ".npz":
		return d.openFeatureArchive(ctx, src)
	case ".mtx":
		return graph.BadData(src.Name, "features are not read from MatrixMarket files: save the matrix with scipy.sparse.save_npz(file, scipy.io.mmread(…).tocsr()), and name the .npz file")
	case ".json":
		f, err := openJSONFeatures(ctx, src, d.Limit())
		if err != nil {
			return err
		}
		d.FeatureRows, d.Known.NumFeatures, d.Known.SparseFeatures = f, f.width, true
	default:
		n, err := d.table(ctx, u, src, ext, table.Text{Part: "features", List: true, Advice: "each line is a node id and its values"})
		if err != nil {
			return err
		}
		f, err := n.Features(ctx, u.Nulls != "")
		if err != nil {
			return err
		}
		d.Note(f.Note)
		d.FeatureRows, d.Known.NumFeatures, d.Known.RowMemory = f, f.Width, f.Memory
	}
	return nil
}

// table opens a file of Parquet, Arrow or text.
func (d *edgeFiles) table(ctx context.Context, u *edgesURI, src *source.Source, ext string, t table.Text) (*table.Numbered, error) {
	t.Form = u.Form
	return table.OpenNumbered(ctx, ext, t, d.Limit(), src)
}

// openArray opens an array of NumPy of numbers or text, or the one tensor in a file of torch.
func (d *edgeFiles) openArray(ctx context.Context, src *source.Source, ext string) (array.Vector, []int64, error) {
	if ext == ".npy" {
		return array.OpenNamed(ctx, src)
	}
	t, err := layout.OpenTensor(ctx, &d.Files, "torch", src.Name)
	return t.Vector, t.Shape, err
}

// openColumn opens a label or split file.
func (d *edgeFiles) openColumn(ctx context.Context, u *edgesURI, src *source.Source, ext, what, want string,
	names []string,
) (column.Column, error) {
	switch ext {
	case ".npy", ".pt":
	case ".npz":
		return d.openLabelArchive(ctx, u, src)
	case ".json":
		return nil, graph.BadData(src.Name, "labels and splits are read from text, .parquet, .arrow, .npy, .npz and .pt files: write the table as CSV with the columns id and %s (in pandas, read_parquet(…).to_csv('%s.csv', index=False))",
			names[0], graph.Stem(src.Name))
	default:
		return d.openTableColumn(ctx, u, src, ext, what, want, names)
	}
	v, shape, err := d.openArray(ctx, src, ext)
	if err != nil {
		return nil, err
	}
	switch {
	case what == "labels":
		return d.labelArray(v, shape)
	case v.Type == npy.Bool:
		return nil, graph.BadData(src.Name, "has dtype %s, so it is the mask of one part of a split: save the masks in one archive, numpy.savez(file, train_mask=…, val_mask=…, test_mask=…), and name the .npz file", v.Type)
	case len(shape) == 2 && min(shape[0], shape[1]) > 1:
		return d.severalSplits(u, v, shape)
	case len(shape) == 0 || v.N != slices.Max(shape):
		return nil, graph.BadData(src.Name, "has shape %v: a vector with one number for each node is needed", shape)
	}
	return column.Vector{Values: v}, errors.Join(u.oneSplit(what, src.Name), d.RowsAreNodes(src.Name, v.N))
}

// openTableColumn opens labels or splits in a table of Parquet or Arrow, or in text.
func (d *edgeFiles) openTableColumn(ctx context.Context, u *edgesURI, src *source.Source, ext, what, want string,
	names []string,
) (column.Column, error) {
	if err := u.oneSplit(what, src.Name); err != nil {
		return nil, err
	}
	t := table.Text{Part: what, Known: slices.Concat(names, column.IDNames), Advice: table.QuoteValues}
	if want != "" {
		t.Known = append(t.Known, want)
	}
	n, err := d.table(ctx, u, src, ext, t)
	if err != nil {
		return nil, err
	}
	c, err := n.Column(what, want, names)
	if err != nil {
		return nil, err
	}
	d.Note(c.Note)
	if !c.HasIDs() && n.Rows() >= 0 {
		return c, d.RowsAreNodes(src.Name, n.Rows())
	}
	return c, nil
}

// oneSplit refuses to pick a split after the first from a file that has one.
func (u *edgesURI) oneSplit(what, name string) error {
	if what != "splits" {
		return nil
	}
	_, err := u.pick.Note(name, 0)
	return err
}

// severalSplits takes one of the splits in a matrix: its longer side is the nodes.
func (d *edgeFiles) severalSplits(u *edgesURI, v array.Vector, shape []int64) (column.Column, error) {
	c, nodes, splits := column.Vector{Values: v, Width: shape[1], Pick: u.pick.Number}, shape[0], shape[1]
	if shape[0] < shape[1] {
		nodes, splits = shape[1], shape[0]
	}
	if u.pick.Number >= splits {
		return nil, graph.BadData(v.Name, "has %d splits, numbered from 0: split=%d is none of them", splits, u.pick.Number)
	}
	if shape[0] < shape[1] {
		c = column.Vector{Values: v.Part(u.pick.Number*nodes, nodes)}
	}
	note, err := u.pick.Note(v.Name, splits)
	d.Note(note)
	return c, errors.Join(err, d.RowsAreNodes(v.Name, nodes))
}

func (d *edgeFiles) openLabels(ctx context.Context, u *edgesURI, src *source.Source, ext string) error {
	c, err := d.openColumn(ctx, u, src, ext, "labels", u.label, table.LabelNames)
	if err != nil {
		return err
	}
	if d.Classes, err = column.OpenLabels(ctx, c); err != nil {
		return err
	}
	d.Note(d.Classes.Notes()...)
	if t, ok := c.(*table.Column); ok && !t.HasIDs() {
		return d.RowsAreNodes(src.Name, d.Classes.Rows)
	}
	return nil
}

func (d *edgeFiles) openSplits(ctx context.Context, u *edgesURI, src *source.Source, ext string) error {
	if ext == ".npz" {
		return d.openSplitArchive(ctx, u, src)
	}
	c, err := d.openColumn(ctx, u, src, ext, "splits", "", table.SplitNames)
	d.Membership = column.SplitColumn{Column: c}
	return err
}

// openSplitArchive takes a split from masks or lists of nodes.
func (d *edgeFiles) openSplitArchive(ctx context.Context, u *edgesURI, src *source.Source) error {
	a, err := array.OpenArchive(&d.Files, src.Name)
	if err != nil {
		return err
	}
	names := layout.SplitNames(a)
	if a.Has(names[:]) == 0 {
		return graph.BadData(src.Name, "has none of the arrays train_mask, train_masks, train_idx and train (it has %s): write the split so", strings.Join(a.Names(), ", "))
	}
	err = d.SetSplits(ctx, src.Name, names, u.pick, a.Vector)
	d.Note(graph.Unread(src.Name, a.Others()))
	return err
}

func (d *edgeFiles) openEdges(ctx context.Context, u *edgesURI, src *source.Source, ext string) error {
	if slices.Contains([]string{".npy", ".npz", ".bin", ".u32", ".u64"}, ext) {
		switch {
		case u.Ends[0] != "":
			return graph.BadURI("src= and dst= name columns of text, Parquet and Arrow files; %s has none", filepath.Base(src.Name))
		case u.Weight != "" && ext != ".npy" && ext != ".npz":
			return graph.NoWeight(src.Name, "holds the ends of edges alone, and weights are read from columns of text and Parquet files, and from arrays")
		}
	}
	if form := u.form(); form != "" {
		return d.openTextGraph(ctx, u, src, textgraph.Forms[form])
	}
	var empty bool
	switch ext {
	case ".npy":
		var err error
		if d.EdgeList, d.Known.EdgeHint, err = array.OpenList(ctx, src, u.Weight, d.Limit()); err != nil {
			return err
		}
		empty = d.Known.EdgeHint == 0
	case ".npz":
		if err := d.openEdgeArchive(ctx, src); err != nil {
			return err
		}
		empty = d.Known.EdgeHint == 0
	case ".bin", ".u32", ".u64":
		e, err := array.OpenPairs(src, map[string]npy.Type{".bin": npy.Uint32, ".u32": npy.Uint32, ".u64": npy.Uint64}[ext], d.Limit())
		if err != nil {
			return err
		}
		d.EdgeList, d.Known.EdgeHint, empty = e, e.M, e.M == 0
	case ".json":
		return graph.BadData(src.Name, "edges: reads no %s files: write table:FILE in place of edges:FILE, or write the edges as Parquet or CSV", ext)
	default:
		n, err := d.table(ctx, u, src, ext, table.Text{Part: "edges", List: true, Advice: "an edge list has one edge a line (write adjacency lists as pairs)"})
		if err != nil {
			return err
		}
		e, err := n.Edges(ctx, u.Ends, u.Weight)
		if err != nil {
			return err
		}
		d.Note(e.Notes...)
		d.EdgeList, d.Known.EdgeHint, d.Known.EdgeMemory, empty = e, max(e.Rows, 0), e.Memory, e.IsEmpty
	}
	if empty && d.Known.NumNodes < 0 && d.FeatureRows == nil && d.Classes == nil && d.Membership == nil {
		return graph.BadData(src.Name, "holds no edge, and nothing else names a node: is this the file that is meant?")
	}
	return nil
}

// openTextGraph takes the edges from a file whose header may state the number of nodes.
func (d *edgeFiles) openTextGraph(ctx context.Context, u *edgesURI, src *source.Source, open textgraph.Opener) error {
	if u.Weight != "" && u.Weight != textgraph.WeightName {
		return graph.BadData(src.Name, "has no columns with names, and at most one number for each edge: weight=%s reads that as the weight, not weight=%s", textgraph.WeightName, u.Weight)
	}
	e, err := open(ctx, src, d.Limit(), u.Weight != "")
	if err != nil {
		return err
	}
	if u.Directed && e.Mutual {
		return graph.BadData(src.Name, "by its form and its header, a line stands for both directions of an edge: leave out directed=true")
	}
	d.Note(e.Notes...)
	d.EdgeList, d.Known.EdgeHint = e, max(e.Hint, 0)
	switch {
	case e.Nodes < 0:
	case d.Known.NumNodes >= 0 && d.Known.NumNodes != e.Nodes:
		return graph.BadData(src.Name, "its header states %d nodes, and %s: correct one of the two", e.Nodes, d.Stated)
	default:
		d.Known.NumNodes = e.Nodes
		d.Stated = fmt.Sprintf("the header of %s states %d nodes", filepath.Base(src.Name), e.Nodes)
	}
	return nil
}
