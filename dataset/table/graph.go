package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/inputid"
)

// endNames are the names of the columns with the two ends of an edge, which are taken where
// the URI names none.
var endNames = [][2]string{
	{"src", "dst"},
	{"source", "target"},
	{"from", "to"},
	{"id_1", "id_2"},
	{"node_1", "node_2"},
	{"u", "v"},
	{"~from", "~to"},         // Neptune
	{":START_ID", ":END_ID"}, // Neo4j
	{"source_id", "target_id"},
}

// idNames lists the names of a column of node ids.
var idNames = append(slices.Clone(column.IDNames), "~id", ":ID")

// LabelNames and SplitNames list the names of the values in tables of labels and splits.
var (
	LabelNames = []string{"label", "class", "target", "y", "page_type", "community", "faction"}
	SplitNames = []string{"split", "set", "part"}
)

// Names are the names of columns that are found where a URI names none.
func Names() (all []string) {
	for _, pair := range endNames {
		all = append(all, pair[:]...)
	}
	return slices.Concat(all, idNames, LabelNames, SplitNames)
}

// Graph is a graph in tables.
type Graph struct {
	source.Files
	spec   spec
	info   graph.Info
	edges  *table
	nodes  *table // nil where the nodes are the ids that occur
	ends   [2]string
	id     string // of nodes
	widths []int  // of the columns of features
	nulls  nulls  // in features
	// described says that a description names the tables ([OpenAs]).
	described bool
	labels    values
	splits    values
	classes   *column.Labels

	doubts  *doubts      // nil until EachKey has read ids that are text
	keyType inputid.Type // Number until it is known
	find    func(key []byte) (uint32, bool)
	fetch   func(keys [][]byte) // called before find, nil if not needed
}

var _ graph.Keyed = (*Graph)(nil)

// values are columns with values of each node, and the column of the ids beside them: one column, or several of answers.
type values struct {
	t      *table
	id     string
	names  []string
	widths []int // of lists of answers
}

