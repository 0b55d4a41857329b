package imports_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// learned is a graph whose nodes have numbers to learn.
type learned struct {
	uri     string
	answers [][]float64 // by input id; NaN for what is not known
	split   []string
	graph   testgraph.Graph
	prefix  string // of ids: text, or none for numbers
}

const learnedColumns = 18 // more than a panel has

// learns writes tables of a graph of n nodes. Each column is a sum of two features, which neighbours share in part: as a label, whether it is
// above 0; as a number, times 50 and 1000 more. A ninth of the values is not known, and every seventh node has none.
func learns(t *testing.T, n int, task string) (d learned) {
	t.Helper()
	d.graph = testgraph.Random(n, 3*n, 4)
	if task == plan.SeveralLabels {
		d.prefix = "n"
	}
	var nodes, edges strings.Builder
	nodes.WriteString("name,x0,x1,x2,x3,split")
	for c := range learnedColumns {
		fmt.Fprintf(&nodes, ",y%02d", c)
	}
	edges.WriteString("src,dst\n")
	for i := range n {
		x := [4]float64{}
		for k := range x {
			x[k] = rng.Float64(rng.Hash(3, uint64(i), uint64(k))) - 0.5
		}
		split := []string{"train", "train", "valid", "test"}[i%4]
		if i%7 == 0 { // of which nothing is known
			split = ""
		}
		fmt.Fprintf(&nodes, "\n%s%d,%.6g,%.6g,%.6g,%.6g,%s", d.prefix, i, x[0], x[1], x[2], x[3], split)
		row := make([]float64, learnedColumns)
		for c := range row {
			y := x[c%4] + 0.5*x[(c+1)%4]
			switch {
			case i%7 == 0 || rng.Below(rng.Hash(5, uint64(i), uint64(c)), 9) == 0:
				row[c] = math.NaN()
				nodes.WriteString([]string{",", ",NA"}[c%2])
				continue
			case task == plan.Regression:
				row[c] = float64(float32(1000 + 50*y))
			case y > 0:
				row[c] = 1
			}
			fmt.Fprintf(&nodes, ",%.9g", row[c])
		}
		d.answers, d.split = append(d.answers, row), append(d.split, split)
		for _, j := range d.graph.Adj[i] {
			if i < int(j) {
				fmt.Fprintf(&edges, "%[1]s%[2]d,%[1]s%[3]d\n", d.prefix, i, j)
			}
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes.String() + "\n", "edges.csv": edges.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.uri = fmt.Sprintf("table:%[1]s/edges.csv?src=src&dst=dst&nodes=%[1]s/nodes.csv&id=name&features=x0..x3&label=y00..y%02[2]d&split=split", dir, learnedColumns-1)
	return d
}

// byNode returns rows by the node's place in the graph. Ids that are text have numbers in order of their bytes.
func byNode[T any](d learned, of map[int64]T) map[int64]T {
	if d.prefix == "" {
		return of
	}
	names := make([]string, len(of))
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	slices.Sort(names)
	named := map[int64]T{}
	for number, x := range of {
		var node int64
		if _, err := fmt.Sscanf(names[number], "n%d", &node); err == nil {
			named[node] = x
		}
	}
	return named
}

func taskPlan(uri, task string) plan.Options {
	opts := stagetest.SmallPlan()
	opts.Partition.Dataset, opts.Partition.Task, opts.Partition.Normalize = uri, task, "none"
	opts.LSI.Mode, opts.LSI.Kmax, opts.Labels.Kmax = "influence-exact", 6, 5
	opts.Smooth.Rule, opts.Smooth.Hops = "sgc", 0
	opts.Train.Epochs, opts.Train.Runs, opts.Train.Layers, opts.Train.LR, opts.Train.BatchSize = 60, 2, 1, 0.05, 64
	opts.Train.InputDropout, opts.Train.WeightDecay = 0, 0
	return opts
}

// measuresOf computes ROC AUC and average precision, or R² and the mean absolute error, of the rows of nodes in a split, from their
// definitions.
func (d learned) measuresOf(task, split string, said map[int64][]float32) (first, second float64) {
	columns := 0.0
	for c := range learnedColumns {
		var y, z []float64
		for i, row := range d.answers {
			if d.split[i] == split && row[c] == row[c] {
				y, z = append(y, row[c]), append(z, float64(said[int64(i)][c]))
			}
		}
		mean, wrong, squares, off := 0.0, 0.0, 0.0, 0.0
		for _, v := range y {
			mean += v / float64(len(y))
		}
		pairs, right, precision, positives := 0.0, 0.0, 0.0, 0.0
		for i := range y {
			wrong, squares, off = wrong+(y[i]-z[i])*(y[i]-z[i]), squares+(y[i]-mean)*(y[i]-mean), off+math.Abs(y[i]-z[i])
			if y[i] != 1 {
				continue
			}
			positives++
			above := [2]float64{}
			for j := range y {
				if z[j] >= z[i] {
					above[int(min(max(y[j], 0), 1))]++
				}
				if y[j] == 0 {
					pairs++
					if z[i] > z[j] {
						right++
					} else if z[i] == z[j] {
						right += 0.5
					}
				}
			}
			precision += above[1] / (above[0] + above[1])
		}
		columns++
		if task == plan.Regression {
			first, second = first+1-wrong/squares, second+off/float64(len(y))
		} else {
			first, second = first+right/pairs, second+precision/positives
		}
	}
	return first / columns, second / columns
}

// TestTasks imports labels and numbers, trains, smooths predictions column by column and evaluates. Measures equal those of the files by
// their definitions; predictions are means of soft labels over hops; threads, memory and splits into tasks leave the bytes alone.
func TestTasks(t *testing.T) {
	const nodes = 420
	for _, task := range []string{plan.SeveralLabels, plan.Regression} {
		t.Run(task, func(t *testing.T) {
			d := learns(t, nodes, task)
			opts := taskPlan(d.uri, task)
			opts.Predictions = plan.OfModel
			store := storagetest.NewMem()
			reports := stagetest.Run(t, store, opts, stagetest.On(t, d.uri), registry.Always()...)
			var a *control.AccuracyReport
			var depth *control.LabelDepthReport
			for _, r := range reports {
				if r.Accuracy != nil {
					a = r.Accuracy
				}
				if r.LabelDepth != nil {
					depth = r.LabelDepth
				}
			}
			before, after := stagetest.Rows(t, store, catalog.KindSoftLabels), stagetest.Rows(t, store, catalog.KindPredictions)
			if len(before) != nodes || len(after) != nodes || len(after[0]) != learnedColumns {
				t.Fatalf("%d soft labels, %d predictions of %d values", len(before), len(after), len(after[0]))
			}
			before, after = byNode(d, before), byNode(d, after)
			first, second := d.measuresOf(task, "test", after)
			got := a.Predictions.Metrics
			measured := [2]*float64{got.AUC.Test, got.Precision.Test}
			if task == plan.Regression {
				measured = [2]*float64{got.Determination.Test, got.MeanError.Test}
			}
			if measured[0] == nil || measured[1] == nil || math.Abs(*measured[0]-first) > 1e-9 || math.Abs(*measured[1]/second-1) > 1e-9 {
				t.Errorf("measures %v, want %v and %v", measured, first, second)
			}
			if first < 0.9 {
				t.Errorf("the first measure is %v, and features tell the answers", first)
			}
			// With two models the depth of the written one, and the row of a node of K hops.
			m := a.Predictions.Model
			if m == nil || len(depth.Depths) != 2 || len(depth.Errors) != opts.Labels.Kmax+1 {
				t.Fatalf("model %v, depths %+v", m, depth)
			}
			first0, _ := d.measuresOf(task, "valid", before)
			if x := a.Models[0].Metrics.Base; math.Abs(*cmpOr(x.AUC.Valid, x.Determination.Valid)-first0) > 1e-9 &&
				math.Abs(*cmpOr(a.Models[1].Metrics.Base.AUC.Valid, a.Models[1].Metrics.Base.Determination.Valid)-first0) > 1e-9 {
				t.Errorf("no model has %v on validation nodes before label smoothing", first0)
			}
			res, again := stagetest.On(t, d.uri), storagetest.NewMem()
			res.Threads, res.Memory = 1, 128<<20
			stagetest.Run(t, again, opts, res, registry.Always()...)
			stagetest.Compare(t, "one thread and less memory", stagetest.Sums(t, again), stagetest.Sums(t, store))
		})
	}
}

func cmpOr(a, b *float64) *float64 {
	if a != nil {
		return a
	}
	return b
}

// TestLabelsAreMeans smooths labels and numbers to a given depth: a row is the mean over its hops, each the mean over neighbours and the node
// itself, whatever r is.
func TestLabelsAreMeans(t *testing.T) {
	for _, task := range []string{plan.SeveralLabels, plan.Regression} {
		d := learns(t, 200, task)
		opts := taskPlan(d.uri, task)
		opts.Train.Runs, opts.Labels.Depth, opts.LSI.R = 1, "3", 0.5
		store := storagetest.NewMem()
		stages := slices.DeleteFunc(slices.Clone(registry.Always()), func(s control.Stage) bool { return s == control.LabelDepth })
		stagetest.Run(t, store, opts, stagetest.On(t, d.uri), stages...)
		before, after, k := byNode(d, stagetest.Rows(t, store, catalog.KindSoftLabels)), byNode(d, stagetest.Rows(t, store, catalog.KindPredictions)), byNode(d, stagetest.K(t, store))
		n := len(d.graph.Adj)
		x := make([]float64, 0, n*learnedColumns)
		for i := range int64(n) {
			for _, v := range before[i] {
				x = append(x, float64(v))
			}
		}
		oracle, deep := testgraph.NewOracle(d.graph, 0, false), 0
		sum := slices.Clone(x)
		for hop := 1; hop <= 3; hop++ {
			x = oracle.Apply(x, learnedColumns)
			for i := range n {
				if hop > k[int64(i)] {
					continue
				}
				deep++
				for c := range learnedColumns {
					sum[i*learnedColumns+c] += x[i*learnedColumns+c]
				}
			}
		}
		if deep < n/2 {
			t.Fatalf("%d hops of %d nodes: the graph does not show smoothing", deep, n)
		}
		for i := range n {
			hops := float64(min(k[int64(i)], 3) + 1)
			for c := range learnedColumns {
				if want, got := sum[i*learnedColumns+c]/hops, float64(after[int64(i)][c]); math.Abs(got-want) > 1e-5*max(math.Abs(want), 1) {
					t.Fatalf("%s: node %d, column %d: %v, want %v", task, i, c, got, want)
				}
			}
		}
	}
}

// TestAnswersAreRefused names the row and the way out.
func TestAnswersAreRefused(t *testing.T) {
	d := learns(t, 60, plan.Regression)
	opts := taskPlan(d.uri, plan.SeveralLabels)
	_, err := stagetest.Execute(t.Context(), stagetest.Open(t, storagetest.NewMem()), stagetest.On(t, d.uri).Task(control.Partition, opts))
	for _, want := range []string{"nodes.csv line 3", "y0", "a label is 0 or 1", "--task regression"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
