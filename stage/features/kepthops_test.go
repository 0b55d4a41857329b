package features_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// drawn is a graph in files, with what an oracle needs of it.
type drawn struct {
	graph    testgraph.Graph
	features [][]float64
	label    []int // -1 none
	train    []bool
	uri      string
}

const drawnClasses = 3

// draw writes a graph of n nodes and so many features.
func draw(t *testing.T, n, features int) drawn {
	t.Helper()
	return drawOn(t, testgraph.Random(n, 2*n, 11), features)
}

// drawOn writes a graph with so many features. Some edges come twice.
func drawOn(t *testing.T, g testgraph.Graph, features int) drawn {
	t.Helper()
	d := drawn{graph: g}
	var edges, rows, labels, splits bytes.Buffer
	edges.WriteString("src,dst\n")
	for i, list := range d.graph.Adj {
		for k, j := range list {
			if i < int(j) || g.Directed || k%7 == 0 {
				fmt.Fprintf(&edges, "%d,%d\n", i, j)
			}
			if g.Directed && k%3 == 0 {
				fmt.Fprintf(&edges, "%d,%d\n%d,%d\n", i, j, i, i)
			}
		}
		row := make([]float64, features)
		fmt.Fprint(&rows, i)
		for c := range row {
			row[c] = float64(float32(rng.Float64(rng.Hash(3, uint64(i), uint64(c))) - 0.5))
			fmt.Fprintf(&rows, ",%.9g", row[c])
		}
		rows.WriteByte('\n')
		d.features = append(d.features, row)
		label := -1
		if i%7 != 0 {
			label = i % drawnClasses
			fmt.Fprintf(&labels, "%d,c%d\n", i, label)
		}
		d.label = append(d.label, label)
		split := []string{"train", "valid", "train", "test", "test"}[i%5]
		d.train = append(d.train, split == "train" && label >= 0)
		if label >= 0 {
			fmt.Fprintf(&splits, "%d,%s\n", i, split)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]*bytes.Buffer{"edges.csv": &edges, "features.csv": &rows, "labels.csv": &labels, "splits.csv": &splits} {
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.uri = fmt.Sprintf("edges:%[1]s/edges.csv?src=src&dst=dst&features=%[1]s/features.csv&labels=%[1]s/labels.csv&splits=%[1]s/splits.csv", dir)
	if g.Directed {
		d.uri += "&directed=true"
	}
	return d
}

// rowsAt gives, hop by hop, dense float64 rows of features and label columns: labels of the
// training nodes in parts, of which a training node gets the others.
func (d drawn) rowsAt(r float64, last, parts int, seed uint64) (hops [][][]float64) {
	n, oracle := len(d.graph.Adj), testgraph.NewOracle(d.graph, r, false)
	part := make([]int, n)
	for i := range part {
		part[i] = -1
		if d.train[i] && parts > 0 {
			part[i] = int(rng.Below(rng.Hash(seed, 0x6c6162656c73, uint64(i)), uint64(parts)))
		}
	}
	features := len(d.features[0])
	x := make([]float64, 0, n*features)
	for _, row := range d.features {
		x = append(x, row...)
	}
	// For each part, the labels of all other parts, so that no node of it sees its own.
	others := make([][]float64, parts+1)
	for p := range others {
		others[p] = make([]float64, n*drawnClasses)
		for i := range n {
			if d.train[i] && part[i] != p {
				scale := 1.0
				if p < parts {
					scale = float64(parts) / float64(parts-1)
				}
				others[p][i*drawnClasses+d.label[i]] = scale
			}
		}
	}
	for hop := range last + 1 {
		if hop > 0 {
			x = oracle.Apply(x, features)
			for p := range others {
				others[p] = oracle.Apply(others[p], drawnClasses)
			}
		}
		rows := make([][]float64, n)
		for i := range rows {
			rows[i] = append(rows[i], x[i*features:(i+1)*features]...)
			if parts == 0 {
				continue
			}
			from := others[parts]
			if part[i] >= 0 {
				from = others[part[i]]
			}
			rows[i] = append(rows[i], from[i*drawnClasses:(i+1)*drawnClasses]...)
		}
		hops = append(hops, rows)
	}
	return hops
}

func equalsOracle(t *testing.T, what string, got map[int64][]float32, want [][]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for id, row := range got {
		if len(row) != len(want[id]) {
			t.Fatalf("%s: node %d has %d values, want %d", what, id, len(row), len(want[id]))
		}
		for c, v := range row {
			if math.Abs(float64(v)-want[id][c]) > 1e-5 {
				t.Fatalf("%s: node %d, column %d: %g, the oracle says %g", what, id, c, v, want[id][c])
			}
		}
	}
}

// TestHopsAndLabelColumnsEqualTheOracle compares sign, hops beside other rules, and label
// columns with dense float64 hops.
func TestHopsAndLabelColumnsEqualTheOracle(t *testing.T) {
	const n = 300
	d := draw(t, n, 21)
	for _, c := range []struct {
		name   string
		change func(*plan.Options)
		keep   []int
	}{
		{"sign", func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops = "sign", 3 }, []int{0, 1, 2, 3}},
		{"sign, labels", func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.LabelColumns, p.LSI.R = "sign", 4, 2, 0
		}, []int{0, 1, 2, 3, 4}},
		{"ndls, hops", func(p *plan.Options) { p.Smooth.KeepHops = "0..1,9" }, []int{0, 1, 9}},
		{"ndls, hops, labels", func(p *plan.Options) { p.Smooth.KeepHops, p.Smooth.LabelColumns, p.LSI.R = "2", 3, 1 }, []int{2}},
		{"sgc, labels", func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops, p.Smooth.LabelColumns = "sgc", 2, 8 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := plan.Default()
			opts.Partition.Dataset, opts.Partition.Normalize, opts.Seed = "drawn", "none", 5
			opts.LSI.Mode, opts.LSI.Epsilon, opts.LSI.Kmax = "influence-exact", 0.1, 12
			c.change(&opts)
			store := storagetest.NewMem()
			stagetest.Run(t, store, opts, stagetest.On(t, d.uri), control.Partition, control.LSI, control.Smooth)
			hops := d.rowsAt(opts.LSI.R, 12, opts.Smooth.LabelColumns, opts.Seed)
			stack := stagetest.Rows(t, store, catalog.KindKeptHops)
			for at, hop := range c.keep {
				width := len(hops[0][0])
				one := map[int64][]float32{}
				for id, row := range stack {
					one[id] = row[at*width:][:width]
				}
				equalsOracle(t, fmt.Sprint("hop ", hop), one, hops[hop])
			}
			if len(c.keep) == 0 != (len(stack) == 0) {
				t.Errorf("%d rows of hops", len(stack))
			}
			want := make([][]float64, n)
			k := stagetest.K(t, store)
			for i := range want {
				want[i] = make([]float64, len(hops[0][0]))
				for hop := range k[int64(i)] + 1 {
					for c, v := range hops[hop][i] {
						want[i][c] += v / float64(k[int64(i)]+1)
					}
				}
			}
			switch opts.Smooth.Rule {
			case "ndls":
				equalsOracle(t, "smoothed", stagetest.Rows(t, store, catalog.KindSmoothed), want)
			case "sgc":
				equalsOracle(t, "smoothed", stagetest.Rows(t, store, catalog.KindSmoothed), hops[2])
			default:
				if got := stagetest.Rows(t, store, catalog.KindSmoothed); len(got) > 0 {
					t.Errorf("sign gives %d smoothed rows", len(got))
				}
			}
		})
	}
}

