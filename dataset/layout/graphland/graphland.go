package graphland

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"ndls/dataset/graph"
	"ndls/dataset/layout"
	"ndls/dataset/source"
	"ndls/dataset/table"
)

// info is the part of info.yaml that is read.
type info struct {
	Task       string   `yaml:"task"`
	Target     string   `yaml:"target_name"`
	Numbers    []string `yaml:"numerical_features_names"`
	Fractions  []string `yaml:"fraction_features_names"`
	Categories []string `yaml:"categorical_features_names"`
}

// splits are the splits that a folder may have: those that train on few nodes, on many, and on those that came first.
var splits = []string{"RL", "RH", "TH"}

const infoName = "info.yaml"

// read reads the description of the folder of a URI.
func read(ctx context.Context, files *source.Files, rest string) (t graph.Target, in info, err error) {
	if t, err = graph.ParseTarget("graphland:DIR", rest, "split", "directed"); err != nil {
		return t, in, err
	}
	data, err := layout.ReadMetadata(ctx, files, t.Path, infoName)
	if err != nil {
		return t, in, err
	}
	path := filepath.Join(t.Path, infoName)
	if err := yaml.Unmarshal(data, &in); err != nil {
		return t, in, graph.BadData(path, "%v: it is no description of a GraphLand data set", err)
	}
	if in.Target == "" || len(in.Numbers)+len(in.Categories) == 0 {
		return t, in, graph.BadData(path, "names no target_name, or neither numerical_features_names nor categorical_features_names: is this a data set of GraphLand?")
	}
	return t, in, nil
}

// Task returns what the targets of the folder of a URI are: classes if it does not say.
func Task(ctx context.Context, rest string) (_ graph.Answers, err error) {
	var files source.Files
	defer func() { err = errors.Join(err, files.Close()) }()
	_, in, err := read(ctx, &files, rest)
	return map[string]graph.Answers{"binary_classification": graph.Labels, "regression": graph.Numbers}[in.Task], err
}

// Open opens graphland:DIR.
func Open(ctx context.Context, rest string, o graph.Options) (_ graph.Dataset, err error) {
	var files source.Files
	t, in, err := read(ctx, &files, rest)
	if err = errors.Join(err, files.Close()); err != nil {
		return nil, err
	}
	split, identity := splits[0], "graphland:"+t.Base
	directed := ""
	for _, p := range t.Params {
		switch p.Key {
		case "directed":
			directed = "&directed=" + p.Value
		case "split":
			if split = p.Value; !slices.Contains(splits, split) {
				return nil, graph.BadURI("split=%s: a folder of GraphLand may have the splits %s", split, strings.Join(splits, ", "))
			}
		}
	}
	// Fractions are among the numbers.
	numbers := slices.DeleteFunc(slices.Clone(in.Numbers), func(name string) bool { return slices.Contains(in.Fractions, name) })
	numbers = append(numbers, in.Fractions...)
	place := func(name string) string {
		return strings.ReplaceAll(graph.EscapePath(filepath.Join(t.Path, name)), ",", "%2C")
	}
	uri := fmt.Sprintf("%s?nodes=%s&labels=%s&label=%s&splits=%s&split=train,val,test%s", place("edgelist.csv"), place("features.csv"),
		place("targets.csv"), table.NameList([]string{in.Target}), place("split_masks_"+split+".csv"), directed)
	for i, key := range []string{"features", "plain", "categories"} {
		if names := table.NameList([][]string{numbers, in.Fractions, in.Categories}[i]); names != "" {
			uri += "&" + key + "=" + strings.ReplaceAll(names, "..", "%2E%2E")
		}
	}
	return table.OpenAs(ctx, uri, filepath.Base(t.Path), identity+"?split="+split+directed, filepath.Join(t.Path, infoName), o)
}