// Open opens what a table: URI names behind the colon.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	s, err := parse(rest)
	if err != nil {
		return nil, err
	}
	g := &Graph{spec: s}
	if err := g.open(ctx, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// OpenAs opens tables that a description names, as a dataset of another name and identity. Masks count for nodes that have a label.
func OpenAs(ctx context.Context, rest, name, identity, description string, o graph.Options) (graph.Dataset, error) {
	ds, err := Open(ctx, rest, o)
	if err != nil {
		return nil, err
	}
	g := ds.(*Graph)
	g.info.Name, g.info.Identity, g.described = name, identity, true
	if _, _, err := g.Files.Open(description); err != nil { // it is an input, too
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// open opens all tables and finds their columns.
func (g *Graph) open(ctx context.Context, o graph.Options) (err error) {
	identity := g.spec.identity(o.NoFeatures)
	if err := g.readDescription(ctx); err != nil {
		return err
	}
	s := &g.spec
	if o.NoFeatures {
		s.features, s.categories, s.plain = nil, nil, nil
	}
	if s.Nulls != "" {
		g.nulls = zeros
	}
	if o.Answers != graph.Classes && s.label != "" {
		if s.answers, err = columnList("label", s.label); err != nil {
			return err
		}
	}
	g.info = graph.Info{
		Name: name(g.spec.edges.paths[0]), Identity: identity, NumNodes: -1, Weighted: s.Weight != "",
		AddRepeated: s.Repeated != "", Directed: s.Directed,
	}
	if g.edges, err = openTable(ctx, &g.Files, s.edges, &s.Form, "edges"); err != nil {
		return err
	}
	if g.edges.numRows() == 0 && !s.nodes.given() {
		return noRows(g.edges)
	}
	if err := g.findEnds(); err != nil {
		return err
	}
	if s.nodes.given() {
		if err := g.openNodes(ctx); err != nil {
			return err
		}
	}
	if g.labels, err = g.openValues(ctx, "label", s.labels, s.label, LabelNames); err != nil {
		return err
	}
	if g.labels.t != nil && o.Answers != graph.Classes {
		if err := g.openAnswers(ctx, o.Answers); err != nil {
			return err
		}
	}
	if g.splits, err = g.openValues(ctx, "split", s.splits, s.split, SplitNames); err != nil {
		return err
	}
	if g.labels.t != nil && g.info.Answers == graph.Classes {
		if g.classes, err = column.OpenLabels(ctx, g.column(g.labels)); err != nil {
			return err
		}
		g.info.Classes, g.info.HasLabels = g.classes.Classes, true
		g.Note(g.classes.Notes()...)
	}
	g.info.HasSplits, g.info.CutsFeatures = g.splits.t != nil, g.nodes != nil && g.nodes.units() > 1
	g.info.EdgeHint, g.info.SizeHint = max(g.edges.numRows(), 0), g.Bytes()
	g.describe()
	g.info.EdgeMemory, err = g.edges.edgeMemory(g.edgeNames())
	return err
}

// noRows is the error for a table without rows.
func noRows(t *table) error {
	if len(t.titles) == 0 {
		return graph.BadData(t.place.String(), "is empty: no file of the table holds a row; is this the table that is meant?")
	}
	return graph.BadData(t.place.String(), "has no rows, but for the names of columns (%s): is this the table that is meant?", list(t.titles))
}

// name is the name of a graph in reports, after the place of its edges.
func name(path string) string {
	before, _, _ := strings.Cut(path, "*")
	return graph.Stem(strings.TrimRight(before, "/_-"))
}

// findEnds chooses the columns with the ends of an edge: those that are named, or those with well-known names, or the
// only two there are, or else the only two among candidates.
func (t *table) findEnds(ends [2]string, fits func(kind) bool, what string, candidates func() ([]int, error)) ([2]string, error) {
	for _, pair := range endNames {
		if ends[0] == "" && find(t.titles, pair[0]) >= 0 && find(t.titles, pair[1]) >= 0 {
			ends = pair
		}
	}
	switch titles := t.top(); {
	case len(t.titles) < 2:
		return ends, graph.BadData(t.leading.name, "has one column, %s: an edge is two node ids; in text, a comma, a tab or blanks separate them", list(t.titles))
	case ends[0] == "" && len(titles) == 2:
		ends = [2]string(titles)
	}
	if ends[0] == "" {
		found, err := candidates()
		if err != nil {
			return ends, err
		}
		if len(found) != 2 {
			return ends, graph.BadData(t.leading.name, "which columns are the ends of an edge? Say so in the URI: src=COLUMN&dst=COLUMN; %s", t.columnNames())
		}
		ends = [2]string{t.titles[found[0]].name, t.titles[found[1]].name}
	}
	for i, key := range []string{"src", "dst"} {
		if err := t.need(key, ends[i], fits, what+"; "+t.columnNames()); err != nil {
			return ends, err
		}
	}
	if found := [2]string{t.known(ends[0]), t.known(ends[1])}; found[0] != found[1] {
		return found, nil
	}
	return ends, graph.BadData(t.leading.name, "src=%s and dst=%s are the same column", ends[0], ends[1])
}

// findEnds chooses the columns of the edges.
func (g *Graph) findEnds() (err error) {
	none := func() ([]int, error) { return nil, nil }
	if g.ends, err = g.edges.findEnds(g.spec.Ends, kind.holdsIDs, "ids are whole numbers or text", none); err != nil {
		return err
	}
	if g.spec.Weight != "" {
		return g.edges.need("weight", g.spec.Weight, kind.holdsNumber, aWeight)
	}
	return nil
}

// edgeNames are the columns of edges that are read: the ends, then the weight.
func (g *Graph) edgeNames() []string {
	if g.spec.Weight == "" {
		return g.ends[:]
	}
	return append(g.ends[:2:2], g.spec.Weight)
}

// findID chooses the column with the ids of nodes: the one that the URI names, if it is there,
// or one with a well-known name, or the only one beside those that hold something else.
func (g *Graph) findID(t *table, others ...string) (string, error) {
	named := []string{g.spec.id}
	switch {
	case g.spec.id == "":
		named = idNames
	case t != g.nodes: // tables of labels and splits may have another name for it
		named = append(named, idNames...)
	}
	for _, name := range named {
		if find(t.titles, name) >= 0 && !slices.Contains(others, name) {
			return name, g.checkID(t, name)
		}
	}
	var left []string
	for _, title := range t.titles {
		if !slices.ContainsFunc(others, func(o string) bool { return strings.EqualFold(o, title.name) }) {
			left = append(left, title.name)
		}
	}
	if (g.spec.id == "" || t != g.nodes) && len(left) == 1 {
		return left[0], g.checkID(t, left[0])
	}
	if g.spec.id != "" {
		return "", graph.BadData(t.files[0].name, "has no column %q for id=: the columns are %s", g.spec.id, list(t.titles))
	}
	return "", graph.BadData(t.files[0].name, "which column holds the ids of the nodes? Say so in the URI: id=COLUMN; the columns are %s", list(t.titles))
}

func (g *Graph) checkID(t *table, name string) error {
	return t.need("id", name, kind.holdsIDs, "ids are whole numbers or text; the columns are "+list(t.titles))
}

// openNodes opens the table of nodes.
func (g *Graph) openNodes(ctx context.Context) (err error) {
	s := g.spec
	if g.nodes, err = openTable(ctx, &g.Files, s.nodes, &g.spec.Form, "nodes"); err != nil {
		return err
	}
	if g.nodes.numRows() == 0 {
		return noRows(g.nodes)
	}
	others := slices.Concat(s.features, s.categories)
	if !s.labels.given() {
		others = append(others, s.labelNames()...)
	}
	if !s.splits.given() {
		others = append(others, s.namesOf("split", s.split)...)
	}
	if g.id, err = g.findID(g.nodes, others...); err != nil {
		return err
	}
	if g.widths, err = g.nodes.featureWidths(ctx, "features", s.features, kind.holdsNamed); err != nil {
		return err
	}
	if err := g.nodes.needAll("categories", s.categories, kind.holdsValues, "the values of a category are text or whole numbers"); err != nil {
		return err
	}
	for _, name := range slices.Concat(s.features, s.categories) {
		if strings.EqualFold(name, g.id) {
			return graph.BadURI("features= or categories= names the column %s, which holds the ids", name)
		}
	}
	g.info.Columns, g.info.Categories = s.features, s.categories
	for i, name := range s.features {
		for at := range max(g.widths[i], 1) {
			if slices.Contains(s.plain, name) {
				g.info.Plain = append(g.info.Plain, g.info.NumFeatures+at)
			}
		}
		if g.nodes.kindOf(name) == timeKind {
			typ, _ := g.nodes.typeOf(name)
			g.Note(graph.WarningOf(g.nodes.place.String(), "column %q is of type %s: its features are numbers of %s, rounded to float32", name, typ.Name, typ.Unit))
		}
		g.info.NumFeatures += max(g.widths[i], 1)
	}
	if len(others) == 0 {
		return nil
	}
	if g.info.RowMemory, err = g.nodes.memory(g.featureNames()); err != nil || len(s.features) == 0 {
		return err
	}
	return graph.CheckSize(g.nodes.files[0].name, 1, int64(g.info.NumFeatures))
}

// featureNames are the columns that are read of features: the ids, numbers, then categories.
func (g *Graph) featureNames() []string {
	return slices.Concat([]string{g.id}, g.spec.features, g.spec.categories)
}

// featureWidths are the lengths of the lists in columns that a key of the URI names, 0 for columns of numbers.
func (t *table) featureWidths(ctx context.Context, key string, names []string, fits func(kind) bool) ([]int, error) {
	if err := t.needAll(key, names, fits, "it takes numbers, or lists of numbers"); err != nil {
		return nil, err
	}
	widths, at := make([]int, len(names)), lookup(t.titles)
	for i, name := range names {
		place, _ := at(name)
		if k := t.titles[place].kind; k != listKind && k != vectorKind {
			continue
		}
		var err error
		if widths[i], err = t.listWidth(ctx, name); err != nil {
			return nil, err
		}
	}
	return widths, nil
}

// listWidth is the length of the lists in a column.
func (t *table) listWidth(ctx context.Context, name string) (int, error) {
	width, of := 0, ""
	for _, f := range t.files {
		if f.rows.rows() == 0 {
			continue
		}
		w, err := f.rows.width(ctx, f, find(f.rows.titles(), name))
		switch {
		case err != nil:
			return 0, err
		case w == 0 && f.rows.rows() < 0:
			return 0, graph.BadData(f.name, "column %q has empty lists: every node needs the same number of features", name)
		case w == 0: // the rows tell
		case width == 0:
			width, of = w, f.name
		case w != width:
			return 0, graph.BadData(f.name, "column %q has lists of %d numbers, and of %d in %s: every node needs the same number of features", name, w, width, of)
		}
	}
	if width == 0 {
		return 0, graph.BadData(t.place.String(), "has no row with a list of numbers: column %q tells no number of features", name)
	}
	return width, nil
}

// openValues finds labels or splits: in a table of their own, or in a column of the nodes.
func (g *Graph) openValues(ctx context.Context, key string, own place, name string, known []string) (v values, err error) {
	switch {
	case own.given():
		if v.t, err = openTable(ctx, &g.Files, own, &g.spec.Form, key+"s"); err != nil {
			return v, err
		}
		v.names = g.spec.namesOf(key, name)
		if found := v.t.known(known...); name == "" && found != "" {
			v.names = []string{found}
		}
		if v.names == nil {
			return v, graph.BadData(v.t.files[0].name, "which column holds the %ss? Say so in the URI: %s=COLUMN; the columns are %s", key, key, list(v.t.titles))
		}
		if v.id, err = g.findID(v.t, v.names...); err != nil {
			return v, err
		}
	case name != "":
		v = values{t: g.nodes, id: g.id, names: g.spec.namesOf(key, name)}
	default:
		return v, nil
	}
	if key == "label" && g.spec.answers != nil {
		return v, nil // openAnswers looks at them
	}
	err = v.t.needAll(key, v.names, kind.holdsValues, key+"s are whole numbers or text")
	if err != nil && key == "label" && strings.Contains(name, ",") {
		err = graph.BadURI("label=%s: there is no column of this name; several columns are read with --task labels or --task regression", name)
	}
	return v, err
}

// openAnswers finds the columns of answers.
func (g *Graph) openAnswers(ctx context.Context, answers graph.Answers) (err error) {
	v := &g.labels
	if v.widths, err = v.t.featureWidths(ctx, "label", v.names, kind.holdsNumbers); err != nil {
		return err
	}
	for at, name := range v.names {
		width := v.widths[at]
		for i := range max(width, 1) {
			column := name
			if width > 0 {
				column = fmt.Sprintf("%s[%d]", name, i)
			}
			g.info.Classes = append(g.info.Classes, column)
		}
	}
	g.info.HasLabels, g.info.Answers = true, answers
	return graph.CheckSize(v.t.files[0].name, 1, int64(len(g.info.Classes)))
}

// inColumns says which columns are read as what; it is "" for none.
func inColumns(what string, columns []string) string {
	switch n := len(columns); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(", %s in column %q", what, columns[0])
	default:
		return fmt.Sprintf(", %s in %d columns", what, n)
	}
}

// describe says which columns are read as what.
func (g *Graph) describe() {
	text := fmt.Sprintf("edges are in columns %q and %q", g.ends[0], g.ends[1])
	if g.spec.Weight != "" {
		text += fmt.Sprintf(", their weights in column %q", g.spec.Weight)
	}
	texts, tables := []string{text}, []*table{g.edges}
	if g.nodes != nil {
		text := fmt.Sprintf("node ids are in column %q", g.id)
		text += inColumns("features", g.spec.features) + inColumns("categories", g.spec.categories)
		texts, tables = append(texts, text), append(tables, g.nodes)
	}
	for i, v := range []values{g.labels, g.splits} {
		what := []string{"labels", "splits"}[i]
		switch v.t {
		case nil:
		case g.nodes:
			texts[1] += fmt.Sprintf(", %s in %s", what, v.shown())
		default:
			texts = append(texts, fmt.Sprintf("node ids are in column %q, %s in %s", v.id, what, v.shown()))
			tables = append(tables, v.t)
		}
	}
	for i, described := range g.Tables() {
		var others []string
		for _, c := range described.Columns {
			if c.Use == "" {
				others = append(others, c.Name)
			}
		}
		n := graph.NoteOf(described.Place, "%s%s", filesOf(tables[i]), texts[i])
		if len(others) > 0 {
			n.Text += "; " + graph.Count(others, "column") + " not read"
			n.Ignored = i == 0 && g.spec.Weight == "" && slices.ContainsFunc(others, func(o string) bool { return strings.Contains(strings.ToLower(o), "weight") })
		}
		g.Note(n)
	}
}

// shown names the columns for a note.
func (v values) shown() string {
	if len(v.names) == 1 {
		return fmt.Sprintf("column %q", v.names[0])
	}
	return graph.Count(v.names, "column")
}

// filesOf says how many files a table has, if they are several.
func filesOf(t *table) string {
	if len(t.files) == 1 {
		return ""
	}
	return fmt.Sprintf("%d files, %s to %s: ", len(t.files), filepath.Base(t.files[0].name), filepath.Base(t.files[len(t.files)-1].name))
}

// AllowMissing makes missing features NaN, unless the URI makes them zeros.
func (g *Graph) AllowMissing() { g.nulls.allow() }

// Info implements graph.Dataset.
func (g *Graph) Info() graph.Info { return g.info }

// idColumn is a column of ids.
type idColumn struct {
	t    *table
	name string
}

// idColumns are all columns of ids.
func (g *Graph) idColumns() []idColumn {
	all := []idColumn{{g.edges, g.ends[0]}, {g.edges, g.ends[1]}}
	if g.nodes != nil {
		all = append(all, idColumn{g.nodes, g.id})
	}
	for _, v := range []values{g.labels, g.splits} {
		if v.t != nil && v.t != g.nodes {
			all = append(all, idColumn{v.t, v.id})
		}
	}
	return all
}

// KeyType implements graph.Keyed.
func (g *Graph) KeyType(ctx context.Context) (inputid.Type, error) {
	if g.keyType != inputid.Number {
		return g.keyType, nil
	}
	var stated, open idColumn
	isNumber := false // the ids of some JSON file are numbers
	for _, c := range g.idColumns() {
		k := c.t.kindOf(c.name)
		t, ok := k.keyType()
		if !ok {
			isNumber = isNumber || k.isNumberText()
			if k.isNumberText() || open.t == nil {
				open = c
			}
			continue
		}
		if stated.t != nil && t != g.keyType {
			typ := g.keyType
			g.keyType = inputid.Number
			return typ, graph.BadData(c.t.files[0].name, "column %q holds ids of type %s, and column %q of %s ids of type %s: give all ids one type",
				c.name, t, stated.name, stated.t.files[0].name, typ)
		}
		if stated.t == nil {
			stated, g.keyType = c, t
		}
	}
	if isNumber && g.keyType == inputid.String {
		g.keyType = inputid.Number
		return inputid.String, graph.BadData(open.t.files[0].name, "the ids in %q are numbers, and text in column %q of %s: give all ids one type",
			open.name, stated.name, stated.t.files[0].name)
	}
	if stated.t != nil {
		return g.keyType, nil
	}
	var n inputid.Narrowest
	for _, c := range g.idColumns() {
		if err := c.t.eachBatch(ctx, []string{c.name}, func(b *batch) error {
			for i, text := range b.cols[0].text[:b.n] {
				if b.cols[0].isNull(i) || len(text) == 0 {
					continue
				}
				n.Show(string(text))
				if b.cols[0].kind.isNumberText() && n.Type() == inputid.String {
					return graph.BadData(b.where(i), "id %s is no whole number of 64 bits, as the others are: write ids as whole numbers or as text", graph.Shorten(text))
				}
			}
			return nil
		}); err != nil {
			return inputid.Number, err
		}
	}
	g.keyType = n.Type()
	return g.keyType, nil
}

// eachBatch visits some columns of all rows.
func (t *table) eachBatch(ctx context.Context, names []string, visit func(b *batch) error) (err error) {
	r := t.all(ctx, names, nil)
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		b, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(b)
		}
		if err != nil {
			return err
		}
	}
}

