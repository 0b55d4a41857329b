package table

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/meant"
)

// Numbered is a file of Parquet or Arrow whose ids are the numbers of nodes.
type Numbered struct {
	t *table
	f *columnarFile
}

// IsColumnar reports whether the end of a name, with its point, tells that a file is one of Parquet
// or Arrow.
func IsColumnar(ext string) bool {
	return formats[ext] == parquetFormat || formats[ext] == arrowFormat
}

// OpenNumbered opens a file whose name has such an end.
func OpenNumbered(src *source.Source, ext string) (*Numbered, error) {
	open := openParquet
	if formats[ext] == arrowFormat {
		open = openArrow
	}
	c, err := open(src)
	if err != nil {
		return nil, err
	}
	f := &tableFile{name: src.Name, format: formats[ext], src: src, rows: c}
	t := &table{place: place{[]string{src.Name}}, files: []*tableFile{f}, leading: f, titles: c.titles(), form: &source.Form{}}
	t.settle()
	return &Numbered{t, c}, nil
}

// Name returns the name of the file.
func (n *Numbered) Name() string { return n.t.leading.name }

// Rows returns the number of rows.
func (n *Numbered) Rows() int64 { return n.f.Rows() }

// Titles are the names of the columns. Those in structs are read where they are named, and are
// listed by Nested.
func (n *Numbered) Titles() (titles []string) {
	for i, t := range n.t.titles {
		if !n.t.isNested(i) {
			titles = append(titles, t.name)
		}
	}
	return titles
}

// Nested are the names of the columns in structs.
func (n *Numbered) Nested() (titles []string) {
	for i, t := range n.t.titles {
		if n.t.isNested(i) {
			titles = append(titles, t.name)
		}
	}
	return titles
}

// Integers are the columns of integers, by their places among the titles.
func (n *Numbered) Integers() (found []int) {
	for i, t := range n.t.titles {
		if (t.kind == intKind || t.kind == uintKind) && !n.t.isNested(i) {
			found = append(found, i)
		}
	}
	return found
}

// holdsNumbered reports whether a column of this kind can hold numbers of nodes.
func (k kind) holdsNumbered() bool {
	return k == intKind || k == uintKind || k == floatKind || k == decimalKind
}

// NeedIDs refuses a column that cannot hold numbers of nodes.
func (n *Numbered) NeedIDs(key, name string) error {
	k, err := n.t.need(key, name, kind.holdsNumbered, "node ids are whole numbers from 0: number the nodes, or give the graph as table:, which takes ids of any type; the columns are "+strings.Join(n.Titles(), ", "))
	if err != nil || k == nullKind {
		return err
	}
	return n.check(name)
}

// NeedWeights refuses a column that cannot hold weights.
func (n *Numbered) NeedWeights(name string) error {
	if _, err := n.t.need("weight", name, kind.holdsNumber, "a weight is one number for each edge"); err != nil {
		return err
	}
	return n.check(name)
}

// holdsNumber reports whether a column of this kind holds one number in each row.
func (k kind) holdsNumber() bool { return k.holdsNumbers() && k != listKind && k != vectorKind }

// check refuses a column that is not read as it is stored.
func (n *Numbered) check(name string) error { return n.f.Check(find(n.t.titles, name)) }

// ids fills to with numbers of nodes from a row on. It returns how many there are up to the first
// that is none, and what is wrong with that one.
func (v *vector) ids(to []uint32, row int, limit *graph.IDLimit) (n int, problem string) {
	if v.kind == intKind && v.null == nil {
		most := limit.N
		for i, x := range v.ints[row : row+len(to)] {
			if x < 0 || x >= most {
				return i, limit.Check(x, false)
			}
			to[i] = uint32(x)
		}
		return len(to), ""
	}
	for i := range to {
		if to[i], problem = v.id(row+i, limit); problem != "" {
			return i, problem
		}
	}
	return len(to), ""
}

