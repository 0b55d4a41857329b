package reproduce

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/meant"
	"ndls/internal/vfs"
)

// set is a data set of the tables.
type set struct {
	name string
	// uri is its dataset URI, in which DATA stands for the folder of all data sets, and files are
	// those without which it cannot be read, as names in that folder.
	uri   string
	files []string
	// split are the options that draw splits at random, "" for a published split; options are
	// further options of ndls run for all methods.
	split, options string
	// inductive says that the published split is meant for nodes that come after training.
	inductive bool
	// from says where the data set is published.
	from string
}

// dataFolder stands for the folder of all data sets in a URI.
const dataFolder = "DATA"

// sets are the data sets. All training nodes of a small one are in one step.
var sets = []set{
	planetoid("cora"),
	planetoid("citeseer"),
	planetoid("pubmed"),
	{
		name: "cora_ml", uri: "npz:DATA/cora_ml/cora_ml.npz", files: []string{"cora_ml/cora_ml.npz"},
		split: twenty, options: "--batch-size 0", from: "gasteigerjo/ppnp on GitHub",
	},
	{
		name: "coauthor_cs", uri: "npz:DATA/coauthor_cs/coauthor_cs.npz", files: []string{"coauthor_cs/coauthor_cs.npz"},
		split: twenty, options: "--batch-size 0", from: "shchur/gnn-benchmark on GitHub",
	},
	{
		name: "facebook", uri: "edges:DATA/facebook/facebook_edges.csv?features=DATA/facebook/facebook.json&labels=DATA/facebook/facebook_target.csv#page_type",
		files: []string{"facebook/facebook_edges.csv", "facebook/facebook.json", "facebook/facebook_target.csv"},
		split: twenty, options: "--batch-size 0", from: "benedekrozemberczki/MUSAE on GitHub",
	},
	graphsaint("flickr"),
	graphsaint("reddit"),
	{
		name: "papers100M", uri: "ogb:DATA/ogbn-papers100M", files: []string{"ogbn-papers100M/raw"},
		options: "--targets labelled --hidden 256 --batch-size 10000", from: "ogb.stanford.edu",
	},
	// The shape of papers100M at a size that takes a minute: features and labels are made.
	{name: "papers100M-shape", uri: "papers100m:scale=1/1024,seed=1,tails=0"},
}

// twenty is the usual protocol for sets without a published split: 20 training and 30 validation
// nodes of each class.
const twenty = "--split random:20,30"

// planetoid is a citation graph with the public split.
func planetoid(name string) set {
	s := set{name: name, uri: "planetoid:DATA/" + name + "/" + name, options: "--batch-size 0", from: "kimiyoung/planetoid on GitHub"}
	for _, part := range []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"} {
		s.files = append(s.files, name+"/ind."+name+"."+part)
	}
	return s
}

// graphsaint is a set of the inductive table.
func graphsaint(name string) set {
	s := set{name: name, uri: "graphsaint:DATA/" + name, options: "--batch-size 10000", inductive: true, from: "the GraphSAINT collection"}
	for _, file := range []string{"adj_full.npz", "feats.npy", "class_map.json", "role.json"} {
		s.files = append(s.files, name+"/"+file)
	}
	return s
}

// findSet is the data set of a name.
func findSet(name string) (set, error) {
	var names []string
	for _, s := range sets {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return set{}, failure.Of(ndls.ErrOption, "%q is no data set; choose of %s%s", name, strings.Join(names, ", "), meant.Hint(name, names))
}

// in is the dataset URI for a folder of data sets.
func (s set) in(data string) string { return strings.ReplaceAll(s.uri, dataFolder+"/", data+"/") }

// lacks lists the files that are not in a folder of data sets.
func (s set) lacks(data string) (files []string, err error) {
	for _, file := range s.files {
		if _, err := vfs.Stat(filepath.Join(data, file)); errors.Is(err, fs.ErrNotExist) {
			files = append(files, file)
		} else if err != nil {
			return nil, err
		}
	}
	return files, nil
}
