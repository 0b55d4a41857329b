package explain_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ndls"
	"ndls/explain"
	"ndls/internal/mem"
	"ndls/internal/testgraph"
	"ndls/shards"
)

// kmax is the largest K of the runs here.
const kmax = 12

// found partitions a graph with ids that name gives, finds K, and returns the run.
func found(t *testing.T, g testgraph.Graph, name func(i int) string, change func(*ndls.Options)) *ndls.Directory {
	t.Helper()
	var text strings.Builder
	text.WriteString("src,dst")
	if g.Weights != nil {
		text.WriteString(",weight")
	}
	text.WriteString("\n")
	for i, adjacent := range g.Adj {
		for k, j := range adjacent {
			if int(j) < i {
				continue
			}
			fmt.Fprintf(&text, "%s,%s", name(i), name(int(j)))
			if g.Weights != nil {
				fmt.Fprintf(&text, ",%s", strconv.FormatFloat(float64(g.Weights[i][k]), 'g', -1, 32))
			}
			text.WriteString("\n")
		}
	}
	dir := t.TempDir()
	edges := filepath.Join(dir, "edges.csv")
	if err := os.WriteFile(edges, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var nodes strings.Builder
	nodes.WriteString("id\n")
	for i := range g.Adj {
		nodes.WriteString(name(i) + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "nodes.csv"), []byte(nodes.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	uri := "table:" + edges + "?src=src&dst=dst&id=id&nodes=" + filepath.Join(dir, "nodes.csv")
	if g.Weights != nil {
		uri += "&weight=weight"
	}
	d, err := ndls.Run(t.Context(), ndls.Config{
		Run: filepath.Join(dir, "run"), Dataset: uri, Resources: ndls.Resources{Memory: 256 << 20, Threads: 2},
		Options: func(o *ndls.Options) {
			o.LSI.Mode, o.LSI.Kmax, o.LSI.Epsilon = "influence-exact", kmax, 0.05
			change(o)
		},
	}, ndls.StagePartition, ndls.StageLSI)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func named(i int) string { return "node " + strconv.Itoa(i) }

// TestDistancesAreThoseOfTheDefinition compares every node of small graphs with dense matrices.
func TestDistancesAreThoseOfTheDefinition(t *testing.T) {
	graphs := []testgraph.Graph{
		testgraph.Random(60, 150, 3), testgraph.TwoComponents(), testgraph.Star(9),
		testgraph.Random(40, 90, 5).RandomWeights(8, 2),
	}
	for n, g := range graphs {
		for _, r := range [][]float64{{0, 0.5, 0.8}, {0.5}, {0}, {0.8}}[n] {
			for _, stationary := range []string{"component", "global"} {
				t.Run(fmt.Sprintf("graph %d r %g %s", n, r, stationary), func(t *testing.T) {
					d := found(t, g, named, func(o *ndls.Options) { o.LSI.R, o.LSI.Stationary = r, stationary })
					oracle := testgraph.NewOracle(g, r, stationary == "component")
					want := oracle.Distances(oracle.Identity(), len(g.Adj), kmax)
					k, _ := testgraph.LSI(want, 0.05)
					for i, adjacent := range g.Adj {
						x, err := d.Explain(t.Context(), ndls.ExplainOptions{Node: named(i), Hops: kmax, Neighbours: 3, Resources: ndls.Resources{Memory: 192 << 20}})
						if err != nil {
							t.Fatal(err)
						}
						compare(t, x, want, i, k[i], adjacent)
					}
				})
			}
		}
	}
}

// compare compares an explanation of node i with the distances of all hops and nodes.
func compare(t *testing.T, x *ndls.Explanation, want [][]float64, i, k int, adjacent []uint32) {
	t.Helper()
	if len(x.Distances.Hops) != kmax+1 {
		t.Fatalf("node %d: distances of %d hops", i, len(x.Distances.Hops))
	}
	for hop, got := range x.Distances.Hops {
		if math.Abs(got-want[hop][i]) > 1e-6*(1+want[hop][i]) {
			t.Errorf("node %d, hop %d: distance %g, not %g", i, hop, got, want[hop][i])
		}
	}
	if got, ok := x.Distances.Below(0.05); ok && got != k || !ok && k != kmax {
		t.Errorf("node %d: by the distances K is %d, not %d", i, got, k)
	}
	if x.K == nil || x.K.K != k && slices.Min(near(want, i)) > 1e-5 {
		t.Errorf("node %d: the run has K %v, not %d", i, x.K, k)
	}
	if int(x.Degree) != len(adjacent) || x.Neighbours.Count != len(adjacent) || len(x.Neighbours.First) != min(3, len(adjacent)) {
		t.Errorf("node %d: degree %d, %d neighbours, %d listed; it has %d", i, x.Degree, x.Neighbours.Count, len(x.Neighbours.First), len(adjacent))
	}
	total := 0
	for _, h := range x.Neighbours.K {
		total += h[1]
	}
	if total != len(adjacent) {
		t.Errorf("node %d: K of %d neighbours", i, total)
	}
	for _, n := range x.Neighbours.First {
		if !slices.ContainsFunc(adjacent, func(j uint32) bool { return named(int(j)) == n.ID }) {
			t.Errorf("node %d: %s is no neighbour", i, n.ID)
		}
	}
}

// near returns the differences of the distances of node i from epsilon.
func near(want [][]float64, i int) (list []float64) {
	for _, d := range want {
		list = append(list, math.Abs(d[i]-0.05))
	}
	return list
}

// TestEdgesOnDiskGiveTheSame: a budget without room for the edges changes nothing.
func TestEdgesOnDiskGiveTheSame(t *testing.T) {
	g := testgraph.Random(80, 300, 9)
	d := found(t, g, named, func(*ndls.Options) {})
	explained := func(reserve int64) *explain.Node {
		b, err := mem.NewBudget(192 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := b.Reserve(b.Free()-reserve, "something else"); err != nil {
			t.Fatal(err)
		}
		x, err := explain.Of(t.Context(), d.Catalog(), explain.Options{
			ID: named(7), R: 0.5, Epsilon: 0.05, Kmax: kmax, Mode: "influence-exact", Hops: kmax, Neighbours: 5, Budget: b, Threads: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	inMemory, onDisk := explained(64<<20), explained(shards.ReadAheadBytes+1<<20)
	if !slices.Equal(inMemory.Distances.Hops, onDisk.Distances.Hops) {
		t.Errorf("distances %v in memory, %v on disk", inMemory.Distances.Hops, onDisk.Distances.Hops)
	}
	b, err := mem.NewBudget(192 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Reserve(b.Free()-8192, "something else"); err != nil {
		t.Fatal(err)
	}
	if _, err := explain.Of(t.Context(), d.Catalog(), explain.Options{ID: named(7), R: 0.5, Epsilon: 0.05, Kmax: kmax, Budget: b}); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("without memory: %v", err)
	}
}

// TestWithoutShards: a run that has written hop streams alone explains its nodes as any other.
func TestWithoutShards(t *testing.T) {
	g := testgraph.Random(80, 300, 9).Weighted(func(lo, hi uint32) float32 { return float32(lo%3) + 0.5 })
	explained := func(option string) *ndls.Explanation {
		d := found(t, g, named, func(o *ndls.Options) { o.Partition.Shards = option })
		x, err := d.Explain(t.Context(), ndls.ExplainOptions{Node: named(7), Hops: kmax, Neighbours: 5, Resources: ndls.Resources{Memory: 256 << 20, Threads: 1}})
		if err != nil {
			t.Fatal(err)
		}
		x.Run = ""
		return x
	}
	if with, without := explained(""), explained("none"); !reflect.DeepEqual(with, without) {
		t.Errorf("explained as %+v with shards, as %+v without", with, without)
	}
}

// TestDistancesOfFeatures: where K was found from features, so are the distances.
func TestDistancesOfFeatures(t *testing.T) {
	d, err := ndls.Run(t.Context(), ndls.Config{
		Run: filepath.Join(t.TempDir(), "run"), Dataset: "synthetic:nodes=300,edges=900,features=20,classes=3,seed=4",
		Resources: ndls.Resources{Memory: 256 << 20, Threads: 2},
		Options: func(o *ndls.Options) {
			o.LSI.Mode, o.LSI.Epsilon, o.Train.Runs, o.Train.Epochs = "feature", 0.02, 2, 20
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"0", "17", "299"} {
		x, err := d.Explain(t.Context(), ndls.ExplainOptions{Node: id})
		if err != nil {
			t.Fatal(err)
		}
		// The run has float32 rows.
		if x.Distances == nil || x.Distances.Of != "features" || x.Distances.K == nil || x.K.K != *x.Distances.K {
			t.Errorf("node %s: the run has K %+v, and by the distances it is %+v", id, x.K, x.Distances)
		}
		if x.Before == nil || x.After == nil || len(x.After.Probabilities) != 3 || len(x.ClassNames) != 3 || x.LabelSmoothing == nil || x.LabelSmoothing.Hops == nil {
			t.Fatalf("node %s: %+v, %+v, %+v", id, x.Before, x.After, x.LabelSmoothing)
		}
		sum := float32(0)
		for _, p := range x.After.Probabilities {
			sum += p
		}
		if math.Abs(float64(sum)-1) > 1e-5 || slices.Max(x.After.Probabilities) != x.After.Probability || x.After.Right == nil {
			t.Errorf("node %s: %+v", id, x.After)
		}
		if *x.LabelSmoothing.Hops > x.LabelSmoothing.Depth || *x.LabelSmoothing.Hops > x.K.K {
			t.Errorf("node %s: %d hops of %d at most and K %d", id, *x.LabelSmoothing.Hops, x.LabelSmoothing.Depth, x.K.K)
		}
	}
}

// TestPredictionsAreThoseOfTheExport compares each node with the predictions as CSV.
func TestPredictionsAreThoseOfTheExport(t *testing.T) {
	dir := t.TempDir()
	d, err := ndls.Run(t.Context(), ndls.Config{
		Run: filepath.Join(dir, "run"), Dataset: "synthetic:nodes=200,edges=700,features=8,classes=3,seed=4", Resources: ndls.Resources{Memory: 256 << 20, Threads: 2},
		Options: func(o *ndls.Options) { o.Train.Runs, o.Train.Epochs, o.Probabilities = 1, 20, "best" },
	})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "p.csv")
	if _, err := d.Export(t.Context(), ndls.ExportOptions{What: "predictions", Format: "csv", Out: out}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	for i := 0; i < len(lines); i += 37 {
		fields := strings.Split(lines[i], ",")
		x, err := d.Explain(t.Context(), ndls.ExplainOptions{Node: fields[0]})
		if err != nil {
			t.Fatal(err)
		}
		probability, err := strconv.ParseFloat(fields[2], 32)
		if err != nil {
			t.Fatal(err)
		}
		if strconv.Itoa(int(x.After.Class.Number)) != fields[1] || x.After.Probability != float32(probability) || x.After.Probabilities != nil {
			t.Errorf("node %s: %+v, and the export has %s", fields[0], x.After, lines[i])
		}
	}
}

func TestUnknownNodes(t *testing.T) {
	text := found(t, testgraph.Path(5), named, func(*ndls.Options) {})
	numbers := found(t, testgraph.Path(5), func(i int) string { return strconv.Itoa(10 * i) }, func(*ndls.Options) {})
	for _, c := range []struct {
		d          *ndls.Directory
		node, want string
	}{
		{text, "node 5", "no node of the run has this id; one that comes close to it in their order is \"node 4\""},
		{text, "ndoe 3", "did you mean \"node 3\"?"},
		{text, "a", "no node of the run has this id; one that comes close to it in their order is \"node 0\""},
		{text, "zebra", "is \"node 4\""},
		{numbers, "15", "no node of the run has this id; one that comes close to it in their order is 20"},
		{numbers, "99", "order is 40"},
		{numbers, "ten", "int64"},
	} {
		if _, err := c.d.Explain(t.Context(), ndls.ExplainOptions{Node: c.node}); !errors.Is(err, ndls.ErrOption) || !strings.Contains(ndls.Message(err), c.want) {
			t.Errorf("%s: %v", c.node, err)
		}
	}
	if _, err := numbers.Explain(t.Context(), ndls.ExplainOptions{Node: "10", Hops: kmax + 1}); !errors.Is(err, ndls.ErrOption) {
		t.Errorf("more hops than Kmax: %v", err)
	}
	if x, err := numbers.Explain(t.Context(), ndls.ExplainOptions{Node: "10", Neighbours: 9}); err != nil || len(x.Neighbours.First) != 2 {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestDirectedGraph: there is no stationary state, but there are neighbours.
func TestDirectedGraph(t *testing.T) {
	dir := t.TempDir()
	edges := filepath.Join(dir, "edges.csv")
	if err := os.WriteFile(edges, []byte("src,dst\n1,2\n1,3\n3,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := ndls.Run(t.Context(), ndls.Config{
		Run: filepath.Join(dir, "run"), Dataset: "edges:" + edges + "?directed=true", Resources: ndls.Resources{Memory: 256 << 20, Threads: 1},
		Options: func(o *ndls.Options) { o.Smooth.Rule = "sgc" },
	}, ndls.StagePartition)
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.Explain(t.Context(), ndls.ExplainOptions{Node: "1", Neighbours: 5})
	if err != nil {
		t.Fatal(err)
	}
	if x.Degree != 3 || x.OutDegree == nil || *x.OutDegree != 2 || x.Neighbours.Count != 3 || x.K != nil || x.Distances != nil {
		t.Errorf("%+v", x)
	}
}