// id is the number of a node.
func (v *vector) id(row int, limit *graph.IDLimit) (id uint32, problem string) {
	if v.isNull(row) {
		return 0, "the node id is null: remove the row, or give it an id"
	}
	var x int64
	switch v.kind {
	case intKind, uintKind:
		x = v.ints[row]
	case floatKind:
		if problem := WholeFloat(v.floats[row]); problem != "" {
			return 0, "the node id " + problem
		}
		x = int64(v.floats[row])
	default:
		return limit.Parse(v.text[row])
	}
	if problem := limit.Check(x, v.kind == uintKind); problem != "" {
		return 0, problem
	}
	return uint32(x), ""
}

// NumberedEdges are edges in columns of a file.
type NumberedEdges struct {
	n     *Numbered
	names []string // of both ends, and of weights if they are read
	limit graph.IDLimit
}

// Edges are the edges in two columns, with weights in another one unless its name is empty.
func (n *Numbered) Edges(src, dst, weight string, limit graph.IDLimit) *NumberedEdges {
	e := &NumberedEdges{n, []string{src, dst}, limit}
	if weight != "" {
		e.names = append(e.names, weight)
	}
	return e
}

// Open implements graph.EdgeSource.
func (e *NumberedEdges) Open(ctx context.Context) (graph.EdgeReader, error) {
	return e.OpenShare(ctx, graph.Share{Last: 1, Of: 1})
}

// CanCut says that the edges can be read from the middle.
func (e *NumberedEdges) CanCut() bool { return true }

// OpenShare reads a share of the edges. Row groups and record batches are not cut.
func (e *NumberedEdges) OpenShare(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	lo, hi := s.Bounds(int64(e.n.t.units()))
	return &numberedEdgeReader{e: e, rows: e.n.t.rows(ctx, int(lo), int(hi), e.names, nil)}, nil
}

type numberedEdgeReader struct {
	e      *NumberedEdges
	rows   *rows
	b      *batch
	at     int // of the batch
	us, vs [batchRows]uint32
}

// Close implements graph.EdgeReader.
func (r *numberedEdgeReader) Close() error { return r.rows.close() }

// Read implements graph.EdgeReader.
func (r *numberedEdgeReader) Read(edges []graph.Edge) (int, error) { return r.ReadWeighted(edges, nil) }

// ReadWeighted implements graph.WeightedReader; weights may be nil.
func (r *numberedEdgeReader) ReadWeighted(edges []graph.Edge, weights []float32) (n int, err error) {
	for n < len(edges) {
		if r.b == nil || r.at == r.b.n {
			if r.b, err = r.rows.next(); err == io.EOF && n > 0 {
				r.b = nil
				return n, nil
			}
			if err == nil {
				r.at, err = 0, r.number()
			}
			if err != nil {
				r.b = nil
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
				return 0, graph.BadData(r.b.where(r.at+i), "column %q: %s", r.e.names[2], problem)
			}
		}
		n, r.at = n+some, r.at+some
	}
	return n, nil
}

// number takes the ids of a batch.
func (r *numberedEdgeReader) number() error {
	n, problem := r.b.cols[0].ids(r.us[:r.b.n], 0, &r.e.limit)
	m, other := r.b.cols[1].ids(r.vs[:n], 0, &r.e.limit)
	switch {
	case other != "":
		return graph.BadData(r.b.where(m), "column %q: %s", r.e.names[1], other)
	case problem != "":
		return graph.BadData(r.b.where(n), "column %q: %s", r.e.names[0], problem)
	}
	return nil
}

// numberedRows goes over rows with a column of ids, which comes first, or with the number of the
// row in place of it.
type numberedRows struct {
	rows  *rows
	limit graph.IDLimit
	hasID bool
	b     *batch
	at    int
	next  int64 // row of the file
}

// Close closes the file's unit that is read.
func (r *numberedRows) Close() error { return r.rows.close() }

// Position names the row.
func (r *numberedRows) Position() string {
	if r.b == nil {
		return r.ReadsFrom()
	}
	return r.b.where(r.at)
}

// ReadsFrom names the file.
func (r *numberedRows) ReadsFrom() string { return r.rows.t.place.String() }

// move goes to the next row, or returns io.EOF.
func (r *numberedRows) move() (id uint32, err error) {
	if r.at++; r.b == nil || r.at >= r.b.n {
		b, err := r.rows.next()
		if err != nil {
			return 0, err
		}
		r.b, r.at = b, 0
	}
	r.next++
	if !r.hasID {
		return uint32(r.next - 1), nil
	}
	id, problem := r.b.cols[0].id(r.at, &r.limit)
	if problem != "" {
		return 0, graph.BadData(r.b.where(r.at), "column %q: %s", r.rows.names[0], problem)
	}
	return id, nil
}

