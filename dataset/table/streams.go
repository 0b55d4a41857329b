package table

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"ndls/dataset/column"
	"ndls/dataset/graph"
)

// numbering gives the ids in rows the numbers of their nodes.
type numbering struct {
	g *Graph // that numbers its ids; nil where ids are the numbers
	// limit bounds ids that are numbers.
	limit graph.IDLimit
}

// of returns the numbers in a column of a batch, in to if they are not there yet. If one of them is none, it returns
// those before it and what is wrong.
func (n *numbering) of(b *batch, column int, name string, to *[batchRows]uint32) ([]uint32, error) {
	v := &b.cols[column]
	switch {
	case n.g != nil:
		if row, err := n.g.numbers(b, column, name, to[:b.n]); err != nil {
			return to[:row], err
		}
	case v.numbers != nil:
		return v.numbers, nil
	default:
		if row, problem := v.ids(to[:b.n], &n.limit); problem != "" {
			return to[:row], badNumber(b.where(row), name, problem)
		}
	}
	return to[:b.n], nil
}

// badNumber is the error for a number of a node.
func badNumber(where, name, problem string) error {
	return graph.BadData(where, "column %q: %s", name, problem)
}

// read makes a reader give numbers of nodes in place of text in its first columns, where ids are numbers.
func (n *numbering) read(r *rows, columns int) *rows {
	if n.g == nil {
		r.of.ids, r.of.limit = columns, &n.limit
	}
	return r
}

// edgeList is the edges in columns of a table: of both ends, and of weights if they are read.
type edgeList struct {
	t     *table
	names []string
	nodes numbering
}

// Open implements graph.EdgeSource.
func (e *edgeList) Open(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	return &edgeReader{edgeList: e, rows: e.nodes.read(e.t.share(ctx, s, e.names, nil), 2)}, nil
}

type edgeReader struct {
	*edgeList
	rows *rows
	b    *batch
	at   int // of the batch
	// us and vs are the ends of the edges of the batch, in ends or elsewhere.
	us, vs []uint32
	ends   [2][batchRows]uint32
}

func (r *edgeReader) Close() error { return r.rows.close() }

// Read implements graph.EdgeReader.
func (r *edgeReader) Read(edges []graph.Edge, weights []float32) (n int, err error) {
	for n < len(edges) {
		if r.b == nil || r.at == r.b.n {
			if err := r.next(); err == io.EOF && n > 0 {
				return n, nil
			} else if err != nil {
				return 0, err
			}
		}
		some := min(r.b.n-r.at, len(edges)-n)
		us, vs := r.us[r.at:r.at+some], r.vs[r.at:r.at+some]
		for i, u := range us {
			edges[n+i] = graph.Edge{U: u, V: vs[i]}
		}
		for i := 0; i < some && weights != nil; i++ {
			var problem string
			if weights[n+i], problem = r.b.cols[2].weight(r.at + i); problem != "" {
				return 0, badNumber(r.b.where(r.at+i), r.names[2], problem)
			}
		}
		n, r.at = n+some, r.at+some
	}
	return n, nil
}

// next reads a batch, or returns io.EOF.
func (r *edgeReader) next() (err error) {
	b, err := r.rows.next()
	r.b = nil
	if err != nil {
		return err
	}
	var other error
	r.us, err = r.nodes.of(b, 0, r.names[0], &r.ends[0])
	r.vs, other = r.nodes.of(b, 1, r.names[1], &r.ends[1])
	if other != nil && (err == nil || len(r.vs) < len(r.us)) {
		err = other
	}
	if err == nil {
		r.b, r.at = b, 0
	}
	return err
}

// nodeRows goes over the rows of a table with a row for each node. The first column that is read has the ids, unless row
// i belongs to node i.
type nodeRows struct {
	rows  *rows
	nodes *numbering
	// byRow says that row i belongs to node i; then each node below nodes.limit has to have a row if all is true.
	byRow, all bool
	b          *batch
	at         int   // the row that next moved to, of the batch
	passed     int64 // rows
	ids        []uint32
	buffer     [batchRows]uint32
}

