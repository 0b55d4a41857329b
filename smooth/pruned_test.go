package smooth

import (
	"fmt"
	"slices"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// TestFindNeededReads: a step reads no strip without a row of the step.
func TestFindNeededReads(t *testing.T) {
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	const strips = 8
	g := testgraph.Path(strips << packed.StripShift)
	hg, free := graph(t, g, config{r: 0.5, kernel: "auto", threads: 3}, b)
	defer free()
	const middle = 3<<packed.StripShift + packed.StripRows/2
	needed, err := hg.FindNeeded(t.Context(), 5, func(i int64) int {
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

// TestPruned: rows that nobody needs any more are left out, and the smoothed rows keep
// their bits.
func TestPruned(t *testing.T) {
	// A path, whose rows are needed for long, through a graph in which all is near.
	e := make([][2]int, 0, 3000)
	for i := range 999 {
		e = append(e, [2]int{i, i + 1})
	}
	near := testgraph.Random(33_000, 100_000, 3)
	for i, adj := range near.Adj {
		for _, j := range adj {
			if i < int(j) {
				e = append(e, [2]int{1000 + i, 1000 + int(j)})
			}
		}
	}
	g := testgraph.New("path and random", 34_000, append(e, [2]int{999, 1000}))
	k := make([]int, len(g.Adj))
	for i := range k {
		if k[i] = i % 4; i < 1000 || i%5000 == 0 {
			k[i] = 12 + i%4
		}
	}
	x := input(len(g.Adj))
	some := []int64{3, 500, 999, 2000, 33_500}
	base := config{r: 0.5, component: true, kernel: "auto", threads: 2, columns: 16}
	rules := []string{"ndls", "ndls-reference", "sgc"}
	if testing.Short() {
		rules = rules[:1]
	}
	for _, rule := range rules {
		rule, err := NewRule(rule, 0.15, 9)
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*config){
			"all targets":         func(*config) {},
			"some targets":        func(c *config) { c.targets = some },
			"spilled":             func(c *config) { c.targets, c.place, c.spilled = some, spmv.Spilled, true },
			"external, float16":   func(c *config) { c.targets, c.place, c.precision = some, spmv.External, spmv.Float16 },
			"five threads, twin":  func(c *config) { c.targets, c.threads, c.kernel = some, 5, "go" },
			"blocks of 2 columns": func(c *config) { c.targets, c.columns = some, 32 },
		} {
			t.Run(fmt.Sprintf("%s/%s", rule.Name, name), func(t *testing.T) {
				c := base
				change(&c)
				want, all := smoothedStats(t, g, c, rule, x, k)
				c.pruned = true
				got, pruned := smoothedStats(t, g, c, rule, x, k)
				if !slices.Equal(got, want) {
					t.Error("pruning changes the smoothed rows")
				}
				if c.targets != nil && pruned.EdgesStreamed >= all.EdgesStreamed {
					t.Errorf("%d edges are streamed, %d without pruning", pruned.EdgesStreamed, all.EdgesStreamed)
				}
				t.Logf("%d edges of %d", pruned.EdgesStreamed, all.EdgesStreamed)
			})
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
		hg, free := graph(t, g, config{r: 0.5, kernel: "auto", threads: 3}, b)
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
		needed, err := hg.FindNeeded(t.Context(), last, counted)
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
		free()
		if b.Free() != b.Limit() {
			t.Errorf("%s: memory is not given back", g.Name)
		}
	}
}