// OwnNodes implements graph.Keyed.
func (g *Graph) OwnNodes() bool { return g.nodes != nil }

// EachKey implements graph.Keyed.
func (g *Graph) EachKey(ctx context.Context, threads int, worker func(thread int) func(key []byte) error) error {
	t, err := g.KeyType(ctx)
	if err != nil {
		return err
	}
	columns := []idColumn{{g.nodes, g.id}}
	if g.nodes == nil {
		columns = g.idColumns()
	}
	visits := make([]func(key []byte) error, threads)
	for thread := range visits {
		visits[thread] = worker(thread)
	}
	if t == inputid.String {
		g.doubts = newDoubts(columns, g.spec.Form.Missing)
		for thread, visit := range visits {
			visits[thread] = func(key []byte) error {
				g.doubts.see(key)
				return visit(key)
			}
		}
	}
	for _, c := range columns {
		if err := c.eachKey(ctx, t, visits); err != nil {
			return err
		}
	}
	return nil
}

// Doubts implements graph.Keyed.
func (g *Graph) Doubts() []string {
	if g.doubts == nil {
		return nil
	}
	return g.doubts.list()
}

// eachKey visits the keys of a column, on a goroutine for each of visits.
func (c idColumn) eachKey(ctx context.Context, t inputid.Type, visits []func(key []byte) error) error {
	units := int64(c.t.units())
	var next atomic.Int64
	workers, workerCtx := errgroup.WithContext(ctx)
	for _, visit := range visits {
		workers.Go(func() (err error) {
			for u := next.Add(1) - 1; u < units; u = next.Add(1) - 1 {
				if err := c.unitKeys(workerCtx, t, int(u), visit); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := workers.Wait()
	if err == nil || !errors.Is(err, graph.ErrData) || len(visits) == 1 {
		return err
	}
	// Of several bad rows the first one is named, whatever the threads.
	for u := range units {
		if first := c.unitKeys(ctx, t, int(u), func([]byte) error { return nil }); first != nil {
			return first
		}
	}
	return err
}

func (c idColumn) unitKeys(ctx context.Context, t inputid.Type, unit int, visit func(key []byte) error) (err error) {
	r := c.t.rows(ctx, unit, unit+1, []string{c.name}, nil)
	defer func() { err = errors.Join(err, r.close()) }()
	var key []byte
	for {
		b, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range b.n {
			var problem string
			if key, problem = b.cols[0].appendKey(key[:0], t, i); problem != "" {
				return badID(b, i, c.name, problem)
			}
			if err := visit(key); err != nil {
				return err
			}
		}
	}
}

func badID(b *batch, row int, name, problem string) error {
	return graph.BadData(b.where(row), "the id in column %q %s", name, problem)
}

// Twice implements graph.Keyed.
func (g *Graph) Twice(ctx context.Context, key []byte) error {
	first := ""
	var own []byte
	err := g.nodes.eachBatch(ctx, []string{g.id}, func(b *batch) error {
		for i := range b.n {
			if own, _ = b.cols[0].appendKey(own[:0], g.keyType, i); !bytes.Equal(own, key) {
				continue
			}
			if first != "" {
				return graph.BadData(b.where(i), "node %s has a second row, the first is in %s: keep one of the two", g.keyType.Quote(key), first)
			}
			first = b.where(i)
		}
		return nil
	})
	if err == nil {
		err = graph.BadData(g.nodes.place.String(), "node %s has two rows: keep one of the two", g.keyType.Quote(key))
	}
	return err
}

// Number implements graph.Keyed.
func (g *Graph) Number(n int64, find func(key []byte) (uint32, bool)) {
	g.info.NumNodes, g.find, g.fetch = n, find, nil
}

// FetchBy implements graph.Keyed.
func (g *Graph) FetchBy(fetch func(keys [][]byte)) { g.fetch = fetch }

// errUnnumbered is a mistake of the caller.
var errUnnumbered = errors.New("the ids of the graph have no numbers yet")

// numbers gives to the numbers of the nodes in the rows of a batch. It returns how many it has given before an error.
func (g *Graph) numbers(b *batch, column int, name string, to []uint32) (n int, err error) {
	var keys [inputid.Fetched][]byte
	for n < len(to) {
		count, problem := 0, ""
		for ; count < min(len(keys), len(to)-n); count++ {
			if keys[count], problem = b.cols[column].appendKey(keys[count][:0], g.keyType, n+count); problem != "" {
				break
			}
		}
		if g.fetch != nil {
			g.fetch(keys[:count])
		}
		for _, key := range keys[:count] {
			id, ok := g.find(key)
			if !ok {
				return n, g.noNode(b.where(n), name, key)
			}
			to[n] = id
			n++
		}
		if problem != "" {
			return n, badID(b, n, name, problem)
		}
	}
	return n, nil
}

// noNode is the error for an id that no node has.
func (g *Graph) noNode(where, name string, key []byte) error {
	nodes := "the graph"
	if g.nodes != nil {
		nodes = g.nodes.place.String()
	}
	return graph.BadData(where, "the id %s in column %q is none of the nodes of %s: add the node there, or remove the row", g.keyType.Quote(key), name, nodes)
}

// ready reports whether streams can be read.
func (g *Graph) ready(ctx context.Context) error {
	if g.find == nil {
		return errUnnumbered
	}
	_, err := g.KeyType(ctx)
	return err
}
