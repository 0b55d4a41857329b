package ndls_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls"
	"ndls/internal/testgraph"
)

// inductive is a graph whose nodes from tested on are test nodes. Those before are training and
// validation nodes.
type inductive struct {
	n, tested int
	edges     [][2]int
	features  [][]float64
	names     bool // ids are text
}

const inductiveFeatures = 4

func newInductive(names bool) inductive {
	g := inductive{n: 240, tested: 180, names: names}
	random := rand.New(rand.NewPCG(8, 3))
	for i := range g.n {
		x := make([]float64, inductiveFeatures)
		for c := range x {
			x[c] = float64(float32(random.NormFloat64()))
		}
		x[i%3] += 1
		g.features = append(g.features, x)
		for range 3 {
			j := random.IntN(g.n)
			if random.IntN(4) > 0 {
				j = j/3*3 + i%3
			}
			if i != j {
				g.edges = append(g.edges, [2]int{i, j})
			}
		}
	}
	return g
}

// changed has other features and edges of test nodes, and the same of all others.
func (g inductive) changed() inductive {
	other := newInductive(g.names)
	random := rand.New(rand.NewPCG(1, 1))
	for i := g.tested; i < g.n; i++ {
		for c := range other.features[i] {
			other.features[i][c] = float64(float32(10 * random.NormFloat64()))
		}
	}
	other.edges = slices.DeleteFunc(other.edges, func(e [2]int) bool { return max(e[0], e[1]) >= g.tested && random.IntN(2) == 0 })
	for range 100 {
		i, j := g.tested+random.IntN(g.n-g.tested), random.IntN(g.n)
		if i != j {
			other.edges = append(other.edges, [2]int{i, j})
		}
	}
	return other
}

// training reports whether a node is a training node; others before g.tested are validation nodes.
func (g inductive) training(i int) bool { return i < g.tested && i%3 != i/3%3 }

func (g inductive) id(i int) string {
	if g.names {
		return fmt.Sprintf("node-%03d", (i*7+3)%1000)
	}
	return fmt.Sprint(i)
}

// write writes the dataset and returns its URI.
func (g inductive) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var edges, nodes strings.Builder
	edges.WriteString("from,to\n")
	nodes.WriteString("key,a,b,c,d,topic,part\n")
	for _, e := range g.edges {
		fmt.Fprintf(&edges, "%s,%s\n", g.id(e[0]), g.id(e[1]))
	}
	for i, x := range g.features {
		part := "test"
		if i < g.tested {
			part = map[bool]string{true: "train", false: "valid"}[g.training(i)]
		}
		fmt.Fprintf(&nodes, "%s,%v,%v,%v,%v,c%d,%s\n", g.id(i), x[0], x[1], x[2], x[3], i%3, part)
	}
	for name, text := range map[string]string{"edges.csv": edges.String(), "nodes.csv": nodes.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "table:" + dir + "/edges.csv?src=from&dst=to&nodes=" + dir + "/nodes.csv&id=key&features=a,b,c,d&label=topic&split=part"
}

// smoothed returns NDLS's result for the graph of some nodes, in float64, by node.
func (g inductive) smoothed(of func(i int) bool) map[string][]float64 {
	var nodes []int
	at := map[int]int{}
	var x []float64
	for i := range g.n {
		if of(i) {
			at[i] = len(nodes)
			nodes = append(nodes, i)
			x = append(x, g.features[i]...)
		}
	}
	var edges [][2]int
	for _, e := range g.edges {
		if of(e[0]) && of(e[1]) {
			edges = append(edges, [2]int{at[e[0]], at[e[1]]})
		}
	}
	oracle := testgraph.NewOracle(testgraph.New("part", len(nodes), edges), 0.5, true)
	k, _ := testgraph.LSI(oracle.Distances(oracle.Identity(), len(nodes), 50), 0.1)
	y := oracle.Smooth(x, inductiveFeatures, k)
	rows := map[string][]float64{}
	for i, node := range nodes {
		rows[g.id(node)] = y[i*inductiveFeatures : (i+1)*inductiveFeatures]
	}
	return rows
}

