package imports_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/imports"
	"ndls/stage/stagetest"
	"ndls/tiles"
)

// gaps is a random graph whose nodes lack numbers.
type gaps struct {
	columns int
	values  [][]float32 // NaN if missing
	edges   map[[2]int]float64
}

// newGaps draws a graph. Every fifth column lacks no number, and the last node has no edge.
func newGaps(r *rand.Rand, nodes, edges, columns int, weighted bool) gaps {
	g := gaps{columns, make([][]float32, nodes), map[[2]int]float64{}}
	for i := range g.values {
		for c := range columns {
			x := float32(r.NormFloat64())
			if c%5 < 4 && r.IntN(100) < 60 {
				x = float32(math.NaN())
			}
			g.values[i] = append(g.values[i], x)
		}
	}
	for range edges {
		u, v := r.IntN(nodes-1), r.IntN(nodes-1)
		if u, v = min(u, v), max(u, v); u != v {
			g.edges[[2]int{u, v}] = 1
			if weighted {
				g.edges[[2]int{u, v}] = float64(1+r.IntN(8)) / 4
			}
		}
	}
	return g
}

// write writes the graph as tables and returns their URI.
func (g gaps) write(t *testing.T, weighted bool) string {
	t.Helper()
	dir := t.TempDir()
	edges, nodes := &strings.Builder{}, &strings.Builder{}
	fmt.Fprintln(edges, "src,dst,w")
	for e, w := range g.edges {
		fmt.Fprintf(edges, "%d,%d,%g\n", e[0], e[1], w)
	}
	fmt.Fprint(nodes, "id,kind")
	var names []string
	for c := range g.columns {
		names = append(names, fmt.Sprint("x", c))
	}
	fmt.Fprintln(nodes, ","+strings.Join(names, ","))
	for i, row := range g.values {
		fmt.Fprintf(nodes, "%d,%d", i, i%3)
		for _, x := range row {
			if fmt.Fprint(nodes, ","); x == x {
				fmt.Fprint(nodes, x)
			}
		}
		fmt.Fprintln(nodes)
	}
	for name, text := range map[string]fmt.Stringer{"edges.csv": edges, "nodes.csv": nodes} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uri := fmt.Sprintf("table:%s?nodes=%s&id=id&features=%s&categories=kind", filepath.Join(dir, "edges.csv"), filepath.Join(dir, "nodes.csv"), strings.Join(names, ","))
	if weighted {
		uri += "&weight=w"
	}
	return uri
}

// filled returns the features of each node by the definition: a missing number is the mean of the neighbours, by weight, that have one, or
// the mean of the column.
func (g gaps) filled() [][]float64 {
	n := len(g.values)
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, g.columns, g.columns+3)
		rows[i] = append(rows[i], make([]float64, 3)...)
		rows[i][g.columns+i%3] = 1
	}
	for c := range g.columns {
		sums, weights := make([]float64, n), make([]float64, n)
		sum, count := 0.0, 0.0
		add := func(to, from int, w float64) {
			if x := g.values[from][c]; x == x {
				sums[to] += w * float64(x)
				weights[to] += w
			}
		}
		for e, w := range g.edges {
			add(e[0], e[1], w)
			add(e[1], e[0], w)
		}
		for i := range n {
			if x := g.values[i][c]; x == x {
				sum, count = sum+float64(x), count+1
			}
		}
		for i := range n {
			x, mask := float64(g.values[i][c]), 0.0
			if x != x {
				if x, mask = sum/max(count, 1), 1; weights[i] > 0 {
					x = sums[i] / weights[i]
				}
			}
			if rows[i][c] = x; count < float64(n) {
				rows[i] = append(rows[i], mask)
			}
		}
	}
	return rows
}

