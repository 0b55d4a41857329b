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

// TestBeside compares rules beside each other with the same rules alone, bit by bit.
func TestBeside(t *testing.T) {
	g := testgraph.Random(300, 900, 5)
	n := len(g.Adj)
	x := input(n)
	k, fewer := lsi(n), make([]int, n)
	for i := range fewer {
		fewer[i] = k[i] / 3
	}
	residual, err := mustRule(t, "ndls", 0, 0).WithResidual(0.2)
	if err != nil {
		t.Fatal(err)
	}
	rules := []struct {
		rule Rule
		k    []int
	}{
		{mustRule(t, "ndls", 0, 0), fewer},
		{mustRule(t, "ndls", 0, 0), k},
		{residual, fewer},
		{mustRule(t, "ndls-reference", 0.15, 0), k},
		{mustRule(t, "sgc", 0, 4), nil},
		{mustRule(t, "gbp", 0.1, 30), nil},
		{mustRule(t, "appnp"+byNode, 0.1, 9), k},
		{mustRule(t, "s2gc", 0.05, 6), nil},
	}
	for _, c := range []config{
		{r: 0.5, threads: 1, columns: 16},
		{r: 0.3, threads: 2, columns: 32, component: true, targets: []int64{0, 7, 8, 200, 299}, pruned: true},
		{r: 0.5, threads: 2, columns: 16, place: spmv.External, spilled: true},
		{r: 0.5, threads: 2, columns: 16, tolerance: 0.02, pruned: true},
		{r: 0.5, threads: 2, columns: 16, tolerance: 0.3, place: spmv.Spilled},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			together := c
			for _, r := range rules[1:] {
				together.beside = append(together.beside, Beside{r.rule, func(i int64) int { return r.k[i] }, 0})
			}
			s, free := engine(t, g, together, rules[0].rule, rules[0].k)
			defer free()
			got := make([][]float32, len(rules))
			for i := range got {
				got[i] = make([]float32, s.o.Targets.Len()*width)
			}
			for first := 0; first < width; first += c.columns {
				rows := columnsOf(x, n, first, c.columns)
				if _, err := s.Run(t.Context(), rows); err != nil {
					t.Fatal(err)
				}
				for i := range rules {
					row := 0
					if err := s.Each(i).Output(0, c.columns, rows, func(part []float32) error {
						for ; len(part) > 0; part = part[c.columns:] {
							copy(got[i][row*width+first:(row+1)*width], part[:c.columns])
							row++
						}
						return nil
					}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i, r := range rules {
				if want := smoothed(t, g, c, r.rule, x, r.k); !slices.Equal(got[i], want) {
					t.Errorf("number %d, %s, differs from the rule alone", i, r.rule.Name)
				}
			}
		})
	}
	budget, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	hg, free := graph(t, g, config{r: 0.5, threads: 1}, budget)
	defer free()
	beside := []Beside{{rules[1].rule, func(int64) int { return 1 }, 0}}
	for what, o := range map[string]Options{
		"hops that are kept":     {Rule: rules[0].rule, Keep: []int{1}, Beside: beside},
		"a rule that lists hops": {Rule: mustRule(t, "sign", 0, 3), Beside: beside},
	} {
		o.K, o.Targets, o.Layout = func(int64) int { return 1 }, AllTargets(int64(n)), spmv.Layout{Columns: 16, Window: packed.StripRows, Accumulators: 1}
		if _, err := New(t.Context(), hg, o); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