func (g inductive) run(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	_, err := ndls.RunInductive(context.Background(), ndls.Config{
		Run: dir, Dataset: g.write(t), Resources: ndls.Resources{Memory: 256 << 20, Threads: 2},
		Options: func(o *ndls.Options) {
			o.LSI.Mode, o.LSI.Epsilon, o.LSI.Kmax = "influence-exact", 0.1, 50
			o.Train.Runs, o.Train.Epochs, o.Train.Hidden, o.Train.BatchSize = 2, 15, 8, 0
			o.Labels.Depth, o.Tolerance = "1", 0 // the oracle adds up every hop
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// rowsOf exports rows as a table with ids and lists of values.
func rowsOf(t *testing.T, run, what string) map[string][]float64 {
	t.Helper()
	d, err := ndls.Open(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]float64{}
	var text bytes.Buffer
	if _, err := d.Export(context.Background(), ndls.ExportOptions{What: what, Format: "csv", To: &text, Memory: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[1:] {
		fields := strings.Split(line, ",")
		for _, f := range fields[1:] {
			var v float64
			if _, err := fmt.Sscan(f, &v); err != nil {
				t.Fatal(line, err)
			}
			rows[fields[0]] = append(rows[fields[0]], v)
		}
	}
	return rows
}

// nearRows compares rows with those of the oracle.
func nearRows(t *testing.T, what string, got, want map[string][]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for id, row := range got {
		for c, v := range row {
			if w := want[id][c]; math.Abs(v-w) > 1e-5*max(1, math.Abs(w)) {
				t.Fatalf("%s: node %s has %v, want %v", what, id, row, want[id])
			}
		}
	}
}

// apply returns the output of a stored model for rows, in float64.
func apply(t *testing.T, file string, rows map[string][]float64) map[string][]float64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const dims = 3 // of two layers
	data = data[len(data)-sha256Size-4*paramsOf(inductiveFeatures, 8, 3) : len(data)-sha256Size]
	param := func(i int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))) }
	widths := [dims]int{inductiveFeatures, 8, 3}
	soft := map[string][]float64{}
	for id, x := range rows {
		at := 0
		for l := range dims - 1 {
			in, out := widths[l], widths[l+1]
			y := make([]float64, out)
			for o := range out {
				y[o] = param(at + in*out + o)
				for i := range in {
					y[o] += x[i] * param(at+i*out+o)
				}
				if l == 0 {
					y[o] = max(y[o], 0)
				}
			}
			at += (in + 1) * out
			x = y
		}
		sum := 0.0
		for c := range x {
			x[c] = math.Exp(x[c])
			sum += x[c]
		}
		for c := range x {
			x[c] /= sum
		}
		soft[id] = x
	}
	return soft
}

const sha256Size = 32

func paramsOf(widths ...int) (n int) {
	for l := range len(widths) - 1 {
		n += (widths[l] + 1) * widths[l+1]
	}
	return n
}

// TestInductive compares rows and predictions with an oracle, and trains again where everything
// about test nodes is another.
func TestInductive(t *testing.T) {
	for _, names := range []bool{false, true} {
		t.Run(fmt.Sprintf("text ids %v", names), func(t *testing.T) {
			g := newInductive(names)
			run := g.run(t)
			all := g.smoothed(func(int) bool { return true })
			nearRows(t, "rows of all", rowsOf(t, run, "smoothed"), all)
			nearRows(t, "rows of training nodes", rowsOf(t, run+ndls.TrainSuffix, "smoothed"), g.smoothed(g.training))
			nearRows(t, "rows of training and validation nodes", rowsOf(t, run+ndls.ValidSuffix, "smoothed"), g.smoothed(func(i int) bool { return i < g.tested }))

			chosen := chosenModel(t, run)
			nearRows(t, "soft labels", rowsOf(t, run, "soft-labels"), apply(t, filepath.Join(run, "model", chosen), all))

			other := g.changed()
			again := other.run(t)
			for _, file := range []string{"model/run-000.mlp", "model/run-001.mlp", "model/model.json"} {
				a, err1 := os.ReadFile(filepath.Join(run, file))
				b, err2 := os.ReadFile(filepath.Join(again, file))
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(a, b) {
					t.Errorf("%s depends on test nodes", file)
				}
			}
			if fmt.Sprint(rowsOf(t, again, "soft-labels")) == fmt.Sprint(rowsOf(t, run, "soft-labels")) {
				t.Error("other features and edges give the same predictions")
			}
			if names {
				return
			}
			// The same model from rows of the whole graph would not be the same.
			whole := filepath.Join(t.TempDir(), "whole")
			d, err := ndls.Open(context.Background(), run)
			if err != nil {
				t.Fatal(err)
			}
			plan := d.Record().Plan
			if _, err := ndls.Run(context.Background(), ndls.Config{
				Run: whole, Dataset: g.write(t), Resources: ndls.Resources{Memory: 256 << 20, Threads: 2},
				Options: func(o *ndls.Options) {
					dataset := o.Partition.Dataset
					*o = plan
					o.Partition.Dataset, o.Train.On = dataset, ""
				},
			}); err != nil {
				t.Fatal(err)
			}
			a, _ := os.ReadFile(filepath.Join(run, "model/run-000.mlp"))
			b, _ := os.ReadFile(filepath.Join(whole, "model/run-000.mlp"))
			if bytes.Equal(a, b) {
				t.Error("a model trained on the whole graph is the same")
			}
		})
	}
}

// chosenModel is the file of the model that predicts.
func chosenModel(t *testing.T, run string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run, "model/model.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Chosen int
		Runs   []struct{ Path string }
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(index.Runs[index.Chosen].Path)
}

// TestTrainOnRefuses has rows that cannot be trained on.
func TestTrainOnRefuses(t *testing.T) {
	dir := t.TempDir()
	resources := ndls.Resources{Memory: 256 << 20, Threads: 2}
	karate := func(name string, epsilon float64, on ...string) (string, error) {
		run := filepath.Join(dir, name)
		_, err := ndls.Run(context.Background(), ndls.Config{
			Run: run, Dataset: "karate:", Resources: resources, TrainOn: on,
			Options: func(o *ndls.Options) {
				o.LSI.Epsilon, o.Smooth.Rule, o.Smooth.Hops = epsilon, "ndls", 3
				o.Partition.Split, o.Train.Runs, o.Train.Epochs = "random:3,2", 1, 3
			},
		})
		return run, err
	}
	first, err := karate("first", 0.05)
	if err != nil && !strings.Contains(err.Error(), "features") {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		epsilon float64
		on      []string
		want    string
	}{
		"another epsilon": {0.1, []string{first}, "lsi.epsilon"},
		"three":           {0.05, []string{first, first, first}, "3 run directories"},
		"nothing there":   {0.05, []string{filepath.Join(dir, "none")}, "--train-on"},
	} {
		if _, err := karate(name, c.epsilon, c.on...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	scaled := func(name, normalize string, on ...string) (string, error) {
		run := filepath.Join(dir, name)
		_, err := ndls.Run(context.Background(), ndls.Config{
			Run: run, Dataset: "synthetic:nodes=300,edges=900,features=4,classes=2,seed=1", Resources: resources, TrainOn: on,
			Options: func(o *ndls.Options) {
				o.Smooth.Rule, o.Smooth.Hops, o.Partition.Normalize = "sgc", 1, normalize
				o.Train.Runs, o.Train.Epochs, o.Labels.Depth = 1, 1, "0"
			},
		})
		return run, err
	}
	small, err := scaled("small", "l1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaled("large", "none", small); err == nil || !strings.Contains(err.Error(), "--normalize") {
		t.Errorf("rows of another scale: %v", err)
	}
	if _, err := ndls.RunInductive(context.Background(), ndls.Config{Dataset: "karate:", Resources: resources}); err == nil || !strings.Contains(err.Error(), "--run is empty") {
		t.Errorf("no run directory with --inductive: %v", err)
	}
	if _, err := ndls.RunInductive(context.Background(), ndls.Config{
		Run: filepath.Join(dir, "only"), Dataset: "karate:", Resources: resources,
		Options: func(o *ndls.Options) { o.Partition.Only = "train" },
	}); err == nil || !strings.Contains(err.Error(), "--only") {
		t.Errorf("--only with --inductive: %v", err)
	}
}
