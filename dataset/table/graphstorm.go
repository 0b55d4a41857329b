package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// description holds what GraphStorm's processing job reads about tables: its input configuration,
// of version gsprocessing-v0.3.1.
type description struct {
	Version string `json:"version"`
	Graph   struct {
		Nodes []describedNodes `json:"nodes"`
		Edges []describedEdges `json:"edges"`
	} `json:"graph"`
}

type describedData struct {
	Format string   `json:"format"`
	Files  []string `json:"files"`
}

type describedLabel struct {
	Column string             `json:"column"`
	Type   string             `json:"type"`
	Splits map[string]float64 `json:"split_rate"`
	Custom json.RawMessage    `json:"custom_split_filenames"`
}

type describedNodes struct {
	Data     describedData `json:"data"`
	Type     string        `json:"type"`
	Column   string        `json:"column"`
	Features []struct {
		Column         string `json:"column"`
		Name           string `json:"name"`
		Transformation struct {
			Name string `json:"name"`
		} `json:"transformation"`
	} `json:"features"`
	Labels []describedLabel `json:"labels"`
}

type describedEnd struct {
	Column string `json:"column"`
	Type   string `json:"type"`
}

type describedEdges struct {
	Data     describedData `json:"data"`
	Source   describedEnd  `json:"source"`
	Relation struct {
		Type string `json:"type"`
	} `json:"relation"`
	Dest   describedEnd      `json:"dest"`
	Labels []describedLabel  `json:"labels"`
	Other  []json.RawMessage `json:"features"`
}

// maxDescription is the largest description that is read.
const maxDescription = 4 << 20

// readDescription replaces the tables of the URI by those of a description, where the URI
// names one in place of edges: a file .json whose one object has a key graph.
func (g *Graph) readDescription(ctx context.Context) error {
	path := g.spec.edges.paths[0]
	if len(g.spec.edges.paths) > 1 || !strings.EqualFold(filepath.Ext(path), ".json") || strings.Contains(path, "://") {
		return nil
	}
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	src.Encoding = g.spec.Form.Encoding
	d, err := parseDescription(ctx, src)
	if d == nil || err != nil {
		return err
	}
	return g.describedBy(path, d)
}

// parseDescription reads a description; it is nil where the file is none.
func parseDescription(ctx context.Context, src *source.Source) (_ *description, err error) {
	r, err := src.OpenText(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(io.LimitReader(r, maxDescription+1))
	text = source.WithoutMark(text)
	if err != nil || len(text) > maxDescription || !bytes.Contains(text, []byte(`"graph"`)) {
		return nil, err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil || object["graph"] == nil {
		return nil, nil // JSON lines
	}
	d := &description{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, graph.BadData(src.Name, "is no description of tables as GraphStorm reads them: %v", err)
	}
	return d, nil
}

// describedBy takes the tables of a description over.
func (g *Graph) describedBy(path string, d *description) error {
	s := &g.spec
	if s.Ends[0] != "" || s.nodes.given() || s.id != "" || len(s.features) > 0 || s.label != "" || s.labels.given() || s.split != "" {
		return graph.BadURI("%s describes its tables and columns: leave src=, dst=, nodes=, id=, features=, label=, labels= and split= out", filepath.Base(path))
	}
	if d.Version != "" && !strings.HasPrefix(d.Version, "gsprocessing-") {
		return graph.BadData(path, "has the version %q: descriptions of gsprocessing-v0.3.1 are read", d.Version)
	}
	edges, err := g.pickEdges(path, d)
	if err != nil {
		return err
	}
	at := func(of describedData, what string) (place, error) {
		if !slices.Contains([]string{"", "csv", "parquet"}, of.Format) || len(of.Files) == 0 {
			return place{}, graph.BadData(path, "the data of %s has the format %q and %d files: csv and parquet are read", what, of.Format, len(of.Files))
		}
		var p place
		for _, f := range of.Files {
			if !filepath.IsAbs(f) && !strings.Contains(f, "://") {
				f = filepath.Join(filepath.Dir(path), f)
			}
			p.paths = append(p.paths, f)
		}
		return p, nil
	}
	if s.edges, err = at(edges.Data, "the edges "+edges.Relation.Type); err != nil {
		return err
	}
	s.Ends = [2]string{edges.Source.Column, edges.Dest.Column}
	var ignored []string
	if len(edges.Other) > 0 || len(edges.Labels) > 0 {
		ignored = append(ignored, "features and labels of edges")
	}
	i := slices.IndexFunc(d.Graph.Nodes, func(n describedNodes) bool { return n.Type == edges.Source.Type })
	if i < 0 {
		g.Note(graph.NoteOf(path, "describes no nodes of type %q: the nodes are the ids that occur", edges.Source.Type))
		return nil
	}
	nodes := d.Graph.Nodes[i]
	if s.nodes, err = at(nodes.Data, "the nodes "+nodes.Type); err != nil {
		return err
	}
	s.id = nodes.Column
	for _, f := range nodes.Features {
		if t := f.Transformation.Name; !slices.Contains([]string{"", "no-op", "numerical"}, t) {
			return graph.BadData(path, "the feature %q has the transformation %q: transform it before the import, features are numbers", f.Column, t)
		}
		if f.Transformation.Name == "numerical" {
			ignored = append(ignored, fmt.Sprintf("the normalisation of feature %q", f.Column))
		}
		s.features = append(s.features, f.Column)
	}
	if len(nodes.Labels) > 1 {
		return graph.BadData(path, "nodes of type %q have %d labels: leave one", nodes.Type, len(nodes.Labels))
	}
	for _, l := range nodes.Labels {
		if l.Type != "classification" {
			return graph.BadData(path, "the label %q is for %s: labels are classes", l.Column, l.Type)
		}
		s.label = l.Column
		if len(l.Splits) > 0 || len(l.Custom) > 0 {
			ignored = append(ignored, "the split of the labels (draw one with --split)")
		}
	}
	if len(ignored) > 0 {
		g.Note(graph.WarningOf(path, "%s: not read", strings.Join(ignored, "; ")))
	}
	return nil
}

// pickEdges chooses the edges of a description: those of the relation that the URI names, or
// the only ones. Both ends have the same type of nodes.
func (g *Graph) pickEdges(path string, d *description) (*describedEdges, error) {
	var found []*describedEdges
	var relations []string
	for i := range d.Graph.Edges {
		e := &d.Graph.Edges[i]
		relations = append(relations, fmt.Sprintf("%s (%s to %s)", e.Relation.Type, e.Source.Type, e.Dest.Type))
		if g.spec.relation == "" || e.Relation.Type == g.spec.relation {
			found = append(found, e)
		}
	}
	switch {
	case len(relations) == 0:
		return nil, graph.BadData(path, "describes no edges")
	case len(found) == 0:
		return nil, graph.BadData(path, "has no relation %q: it has %s", g.spec.relation, strings.Join(relations, ", "))
	case len(found) > 1:
		return nil, graph.BadData(path, "has several relations, and graphs with one are read: choose one with relation=, of %s", strings.Join(relations, ", "))
	case found[0].Source.Type != found[0].Dest.Type:
		return nil, graph.BadData(path, "the relation %s goes from nodes of type %q to nodes of type %q: graphs with nodes of one type are read",
			found[0].Relation.Type, found[0].Source.Type, found[0].Dest.Type)
	}
	return found[0], nil
}
