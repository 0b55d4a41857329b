package main

import (
	"context"
	"math"
	"testing"

	"ndls/dataset"
	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

const testColumns = 16

func tinyGraph(t *testing.T, uri string) (*mem.Budget, *graph) {
	t.Helper()
	b, err := mem.NewBudget(512 << 20)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open(context.Background(), uri, dataset.Options{NoFeatures: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	g, err := load(context.Background(), b, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.free)
	return b, g
}

// rowsAfterHop runs one pass and returns the rows by node.
func rowsAfterHop(t *testing.T, b *mem.Budget, q *packedOrder) []float32 {
	t.Helper()
	n := q.stream.NumNodes()
	block, err := spmv.NewBlock(b, q.pass.Kernel, group.Solo(n), spmv.Layout{Columns: testColumns}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer block.Free()
	if err := q.fill(block); err != nil {
		t.Fatal(err)
	}
	if _, err := q.pass.Run(t.Context(), block, nil, nil); err != nil {
		t.Fatal(err)
	}
	rows := make([]float32, n*testColumns)
	if err := block.Visit(func(first int64, part []float32) error {
		for i := range len(part) / testColumns {
			v := int(q.nodes.S[first+int64(i)])
			copy(rows[v*testColumns:], part[i*testColumns:][:testColumns])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The second graph has more than one strip, nodes without edges and components.
func TestOrders(t *testing.T) {
	for _, uri := range []string{"karate:", "synthetic:nodes=70000,edges=90000,classes=50"} {
		t.Run(uri, func(t *testing.T) {
			b, g := tinyGraph(t, uri)
			all, err := packAll(context.Background(), b, g, orders)
			if err != nil {
				t.Fatal(err)
			}
			var want []float32
			for _, q := range all {
				defer q.free()
				checkPermutation(t, q.name, q.nodes.S, g.n)
				if q.stream.NumEdges() != g.numEdges() {
					t.Errorf("%s: %d edges of %d", q.name, q.stream.NumEdges(), g.numEdges())
				}
				if strips := int64(packed.Strips(g.n)); q.rows <= 0 || q.rows > min(g.numEdges(), strips*g.n) {
					t.Errorf("%s: %d pairs of strip and source", q.name, q.rows)
				}
				rows := rowsAfterHop(t, b, q)
				if want == nil {
					want = rows
				}
				for i, x := range rows {
					// Values are up to 512, and sums are divided by what they add.
					if d := math.Abs(float64(x - want[i])); d > 1e-3 {
						t.Fatalf("%s: node %d, column %d: %g, in another order %g", q.name, i/testColumns, i%testColumns, x, want[i])
					}
				}
			}
		})
	}
}

func checkPermutation(t *testing.T, name string, nodes []uint32, n int64) {
	t.Helper()
	seen := make([]bool, n)
	for _, v := range nodes {
		if seen[v] {
			t.Fatalf("%s: node %d comes twice", name, v)
		}
		seen[v] = true
	}
	if int64(len(nodes)) != n {
		t.Fatalf("%s: %d nodes of %d", name, len(nodes), n)
	}
}

func TestLoad(t *testing.T) {
	_, g := tinyGraph(t, "karate:")
	if g.n != 34 || g.numEdges() != 156 || g.maxDegree() != 17 || g.input.S[0] != 33 {
		t.Errorf("%d nodes, %d directed edges, largest degree %d at node %d", g.n, g.numEdges(), g.maxDegree(), g.input.S[0])
	}
	for v := range uint32(g.n) {
		if v > 0 && g.degree(v) > g.degree(v-1) {
			t.Errorf("node %d has a larger degree than the one before", v)
		}
	}
}

// Nodes at distance d of the start come before those at distance d+1.
func TestBreadthFirst(t *testing.T) {
	b, g := tinyGraph(t, "karate:")
	nodes := make([]uint32, g.n)
	if err := breadthFirst(b, g, nodes); err != nil {
		t.Fatal(err)
	}
	distance := map[uint32]int{nodes[0]: 0}
	for _, v := range nodes {
		for _, u := range g.of(v) {
			if _, ok := distance[u]; !ok {
				distance[u] = distance[v] + 1
			}
		}
	}
	for i := 1; i < len(nodes); i++ {
		if distance[nodes[i]] < distance[nodes[i-1]] {
			t.Errorf("node %d at distance %d comes after distance %d", nodes[i], distance[nodes[i]], distance[nodes[i-1]])
		}
	}
}

func TestPropagateBoundsClusters(t *testing.T) {
	b, g := tinyGraph(t, "synthetic:nodes=70000,edges=600000,classes=1")
	labels, sizes := make([]uint32, g.n), make([]uint32, g.n)
	if err := propagate(b, g, labels, sizes); err != nil {
		t.Fatal(err)
	}
	counted := make([]uint32, g.n)
	for _, l := range labels {
		counted[l]++
	}
	for l, n := range counted {
		if n != sizes[l] || n > clusterNodes {
			t.Fatalf("cluster %d has %d nodes, counted as %d, of at most %d", l, n, sizes[l], clusterNodes)
		}
	}
}

func TestChoose(t *testing.T) {
	chosen, err := choose("bfs")
	if err != nil || len(chosen) != 2 || chosen[0].name != reference || chosen[1].name != "bfs" {
		t.Errorf("bfs gave %v, %v", chosen, err)
	}
	if _, err := choose("nothing"); err == nil {
		t.Error("an order that does not exist is taken")
	}
}