// newNodeRows begins before the first row.
func newNodeRows(r *rows, nodes *numbering, byRow bool) nodeRows {
	if !byRow {
		nodes.read(r, 1)
	}
	return nodeRows{rows: r, nodes: nodes, byRow: byRow}
}

func (r *nodeRows) Close() error { return r.rows.close() }

// next moves to the next row, or returns io.EOF.
func (r *nodeRows) next() (id uint32, err error) {
	if r.at++; r.b == nil || r.at >= r.b.n {
		r.at = 0
		if r.b, err = r.rows.next(); err != nil {
			r.b = nil
			if limit := r.nodes.limit; err == io.EOF && r.all && r.passed < limit.N {
				err = graph.BadData(r.ReadsFrom(), "has %d rows, one for each node, and there are %d nodes (%s): they do not belong together", r.passed, limit.N, limit.Stated)
			}
			return 0, err
		}
		// Classes are looked for before ids have numbers.
		if !r.byRow && (r.nodes.g == nil || r.nodes.g.find != nil) {
			if r.ids, err = r.nodes.of(r.b, 0, r.rows.names[0], &r.buffer); err != nil {
				return 0, err
			}
		}
	}
	r.passed++
	switch {
	case !r.byRow && r.ids != nil:
		return r.ids[r.at], nil
	case r.byRow && r.passed > r.nodes.limit.N:
		return 0, graph.BadData(r.Position(), "is one more than there are nodes, %d (%s): remove it, or correct the number of nodes", r.nodes.limit.N, r.nodes.limit.Stated)
	}
	return uint32(r.passed - 1), nil
}

// Position names the row.
func (r *nodeRows) Position() string {
	if r.b == nil {
		return r.ReadsFrom()
	}
	return r.b.where(r.at)
}

// NodeName is the id of the row's node, "" where that is its number.
func (r *nodeRows) NodeName() string {
	if r.nodes.g == nil || r.b == nil {
		return ""
	}
	key, _ := r.b.cols[0].appendKey(nil, r.nodes.g.keyType, r.at)
	return r.nodes.g.keyType.Quote(key)
}

// ReadsFrom names the table.
func (r *nodeRows) ReadsFrom() string { return r.rows.t.place.String() }

// featureRows is the features in columns of a table, behind a column of ids unless row i belongs to node i.
type featureRows struct {
	t          *table
	names      []string
	widths     []int
	width      int // of all features
	categories int // columns behind those of the features
	nulls      nulls
	nodes      numbering
	byRow, all bool
}

// AllowMissing makes missing features NaN, unless they are zeros.
func (f *featureRows) AllowMissing() { f.nulls.allow() }

// Open implements graph.FeatureSource.
func (f *featureRows) Open(ctx context.Context, s graph.Share) (graph.FeatureReader, error) {
	r := f.t.share(ctx, s, f.names, f.widths)
	r.nulls = f.nulls
	first := 1
	if f.byRow {
		first = 0
	}
	isText := !slices.ContainsFunc(f.t.files, func(t *tableFile) bool { return t.format != csvFormat && t.format != unknownFormat })
	if isText && f.nulls == refused && !f.t.form.HasMissing() && f.categories == 0 {
		r.of.features = len(f.names) - first
	}
	n := &featureReader{newNodeRows(r, &f.nodes, f.byRow), newFeatures(r, first, f.width, f.categories)}
	n.all = f.all
	return n, nil
}

// Edges implements graph.Dataset.
func (g *Graph) Edges(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return (&edgeList{g.edges, g.edgeNames(), numbering{g: g}}).Open(ctx, s)
}

