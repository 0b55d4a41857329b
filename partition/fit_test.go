package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/dataset"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
	"ndls/tiles"
)

// tables writes a table of edges and one of nodes in some files, and returns their URI.
func tables(t *testing.T, nodes, edges int, head string, row func(node int) string, keys string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "nodes"), 0o700))
	r := rand.New(rand.NewPCG(7, 8))
	text := &strings.Builder{}
	fmt.Fprintln(text, "src,dst")
	for range edges {
		fmt.Fprintf(text, "%d,%d\n", r.IntN(nodes), r.IntN(nodes))
	}
	must(t, os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(text.String()), 0o600))
	const files = 5
	for file := range files {
		text := head + "\n"
		for node := file; node < nodes; node += files {
			text += row(node) + "\n"
		}
		must(t, os.WriteFile(filepath.Join(dir, "nodes", fmt.Sprintf("%d.csv", file)), []byte(text), 0o600))
	}
	return "table:" + filepath.Join(dir, "edges.csv") + "?nodes=" + filepath.Join(dir, "nodes") + "&id=id&" + keys
}

// TestFitted fills, codes and transforms columns on one thread, on several in little memory, and by several workers.
func TestFitted(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	uri := tables(t, 3000, 5000, "id,age,height,share,city,code,kind", func(node int) string {
		age, height := fmt.Sprint(r.IntN(90)), fmt.Sprintf("%.3f", 170+10*r.NormFloat64())
		if r.IntN(5) == 0 {
			age = ""
		}
		if r.IntN(9) == 0 {
			height = "NaN"
		}
		return fmt.Sprintf("%d,%s,%s,%.2f,%s,%d,%d", node, age, height, r.Float64(), []string{"Ulm", "Köln", "Aa", ""}[r.IntN(4)], r.IntN(2000), r.IntN(12))
	}, "features=age,height,share&plain=share&categories=city,code,kind")
	for _, o := range []Options{{Fill: FillMean}, {Fill: FillMean, Normalize: NormalizeLog}, {Fill: FillMean, Normalize: NormalizeQuantile}} {
		t.Run(o.Normalize, func(t *testing.T) {
			scratch := scratchFolder(t)
			option := func(threads int, memory int64) Options {
				o := o
				o.Budget, o.Threads, o.Scratch, o.Features = budget(t, memory), threads, scratch, true
				return o
			}
			open := func() (dataset.Dataset, error) {
				return dataset.Open(context.Background(), uri, dataset.Options{Missing: true})
			}
			run := func(o Options) *storagetest.Mem {
				ds, err := open()
				must(t, err)
				store := storagetest.NewMem()
				s, err := Run(t.Context(), ds, openCatalog(t, store), o)
				must(t, errors.Join(err, ds.Close()))
				if want := 3 + 3 + 256 + 12 + 2; s.Features != want {
					t.Errorf("%d features, not %d", s.Features, want)
				}
				return store
			}
			want := run(option(1, 48<<20))
			checkSame(t, run(option(4, 16<<20)), want)
			cluster := &sharedWorkers{
				open: open, next: NextFitted(NextNumbered), store: storagetest.NewMem(), most: 4, draw: randomDraw(t),
				option: func() Options { return option(2, 48<<20) },
			}
			must(t, cluster.do(t.Context()))
			checkSame(t, cluster.store, want)
			if !slices.Contains(cluster.steps, Fit) {
				t.Errorf("steps %v", cluster.steps)
			}
		})
	}
}

// TestFilledRows reads the features of a few nodes: numbers, categories in order of their values, masks.
func TestFilledRows(t *testing.T) {
	rows := []string{"0,1,,x", "1,,4,b", "2,3,8,b", "3,5,NA,a"}
	uri := tables(t, 4, 9, "id,p,q,kind", func(node int) string { return rows[node] }, "features=p,q&categories=kind")
	ds, err := dataset.Open(t.Context(), uri, dataset.Options{Missing: true})
	must(t, err)
	cat := openCatalog(t, storagetest.NewMem())
	s, err := Run(t.Context(), ds, cat, Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true, Fill: FillMean})
	must(t, errors.Join(err, ds.Close()))
	var ids []int64
	e, _ := cat.Lookup(NodesPath)
	f, err := cat.Open(t.Context(), e)
	must(t, err)
	must(t, shards.ReadNodes(f, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error { ids = append(ids, b.ID...); return nil }))
	must(t, f.Close())
	want := map[int64][]float32{
		0: {1, 6, 0, 0, 1, 0, 1}, 1: {3, 4, 0, 1, 0, 1, 0}, 2: {3, 8, 0, 1, 0, 0, 0}, 3: {5, 6, 1, 0, 0, 0, 1},
	}
	m := tiles.Open(cat, budget(t, 8<<20), tiles.Features(s))
	must(t, m.Read(t.Context(), 0, 0, s.Features, 4, func(first int64, values []float32) error {
		for i := range len(values) / s.Features {
			if got, id := values[i*s.Features:(i+1)*s.Features], ids[first+int64(i)]; !slices.Equal(got, want[id]) {
				t.Errorf("node %d has %v, not %v", id, got, want[id])
			}
		}
		return nil
	}))
}

// TestMissingRefused names the row, and the option that fills it.
func TestMissingRefused(t *testing.T) {
	rows := []string{"0,1", "1,", "2,3"}
	uri := tables(t, 3, 9, "id,p", func(node int) string { return rows[node] }, "features=p")
	ds, err := dataset.Open(t.Context(), uri, dataset.Options{})
	must(t, err)
	_, err = Run(t.Context(), ds, openCatalog(t, storagetest.NewMem()), Options{Budget: budget(t, 48<<20), Scratch: scratchFolder(t), Features: true})
	if must(t, ds.Close()); err == nil || !strings.Contains(err.Error(), "1.csv line 2") || !strings.Contains(err.Error(), "--fill mean") {
		t.Error(err)
	}
}

// TestMixedPanels makes panels that are float16 and others that are not by workers, each of which makes one: pieces that are made again
// have other numbers.
func TestMixedPanels(t *testing.T) {
	f := &fake{info: dataset.Info{NumNodes: 4, NumFeatures: 20}, edges: []dataset.Edge{{U: 0, V: 1}, {U: 2, V: 3}}}
	for id := range uint32(4) {
		row := dataset.FeatureRow{ID: id, Dense: make([]float32, 20)}
		row.Dense[0] = 0.1
		f.features = append(f.features, row)
	}
	store, scratch := storagetest.NewMem(), scratchFolder(t)
	done := map[string]bool{}
	for range 100 {
		cat := openCatalog(t, store)
		left, err := Next(t.Context(), cat)
		must(t, err)
		if must(t, cat.Remove(t.Context(), left.Superseded)); left.Step == Whole {
			return
		}
		for _, p := range slices.Backward(left.Cut(2)) {
			if task := fmt.Sprint(left.Step, p); done[task] {
				t.Fatalf("task %s comes again", task)
			} else {
				done[task] = true
			}
			must(t, Execute(t.Context(), func() (dataset.Dataset, error) { return f, nil }, cat,
				Options{Budget: budget(t, 48<<20), Scratch: scratch, Features: true}, left.Step, p))
		}
	}
	t.Error("the partition does not end")
}
