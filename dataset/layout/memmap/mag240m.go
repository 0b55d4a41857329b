package memmap

import (
	"context"
	"errors"
	"path/filepath"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/source"
	"ndls/dataset/torch"
)

// magFolder is the folder to which the download of MAG240M unpacks.
const magFolder = "mag240m_kddcup2021"

// OpenMAG240M opens mag240m:DIR: papers, and which paper cites which.
func OpenMAG240M(ctx context.Context, rest string, o graph.Options) (graph.Dataset, error) {
	t, err := graph.ParseTarget("mag240m:DIR", rest)
	if err != nil {
		return nil, err
	}
	dir := t.Path
	if inner := filepath.Join(dir, magFolder); source.Exists(inner) {
		dir = inner
	}
	g := &layout.Graph{Known: graph.Info{Name: "mag240m", Identity: "mag240m:" + t.Base, NumNodes: -1}}
	return g.Opened(openMAG240M(ctx, g, dir, o))
}

func openMAG240M(ctx context.Context, g *layout.Graph, dir string, o graph.Options) error {
	processed := filepath.Join(dir, "processed")
	citations := filepath.Join(processed, "paper___cites___paper", "edge_index.npy")
	if !source.Exists(citations) {
		return graph.BadData(dir, "has no processed/paper___cites___paper/edge_index.npy: give the folder that the download of MAG240M unpacks to")
	}
	if path := filepath.Join(processed, "paper", "node_label.npy"); source.Exists(path) {
		src, _, err := g.Files.Open(path)
		if err != nil {
			return err
		}
		if err := g.OpenLabels(ctx, src); err != nil {
			return err
		}
	}
	features := filepath.Join(processed, "paper", "node_feat.npy")
	if !o.NoFeatures && source.Exists(features) {
		if err := g.OpenDense(ctx, features); err != nil {
			return err
		}
	}
	src, _, err := g.Files.Open(citations)
	if err != nil {
		return err
	}
	edges, err := array.OpenEdges(ctx, src, g.Limit())
	if err != nil {
		return err
	}
	g.EdgeList, g.Known.EdgeHint = edges, edges.M
	if path := filepath.Join(dir, "split_dict.pt"); source.Exists(path) {
		return openMAGSplit(ctx, g, path)
	}
	return nil
}

// openMAGSplit takes the lists of papers from split_dict.pt. The test papers are published
// as a whole in old versions, and in two parts since.
func openMAGSplit(ctx context.Context, g *layout.Graph, path string) error {
	f, err := torch.Open(ctx, &g.Files, path)
	if err != nil {
		return err
	}
	add := func(key string, split graph.Split) error {
		value, ok := torch.Get(f.Value, key)
		if !ok {
			return nil
		}
		v, shape, err := f.Array(value, key)
		if err != nil {
			return err
		}
		list, err := column.VectorList(split, v, shape)
		g.AddPart(list)
		return err
	}
	tests := []string{"test-dev", "test-challenge"}
	if _, whole := torch.Get(f.Value, "test-whole"); whole {
		tests = []string{"test-whole"}
	} else if _, whole := torch.Get(f.Value, "test"); whole {
		tests = []string{"test"}
	}
	if err := errors.Join(add("train", graph.Train), add("valid", graph.Valid)); err != nil {
		return err
	}
	for _, key := range tests {
		if err := add(key, graph.Test); err != nil {
			return err
		}
	}
	if g.Membership == nil {
		return graph.BadData(path, "has none of the lists train, valid and test-dev: fetch it again")
	}
	return nil
}