// features reads the features of a run, by input id.
func features(t *testing.T, store storage.Store) map[int64][]float32 {
	t.Helper()
	cat := stagetest.Open(t, store)
	s, err := shards.ReadSummary(t.Context(), cat)
	if err != nil {
		t.Fatal(err)
	}
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	env := &stage.Env{Session: &stage.Session{Budget: b}, Summary: s, Catalog: cat}
	var ids []int64
	if err := env.Nodes().Read(t.Context(), shards.NodeID, func(_ int64, b shards.NodeBatch) { ids = append(ids, b.ID...) }); err != nil {
		t.Fatal(err)
	}
	rows, m := map[int64][]float32{}, tiles.Open(cat, b, tiles.Features(s))
	for i := range m.Intervals() {
		if err := m.Read(t.Context(), i, 0, s.Features, 64, func(first int64, values []float32) error {
			for ; len(values) > 0; first, values = first+1, values[s.Features:] {
				rows[ids[first]] = slices.Clone(values[:s.Features])
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// inSteps imports by tasks for some workers, each of which is left off after some operations once and then repeated.
func inSteps(t *testing.T, store storage.Store, p plan.Options, setup stagetest.Setup, workers int, r *rand.Rand) (names []string) {
	t.Helper()
	for range 300 {
		cat := stagetest.Open(t, store)
		left, err := imports.Partition{}.Shape(p, shards.Summary{}).(stage.Steps).Advance(t.Context(), cat)
		if err != nil {
			t.Fatal(err)
		}
		task := setup.Task(control.Partition, p)
		if left.Done() {
			if _, err := stagetest.Execute(t.Context(), cat, task); err != nil {
				t.Fatal(err)
			}
			return names
		}
		names = append(names, left.Step)
		pieces := left.Cut(workers)
		r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		for i, piece := range pieces {
			task.Part, task.First, task.Last = control.Part(left.Step), piece.First, piece.Last
			ctx, cancel := context.WithCancel(t.Context())
			if i == 1 && r.IntN(2) == 0 {
				cancel() // the task comes again
			}
			if _, err := stagetest.Execute(ctx, cat, task); err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
			cancel()
		}
	}
	t.Fatal("the partition does not end")
	return nil
}

// TestFillNeighbours compares what neighbours fill with its definition, and the files of several threads, workers and amounts of memory
// with each other.
func TestFillNeighbours(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		t.Run(fmt.Sprint("weighted=", weighted), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			g := newGaps(r, 9000, 20000, 23, weighted)
			setup := stagetest.On(t, g.write(t, weighted))
			p := stagetest.SmallPlan()
			p.Partition.Dataset, p.Partition.Fill, p.Partition.IntervalBlocks, p.Precision = setup.Dataset, "neighbours", 1, "float16"
			store := storagetest.NewMem()
			stagetest.Run(t, store, p, setup, control.Partition)
			want, sums := g.filled(), stagetest.Sums(t, store)
			for id, row := range features(t, store) {
				if len(row) != len(want[id]) {
					t.Fatalf("%d features, not %d", len(row), len(want[id]))
				}
				for c, x := range row {
					if math.Abs(float64(x)-want[id][c]) > 1e-6 {
						t.Errorf("feature %d of node %d is %v, not %v", c, id, x, want[id][c])
					}
				}
			}
			for path := range sums {
				if strings.Contains(path, "unfilled") || strings.Contains(path, "neighbours") {
					t.Errorf("%s stays", path)
				}
			}
			little := setup
			little.Memory, little.Threads, little.BlockColumns = 128<<20, 4, 16
			store = storagetest.NewMem()
			stagetest.Run(t, store, p, little, control.Partition)
			stagetest.Compare(t, "little memory", stagetest.Sums(t, store), sums)
			store = storagetest.NewMem()
			if names := inSteps(t, store, p, little, 3, r); !slices.Contains(names, "neighbours") || !slices.Contains(names, "fill") {
				t.Errorf("steps %v", names)
			}
			stagetest.Compare(t, "several workers", stagetest.Sums(t, store), sums)
		})
	}
}
