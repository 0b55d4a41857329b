package spmv

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
)

// polynomial is T_j of a hop, in float64.
func polynomial(g testgraph.Graph, x []float32, stride, j int) []float64 {
	before, now := make([]float64, len(x)), make([]float64, len(x))
	for i, v := range x {
		now[i] = float64(v)
	}
	for step := range j {
		next := make([]float64, len(x))
		for i, adj := range g.Adj {
			for c := range stride {
				sum := now[i*stride+c]
				for _, k := range adj {
					sum += now[int(k)*stride+c]
				}
				next[i*stride+c] = sum / float64(len(adj)+1)
				if step > 0 {
					next[i*stride+c] = 2*next[i*stride+c] - before[i*stride+c]
				}
			}
		}
		before, now = now, next
	}
	return now
}

// recur makes so many steps.
func recur(t testing.TB, p *Pass, b *Block, steps int) {
	t.Helper()
	for range steps {
		if _, err := p.Recur(t.Context(), b, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecurEqualsDefinition(t *testing.T) {
	graphs := append(testgraph.Small(), testgraph.Random(700, 3000, 3), testgraph.Star(3000))
	for _, g := range graphs {
		for _, stride := range []int{16, 48} {
			cur := rows(len(g.Adj), stride, 4)
			p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0]}
			for _, steps := range []int{1, 2, 3, 40} {
				b := block(t, p.Kernel, cur, Layout{}, 2)
				recur(t, p, b, steps)
				got, most, off := contents(t, b), 0.0, 0.0
				for i, w := range polynomial(g, cur.S, stride, steps) {
					most, off = max(most, math.Abs(w)), max(off, math.Abs(float64(got[i])-w))
				}
				if !(off <= 2e-6*float64(steps)*max(most, 1)) {
					t.Errorf("%s, %d columns, T_%d: off by %g, values to %g", g.Name, stride, steps, off, most)
				}
				b.Free()
			}
		}
	}
}

// before are the rows before those of a block, as bytes.
func before(t *testing.T, b *Block) []byte {
	t.Helper()
	var all bytes.Buffer
	if err := b.ExportBefore(func(_ int64, rows Rows) error {
		raw, _, _ := rows.Bytes()
		all.Write(raw)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// TestRecurShowsNothing makes steps with every number of threads, kernel and place of rows, with and without taking the rows to
// another block in between: the same bits.
func TestRecurShowsNothing(t *testing.T) {
	for _, g := range []testgraph.Graph{testgraph.Random(3000, 9000, 2), wide()} {
		cur := rows(len(g.Adj), 32, 6)
		for _, precision := range []Precision{Float32, Float16} {
			var want []float32
			var wantBefore []byte
			compare := func(what string, b *Block) {
				t.Helper()
				got, earlier := contents(t, b), before(t, b)
				if want == nil {
					want, wantBefore = got, earlier
				}
				if err := sameBits(got, want); err != nil || !bytes.Equal(earlier, wantBefore) {
					t.Errorf("%s, %s, %s: %v", g.Name, precision, what, err)
				}
			}
			for _, k := range available() {
				for _, l := range layouts(precision) {
					if k != available()[0] && l.Residency != Resident {
						continue
					}
					p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: k}
					for _, threads := range []int{1, 3} {
						b := block(t, k, cur, l, threads)
						recur(t, p, b, 4)
						compare(k.Name()+" "+l.Residency.String(), b)
						b.Free()
						if testing.Short() {
							break
						}
					}
					b := block(t, k, cur, l, 2)
					recur(t, p, b, 2)
					other := block(t, k, rows(len(g.Adj), 32, 7), layouts(precision)[2], 2)
					take := func(from []byte) func(int64, Rows) error {
						return func(_ int64, rows Rows) error {
							raw, _, _ := rows.Bytes()
							from = from[copy(raw, from):]
							return nil
						}
					}
					var now bytes.Buffer
					if err := errors.Join(b.Export(func(_ int64, rows Rows) error {
						raw, _, _ := rows.Bytes()
						now.Write(raw)
						return nil
					}), other.Import(take(now.Bytes())), other.ImportBefore(take(before(t, b)))); err != nil {
						t.Fatal(err)
					}
					recur(t, p, other, 2)
					compare(l.Residency.String()+", taken over", other)
					b.Free()
					other.Free()
				}
			}
		}
	}
}

// TestRecurPart leaves more and more rows out, and rows that nothing leaves out keep their bits.
func TestRecurPart(t *testing.T) {
	g := testgraph.Path(400)
	cur := rows(len(g.Adj), 16, 6)
	for _, precision := range []Precision{Float32, Float16} {
		for _, l := range layouts(precision)[:3] {
			p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0]}
			b, whole := block(t, p.Kernel, cur, l, 2), block(t, p.Kernel, cur, l, 2)
			for step := range 6 {
				part := func(first int64, roles []Role) (Role, Role) {
					for i := range roles {
						roles[i] = Computed
						if first+int64(i) >= int64(300-step) {
							roles[i] = Skipped
						}
					}
					return Skipped, Computed
				}
				if _, err := p.Recur(t.Context(), b, nil, part); err != nil {
					t.Fatal(err)
				}
				recur(t, p, whole, 1)
			}
			if err := sameBits(contents(t, b)[:290*16], contents(t, whole)[:290*16]); err != nil {
				t.Errorf("%s, %s: %v", precision, l.Residency, err)
			}
		}
	}
}

// TestRecurConserves: hubs of equal neighbours and rows of any sign pass, a lost edge does not.
func TestRecurConserves(t *testing.T) {
	testkit.NotUnderRace(t, "TestRecurShowsNothing and TestNothingShows start the same goroutines")
	const n = 200000
	g := testgraph.Star(n)
	even := Rows{Stride: 16, S: slices.Repeat([]float32{0.1}, n*16)}
	for _, precision := range []Precision{Float32, Float16} {
		for _, x := range []Rows{even, rows(n, 16, 3)} {
			p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0]}
			b := block(t, p.Kernel, x, Layout{Precision: precision}, 2)
			recur(t, p, b, 12)
			b.Free()
		}
	}
	r := testgraph.Random(2000, 5000, 8)
	source := r.Source()
	p := &Pass{Source: source, Degree: r.Degree(), Kernel: goKernel}
	b := block(t, goKernel, rows(2000, 16, 1), Layout{}, 1)
	recur(t, p, b, 3)
	p.Source = lossy{source, uint32(source.Edges(0)) - 1}
	if _, err := p.Recur(t.Context(), b, nil, nil); !errors.Is(err, ErrConservation) {
		t.Errorf("a lost edge gave %v", err)
	}
	p.Sent = r.Degree()
	if _, err := p.Recur(t.Context(), b, nil, nil); err == nil {
		t.Error("a graph with directions was taken")
	}
	plain := block(t, goKernel, rows(packed.StripRows, 16, 1), Layout{}, 1)
	if err := plain.ExportBefore(nil); !errors.Is(err, errNotHeld) {
		t.Errorf("a block without rows before gave %v", err)
	}
}
