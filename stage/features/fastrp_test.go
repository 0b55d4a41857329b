package features_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// edgesFile writes the edges of a graph, and returns the dataset.
func edgesFile(t testing.TB, g testgraph.Graph) string {
	t.Helper()
	var text strings.Builder
	for i, neighbours := range g.Adj {
		for _, j := range neighbours {
			if int(j) > i {
				fmt.Fprintf(&text, "%d %d\n", i, j)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return "edges:" + path
}

// someGraph has nodes of very different degrees and no node without edges.
func someGraph(n int, seed uint64) testgraph.Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	var edges [][2]int
	for i := 1; i < n; i++ {
		edges = append(edges, [2]int{i, r.IntN(i)})
		for range r.IntN(4) {
			edges = append(edges, [2]int{i, r.IntN(r.IntN(n) + 1)})
		}
	}
	return testgraph.New("some", n, edges)
}

// embeddings are rows of FastRP by the definition, in float64: dense random rows, hops of the
// transition matrix, lengths of whole rows.
func embeddings(g testgraph.Graph, seed uint64, dimensions int, weights []float64, power, sparsity float64) [][]float64 {
	n := len(g.Adj)
	x := make([]float64, n*dimensions)
	for i := range n {
		d := float64(len(g.Adj[i])) + 1
		for c := range dimensions {
			h := rng.Hash(seed, uint64(i), uint64(c))
			if float64(h>>1) < 0x1p63/sparsity {
				x[i*dimensions+c] = math.Pow(d, power) * float64(1-2*int(h&1))
			}
		}
	}
	walk := testgraph.NewOracle(g, 0, true)
	rows := make([][]float64, n)
	for hop, w := range weights {
		if hop > 0 {
			x = walk.Apply(x, dimensions)
		}
		for i := range rows {
			if hop == 0 {
				rows[i] = make([]float64, dimensions)
			}
			row, square := x[i*dimensions:][:dimensions], 0.0
			for _, v := range row {
				square += v * v
			}
			for c, v := range row {
				if square > 0 {
					rows[i][c] += w * v / math.Sqrt(square)
				}
			}
		}
	}
	return rows
}

// TestFastRP compares rows made of the edges alone with the definition.
func TestFastRP(t *testing.T) {
	for _, tc := range []struct {
		n       int
		change  func(p *plan.Options)
		weights []float64
		width   int
		power   float64
		s       float64
		near    float64
	}{
		{1200, func(*plan.Options) {}, []float64{0, 0, 1, 1, 1, 1}, 128, 0, 3, 1e-5},
		{900, func(p *plan.Options) {
			p.Smooth.Dimensions, p.Smooth.HopWeights, p.Smooth.DegreePower, p.Smooth.Sparsity = 40, "0.5,0,-1,0,2", -0.5, 1
			p.LSI.R, p.Seed = 0.8, 12
		}, []float64{0.5, 0, -1, 0, 2}, 40, -0.5, 1, 1e-5},
		{900, func(p *plan.Options) {
			p.Smooth.Dimensions, p.Smooth.Sparsity, p.Smooth.DegreePower, p.Precision = 70, 30, 0.3, "float16"
		}, []float64{0, 0, 1, 1, 1, 1}, 70, 0.3, 30, 3e-3},
	} {
		g := someGraph(tc.n, uint64(tc.width))
		opts := plan.Default()
		opts.Partition.Dataset, opts.Smooth.Rule = "edges", plan.FastRP
		tc.change(&opts)
		store := storagetest.NewMem()
		m := stagetest.On(t, edgesFile(t, g))
		m.BlockColumns = 32
		stagetest.Run(t, store, opts, m, control.Partition, control.Smooth)
		got := stagetest.Rows(t, store, catalog.KindSmoothed)
		want := embeddings(g, opts.Seed, tc.width, tc.weights, tc.power, tc.s)
		if len(got) != tc.n {
			t.Fatalf("%d rows of %d", len(got), tc.n)
		}
		worst := 0.0
		for i, row := range want {
			var off, length float64
			if len(got[int64(i)]) != tc.width {
				t.Fatalf("node %d has %d columns", i, len(got[int64(i)]))
			}
			for c, x := range row {
				off += math.Pow(float64(got[int64(i)][c])-x, 2)
				length += x * x
			}
			if length == 0 && off > 0 {
				t.Errorf("node %d: a row that should be zero is not", i)
			} else if length > 0 {
				worst = max(worst, math.Sqrt(off/length))
			}
		}
		t.Logf("%d columns: worst relative deviation %.2g", tc.width, worst)
		if !(worst <= tc.near) || worst == 0 {
			t.Errorf("%d columns: rows are off by %g of their length", tc.width, worst)
		}
	}
}
