package smooth

import (
	"fmt"
	"slices"
	"testing"

	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// TestPruned: rows that nobody needs any more are left out, and the smoothed rows keep
// their bits.
func TestPruned(t *testing.T) {
	testkit.NotUnderRace(t, "TestKeptHopsDoNotShow and TestDepthByNodeEqualsTheDefinition start the same goroutines")
	// A path, whose rows are needed for long, through a graph in which all is near.
	e := make([][2]int, 0, 3000)
	for i := range 999 {
		e = append(e, [2]int{i, i + 1})
	}
	near := testgraph.Random(12_000, 36_000, 3)
	for i, adj := range near.Adj {
		for _, j := range adj {
			if i < int(j) {
				e = append(e, [2]int{1000 + i, 1000 + int(j)})
			}
		}
	}
	g := testgraph.New("path and random", 13_000, append(e, [2]int{999, 1000}))
	k := make([]int, len(g.Adj))
	for i := range k {
		if k[i] = i % 4; i < 1000 || i%5000 == 0 {
			k[i] = 12 + i%4
		}
	}
	x := input(len(g.Adj))
	some := []int64{3, 500, 999, 2000, 12_500}
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
