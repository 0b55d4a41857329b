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

// IDList is a list of ids in a file or files: a column of ids, or text with one id a line.
type IDList struct {
	source.Files
	t    inputid.Type
	rows *rows
	name string
	head string // of text without names of columns, its first line
	b    *batch
	at   int
	key  []byte
}

// OpenIDs opens a list of ids of a type.
func OpenIDs(ctx context.Context, path string, t inputid.Type) (_ *IDList, err error) {
	l := &IDList{t: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Files.Close())
		}
	}()
	ids, err := openTable(ctx, &l.Files, place{[]string{path}}, &source.Form{}, "")
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	l.name = ids.known(idNames...)
	if l.name == "" && len(ids.titles) == 1 && ids.titles[0].kind == fieldKind && len(ids.files) == 1 {
		l.name = ids.titles[0].name
		l.head = l.name
	}
	if l.name == "" {
		if l.name, err = g.findID(ids); err != nil {
			return nil, err
		}
	}
	if err := checkIDsOf(ids, l.name, t); err != nil {
		return nil, err
	}
	l.rows = ids.all(ctx, []string{l.name}, nil)
	return l, nil
}

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

// Next gives the key of the next id, which is valid until the next call, and where it is; or
// io.EOF.
func (l *IDList) Next() (key []byte, where string, err error) {
	if l.head != "" {
		v := vector{kind: fieldKind, text: [][]byte{[]byte(l.head)}}
		l.head = ""
		where = l.rows.t.files[0].name + " line 1"
		key, problem := v.appendKey(nil, l.t, 0)
		if problem != "" {
			return nil, where, graph.BadData(where, "the id %s", problem)
		}
		return key, where, nil
	}
	if l.at++; l.b == nil || l.at >= l.b.n {
		if l.b, err = l.rows.next(); err != nil {
			l.b = nil
			return nil, "", err
		}
		l.at = 0
	}
	var problem string
	if l.key, problem = l.b.cols[0].appendKey(l.key[:0], l.t, l.at); problem != "" {
		return nil, "", badID(l.b, l.at, l.name, problem)
	}
	return l.key, l.b.where(l.at), nil
}

// Close closes the files.
func (l *IDList) Close() error { return errors.Join(l.rows.close(), l.Files.Close()) }

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
