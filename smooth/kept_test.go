package smooth

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"ndls/hops"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// keptHops runs a rule and returns the rows of the hops that c keeps, hop by hop, targets ×
// width values each.
func keptHops(t testing.TB, g testgraph.Graph, c config, rule Rule, x []float64, k []int) (all [][]float32) {
	t.Helper()
	var s *Smoother
	first := 0
	c.after = func(hop int) error {
		i, keep := slices.BinarySearch(c.keep, hop)
		if !keep {
			return nil
		}
		for col := 0; col < c.columns && first+col < width; col += 16 {
			at := first + col
			if err := s.Hop(hop, col, 16, columnsOf(x, len(g.Adj), first, c.columns), func(rows []float32) error {
				for ; len(rows) > 0; rows, at = rows[16:], at+width {
					copy(all[i][at:at+min(16, width-first-col)], rows)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}
	s, free := engine(t, g, c, rule, k)
	defer free()
	for range c.keep {
		all = append(all, make([]float32, s.o.Targets.Len()*width))
	}
	for ; first < width; first += c.columns {
		if _, err := s.Run(context.Background(), columnsOf(x, len(g.Adj), first, c.columns)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// mustRule is a rule by its name, with byNode behind it for [Rule.ByNode].
func mustRule(t testing.TB, name string, alpha float64, depth int) Rule {
	t.Helper()
	name, nodes := strings.CutSuffix(name, byNode)
	rule, err := NewRule(name, alpha, depth)
	if err == nil && nodes {
		rule, err = rule.ByNode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

const byNode = " by node"

// TestKeptHops compares the hops that are kept with dense float64 hops, beside rules that
// count fewer of them and more, and alone.
func TestKeptHops(t *testing.T) {
	for _, name := range []string{"ndls", "sgc", "sign"} {
		for _, g := range testgraph.Small() {
			for _, r := range []float64{0, 0.5, 1} {
				t.Run(fmt.Sprintf("%s/%s/r=%g", name, g.Name, r), func(t *testing.T) {
					n := len(g.Adj)
					x, k, keep := input(n), lsi(n), []int{0, 1, 3, 25}
					rule := mustRule(t, name, 0, 4)
					c := config{r: r, component: true, kernel: "auto", threads: 2, columns: 16, pruned: true, keep: keep}
					got := keptHops(t, g, c, rule, x, k)
					all := hopsOf(testgraph.NewOracle(g, r, false), x, 25)
					for i, hop := range keep {
						for at, want := range all[hop] {
							if d := math.Abs(float64(got[i][at]) - want); d > 2e-6 {
								t.Fatalf("hop %d, node %d, column %d: %g, the definition says %g", hop, at/width, at%width, got[i][at], want)
							}
							if hop == 0 && float64(got[i][at]) != want {
								t.Fatalf("hop 0, node %d: %g is not the input %g", at/width, got[i][at], want)
							}
						}
					}
				})
			}
		}
	}
}

// TestKeptHopsDoNotShow: hops are the same bits beside every rule, for some targets, in every
// residency, kernel and block; and rules add up the same as without them.
func TestKeptHopsDoNotShow(t *testing.T) {
	g := testgraph.Random(700, 1500, 5)
	x, k := input(700), lsi(700)
	keep := []int{0, 2, 3, 30}
	want := keptHops(t, g, config{r: 0.5, component: true, kernel: "go", threads: 1, columns: 48, keep: keep}, mustRule(t, "sign", 0, 2), x, k)
	targets := []int64{0, 3, 64, 65, 127, 128, 400, 699}
	for _, rule := range []string{"sign", "ndls", "ndls-reference", "gbp"} {
		for _, columns := range []int{16, 32, 48} {
			for _, place := range []spmv.Residency{spmv.Resident, spmv.Spilled, spmv.External} {
				c := config{r: 0.5, component: true, threads: 3, columns: columns, place: place, spilled: place != spmv.Resident, keep: keep, pruned: columns < 48}
				if got := keptHops(t, g, c, mustRule(t, rule, 0.3, 7), x, k); !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("%s, %+v: other bits", rule, c)
				}
				c.targets = targets
				for i, rows := range keptHops(t, g, c, mustRule(t, rule, 0.3, 7), x, k) {
					for at, node := range targets {
						if !slices.Equal(rows[at*width:(at+1)*width], want[i][node*width:(node+1)*width]) {
							t.Errorf("%s, %+v: other bits of node %d at hop %d", rule, c, node, keep[i])
						}
					}
				}
			}
		}
	}
	for _, name := range []string{"ndls", "ndls-reference", "gbp"} {
		c, rule := config{r: 0.5, component: true, threads: 2, columns: 16, pruned: true}, mustRule(t, name, 0.3, 7)
		without := smoothed(t, g, c, rule, x, k)
		c.keep = keep
		if all := smoothed(t, g, c, rule, x, k); !slices.Equal(all, without) {
			t.Errorf("%s: other sums beside hops that are kept", name)
		}
	}
}

// TestKeptHopsAfterResuming: a run that resumes makes the hops after its state, the same bits.
func TestKeptHopsAfterResuming(t *testing.T) {
	g := testgraph.Random(700, 1500, 5)
	x, k := input(700), lsi(700)
	for _, name := range []string{"sign", "ndls", "sign by node"} {
		rule := mustRule(t, name, 0, 6)
		c := config{r: 0.5, component: true, threads: 2, columns: 48, keep: []int{1, 4, 6}}
		want := keptHops(t, g, c, rule, x, k)
		var saved bytes.Buffer
		s, free := engine(t, g, c, rule, k)
		rows := columnsOf(x, len(g.Adj), 0, 48)
		_, err := s.Continue(t.Context(), rows, 0, 3, hops.Checkpoints{
			Identity: "x", Due: func() bool { return saved.Len() == 0 },
			Save: func(_ context.Context, hop int, write func(io.Writer) error) error { return write(&saved) },
		})
		free()
		if err != nil {
			t.Fatal(err)
		}
		got := map[int][]float32{}
		var again *Smoother
		c.after = func(hop int) error {
			if !slices.Contains(c.keep, hop) {
				return nil
			}
			got[hop] = make([]float32, 700*width)
			at := 0
			return again.Hop(hop, 0, 48, rows, func(rows []float32) error {
				for ; len(rows) > 0; rows, at = rows[48:], at+width {
					copy(got[hop][at:at+width], rows)
				}
				return nil
			})
		}
		again, free = engine(t, g, c, rule, k)
		resumed := 0
		if _, err := again.Continue(t.Context(), rows, 0, 3, hops.Checkpoints{Identity: "x", From: &saved, Resumed: func(hop int, why error) { resumed = hop }}); err != nil {
			t.Fatal(err)
		}
		free()
		if resumed != 1 || got[1] != nil || !slices.Equal(got[4], want[1]) || !slices.Equal(got[6], want[2]) {
			t.Errorf("%s: resumed from hop %d, hops %d: other bits", name, resumed, len(got))
		}
	}
}
