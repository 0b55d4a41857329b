package ndls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A plan takes features to be float16 only if they still are once rows are normalised.
func TestHalfOfNormalizedFeatures(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"edges.txt": "0 1\n1 2\n",
		"x.json":    `{"0": [0, 1, 2], "1": [1], "2": []}`, // rows of thirds, of one, of nothing
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uri := "edges:" + dir + "/edges.txt?features=" + dir + "/x.json"
	for normalize, want := range map[string]bool{"auto": false, "l1": false, "none": true} {
		plan := DefaultOptions()
		plan.Partition.Normalize = normalize
		c, err := countDataset(context.Background(), uri, plan, Resources{})
		if err != nil || c.Half != want || c.Features != 3 {
			t.Errorf("normalize %s: float16 %v, width %d, error %v", normalize, c.Half, c.Features, err)
		}
	}
}

// A split that will be drawn is counted before it is: so many nodes of each class, and all
// others are labelled.
func TestCountsOfDrawnSplits(t *testing.T) {
	plan := DefaultOptions()
	plan.Partition.Split = "random:3,2"
	c, err := countDataset(t.Context(), "synthetic:nodes=1000,edges=5000,features=8,classes=4,seed=1", plan, Resources{})
	if err != nil || c.Training != 12 || c.Validation != 8 || c.Labelled != 1000 {
		t.Errorf("%d training, %d validation, %d labelled nodes, error %v", c.Training, c.Validation, c.Labelled, err)
	}
	// Classes that are too large for the graph do not give more nodes than there are.
	plan.Partition.Split = "random:200,100"
	if c, err = countDataset(t.Context(), "synthetic:nodes=1000,edges=5000,features=8,classes=4,seed=1", plan, Resources{}); err != nil || c.Training != 800 || c.Validation != 200 {
		t.Errorf("%d training and %d validation nodes of 1000, error %v", c.Training, c.Validation, err)
	}
}