// Features implements graph.Dataset.
func (g *Graph) Features(ctx context.Context, s graph.Share) (graph.FeatureReader, error) {
	if g.info.NumFeatures+len(g.info.Categories) == 0 {
		return nil, graph.NoStream("features", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	f := &featureRows{
		t: g.nodes, names: g.featureNames(), widths: slices.Concat([]int{0}, g.widths, make([]int, len(g.spec.categories))),
		width: g.info.NumFeatures, categories: len(g.spec.categories), nulls: g.nulls, nodes: numbering{g: g},
	}
	return f.Open(ctx, s)
}

type featureReader struct {
	nodeRows
	features *features
}

// Next implements graph.FeatureReader.
func (r *featureReader) Next() (graph.FeatureRow, error) {
	id, err := r.next()
	if err != nil {
		return graph.FeatureRow{}, err
	}
	return r.features.of(id, r.b, r.at)
}

// features holds the features of a row, from columns [first, end) of those that are read. Categories follow these.
type features struct {
	rows       *rows
	first, end int
	width      int
	row        graph.FeatureRow
	dense      []float32
	text       []byte // of categories
}

// newFeatures reads rows of a width.
func newFeatures(r *rows, first, width, categories int) *features {
	end := len(r.names) - categories
	f := &features{rows: r, first: first, end: end, width: width}
	f.row.Categories = make([][]byte, categories)
	return f
}

// categories fills row.Categories.
func (f *features) categories(b *batch, row int) {
	f.text = f.text[:0]
	for i := range f.row.Categories {
		v, from := &b.cols[f.end+i], len(f.text)
		if !v.isNull(row) && !v.isMissing(row) {
			f.text = append(f.text, v.value(row)...)
		}
		f.row.Categories[i] = f.text[from:len(f.text):len(f.text)]
	}
}

// of is the features of a row of a batch. They are sparse where one of the columns has vectors.
func (f *features) of(id uint32, b *batch, row int) (graph.FeatureRow, error) {
	if b.features != nil {
		return graph.FeatureRow{ID: id, Dense: b.features[row*f.width : (row+1)*f.width]}, nil
	}
	isSparse := false
	f.categories(b, row)
	for i := f.first; i < f.end; i++ {
		isSparse = isSparse || b.cols[i].kind == vectorKind
	}
	f.row.ID, f.row.Indices, f.row.Values = id, f.row.Indices[:0], f.row.Values[:0]
	at := 0
	for i := f.first; i < f.end; i++ {
		n := max(f.rows.widths[i], 1)
		var problem string
		if b.cols[i].kind == vectorKind {
			problem = b.cols[i].sparse(&f.row, row, at, n, f.rows.nulls == zeros)
		} else {
			if len(f.dense) < f.width && !isSparse {
				f.dense = make([]float32, f.width)
			}
			to := f.dense
			if isSparse {
				if len(f.dense) < n {
					f.dense = make([]float32, n)
				}
				to = f.dense[:n]
			} else {
				to = to[at : at+n]
			}
			if problem = b.cols[i].features(to, row, f.rows.nulls); problem == "" && isSparse {
				for k, x := range to {
					if x != 0 {
						f.row.Indices, f.row.Values = append(f.row.Indices, uint32(at+k)), append(f.row.Values, x)
					}
				}
			}
		}
		if problem != "" {
			return graph.FeatureRow{}, graph.BadData(b.where(row), "column %q %s", f.rows.names[i], problem)
		}
		at += n
	}
	if isSparse {
		return f.row, nil
	}
	return graph.FeatureRow{ID: id, Dense: f.dense[:f.width], Categories: f.row.Categories}, nil
}

// Labels implements graph.Dataset.
func (g *Graph) Labels(ctx context.Context) (graph.LabelReader, error) {
	hasClasses := g.info.Answers == graph.Classes
	if hasClasses && g.classes == nil {
		return nil, graph.NoStream("labels", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	if !hasClasses {
		return graph.LabelsOfAnswers(ctx, g.answers(), g.info, g.labels.t.place.String())
	}
	return g.classes.Open(ctx)
}

// Answers implements graph.Answered.
func (g *Graph) Answers(ctx context.Context) (graph.FeatureReader, error) {
	if g.info.Answers == graph.Classes {
		return nil, graph.NoStream("answers", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return graph.OpenAnswers(ctx, g.answers(), g.info, g.labels.t.place.String())
}

// answers are the columns of answers.
func (g *Graph) answers() *featureRows {
	v := g.labels
	return &featureRows{
		t: v.t, names: append([]string{v.id}, v.names...), widths: append([]int{0}, v.widths...),
		width: len(g.info.Classes), nulls: unknown, nodes: numbering{g: g},
	}
}

// Splits implements graph.Dataset.
func (g *Graph) Splits(ctx context.Context, number int) (graph.SplitReader, error) {
	if g.splits.t == nil {
		return nil, graph.NoStream("splits", g.info.Name)
	}
	if err := graph.CheckSplit(g.info.Name, number); err != nil {
		return nil, err
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	if g.spec.masks == nil {
		return column.SplitColumn{Column: g.column(g.splits)}.Open(ctx)
	}
	masks := &column.Lists{Limit: graph.AnyID}
	for i, split := range []graph.Split{graph.Train, graph.Valid, graph.Test} {
		mask := g.splits
		mask.names = mask.names[i : i+1]
		part := column.MaskColumn(split, g.column(mask))
		if g.described && g.labels.t != nil {
			part.Open = g.labelled(part.Open)
		}
		masks.Parts = append(masks.Parts, part)
	}
	return masks.Open(ctx)
}

// labelled leaves out nodes of a mask that have no label. Rows of masks and of labels are in ascending order of id.
func (g *Graph) labelled(open func(context.Context) (column.IDs, error)) func(context.Context) (column.IDs, error) {
	return func(ctx context.Context) (column.IDs, error) {
		labels, err := g.Labels(ctx)
		if err != nil {
			return nil, err
		}
		ids, err := open(ctx)
		if err != nil {
			return nil, errors.Join(err, labels.Close())
		}
		return &labelledIDs{IDs: ids, labels: labels, label: -1}, nil
	}
}

type labelledIDs struct {
	column.IDs
	labels      graph.LabelReader
	last, label int64 // nodes of the mask, and with a label
}

// Next implements column.IDs.
func (r *labelledIDs) Next() (int64, error) {
	for {
		id, err := r.IDs.Next()
		if err == nil && id < r.last {
			err = graph.BadData(r.Position(), "comes behind the row of a larger id: sort the rows by node id")
		}
		if err != nil {
			return 0, err
		}
		for r.last = id; r.label < id; {
			node, _, err := r.labels.Next()
			switch {
			case err == io.EOF:
				r.label = math.MaxInt64
			case err != nil:
				return 0, err
			case int64(node) < r.label:
				return 0, graph.BadData(graph.Position(r.labels, "a label"), "comes behind the row of a larger id: sort the rows by node id")
			default:
				r.label = int64(node)
			}
		}
		if r.label == id {
			return id, nil
		}
	}
}

// Close implements column.IDs.
func (r *labelledIDs) Close() error { return errors.Join(r.IDs.Close(), r.labels.Close()) }

// column is a column of labels or splits.
func (g *Graph) column(v values) *valueColumn {
	return &valueColumn{t: v.t, names: []string{v.id, v.names[0]}, nodes: numbering{g: g}}
}

// valueColumn is a column of labels or splits, behind a column of ids unless row i belongs to node i.
type valueColumn struct {
	t          *table
	names      []string
	nodes      numbering
	byRow, all bool
}

// Where implements column.Column.
func (c *valueColumn) Where() string { return c.t.place.String() }

// Open implements column.Column.
func (c *valueColumn) Open(ctx context.Context) (column.Reader, error) {
	r := &valueReader{newNodeRows(c.t.all(ctx, c.names, nil), &c.nodes, c.byRow)}
	r.all = c.all
	return r, nil
}

type valueReader struct{ nodeRows }

// NextValue implements column.Reader.
func (r *valueReader) NextValue() (uint32, string, error) {
	id, err := r.next()
	if err != nil {
		return 0, "", err
	}
	return id, r.b.cols[len(r.rows.names)-1].value(r.at), nil
}