// NumberedFeatures are features in columns of a file.
type NumberedFeatures struct {
	// Width is the number of values of a row, and Memory the bytes that a reader of them takes.
	Width  int
	Memory int64
	n      *Numbered
	names  []string // of the ids, then of features
	widths []int
	limit  graph.IDLimit
	nulls  nulls
	// Note says which columns were taken.
	Note graph.Note
}

// Features takes the one column of lists or vectors that there is, or else all columns of numbers,
// beside the ids. Null features are zeros where zero is true.
func (n *Numbered) Features(ctx context.Context, limit graph.IDLimit, zero bool) (*NumberedFeatures, error) {
	f := &NumberedFeatures{n: n, limit: limit}
	if zero {
		f.nulls = zeros
	}
	titles := n.Titles()
	i := slices.IndexFunc(titles, func(name string) bool { return slices.Contains(column.IDNames, strings.ToLower(name)) })
	if i < 0 {
		return nil, graph.BadData(n.Name(), "has no column named id; its columns are %s", strings.Join(titles, ", "))
	}
	id := titles[i]
	if err := n.NeedIDs("id", id); err != nil {
		return nil, err
	}
	var lists, others []string
	for i, name := range titles {
		if name == id {
			continue
		}
		others = append(others, name)
		if k := n.t.titles[i].kind; k == listKind || k == vectorKind {
			lists = append(lists, name)
		}
	}
	switch {
	case len(lists) > 1:
		return nil, graph.BadData(n.Name(), "has the columns %s, which all hold lists: one list of features is read, leave the others out", strings.Join(lists, ", "))
	case len(lists) == 1:
		f.Note = graph.NoteOf(n.Name(), "node ids are in column %q, features in column %q", id, lists[0])
		if len(others) > 1 {
			f.Note = graph.WarningOf(n.Name(), "node ids are in column %q, features in column %q; %s not read", id, lists[0],
				graph.Count(slices.DeleteFunc(others, func(name string) bool { return name == lists[0] }), "column"))
		}
		others = lists
	case len(others) == 0:
		return nil, graph.BadData(n.Name(), "has no column beside the ids: features are numbers, or lists of numbers")
	case len(others) == 1:
		f.Note = graph.NoteOf(n.Name(), "node ids are in column %q, features in column %q", id, others[0])
	default:
		f.Note = graph.NoteOf(n.Name(), "node ids are in column %q, features in the %d others", id, len(others))
	}
	f.names, f.widths = []string{id}, []int{0}
	for _, name := range others {
		if err := n.check(name); err != nil {
			return nil, err
		}
		width, err := n.t.featureWidth(ctx, "features", name, kind.holdsNumbers)
		if err != nil {
			return nil, err
		}
		f.names, f.widths, f.Width = append(f.names, name), append(f.widths, width), f.Width+max(width, 1)
	}
	var err error
	if f.Memory, err = n.t.memory(f.names); err != nil {
		return nil, err
	}
	return f, graph.CheckSize(n.Name(), n.Rows(), int64(f.Width))
}

// Open implements graph.FeatureSource.
func (f *NumberedFeatures) Open(ctx context.Context) (graph.FeatureReader, error) {
	rows := f.n.t.all(ctx, f.names, f.widths)
	rows.nulls = f.nulls
	return &numberedFeatureReader{numberedRows{rows: rows, limit: f.limit, hasID: true}, newFeatures(rows, 1, f.Width)}, nil
}

type numberedFeatureReader struct {
	numberedRows
	features *features
}

// Next implements graph.FeatureReader.
func (r *numberedFeatureReader) Next() (graph.FeatureRow, error) {
	id, err := r.move()
	if err != nil {
		return graph.FeatureRow{}, err
	}
	return r.features.of(id, r.b, r.at)
}

// NumberedColumn is a label or split for each node.
type NumberedColumn struct {
	n     *Numbered
	names []string // of the ids, if there are any, and of the values
	limit graph.IDLimit
	note  string
}

