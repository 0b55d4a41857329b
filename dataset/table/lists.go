package table

import (
	"context"
	"errors"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/inputid"
)

// IDList reads the numbers of the ids in a file: in a column of ids, or in text with one id a line.
type IDList struct {
	*idRows
	files source.Files
}

// OpenIDs opens a list of ids of a type; find gives the number of each.
func OpenIDs(ctx context.Context, path string, t inputid.Type, find func(key []byte) (uint32, bool)) (_ *IDList, err error) {
	l, g, form := &IDList{}, &Graph{keyType: t, find: find}, source.Form{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.files.Close())
		}
	}()
	ids, err := openTable(ctx, &l.files, place{[]string{path}}, &form, "")
	if err != nil {
		return nil, err
	}
	name := ids.known(idNames...)
	if name == "" && len(ids.titles) == 1 && ids.titles[0].kind == fieldKind && len(ids.files) == 1 {
		// The first line is an id, too.
		if err := form.Set("header", "false", nil); err != nil {
			return nil, err
		}
		if ids, err = openTable(ctx, &l.files, ids.place, &form, ""); err != nil {
			return nil, err
		}
		name = ids.titles[0].name
	}
	if name == "" {
		if name, err = g.findID(ids); err != nil {
			return nil, err
		}
	}
	l.idRows = &idRows{newNodeRows(ids.all(ctx, []string{name}, nil), &numbering{g: g}, false)}
	return l, checkIDsOf(ids, name, t)
}

// Close closes the files.
func (l *IDList) Close() error { return errors.Join(l.idRows.Close(), l.files.Close()) }

// checkIDsOf refuses a column whose ids are of another type.
func checkIDsOf(t *table, name string, want inputid.Type) error {
	if err := t.need("id", name, kind.holdsIDs, "ids are whole numbers or text; the columns are "+list(t.titles)); err != nil {
		return err
	}
	k := t.kindOf(name)
	got, stated := k.keyType()
	if stated && got != want || k.isNumberText() && want == inputid.String {
		return graph.BadData(t.files[0].name, "column %q holds %s, and the ids of the graph are %s: write the ids as they are in the graph", name, k, want)
	}
	return nil
}

// OpenRows opens a table with an id and numbers in each row, such as the soft labels of
// another model: a column of lists, or all columns of numbers but those of the label and the
// number of a node. find gives the number that a row has in place of its id.
func OpenRows(ctx context.Context, path string, t inputid.Type, number func(key []byte) (uint32, bool)) (_ graph.Dataset, err error) {
	g := &Graph{spec: spec{nodes: place{[]string{path}}}, keyType: t, find: number}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	rows, err := openTable(ctx, &g.Files, g.spec.nodes, &g.spec.Form, "")
	if err != nil {
		return nil, err
	}
	id := rows.known(idNames...)
	var lists, numbers []string
	for i, c := range rows.titles {
		if rows.isNested(i) {
			continue
		}
		switch known := strings.ToLower(c.name); {
		case strings.EqualFold(c.name, id) || slices.Contains([]string{"number", "label", "pred"}, known):
		case c.kind == listKind:
			lists = append(lists, c.name)
		case c.kind.holdsNumbers():
			numbers = append(numbers, c.name)
		}
	}
	if id == "" {
		return nil, graph.BadData(path, "has no column with ids: name it id; the columns are %s", list(rows.titles))
	}
	if g.spec.features = numbers; len(lists) == 1 {
		g.spec.features = lists
	}
	if len(g.spec.features) == 0 || len(lists) > 1 {
		return nil, graph.BadData(path, "has no column of lists, or columns of numbers, beside the ids: the columns are %s", list(rows.titles))
	}
	g.spec.id = id
	if err := checkIDsOf(rows, id, t); err != nil {
		return nil, err
	}
	if err := g.Files.Close(); err != nil { // openNodes opens them again
		return nil, err
	}
	return g, g.openNodes(ctx)
}
