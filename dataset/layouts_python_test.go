package dataset

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLayoutsOfPython reads one graph in every layout that NumPy, pyarrow and Python write,
// and finds the same edges, features, labels and split in all.
func TestLayoutsOfPython(t *testing.T) {
	python := os.Getenv("NDLS_PYTHON")
	if python == "" && os.Getenv("CI") == "true" {
		t.Fatal("NDLS_PYTHON is not set, and CI=true requires it: it names a python with numpy and pyarrow")
	}
	if python == "" {
		t.Skip("NDLS_PYTHON is not set: it names a python with numpy and pyarrow")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "testdata/layouts.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	at := func(uri string) string { return strings.ReplaceAll(uri, "%s", dir) }
	beside := "features=%s/x.npy&labels=%s/y.npy&splits="
	wanted := open(t, at("edges:%s/edges.npy?"+beside+"%s/split.npy"), Options{})
	edges, err := readEdges(wanted, 100)
	if err != nil || len(edges) != 2000 {
		t.Fatalf("%d edges, %v", len(edges), err)
	}
	features, err := readFeatures(wanted)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := readLabels(wanted)
	if err != nil {
		t.Fatal(err)
	}
	splits, err := readSplits(wanted)
	if err != nil {
		t.Fatal(err)
	}
	sorted := func(edges []Edge) []Edge {
		edges = slices.Clone(edges)
		slices.SortFunc(edges, func(a, b Edge) int { return (int(a.U)-int(b.U))*1000 + int(a.V) - int(b.V) })
		return edges
	}
	for _, c := range []struct{ uri, lacks string }{
		{"graphsaint:%s/saint", ""},
		{"npz:%s/hetero.npz?split=4", ""},
		{"mag240m:%s/mag", "splits"},
		{"igb:%s/igb,size=large,nodes=300", "splits"},
		{"dgl:%s/dgl", ""},
		{"dgl:%s/dglp", ""},
		{"graphbolt:%s/bolt", "labels"},
		{"edges:%s/edges.npy?" + beside + "%s/masks.npz&split=4", ""},
		{"edges:%s/edges.npy?" + beside + "%s/lists.npz", ""},
		{"edges:%s/edges.npy?" + beside + "%s/several.npy&split=1", ""},
		{"mtx:%s/g.mtx.xz?" + beside + "%s/split.npy", ""},
		{"dimacs:%s/g.gr.bz2?" + beside + "%s/split.npy", ""},
		{"adjlist:%s/g.adjlist?" + beside + "%s/split.npy", ""},
	} {
		d := open(t, at(c.uri), Options{})
		if info := d.Info(); info.NumNodes != 300 {
			t.Errorf("%s: %d nodes", c.uri, info.NumNodes)
		}
		if got, err := readEdges(d, 100); err != nil || !slices.Equal(sorted(got), sorted(edges)) {
			t.Errorf("%s: %d edges differ, %v", c.uri, len(got), err)
		}
		got, err := readFeatures(d)
		if err != nil || !slices.EqualFunc(got, features, func(a, b row) bool {
			return a.id == b.id && slices.Equal(a.indices, b.indices) && slices.Equal(a.values, b.values)
		}) {
			t.Errorf("%s: features differ, %v", c.uri, err)
		}
		want := labels
		if c.lacks == "labels" { // those of the split alone
			want = maps.Clone(labels)
			maps.DeleteFunc(want, func(id uint32, _ int32) bool { return splits[id] == NoSplit })
		}
		if got, err := readLabels(d); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: labels differ, %v", c.uri, err)
		}
		if c.lacks == "splits" {
			continue
		}
		if got, err := readSplits(d); err != nil || !maps.Equal(got, splits) {
			t.Errorf("%s: splits differ, %v", c.uri, err)
		}
	}
	want := undirected(t, open(t, at("edges:%s/w.csv?weight=weight"), Options{}), 1)
	for _, uri := range []string{"mtx:%s/w.mtx?weight=value", "dimacs:%s/w.gr?weight=value", "metis:%s/w.graph?weight=value"} {
		if got := undirected(t, open(t, at(uri), Options{}), 1); len(got) < 1000 || !slices.Equal(got, want) {
			t.Errorf("%s: %d weights differ from %d", uri, len(got), len(want))
		}
	}
}