// Column finds the column named want, or the first of names that there is, or the only one beside
// the ids.
func (n *Numbered) Column(what, want string, names []string, limit graph.IDLimit) (*NumberedColumn, error) {
	titles := n.Titles()
	known := func(wanted ...string) string {
		for _, name := range wanted {
			if i := find(n.t.titles, name); i >= 0 {
				return n.t.titles[i].name
			}
		}
		return ""
	}
	id, value := known(column.IDNames...), known(names...)
	if want != "" {
		if value = known(want); value == "" {
			return nil, graph.BadData(n.Name(), "has no column %q: the columns are %s%s", want, strings.Join(titles, ", "), meant.Hint(want, titles))
		}
	}
	left := slices.DeleteFunc(slices.Clone(titles), func(name string) bool { return name == id || name == value })
	switch {
	case value == "" && len(left) == 1:
		value = left[0]
	case value == "":
		return nil, graph.BadData(n.Name(), "which column is meant? Say so behind a #, for example labels=%s#%s; the columns are %s", graph.EscapePath(n.Name()), titles[len(titles)-1], strings.Join(titles, ", "))
	case id == "" && len(left) == 1:
		id = left[0]
	case id == "" && len(left) > 1:
		return nil, graph.BadData(n.Name(), "which column holds the node ids? Name it id; the columns are %s", strings.Join(titles, ", "))
	case id == value:
		return nil, graph.BadData(n.Name(), "column %q is taken for the node ids: name the column of the ids id", id)
	}
	c := &NumberedColumn{n: n, names: []string{value}, limit: limit}
	if id != "" {
		if err := n.NeedIDs("id", id); err != nil {
			return nil, err
		}
		c.names = []string{id, value}
		c.note = fmt.Sprintf("node ids are in column %q, %s in column %q", id, what, value)
		if others := slices.DeleteFunc(left, func(name string) bool { return name == id }); len(others) > 0 {
			c.note += "; " + graph.Count(others, "column") + " not read"
		}
	}
	if _, err := n.t.need(what, value, kind.holdsValues, what+" are whole numbers or text"); err != nil {
		return nil, err
	}
	return c, n.check(value)
}

// HasIDs reports whether there is a column of ids. Otherwise row i belongs to node i.
func (c *NumberedColumn) HasIDs() bool { return len(c.names) > 1 }

// Note says which columns were chosen.
func (c *NumberedColumn) Note() graph.Note {
	if c.note == "" {
		return graph.Note{}
	}
	return graph.NoteOf(c.n.Name(), "%s", c.note)
}

// Where implements column.Column.
func (c *NumberedColumn) Where() string { return c.n.Name() }

// Open implements column.Column.
func (c *NumberedColumn) Open(ctx context.Context) (column.Reader, error) {
	return &numberedValues{numberedRows{rows: c.n.t.all(ctx, c.names, nil), limit: c.limit, hasID: c.HasIDs()}}, nil
}

type numberedValues struct{ numberedRows }

// NextValue implements column.Reader.
func (r *numberedValues) NextValue() (uint32, string, error) {
	id, err := r.move()
	if err != nil {
		return 0, "", err
	}
	return id, r.b.cols[len(r.rows.names)-1].value(r.at), nil
}

// NumberedIDs are the numbers of nodes in a column.
type NumberedIDs struct{ numberedRows }

// IDs reads the column of ids, by its name or as the only one there is.
func (n *Numbered) IDs(ctx context.Context, limit graph.IDLimit) (*NumberedIDs, error) {
	titles := n.Titles()
	i := slices.IndexFunc(titles, func(name string) bool { return slices.Contains(column.IDNames, strings.ToLower(name)) })
	if i < 0 && len(titles) != 1 {
		return nil, graph.BadData(n.Name(), "has no column named id; its columns are %s", strings.Join(titles, ", "))
	}
	name := titles[max(i, 0)]
	if err := n.NeedIDs("id", name); err != nil {
		return nil, err
	}
	return &NumberedIDs{numberedRows{rows: n.t.all(ctx, []string{name}, nil), limit: limit, hasID: true}}, nil
}

// Next returns the next id, or io.EOF.
func (r *NumberedIDs) Next() (int64, error) {
	id, err := r.move()
	return int64(id), err
}
