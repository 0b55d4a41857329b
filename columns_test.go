package ndls_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls"
)

// TestInferColumns codes the columns of new nodes like those of the run: a missing number, a value that no node of the run has, and the
// mask. Rows of nodes without an edge are their features.
func TestInferColumns(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nodes, edges := []string{"id,age,kind,y,split"}, []string{"src,dst"}
	for i := range 60 {
		age := fmt.Sprint(20 + i%3*10)
		if i%6 == 5 {
			age = ""
		}
		kind := map[bool]string{true: "a"}[i%2 == 0]
		nodes = append(nodes, fmt.Sprintf("n%d,%s,%s,%d,%s", i, age, kind, i%2, []string{"train", "valid", "test"}[i/2%3]))
		edges = append(edges, fmt.Sprintf("n%d,n%d", i, (i*7+1)%60))
	}
	uri := func(edges, nodes string) string {
		return "table:" + edges + "?nodes=" + nodes + "&id=id&features=age&categories=kind"
	}
	c := quick(filepath.Join(dir, "run"))
	c.Dataset = uri(write("edges.csv", edges), write("nodes.csv", nodes)) + "&label=y&split=split"
	c.Options = func(o *ndls.Options) {
		o.Partition.Fill, o.Smooth.KeepHops, o.Train.Epochs, o.Train.Runs = "mean", "0..3", 3, 1
	}
	d, err := ndls.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	fresh := write("new.csv", []string{"id,age,kind", "x,,zzz", "y,7,a", "z,1,a"})
	later := write("later.csv", []string{"src,dst", "z,n0"})
	out := filepath.Join(dir, "out")
	o := ndls.InferOptions{Dataset: uri(later, fresh), Out: out, Resources: ndls.Resources{Memory: 256 << 20}}
	if _, err := d.Infer(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	_, rows, _ := inferred(t, out)
	// 20 numbers are 20, 20 are 30, and 10 are 40, in rows i with i mod 3 of 0, 1 and 2, of which half have none.
	if want := []float32{28, 0, 1}; !slices.Equal(rows["x"], want) || !slices.Equal(rows["y"], []float32{7, 1, 0}) {
		t.Errorf("rows %v and %v", rows["x"], rows["y"])
	}
	o.Dataset, o.Out = strings.ReplaceAll(o.Dataset, "&categories=kind", ""), out+"2"
	if _, err := d.Infer(t.Context(), o); err == nil || !strings.Contains(err.Error(), "categories=") {
		t.Errorf("other columns: %v", err)
	}
	later = write("renamed.csv", []string{"id,height,kind", "x,,zzz", "y,7,a", "z,1,a"})
	o.Dataset = strings.ReplaceAll(uri(filepath.Join(dir, "later.csv"), later), "features=age", "features=height")
	if _, err := d.Infer(t.Context(), o); err == nil || !strings.Contains(err.Error(), `column "height"`) || !strings.Contains(err.Error(), `column "age"`) {
		t.Errorf("other names: %v", err)
	}
}

// TestInductiveColumns takes means, quantiles and values of categories from the training nodes alone.
func TestInductiveColumns(t *testing.T) {
	dir := t.TempDir()
	nodes, edges := []string{"id,age,size,kind,y,split"}, []string{"src,dst"}
	for i := range 240 {
		split, age, kind := []string{"train", "valid", "test"}[i%3], fmt.Sprint(i%3*1000+i%7), fmt.Sprint("k", i%3)
		if i%8 > 4 {
			age = ""
		}
		nodes = append(nodes, fmt.Sprintf("n%d,%s,%d,%s,%d,%s", i, age, i, kind, i/3%2, split))
		edges = append(edges, fmt.Sprintf("n%d,n%d", i, (i*7+1)%240), fmt.Sprintf("n%d,n%d", i, (i+6)%240))
	}
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	uri := "table:" + write("edges.csv", edges) + "?nodes=" + write("nodes.csv", nodes) + "&id=id&features=age,size&plain=age&categories=kind&label=y&split=split"
	for _, fill := range []string{"mean", "neighbours"} {
		c := quick(filepath.Join(dir, fill))
		c.Dataset = uri
		c.Options = func(o *ndls.Options) {
			o.Partition.Fill, o.Partition.Normalize, o.Train.Epochs, o.Train.Runs = fill, "quantile", 3, 1
		}
		d, err := ndls.RunInductive(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := d.Graph(t.Context()); err != nil || g.Nodes != 240 || g.Features != 4 { // age, size, k0 and a mask
			t.Errorf("graph %+v, %v", g, err)
		}
		if _, err = ndls.RunInductive(t.Context(), c); err != nil { // nothing is left
			t.Fatal(err)
		}
		var texts []string
		for _, suffix := range []string{"", ndls.TrainSuffix, ndls.ValidSuffix} {
			text, err := os.ReadFile(filepath.Join(c.Run+suffix, "graph", "columns.json"))
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		var found struct {
			Means      []float64                   `json:"means"`
			Categories []struct{ Values []string } `json:"categories"`
			Ranks      []struct{ Count int64 }     `json:"ranks"`
		}
		if err := json.Unmarshal([]byte(texts[0]), &found); err != nil || texts[1] != texts[0] || texts[2] != texts[0] {
			t.Fatalf("columns %v, %v", texts, err)
		}
		if found.Means[0] > 6 || found.Ranks[1].Count != 80 || !slices.Equal(found.Categories[0].Values, []string{"k0"}) {
			t.Errorf("columns of other nodes count: %+v", found)
		}
		c.Discard = true
		if _, err := ndls.Run(t.Context(), c, ndls.StagePartition); err == nil || !strings.Contains(err.Error(), "--inductive") {
			t.Errorf("the whole graph imported without its training nodes: %v", err)
		}
	}
}

// TestInferNeighbours fills numbers of new nodes from those that old and new neighbours have, by the weights of edges.
func TestInferNeighbours(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, lines ...string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nodes, edges := []string{"id,age,size,y,split"}, []string{"src,dst,w"}
	for i := range 60 {
		age := fmt.Sprint(i)
		if i%2 == 1 {
			age = ""
		}
		nodes = append(nodes, fmt.Sprintf("n%d,%s,%d,%d,%s", i, age, i%7, i%2, []string{"train", "valid", "test"}[i/2%3]))
		edges = append(edges, fmt.Sprintf("n%d,n%d,1", i, (i*7+1)%60))
	}
	uri := func(edges, nodes string) string {
		return "table:" + edges + "?weight=w&nodes=" + nodes + "&id=id&features=age,size"
	}
	c := quick(filepath.Join(dir, "run"))
	c.Dataset = uri(write("edges.csv", edges...), write("nodes.csv", nodes...)) + "&label=y&split=split"
	c.Options = func(o *ndls.Options) {
		o.Partition.Fill, o.Smooth.Rule, o.Smooth.Alpha, o.Smooth.Hops = "neighbours", "appnp", 1, 2 // hop 0 alone
		o.LSI.R, o.Smooth.KeepHops, o.Train.Epochs, o.Train.Runs = 0, "0..2", 3, 1
	}
	d, err := ndls.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	// n3 has no age, n2 and n4 have; x has a neighbour without one, too; y has only x, which has none, but a size; z has no edge.
	fresh := write("new.csv", "id,age,size", "x,,4", "y,,", "z,,", "w,50,")
	later := write("later.csv", "src,dst,w", "x,n2,1", "x,n3,9", "n4,x,2", "x,w,1", "x,y,1", "w,n10,2", "w,n11,1")
	out := filepath.Join(dir, "out")
	if _, err := d.Infer(t.Context(), ndls.InferOptions{Dataset: uri(later, fresh), Out: out, Resources: ndls.Resources{Memory: 256 << 20}}); err != nil {
		t.Fatal(err)
	}
	_, rows, _ := inferred(t, out)
	sizes := 0
	for i := range 60 {
		sizes += i % 7
	}
	for id, want := range map[string][]float32{
		"x": {(2 + 2*4 + 50) / 4.0, 4, 1}, "y": {29, 4, 1}, "z": {29, float32(sizes) / 60, 1}, "w": {50, (2*3 + 4 + 4) / 4.0, 0},
	} {
		if got := rows[id][:3]; !slices.Equal(got, want) {
			t.Errorf("node %s has %v, not %v", id, got, want)
		}
	}
}
