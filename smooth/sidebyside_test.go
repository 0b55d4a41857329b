package smooth

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// TestSideBySide smooths blocks with two smoothers at the same time: the rows equal those of one smoother, bit by bit.
func TestSideBySide(t *testing.T) {
	g := testgraph.Random(300, 900, 5)
	n := len(g.Adj)
	x, k := input(n), lsi(n)
	rule := mustRule(t, "ndls", 0, 0)
	for _, c := range []config{
		{r: 0.5, threads: 3, columns: 16},
		{r: 0.5, threads: 3, columns: 16, precision: spmv.Float16},
		{r: 0.3, threads: 2, columns: 16, component: true, targets: []int64{0, 7, 8, 200, 299}, pruned: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			want := smoothed(t, g, c, rule, x, k)
			s, free := engine(t, g, c, rule, k)
			defer free()
			another, err := s.Another(1)
			if err != nil {
				t.Fatal(err)
			}
			defer another.Free()
			got := make([]float32, len(want))
			var both sync.WaitGroup
			for i, s := range []*Smoother{s, another} {
				both.Go(func() {
					for first := i * c.columns; first < width; first += 2 * c.columns {
						rows := columnsOf(x, n, first, c.columns)
						if _, err := s.Run(t.Context(), rows); err != nil {
							t.Error(err)
							return
						}
						row := 0
						if err := s.Output(0, c.columns, rows, func(part []float32) error {
							for ; len(part) > 0; part = part[c.columns:] {
								copy(got[row*width+first:][:min(c.columns, width-first)], part)
								row++
							}
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			both.Wait()
			if !slices.Equal(got, want) {
				t.Error("rows differ from those of one smoother")
			}
		})
	}
}

// TestPlanSideBySide plans blocks side by side where strips are fewer than threads, in less and less memory, and
// compares the plan with what smoothers take.
func TestPlanSideBySide(t *testing.T) {
	g := testgraph.Random(4000, 20000, 5)
	n := int64(len(g.Adj))
	k := lsi(len(g.Adj))
	o := Options{
		Rule: mustRule(t, "ndls", 0, 0), K: func(i int64) int { return k[i] }, Targets: AllTargets(n),
		Ahead: true, SideBySide: true,
	}
	r := hops.Capacity{Nodes: n, Components: 1, Resident: true, Threads: 5, Columns: 37 * 16}
	_, r.Free, _ = o.Plan(r)
	seen := map[int]bool{}
	for ; r.Free < 32<<20; r.Free += 64 << 10 {
		p, need, err := o.Plan(r)
		if err != nil || need > r.Free {
			t.Fatalf("%d bytes: needs %d, error %v", r.Free, need, err)
		}
		if p.Layout.Residency != spmv.Resident && p.Teams != 1 || p.Teams < 1 || p.Teams > 5 {
			t.Fatalf("%d bytes: %+v", r.Free, p)
		}
		if seen[p.Teams] {
			continue
		}
		seen[p.Teams] = true
		b, err := mem.NewBudget(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		hg, free := graph(t, g, config{r: 0.5, threads: (r.Threads + p.Teams - 1) / p.Teams}, b)
		before := b.Free()
		s, err := New(t.Context(), hg, p)
		if err != nil {
			t.Fatal(err)
		}
		all := []*Smoother{s}
		for range p.Teams - 1 {
			one, err := s.Another(hg.Threads)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		took := before - b.Free()
		held := p.held(n) * int64(p.Teams) // what reading takes
		if took > need-held || took < (need-held)*8/10 {
			t.Errorf("%d teams take %d bytes beside reading, planned are %d", p.Teams, took, need-held)
		}
		for _, s := range slices.Backward(all) {
			s.Free()
		}
		free()
		b.Close()
	}
	if !seen[1] || !seen[2] || !seen[5] {
		t.Errorf("teams %v were planned", seen)
	}
}