// Few rows of an edge list are read, and edges that are repeated, or written in both
// directions, count once.
func TestCountsOfFewEdges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(path, []byte("0 1\n1 0\n1 2\n2 2\n1 2\n3 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := countDataset(t.Context(), "edges:"+path, DefaultOptions(), Resources{})
	if err != nil || c.Edges != 3 || c.InputRows != 6 || c.Nodes != 4 {
		t.Errorf("%d edges of %d rows among %d nodes, error %v", c.Edges, c.InputRows, c.Nodes, err)
	}
}

// Edges with directions count once for each direction.
func TestCountsOfDirectedEdges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(path, []byte("0 1\n1 0\n1 2\n2 2\n1 2\n3 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := countDataset(t.Context(), "edges:"+path+"?directed=true", DefaultOptions(), Resources{})
	if err != nil || c.Edges != 4 || c.InputRows != 6 || !c.Directed {
		t.Errorf("%d edges of %d rows, directed %v, error %v", c.Edges, c.InputRows, c.Directed, err)
	}
}

// A part of a graph is counted as an import finds it, whether its splits are published or drawn.
func TestCountsOfPart(t *testing.T) {
	const dataset = "synthetic:nodes=1000,edges=5000,features=8,classes=4,seed=1"
	for _, c := range []struct{ only, split string }{
		{"train", ""}, {"train,valid", ""}, {"train", "random:40,20"}, {"train,valid", "share:0.5,0.2"},
	} {
		options := func(o *Options) { o.Partition.Only, o.Partition.Split = c.only, c.split }
		plan := DefaultOptions()
		options(&plan)
		got, err := countDataset(t.Context(), dataset, plan, Resources{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Run(t.Context(), Config{Run: filepath.Join(t.TempDir(), "run"), Dataset: dataset, Options: options}, "partition")
		if err != nil {
			t.Fatal(err)
		}
		want, err := d.Graph(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Nodes != want.Nodes || got.Edges != want.Edges || got.InputRows != want.InputRows || got.Training != want.Splits["train"] || got.Validation != want.Splits["valid"] {
			t.Errorf("--only %s --split %q: counted %+v, imported %+v", c.only, c.split, got, want)
		}
	}
	// Without a dataset the part cannot be known.
	_, err := Plan(t.Context(), PlanConfig{Counts: Counts{Nodes: 1000, Edges: 5000}, Options: func(o *Options) { o.Partition.Only = "train" }})
	if !errors.Is(err, ErrOption) {
		t.Errorf("a plan of a part of an unknown graph: %v", err)
	}
}

// A part of a graph of tables is counted by the edges between its nodes, whose ids are text.
func TestCountsOfPartOfTables(t *testing.T) {
	dir := t.TempDir()
	edges, nodes := "from,to\n", "key,topic,part\n"
	for i := range 60 {
		nodes += fmt.Sprintf("node-%d,%d,%s\n", i, i%3, []string{"train", "valid", "test"}[i/20])
		for _, to := range []int{i + 1, i + 7, i + 7, i + 20} {
			edges += fmt.Sprintf("node-%d,node-%d\n", i, to%60)
		}
	}
	for name, text := range map[string]string{"edges.csv": edges, "nodes.csv": nodes} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uri := "table:" + dir + "/edges.csv?src=from&dst=to&nodes=" + dir + "/nodes.csv&id=key&label=topic&split=part"
	for _, only := range []string{"train", "train,valid"} {
		options := func(o *Options) { o.Partition.Only = only }
		plan := DefaultOptions()
		options(&plan)
		got, err := countDataset(t.Context(), uri, plan, Resources{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Run(t.Context(), Config{Run: filepath.Join(t.TempDir(), "run"), Dataset: uri, Options: options}, "partition")
		if err != nil {
			t.Fatal(err)
		}
		want, err := d.Graph(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Nodes != want.Nodes || got.Edges != want.Edges || got.InputRows != want.InputRows || got.Training != want.Splits["train"] || got.Validation != want.Splits["valid"] || got.IDs == 0 {
			t.Errorf("--only %s: counted %+v, imported %+v", only, got, want)
		}
	}
}

// A plan takes as many edges off as the import leaves out on average.
func TestCountsOfDroppedEdges(t *testing.T) {
	const dataset = "synthetic:nodes=1000,edges=5000,features=8,classes=4,seed=1"
	plan := DefaultOptions()
	all, err := countDataset(t.Context(), dataset, plan, Resources{})
	if err != nil {
		t.Fatal(err)
	}
	plan.Partition.DropEdges = 0.3
	left, err := countDataset(t.Context(), dataset, plan, Resources{})
	if want := all.Edges * 7 / 10; err != nil || left.Edges < want-1 || left.Edges > want+1 || left.InputRows != all.InputRows || left.Nodes != all.Nodes {
		t.Errorf("%+v of %+v, error %v", left, all, err)
	}
}

// A part of a graph that is imported again, or whose import goes on, is not planned as the whole
// graph where --only is not repeated: the options equal those of the run directory.
func TestPartGoesOn(t *testing.T) {
	c := Config{
		Run: filepath.Join(t.TempDir(), "run"), Dataset: "synthetic:nodes=1000,edges=5000,features=8,classes=4,seed=1",
		Options: func(o *Options) { o.Partition.Only = "train" },
	}
	part, err := Run(t.Context(), c, StagePartition)
	if err != nil {
		t.Fatal(err)
	}
	want, err := part.Graph(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Options, c.Discard = nil, true
	again, err := Run(t.Context(), c, StagePartition)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Graph(t.Context())
	if err != nil || got.Nodes != want.Nodes || got.Nodes == 1000 {
		t.Errorf("%d nodes, then %d of 1000, error %v", want.Nodes, got.Nodes, err)
	}
	for _, d := range []*Directory{part, again} {
		if p := d.Record().Stage(StagePartition).Planned; p != nil {
			t.Errorf("planned as the whole graph: %+v", p)
		}
	}
}
