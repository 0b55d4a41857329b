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
	weights, err := layout.ParseWeights(t.Params)
	if err != nil {
		return nil, err
	}
	g := &layout.Graph{Known: graph.Info{Name: t.Base, Identity: "graphsaint:" + t.Base + layout.Query(layout.Pick{}, weights)}}
	if err := open(ctx, g, t.Path, weights, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.Finish()
	return g, nil
}

func open(ctx context.Context, g *layout.Graph, dir string, weights layout.Weights, o graph.Options) error {
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
	if err := g.SetAdjacency(ctx, m, weights); err != nil {
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
	return &classReader{j, c.limit, false}, nil
}

type classReader struct {
	*source.JSON
	limit graph.IDLimit
	done  bool
}

// NextValue implements [column.Reader].
func (r *classReader) NextValue() (uint32, string, error) {
	if r.done {
		return 0, "", io.EOF
	}
	if !r.More() {
		r.done = true
		if err := r.Expect('}', "the end of the object"); err != nil {
			return 0, "", err
		}
		if err := r.JSON.Finish(); err != nil {
			return 0, "", err
		}
		return 0, "", io.EOF
	}
	key, err := r.Key()
	if err != nil {
		return 0, "", err
	}
	id, problem := r.limit.Parse([]byte(key))
	if problem != "" {
		return 0, "", r.Bad("%s", problem)
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

// openRoles looks which roles the file has. It is read again for each of them.
func openRoles(ctx context.Context, g *layout.Graph, src *source.Source) (err error) {
	j, err := source.OpenJSON(ctx, src)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := j.Expect('{', "an object with the lists tr, va and te"); err != nil {
		return err
	}
	lists := &column.Lists{Limit: g.Limit()}
	seen := map[string]bool{}
	for j.More() {
		key, err := j.Key()
		if err != nil {
			return err
		}
		split, known := roles[key]
		if !known || seen[key] {
			return j.Bad("role %s is unknown, or there twice: role.json has the lists tr, va and te", graph.Shorten([]byte(key)))
		}
		seen[key] = true
		lists.Parts = append(lists.Parts, column.List{
			Split: split,
			Open:  func(ctx context.Context) (column.IDs, error) { return openRole(ctx, src, key) },
		})
		if err := j.Skip(); err != nil {
			return err
		}
	}
	if err := j.Expect('}', "the end of the object"); err != nil {
		return err
	}
	if len(lists.Parts) > 0 {
		g.Membership = lists
	}
	return j.Finish()
}

// openRole goes to the list of a role.
func openRole(ctx context.Context, src *source.Source, role string) (column.IDs, error) {
	j, err := source.OpenJSON(ctx, src)
	if err != nil {
		return nil, err
	}
	if err := seek(j, role); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &roleReader{j}, nil
}

func seek(j *source.JSON, role string) error {
	if err := j.Expect('{', "an object with the lists tr, va and te"); err != nil {
		return err
	}
	for {
		key, err := j.Key()
		if err != nil {
			return err
		}
		if key == role {
			return j.Expect('[', "a list of nodes")
		}
		if err := j.Skip(); err != nil {
			return err
		}
	}
}

type roleReader struct{ *source.JSON }

// Next implements [column.IDs].
func (r *roleReader) Next() (int64, error) {
	if !r.More() {
		if err := r.Expect(']', "the end of the list"); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	t, err := r.Token()
	if err != nil {
		return 0, err
	}
	if n, isNumber := t.(json.Number); isNumber {
		if id, err := n.Int64(); err == nil {
			return id, nil
		}
	}
	return 0, r.Bad("found %v where a node id is needed", t)
}
