package graphsaint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/source"
)

// Open opens graphsaint:DIR?weight=value. The features, classes and roles may be missing.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget("graphsaint:DIR?weight=value", rest, "weight", "repeated")
	if err != nil {
		return nil, err
	}
	opt, err := layout.ParseOptions(t.Params)
	if err != nil {
		return nil, err
	}
	g := &layout.Graph{Options: opt, Known: graph.Info{Name: t.Base, Identity: "graphsaint:" + t.Base + opt.Query()}}
	return g.Opened(open(ctx, g, t.Path, o))
}

func open(ctx context.Context, g *layout.Graph, dir string, o graph.Options) error {
	adjacency := filepath.Join(dir, "adj_full.npz")
	if !source.Exists(adjacency) {
		return graph.BadData(dir, "has no adj_full.npz: give the folder with adj_full.npz, feats.npy, class_map.json and role.json")
	}
	a, err := array.OpenArchive(&g.Files, adjacency)
	if err != nil {
		return err
	}
	m, _, err := a.Matrix(ctx, []string{""}, false)
	if err != nil {
		return err
	}
	if m == nil {
		return graph.BadData(adjacency, "has no arrays data, indices, indptr and shape (it has %s): save it with scipy.sparse.save_npz", strings.Join(a.Names(), ", "))
	}
	m.Name = adjacency
	if err := g.SetAdjacency(ctx, m); err != nil {
		return err
	}
	if path := filepath.Join(dir, "feats.npy"); !o.NoFeatures && source.Exists(path) {
		if err := g.OpenDense(ctx, path); err != nil {
			return err
		}
	}
	g.Stated = fmt.Sprintf("adj_full.npz has %d rows", m.Rows)
	if path := filepath.Join(dir, "class_map.json"); source.Exists(path) {
		src, _, err := g.Files.Open(path)
		if err != nil {
			return err
		}
		if g.Classes, err = column.OpenLabels(ctx, classMap{src, g.Limit()}); err != nil {
			return err
		}
	}
	if path := filepath.Join(dir, "role.json"); source.Exists(path) {
		src, _, err := g.Files.Open(path)
		if err != nil {
			return err
		}
		return openRoles(ctx, g, src)
	}
	return nil
}

// classMap is a JSON object of node id to class.
type classMap struct {
	src   *source.Source
	limit graph.IDLimit
}

// Where implements [column.Column].
func (c classMap) Where() string { return c.src.Name }

// Open implements [column.Column].
func (c classMap) Open(ctx context.Context) (column.Reader, error) {
	j, err := source.OpenJSON(ctx, c.src)
	if err != nil {
		return nil, err
	}
	if err := j.Expect('{', "an object of node id to class"); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &classReader{j, c.limit}, nil
}

type classReader struct {
	*source.JSON
	limit graph.IDLimit
}

// NextValue implements [column.Reader].
func (r *classReader) NextValue() (uint32, string, error) {
	id, err := r.NextID(&r.limit)
	if err != nil {
		return 0, "", err
	}
	t, err := r.Token()
	if err != nil {
		return 0, "", err
	}
	switch t := t.(type) {
	case json.Number:
		return id, t.String(), nil
	case string:
		return id, t, nil
	case nil:
		return id, "", nil
	case json.Delim:
		return 0, "", r.Bad("node %d has a list of classes: nodes of several classes are not read; leave class_map.json out, or give each node one class", id)
	}
	return 0, "", r.Bad("the class of node %d is %v: a class is a number or a name", id, t)
}

// roles are the keys of role.json.
var roles = map[string]graph.Split{"tr": graph.Train, "va": graph.Valid, "te": graph.Test}

// openRoles reads all of the file, so that what is wrong with it is found.
func openRoles(ctx context.Context, g *layout.Graph, src *source.Source) (err error) {
	lists := roleLists{src, g.Limit()}
	r, err := lists.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		if _, _, err := r.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		g.Membership = lists
	}
}

// roleLists is a JSON object of role to list of nodes.
type roleLists struct {
	src   *source.Source
	limit graph.IDLimit
}

// Open implements [layout.SplitSource].
func (l roleLists) Open(ctx context.Context) (graph.SplitReader, error) {
	j, err := source.OpenJSON(ctx, l.src)
	if err != nil {
		return nil, err
	}
	if err := j.Expect('{', "an object with the lists tr, va and te"); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &roleReader{JSON: j, limit: l.limit, seen: map[string]bool{}}, nil
}

type roleReader struct {
	*source.JSON
	limit graph.IDLimit
	seen  map[string]bool // roles
	split graph.Split     // of the list that is read, NoSplit between lists
	ended bool
}

// Next implements [graph.SplitReader].
func (r *roleReader) Next() (uint32, graph.Split, error) {
	for r.split == graph.NoSplit || !r.More() {
		if err := r.turn(); err != nil {
			return 0, graph.NoSplit, err
		}
	}
	t, err := r.Token()
	if err != nil {
		return 0, graph.NoSplit, err
	}
	number, _ := t.(json.Number)
	id, err := number.Int64()
	if err != nil {
		return 0, graph.NoSplit, r.Bad("found %v where a node id is needed", t)
	}
	if problem := r.limit.Check(id, false); problem != "" {
		return 0, graph.NoSplit, r.Bad("%s", problem)
	}
	return uint32(id), r.split, nil
}

// turn reads the end of a list, the begin of the next one, or the end of the object, where it returns io.EOF.
func (r *roleReader) turn() error {
	switch {
	case r.ended:
		return io.EOF
	case r.split != graph.NoSplit:
		r.split = graph.NoSplit
		return r.Expect(']', "the end of the list")
	case !r.More():
		r.ended = true
		err := r.Expect('}', "the end of the object")
		if err == nil {
			err = r.Finish()
		}
		return err
	}
	key, err := r.Key()
	if err != nil {
		return err
	}
	split, known := roles[key]
	if !known || r.seen[key] {
		return r.Bad("role %s is unknown, or there twice: role.json has the lists tr, va and te", graph.Shorten([]byte(key)))
	}
	r.seen[key], r.split = true, split
	return r.Expect('[', "a list of nodes")
}
