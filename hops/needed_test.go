package hops

import (
	"slices"
	"testing"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
)

// edgesOf is a graph whose edges alone are read.
func edgesOf(g testgraph.Graph, b *mem.Budget) Graph {
	return Graph{Source: g.Source(), Degree: g.Degree(), Budget: b, Threads: 3, Group: group.Solo(int64(len(g.Adj)))}
}

// TestFindNeededReads: a step reads no strip without a row of the step.
func TestFindNeededReads(t *testing.T) {
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	const strips = 8
	g := testgraph.Path(strips << packed.StripShift)
	const middle = 3<<packed.StripShift + packed.StripRows/2
	needed, err := edgesOf(g, b).FindNeeded(t.Context(), 5, func(i int64) int {
		if i == middle {
			return 5
		}
		return -1
	})
	if err != nil {
		t.Fatal(err)
	}
	defer needed.Free()
	if most := 2 * int64(packed.StripRows) * 5; needed.EdgesRead > most {
		t.Errorf("%d edges are read for the rows about one node, not at most %d: one strip for each step", needed.EdgesRead, most)
	}
	for i := range int64(strips << packed.StripShift) {
		distance := max(i-middle, middle-i)
		if want := max(5-int(distance), -1); needed.Until(i) < want || distance > 8 && needed.Until(i) > 0 {
			t.Fatalf("row %d at distance %d is needed up to hop %d", i, distance, needed.Until(i))
		}
	}
}

// TestFindNeeded compares with the definition: row j is needed up to the largest hop at
// which a row is counted, less the distance from j to it.
func TestFindNeeded(t *testing.T) {
	graphs := append(testgraph.Small(), testgraph.Path(200), testgraph.Random(500, 700, 1))
	for _, g := range append(graphs, testgraph.SmallDirected()...) {
		b, err := mem.NewBudget(mem.MinBudget)
		if err != nil {
			t.Fatal(err)
		}
		const last = 11
		counted := func(i int64) int { return int(i*i%37)%(last+2) - 1 }
		n := len(g.Adj)
		want := make([]int, n)
		for i := range want {
			want[i] = counted(int64(i))
		}
		for range last {
			next := slices.Clone(want)
			for i, adj := range g.Adj {
				for _, j := range adj {
					next[j] = max(next[j], want[i]-1)
				}
			}
			want = next
		}
		needed, err := edgesOf(g, b).FindNeeded(t.Context(), last, counted)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if needed != nil && needed.Until(int64(i)) < want[i] {
				t.Errorf("%s: row %d is needed up to hop %d, found %d", g.Name, i, want[i], needed.Until(int64(i)))
			}
		}
		if g.Name == testgraph.Path(200).Name && n == 200 && needed == nil {
			t.Error("all rows of a path are said to be needed at the last hop")
		}
		needed.Free()
		if b.Free() != b.Limit() {
			t.Errorf("%s: memory is not given back", g.Name)
		}
	}
}
