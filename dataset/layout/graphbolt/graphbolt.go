package graphbolt

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/table"
)

// metadata is the part of metadata.yaml that is read.
type metadata struct {
	Name  string `yaml:"dataset_name"`
	Graph *struct {
		Nodes []struct {
			Type string `yaml:"type"`
			Num  int64  `yaml:"num"`
		} `yaml:"nodes"`
		Edges []file `yaml:"edges"`
	} `yaml:"graph"`
	Topology any    `yaml:"graph_topology"`
	Features []file `yaml:"feature_data"`
	Tasks    []struct {
		Name  string `yaml:"name"`
		Train []set  `yaml:"train_set"`
		Valid []set  `yaml:"validation_set"`
		Test  []set  `yaml:"test_set"`
	} `yaml:"tasks"`
}

// set is the nodes of a part of a split, and their labels.
type set struct {
	Data []file `yaml:"data"`
}

// file is an array.
type file struct {
	Domain string `yaml:"domain"`
	Type   string `yaml:"type"`
	Name   string `yaml:"name"`
	Format string `yaml:"format"`
	Path   string `yaml:"path"`
}

// FeatureNames are the names of features of nodes, in order of preference, where there are
// several.
var FeatureNames = []string{"feat", "features", "x"}

// SeedNames are the names of the nodes of a set.
var SeedNames = []string{"seeds", "seed_nodes"}

// reader opens a graph.
type reader struct {
	*layout.Graph
	dir, path string
	meta      metadata
}

// Open opens graphbolt:DIR.
func Open(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget("graphbolt:DIR", rest)
	if err != nil {
		return nil, err
	}
	r := &reader{dir: t.Path, path: filepath.Join(t.Path, "metadata.yaml"), Graph: &layout.Graph{Known: graph.Info{Name: t.Base, Identity: "graphbolt:" + t.Base}}}
	return r.Opened(r.open(ctx, o))
}

func (r *reader) open(ctx context.Context, o graph.Options) error {
	data, err := layout.ReadMetadata(ctx, &r.Files, r.dir, "metadata.yaml")
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, &r.meta); err != nil {
		return graph.BadData(r.path, "%v: it is no YAML of a dataset; see `ndls help datasets`", err)
	}
	g := r.meta.Graph
	switch {
	case r.meta.Topology != nil && g == nil:
		return graph.BadData(r.path, "describes a preprocessed graph: give the folder above it, which GraphBolt has read")
	case g == nil || len(g.Nodes) == 0 || len(g.Edges) == 0:
		return graph.BadData(r.path, "has no graph with nodes and edges")
	case len(g.Nodes) > 1 || len(g.Edges) > 1:
		return graph.BadData(r.path, "has %d kinds of nodes and %d kinds of edges: graphs of one kind of each are read", len(g.Nodes), len(g.Edges))
	case g.Nodes[0].Num < 1 || g.Nodes[0].Num > graph.MaxID+1:
		return graph.BadData(r.path, "states %d nodes: from 1 to %d are read", g.Nodes[0].Num, int64(graph.MaxID+1))
	}
	r.Known.NumNodes = g.Nodes[0].Num
	r.Stated = fmt.Sprintf("metadata.yaml states %d nodes", r.Known.NumNodes)
	if err := r.openEdges(ctx, g.Edges[0]); err != nil {
		return err
	}
	if !o.NoFeatures {
		if err := r.openFeatures(ctx); err != nil {
			return err
		}
	}
	return r.openTask(ctx)
}

func (r *reader) file(f file) string {
	if filepath.IsAbs(f.Path) {
		return f.Path
	}
	return filepath.Join(r.dir, f.Path)
}

func (r *reader) openEdges(ctx context.Context, f file) (err error) {
	text := table.Text{List: true, Bare: true, Delimiter: ',', Advice: "write the file again"}
	r.EdgeList, err = r.OpenEdges(ctx, r.path, r.file(f), f.Format, text)
	return err
}

func (r *reader) openFeatures(ctx context.Context) error {
	var found *file
	var others []string
	for i, f := range r.meta.Features {
		better := found == nil || slices.Contains(FeatureNames, f.Name) && !slices.Contains(FeatureNames, found.Name)
		switch {
		case f.Domain == "node" && better:
			if found != nil {
				others = append(others, found.Name)
			}
			found = &r.meta.Features[i]
		default:
			others = append(others, f.Name)
		}
	}
	r.Note(graph.Unread(r.path, others))
	if found == nil {
		return nil
	}
	t, err := layout.OpenTensor(ctx, &r.Files, found.Format, r.file(*found))
	if err != nil {
		return err
	}
	return r.SetDense(t.Vector, t.Shape)
}

// openTask takes nodes and labels from the first task that has nodes.
func (r *reader) openTask(ctx context.Context) error {
	var labels column.Chunks
	for i, task := range r.meta.Tasks {
		if i > 0 {
			r.Note(graph.WarningOf(r.path, "task %q is not read, the first one is", task.Name))
			continue
		}
		for _, part := range []struct {
			sets  []set
			split graph.Split
		}{{task.Train, graph.Train}, {task.Valid, graph.Valid}, {task.Test, graph.Test}} {
			for _, s := range part.sets {
				if err := r.addSet(ctx, s, part.split, &labels); err != nil {
					return err
				}
			}
		}
	}
	if len(labels) == 0 {
		return nil
	}
	var err error
	r.Classes, err = column.OpenLabels(ctx, labels)
	return err
}

func (r *reader) addSet(ctx context.Context, s set, split graph.Split, labels *column.Chunks) error {
	var seeds, classes *layout.Tensor
	for _, f := range s.Data {
		var to **layout.Tensor
		switch {
		case slices.Contains(SeedNames, f.Name):
			to = &seeds
		case f.Name == "labels":
			to = &classes
		default:
			return graph.BadData(r.path, "a set of nodes has %s: seeds and labels of nodes are read, and no tasks on links", graph.Shorten([]byte(f.Name)))
		}
		t, err := layout.OpenTensor(ctx, &r.Files, f.Format, r.file(f))
		if err != nil {
			return err
		}
		*to = &t
	}
	if seeds == nil {
		return graph.BadData(r.path, "a set of nodes has no seeds")
	}
	list, err := column.VectorList(split, seeds.Vector, seeds.Shape)
	if err != nil {
		return err
	}
	r.AddPart(list)
	if classes == nil {
		return nil
	}
	if classes.N != seeds.N {
		return graph.BadData(classes.Name, "has %d labels for the %d nodes of %s: they do not belong together", classes.N, seeds.N, seeds.Name)
	}
	nodes := column.Nodes{IDs: list.Open, Limit: r.Limit()}
	*labels = append(*labels, column.Chunk{Column: column.Vector{Values: classes.Vector}, Nodes: nodes})
	return nil
}
