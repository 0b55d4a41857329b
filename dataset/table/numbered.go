package table

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/meant"
)

// Numbered is a table whose ids are the numbers of nodes, or whose row i belongs to node i.
type Numbered struct {
	t     *table
	text  *csvFile // the last file, nil if it is no text
	bare  bool     // text without header
	nodes numbering
}

// OpenNumbered opens a table in files that follow each other, of Parquet or Arrow if the end of their names says so, or
// else of text. limit bounds the ids.
func OpenNumbered(ctx context.Context, ext string, text Text, limit graph.IDLimit, files ...*source.Source) (*Numbered, error) {
	n := &Numbered{t: &table{form: &text.Form}, bare: text.Bare, nodes: numbering{limit: limit}}
	for _, src := range files {
		f := &tableFile{name: src.Name, format: formats[ext], src: src}
		var err error
		switch {
		case f.format == parquetFormat:
			f.rows, err = openParquet(src)
		case f.format == arrowFormat:
			f.rows, err = openArrow(src)
		default:
			var c *csvFile
			if c, err = openText(ctx, src, &text); err == nil {
				f.rows = c
			}
			n.text = c
		}
		if err != nil {
			return nil, err
		}
		n.t.files, n.t.place.paths = append(n.t.files, f), append(n.t.place.paths, src.Name)
	}
	n.t.lead()
	return n, nil
}

// Name returns the name of the file.
func (n *Numbered) Name() string { return n.t.leading.name }

// Rows returns the number of rows, -1 if the files do not state it.
func (n *Numbered) Rows() int64 { return n.t.numRows() }

// headed reports whether the columns have names.
func (n *Numbered) headed() bool { return n.text == nil || n.text.headed }

// known returns the first of some names that a column has, as it is spelled there; "" if there is none.
func (t *table) known(names ...string) string {
	for _, name := range names {
		if i := find(t.titles, name); i >= 0 {
			return t.titles[i].name
		}
	}
	return ""
}

