package table

import (
	"slices"
	"strings"

	"ndls/dataset/graph"
)

// What columns are read as.
const (
	useSource      = "source"
	useDestination = "destination"
	useWeight      = "weight"
	useID          = "id"
	useFeature     = "feature"
	useCategory    = "category"
	useLabel       = "label"
	useSplit       = "split"
)

// Tables describes the tables and what each of their columns is read as.
func (g *Graph) Tables() []graph.Table {
	edges := g.edges.describe("edges")
	use(edges, g.ends[0], useSource, 0)
	use(edges, g.ends[1], useDestination, 0)
	if g.spec.Weight != "" {
		use(edges, g.spec.Weight, useWeight, 0)
	}
	all := []graph.Table{edges}
	var nodes graph.Table
	if g.nodes != nil {
		nodes = g.nodes.describe("nodes")
		use(nodes, g.id, useID, 0)
		for i, name := range g.spec.features {
			use(nodes, name, useFeature, g.widths[i])
		}
		for _, name := range g.spec.categories {
			use(nodes, name, useCategory, 0)
		}
		all = append(all, nodes)
	}
	for i, v := range []values{g.labels, g.splits} {
		what := []string{useLabel, useSplit}[i]
		switch v.t {
		case nil:
		case g.nodes:
			v.use(nodes, what)
		default:
			own := v.t.describe(what + "s")
			use(own, v.id, useID, 0)
			v.use(own, what)
			all = append(all, own)
		}
	}
	return all
}

// use says what the columns are read as.
func (v values) use(t graph.Table, what string) {
	for i, name := range v.names {
		width := 0
		if v.widths != nil {
			width = v.widths[i]
		}
		use(t, name, what, width)
	}
}

// describe describes a table of which no column is read yet.
func (t *table) describe(what string) graph.Table {
	d := graph.Table{What: what, Place: t.place.String(), Files: len(t.files), Rows: t.numRows()}
	for _, f := range t.files {
		d.Bytes += f.src.End - f.src.Off
	}
	for i, c := range t.titles {
		d.Columns = append(d.Columns, graph.Column{Name: c.name, Type: t.shown(i)})
	}
	return d
}

// shown is the type of a column as it is shown.
func (t *table) shown(i int) string {
	c := t.titles[i]
	if f, ok := t.leading.rows.(*columnarFile); ok {
		switch c.kind {
		case otherKind, boolKind, decimalKind, timeKind, vectorKind:
			return f.Columns()[i].Type.Name
		}
	}
	return c.kind.String()
}

// use says what a column is read as. Of several columns whose names differ in the case of
// letters alone it takes the one that is read.
func use(t graph.Table, name, what string, width int) {
	i := slices.IndexFunc(t.Columns, func(c graph.Column) bool { return c.Name == name })
	if i < 0 {
		i = slices.IndexFunc(t.Columns, func(c graph.Column) bool { return strings.EqualFold(c.Name, name) })
	}
	c := &t.Columns[i]
	if c.Use != "" {
		what = c.Use + ", " + what
	}
	c.Use, c.Width = what, width
}
