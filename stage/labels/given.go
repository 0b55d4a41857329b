package labels

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ndls/dataset"
	"ndls/shards"
	"ndls/stage/imports"
)

// openSoftLabels opens the soft labels of another model. If ids are numbered, row i of an array belongs to the node with number i.
func (env labelsRun) openSoftLabels(ctx context.Context, s shards.Summary) (dataset.Dataset, imports.Finder, error) {
	path := env.Inputs.SoftLabels
	if s.IDs == "" || strings.Contains(strings.ToLower(filepath.Base(path)), ".npy") {
		file, err := dataset.OpenRows(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		node, err := env.Nodes().ByID(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, file.Close())
		}
		return file, node, nil
	}
	nodes, err := env.Nodes().ByKey(ctx)
	if err != nil {
		return nil, nil, err
	}
	file, err := dataset.OpenKeyedRows(ctx, path, nodes.Type(), nodes.Find)
	if err != nil {
		nodes.Free()
		return nil, nil, err
	}
	return file, imports.Found{Table: nodes, Nodes: s.Nodes}, nil
}

// importSoftLabels commits panels [first, last) of the soft labels of another model as tiles. The file has one row of probabilities per
// node, in any format of features and in any order. It is read once for each block of nodes and panels that fits in memory.
func (env labelsRun) importSoftLabels(ctx context.Context, s shards.Summary, first, last int) (err error) {
	out := GivenTiles(env.Env)
	if first = out.FirstMissing(first, last); first == last {
		return nil
	}
	file, node, err := env.openSoftLabels(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		node.Free()
		err = errors.Join(err, file.Close())
	}()
	if classes := len(s.Classes); file.Info().NumFeatures != classes {
		return fmt.Errorf("%s has %d values a row: give %d probabilities, one for each of the classes %v",
			env.Inputs.SoftLabels, file.Info().NumFeatures, classes, s.Classes)
	}
	rows := func(ctx context.Context) (dataset.FeatureReader, error) { return file.Features(ctx, dataset.Whole) }
	x := &imports.Rows{
		Env: env.Env, From: env.Inputs.SoftLabels, Source: rows, Count: s.Nodes, Node: node, Rules: imports.Rules{Each: true},
	}
	return x.Commit(ctx, out, first, last)
}
