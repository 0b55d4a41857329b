package stationary

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/testgraph"
)

const stride = 32

func input(n int) []float32 {
	x := make([]float32, n*stride)
	for i := range x {
		x[i] = float32(i%17)/4 - 1
	}
	return x
}

// TestDeflateEqualsOracle: d̃^r times a deflated row is X minus its stationary
// row by the dense definition, and d̃^r times a scaled one is X itself.
func TestDeflateEqualsOracle(t *testing.T) {
	for _, g := range testgraph.Small() {
		for _, r := range []float64{0, 0.25, 0.5, 1} {
			for _, component := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/r=%g/component=%v", g.Name, r, component), func(t *testing.T) {
					b, err := mem.NewBudget(256 << 20)
					if err != nil {
						t.Fatal(err)
					}
					n := len(g.Adj)
					comp, count := g.Components()
					if !component {
						comp = nil
					}
					s, err := New(t.Context(), group.Solo(int64(len(g.Adj))), b, Nodes{Degree: g.Degree(), Component: comp, Components: count}, r)
					if err != nil {
						t.Fatal(err)
					}
					x := make([]float64, n*stride)
					for i, v := range input(n) {
						x[i] = float64(v)
					}
					limit := testgraph.NewOracle(g, r, component).Stationary(x, stride)
					scaled, deflated := input(n), input(n)
					s.Scale(0, scaled, stride)
					deflate(t, s, deflated, 7)
					for i := range x {
						up := s.Up(int64(i / stride))
						if got := up * float64(scaled[i]); math.Abs(got-x[i]) > 1e-6 {
							t.Fatalf("value %d: scaled back to %g, not %g", i, got, x[i])
						}
						if got, want := up*float64(deflated[i]), x[i]-limit[i]; math.Abs(got-want) > 2e-6 {
							t.Fatalf("value %d: distance %g, not %g", i, got, want)
						}
					}
					s.Free()
					if b.Free() != b.Limit() {
						t.Error("memory is not given back")
					}
				})
			}
		}
	}
}

// deflate takes rows to distances from the stationary row, portion rows at a
// time.
func deflate(t *testing.T, s *State, rows []float32, portion int) {
	t.Helper()
	m, err := s.NewMean(stride)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	each := func(visit func(first int64, part []float32)) {
		for at := 0; at < len(rows); at += portion * stride {
			visit(int64(at/stride), rows[at:min(at+portion*stride, len(rows))])
		}
	}
	each(func(first int64, part []float32) { s.Scale(first, part, stride) })
	each(func(first int64, part []float32) {
		m.Add(first, part, stride/2, stride) // columns may come in any order
		m.Add(first, part, 0, stride/2)
	})
	m.Finish()
	each(m.Subtract)
}

func TestPortionsDoNotShow(t *testing.T) {
	g := testgraph.Random(400, 900, 4)
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	comp, count := g.Components()
	s, err := New(t.Context(), group.Solo(int64(len(g.Adj))), b, Nodes{Degree: g.Degree(), Component: comp, Components: count}, 0.7)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	one, many := input(400), input(400)
	deflate(t, s, one, 400)
	deflate(t, s, many, 3)
	if !slices.Equal(one, many) {
		t.Error("rows in portions give other bits")
	}
}

// TestPowerTable: degrees past the table have the same powers.
func TestPowerTable(t *testing.T) {
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	degree := []uint32{0, 1, powers - 1, powers, 1 << 30}
	s, err := New(t.Context(), group.Solo(int64(len(degree))), b, Nodes{Degree: degree}, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	for i, d := range degree {
		want := math.Pow(float64(d)+1, 0.3)
		if got := s.Up(int64(i)); math.Abs(got-want) > 1e-12*want {
			t.Errorf("degree %d: %g, not %g", d, got, want)
		}
		if got := s.downOf(int64(i)) * want; math.Abs(got-1) > 1e-12 {
			t.Errorf("degree %d: up times down is %g", d, got)
		}
	}
}