// TestOwnLabelIsTakenOut: a label that changes does not change the label columns of its node,
// at any hop, and changes those of others.
func TestOwnLabelIsTakenOut(t *testing.T) {
	d := draw(t, 120, 5)
	opts := plan.Default()
	opts.Partition.Dataset, opts.Partition.Normalize = "drawn", "none"
	opts.LSI.Kmax, opts.LSI.Epsilon = 8, 0.1
	opts.Smooth.Rule, opts.Smooth.Hops, opts.Smooth.LabelColumns = "sign", 6, 2
	stack := func() map[int64][]float32 {
		store := storagetest.NewMem()
		stagetest.Run(t, store, opts, stagetest.On(t, d.uri), control.Partition, control.LSI, control.Smooth)
		return stagetest.Rows(t, store, catalog.KindKeptHops)
	}
	before := stack()
	id := 0
	for ; !d.train[id] || len(d.graph.Adj[id]) < 3; id++ {
	}
	labels := filepath.Join(filepath.Dir(d.uri[len("edges:"):bytes.IndexByte([]byte(d.uri), '?')]), "labels.csv")
	text, err := os.ReadFile(labels)
	if err != nil {
		t.Fatal(err)
	}
	own, other := fmt.Sprintf("\n%d,c%d\n", id, d.label[id]), fmt.Sprintf("\n%d,c%d\n", id, (d.label[id]+1)%drawnClasses)
	changed := bytes.Replace(text, []byte(own), []byte(other), 1)
	if bytes.Equal(changed, text) {
		t.Fatalf("%s has no line %q", labels, own)
	}
	if err := os.WriteFile(labels, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	after, moved := stack(), 0
	for node, row := range before {
		same := true
		for c, v := range row {
			same = same && v == after[node][c]
		}
		if int(node) == id && !same {
			t.Errorf("node %d sees its own label", id)
		}
		if !same {
			moved++
		}
	}
	if moved < 3 {
		t.Errorf("the label of node %d reaches %d others", id, moved)
	}
}
