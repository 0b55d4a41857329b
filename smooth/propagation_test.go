package smooth

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// TestPropagationEqualsItsSteps compares label propagation with its steps in float64, each node
// stopping at its own K, and, cut at each depth, with what [Smoother.Prefix] gives.
func TestPropagationEqualsItsSteps(t *testing.T) {
	const share = 0.8
	for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
		for _, c := range []config{
			{r: 0.5, kernel: "auto", threads: 2, columns: 48},
			{r: 0, kernel: "go", threads: 1, columns: 16, spilled: true, place: spmv.External},
		} {
			t.Run(fmt.Sprintf("%s/r=%g", g.Name, c.r), func(t *testing.T) {
				n := len(g.Adj)
				x, k := input(n), lsi(n)
				most := slices.Max(k)
				o := testgraph.NewOracle(g, c.r, false)
				steps := [][]float64{x}
				for range most {
					next := o.Apply(steps[len(steps)-1], width)
					for i := range next {
						next[i] = (1-share)*x[i] + share*next[i]
					}
					steps = append(steps, next)
				}
				near(t, "whole", smoothed(t, g, c, Propagation(share), x, k), n, func(i int) []float64 { return steps[k[i]][i*width:][:width] })

				targets := []int64{}
				for i := range n {
					if i%3 != 1 {
						targets = append(targets, int64(i))
					}
				}
				c.targets, c.columns = targets, 48
				var s *Smoother
				at := 0
				c.after = func(hop int) error {
					rows := make([]float32, 0, len(targets)*48)
					if err := s.Hop(hop, 0, 48, columnsOf(x, n, 0, 48), func(part []float32) error {
						rows = append(rows, part...)
						return nil
					}); err != nil {
						return err
					}
					var got []float32
					if err := s.Prefix(hop, 0, width, func(i int64) []float32 { return rows[i*48:][:48] }, func(part []float32) error {
						got = append(got, part...)
						return nil
					}); err != nil {
						return err
					}
					near(t, fmt.Sprintf("up to hop %d", hop), got, len(targets), func(i int) []float64 {
						node := int(targets[i])
						return steps[min(k[node], hop)][node*width:][:width]
					})
					at = hop
					return nil
				}
				s, free := engine(t, g, c, Propagation(share), k)
				defer free()
				if _, err := s.Run(t.Context(), columnsOf(x, n, 0, 48)); err != nil {
					t.Fatal(err)
				}
				if at != s.Hops() {
					t.Errorf("hop %d was the last of %d", at, s.Hops())
				}
			})
		}
	}
}

// TestClampedPropagationEqualsItsSteps sets every fourth row after each step.
func TestClampedPropagationEqualsItsSteps(t *testing.T) {
	const share = 0.7
	for _, g := range append(testgraph.Small(), testgraph.SmallWeighted()...) {
		t.Run(g.Name, func(t *testing.T) {
			n := len(g.Adj)
			x, k := input(n), lsi(n)
			for i := range n {
				if i%4 != 0 {
					clear(x[i*width : (i+1)*width])
				}
			}
			o := testgraph.NewOracle(g, 0.5, false)
			steps := [][]float64{x}
			for range slices.Max(k) {
				next := o.Apply(steps[len(steps)-1], width)
				for i := range next {
					next[i] *= share
				}
				for i := 0; i < n; i += 4 {
					copy(next[i*width:(i+1)*width], x[i*width:])
				}
				steps = append(steps, next)
			}
			c := config{r: 0.5, kernel: "auto", threads: 2, columns: 48}
			b, err := mem.NewBudget(1 << 30)
			if err != nil {
				t.Fatal(err)
			}
			known, err := NewTargets(b, int64(n))
			if err != nil {
				t.Fatal(err)
			}
			defer known.Free()
			for i := 0; i < n; i += 4 {
				known.Add(int64(i))
			}
			known.Finish()
			var s *Smoother
			c.after = func(hop int) error {
				if hop == 0 {
					return nil
				}
				return s.Clamp(share, known, func(at int64) []float32 {
					row := make([]float32, 48)
					for j, v := range x[4*at*width:][:width] {
						row[j] = float32(v)
					}
					return row
				})
			}
			s, free := engine(t, g, c, ClampedPropagation(share), k)
			defer free()
			rows := columnsOf(x, n, 0, 48)
			if _, err := s.Run(t.Context(), rows); err != nil {
				t.Fatal(err)
			}
			var got []float32
			if err := s.Output(0, width, rows, func(part []float32) error {
				got = append(got, part...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			near(t, "clamped", got, n, func(i int) []float64 {
				if i%4 == 0 && k[i] > 0 {
					return nil // what the steps have before the row is set
				}
				return steps[k[i]][i*width:][:width]
			})
		})
	}
}

// near compares n rows with what they should be, where that is known.
func near(t *testing.T, what string, got []float32, n int, want func(i int) []float64) {
	t.Helper()
	if len(got) != n*width {
		t.Fatalf("%s: %d values for %d rows", what, len(got), n)
	}
	for i := range n {
		for c, w := range want(i) {
			if d := math.Abs(float64(got[i*width+c]) - w); d > 3e-6*max(1, math.Abs(w)) {
				t.Fatalf("%s: row %d, column %d: %g, want %g", what, i, c, got[i*width+c], w)
			}
		}
	}
}