// without are names but for some.
func without(names []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// noRows is the error for a file without a line.
func (n *Numbered) noRows() error {
	return graph.BadData(n.Name(), "holds no rows: is this the file that is meant?")
}

// holdsNumbered reports whether a column of this kind can hold numbers of nodes.
func (k kind) holdsNumbered() bool {
	return k == intKind || k == uintKind || k == floatKind || k == decimalKind || k == fieldKind
}

const areNumbers = "node ids are whole numbers from 0: number the nodes, or give the graph as table:, which takes ids of any type"

// needID refuses a column that cannot hold numbers of nodes.
func (n *Numbered) needID(name string) error {
	return n.t.need("id", name, kind.holdsNumbered, areNumbers)
}

const aWeight = "a weight is one number for each edge"

// holdsNumber reports whether a column of this kind holds one number in each row.
func (k kind) holdsNumber() bool { return k.holdsNumbers() && k != listKind && k != vectorKind }

// ids fills to with the numbers of nodes in the first rows. It returns how many there are up to the first
// that is none, and what is wrong with that one.
func (v *vector) ids(to []uint32, limit *graph.IDLimit) (n int, problem string) {
	if v.kind == intKind && v.null == nil {
		most := limit.N
		for i, x := range v.ints[:len(to)] {
			if x < 0 || x >= most {
				return i, limit.Check(x, false)
			}
			to[i] = uint32(x)
		}
		return len(to), ""
	}
	for i := range to {
		if to[i], problem = v.id(i, limit); problem != "" {
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

// Edges are edges in columns of a table.
type Edges struct {
	*edgeList
	// Rows is the number of rows, -1 if the files do not state it; IsEmpty says that there is none. Memory is [graph.Info].EdgeMemory.
	Rows    int64
	Memory  int64
	IsEmpty bool
	// Notes say which columns were taken.
	Notes []graph.Note
}

// Edges takes the columns of both ends that are named, or finds them, and a column of weights unless its name is empty.
func (n *Numbered) Edges(ctx context.Context, ends [2]string, weight string) (*Edges, error) {
	e := &Edges{edgeList: &edgeList{t: n.t, names: ends[:], nodes: n.nodes}, Rows: n.Rows()}
	if e.IsEmpty = e.Rows == 0; len(n.t.titles) == 0 {
		return e, nil
	}
	if n.text != nil && n.bare && len(n.t.titles) != 2 {
		return nil, graph.BadData(n.Name(), "the number of columns is %d, and an edge is two node ids", len(n.t.titles))
	}
	ends, err := n.t.findEnds(ends, kind.holdsNumbered, areNumbers, func() ([]int, error) {
		if n.text != nil {
			return n.text.idColumns(ctx)
		}
		return n.t.integers(), nil
	})
	if err != nil {
		return nil, err
	}
	if e.names = ends[:]; weight != "" {
		if err := n.t.need("weight", weight, kind.holdsNumber, aWeight); err != nil {
			return nil, err
		}
		if weight = n.t.known(weight); slices.Contains(e.names, weight) {
			return nil, graph.BadData(n.Name(), "weight=%s: the column has the ends of edges", weight)
		}
		e.names = append(e.names, weight)
	}
	e.Notes = n.edgeNotes(e.names)
	e.Memory, err = n.t.edgeMemory(e.names)
	return e, err
}

// integers are the columns of integers.
func (t *table) integers() (found []int) {
	for i, title := range t.titles {
		if (title.kind == intKind || title.kind == uintKind) && !t.isNested(i) {
			found = append(found, i)
		}
	}
	return found
}

// edgeNotes say which columns were chosen, and which ones are left out.
func (n *Numbered) edgeNotes(names []string) []graph.Note {
	titles := n.t.top()
	if !n.headed() && len(titles) == 2 {
		return nil
	}
	others := without(titles, append(names, "")...)
	notes := []graph.Note{graph.NoteOf(n.Name(), "an edge joins the node in column %q to the node in column %q", names[0], names[1])}
	weighted := len(names) > 2
	if weighted {
		notes = append(notes, graph.NoteOf(n.Name(), "column %q has the weights of edges", names[2]))
	}
	switch {
	case len(others) == 0:
	case weighted:
		notes = append(notes, graph.WarningOf(n.Name(), "%s ignored: an edge is two node ids and a weight, without type or time", graph.Count(others, "column")))
	default:
		notes = append(notes, graph.WarningOf(n.Name(), "%s ignored: an edge is two node ids, without weight, type or time; weight=COLUMN in the URI names a column of weights", graph.Count(others, "column")))
	}
	return notes
}

// Features are features in columns of a table.
type Features struct {
	*featureRows
	// Width is the number of values of a row, and Memory the bytes that a reader of them takes.
	Width  int
	Memory int64
	// Note says which columns were taken.
	Note graph.Note
}

// Features takes the one column of lists or vectors that there is, or else all columns of numbers,
// beside the ids: those have the first column of text. Null features are zeros where zero is true.
func (n *Numbered) Features(ctx context.Context, zero bool) (*Features, error) {
	titles := n.t.top()
	if len(titles) == 0 {
		return nil, n.noRows()
	}
	id := n.t.known(column.IDNames...)
	switch first := titles[0]; {
	case n.text == nil && id == "":
		return nil, graph.BadData(n.Name(), "has no column named id; its columns are %s", list(n.t.titles))
	case n.text != nil && n.headed() && id != "" && id != first && !slices.ContainsFunc(column.IDNames, func(name string) bool { return strings.EqualFold(name, first) }):
		return nil, graph.BadData(n.Name(), "column %d is named %s, and the node ids are read from the first column: make it the first, and leave out what is no feature", slices.Index(titles, id)+1, id)
	case n.text != nil:
		id = first
	}
	if err := n.needID(id); err != nil {
		return nil, err
	}
	var lists []string
	for i, t := range n.t.titles {
		if (t.kind == listKind || t.kind == vectorKind) && t.name != id && !n.t.isNested(i) {
			lists = append(lists, t.name)
		}
	}
	names := without(titles, id)
	note := graph.NoteOf(n.Name(), "node ids are in column %q, features in the %d others", id, len(names))
	switch {
	case len(lists) > 1:
		return nil, graph.BadData(n.Name(), "has the columns %s, which all hold lists: one list of features is read, leave the others out", strings.Join(lists, ", "))
	case len(names) == 0:
		return nil, graph.BadData(n.Name(), "has no column beside the ids: features are numbers, or lists of numbers")
	case len(lists) == 1 && len(names) > 1:
		note = graph.WarningOf(n.Name(), "node ids are in column %q, features in column %q; %s not read", id, lists[0], graph.Count(without(names, lists...), "column"))
		names = lists
	case len(names) == 1:
		note = graph.NoteOf(n.Name(), "node ids are in column %q, features in column %q", id, names[0])
	}
	if !n.headed() {
		note = graph.Note{}
	}
	return n.features(ctx, id, names, zero, note)
}

// Matrix takes all columns as features, of which row i belongs to node i. Words for missing values are NaN if holes is true.
func (n *Numbered) Matrix(ctx context.Context, holes bool) (*Features, error) {
	if len(n.t.titles) == 0 {
		return nil, n.noRows()
	}
	var names []string
	for _, t := range n.t.titles {
		names = append(names, t.name)
	}
	f, err := n.features(ctx, "", names, false, graph.Note{})
	if err == nil && holes {
		f.nulls = unknown
	}
	return f, err
}

// features takes columns as features, behind that of the ids unless row i belongs to node i.
func (n *Numbered) features(ctx context.Context, id string, names []string, zero bool, note graph.Note) (*Features, error) {
	widths, err := n.t.featureWidths(ctx, "features", names, kind.holdsNumbers)
	if err != nil {
		return nil, err
	}
	f := &featureRows{t: n.t, names: names, widths: widths, nodes: n.nodes, byRow: id == "", all: id == ""}
	for _, width := range widths {
		f.width += max(width, 1)
	}
	if id != "" {
		f.names, f.widths = append([]string{id}, names...), append([]int{0}, widths...)
	}
	if zero {
		f.nulls = zeros
	}
	memory, err := n.t.memory(f.names)
	if err != nil {
		return nil, err
	}
	return &Features{f, f.width, memory, note}, graph.CheckSize(n.Name(), max(n.Rows(), 0), int64(f.width))
}

// Column is a label or split for each node.
type Column struct {
	*valueColumn
	// Note says which columns were chosen, where their names decided.
	Note graph.Note
}

// HasIDs reports whether there is a column of ids. Otherwise row i belongs to node i.
func (c *Column) HasIDs() bool { return !c.byRow }

// Column finds the column named want, or the first of known that there is, or the only one beside
// the ids.
func (n *Numbered) Column(what, want string, known []string) (*Column, error) {
	titles := n.t.top()
	if len(titles) == 0 {
		return nil, n.noRows()
	}
	id, value := n.t.known(column.IDNames...), n.t.known(known...)
	if !n.headed() {
		if id, value = "", ""; len(titles) > 1 {
			id = titles[0]
		}
	} else if id == "" && value == "" && len(titles) == 2 && n.text != nil {
		id = titles[0]
	}
	if want != "" {
		if value = n.t.known(want); value == "" {
			return nil, graph.BadData(n.Name(), "has no column %q: the columns are %s%s", want, list(n.t.titles), meant.Hint(want, titles))
		}
	}
	left := without(titles, id, value)
	switch {
	case id != "" && id == value:
		return nil, graph.BadData(n.Name(), "column %q is taken for the node ids: name the column of the ids id", id)
	case value == "" && len(left) == 1:
		value, left = left[0], nil
	case value == "":
		return nil, graph.BadData(n.Name(), "which column is meant? Say so behind a #, for example labels=%s#%s; the columns are %s", graph.EscapePath(filepath.Base(n.Name())), titles[len(titles)-1], list(n.t.titles))
	case id == "" && len(left) == 1:
		id, left = left[0], nil
	case id == "" && len(left) > 1:
		return nil, graph.BadData(n.Name(), "which column holds the node ids? Name it id; the columns are %s", list(n.t.titles))
	}
	c := &Column{valueColumn: &valueColumn{t: n.t, names: []string{value}, nodes: n.nodes, byRow: id == ""}}
	if id != "" {
		if err := n.needID(id); err != nil {
			return nil, err
		}
		c.names = []string{id, value}
		text := fmt.Sprintf("node ids are in column %q, %s in column %q", id, what, value)
		if len(left) > 0 {
			text += "; " + graph.Count(left, "column") + " not read"
			if what == "labels" {
				text += fmt.Sprintf(" (to take another one, write labels=%s#COLUMN)", filepath.Base(n.Name()))
			}
		}
		if n.headed() {
			c.Note = graph.NoteOf(n.Name(), "%s", text)
		}
	}
	return c, n.t.need(what, value, kind.holdsValues, what+" are whole numbers or text")
}

// Single takes the one column that there is as labels, or as a mask: row i belongs to node i.
func (n *Numbered) Single() (*Column, error) {
	if len(n.t.titles) == 0 {
		return nil, n.noRows()
	}
	name := n.t.titles[0].name
	if len(n.t.titles) != 1 || !n.t.titles[0].kind.holdsValues() {
		return nil, graph.BadData(n.Name(), "has the columns %s: one column of numbers or text is read, with a value for each node", list(n.t.titles))
	}
	c := &valueColumn{t: n.t, names: []string{name}, nodes: n.nodes, byRow: true, all: true}
	return &Column{valueColumn: c}, n.t.need("data", name, kind.holdsValues, "labels are whole numbers or text")
}

// idRows are the numbers of nodes in a column.
type idRows struct{ nodeRows }

// IDs reads the column of ids, by its name or as the only one there is.
func (n *Numbered) IDs(ctx context.Context) (column.IDs, error) {
	name, titles := n.t.known(column.IDNames...), n.t.top()
	switch {
	case len(titles) == 0:
		return nil, n.noRows()
	case name == "" && len(titles) != 1:
		return nil, graph.BadData(n.Name(), "has no column named id: %s", n.t.columnNames())
	case name == "":
		name = titles[0]
	}
	if err := n.needID(name); err != nil {
		return nil, err
	}
	return &idRows{newNodeRows(n.t.all(ctx, []string{name}, nil), &n.nodes, false)}, nil
}

// Next implements column.IDs.
func (r *idRows) Next() (int64, error) {
	id, err := r.next()
	return int64(id), err
}
