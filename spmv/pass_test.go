package spmv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ndls/group"
	"ndls/internal/direct"
	"ndls/internal/failure"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
)

// definition is a hop, in float64.
func definition(g testgraph.Graph, x []float32, stride int) []float64 {
	out := make([]float64, len(x))
	for i, adj := range g.Adj {
		for c := range stride {
			sum := float64(x[i*stride+c])
			for _, j := range adj {
				sum += float64(x[int(j)*stride+c])
			}
			out[i*stride+c] = sum / float64(len(adj)+1)
		}
	}
	return out
}

func rows(n, stride int, seed uint64) Rows {
	r := Rows{Stride: stride, S: make([]float32, n*stride)}
	fill(r.S, seed, false)
	return r
}

// block makes a block of the given layout that holds x.
func block(t testing.TB, k *Kernel, x Rows, l Layout, threads int) *Block {
	t.Helper()
	budget, err := mem.NewBudget(2 << 30)
	if err != nil {
		t.Fatal(err)
	}
	l.Columns = x.Stride
	b, err := NewBlock(budget, k, group.Solo(x.Len()), l, threads, testgraph.Scratch(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Free()
		if budget.Free() != budget.Limit() {
			t.Error("memory is not given back")
		}
	})
	if used, said := budget.Limit()-budget.Free(), l.Memory(x.Len(), threads); used > said+int64(threads+2)*2*pageBytes {
		t.Errorf("a %s block takes %d bytes, the layout says %d", l.Residency, used, said)
	}
	// Odd portions, as from a file.
	err = b.Fill(func(put func([]float32) error) error {
		for lo := int64(0); lo < x.Len(); lo += 1001 {
			if err := put(slices.Clone(x.Slice(lo, min(lo+1001, x.Len())).S)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// contents are the rows of a block.
func contents(t testing.TB, b *Block) []float32 {
	t.Helper()
	var all []float32
	if err := b.Visit(func(first int64, rows []float32) error {
		if first*int64(b.Layout().Columns) != int64(len(all)) {
			t.Errorf("row %d comes after %d values", first, len(all))
		}
		all = append(all, rows...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPassEqualsDefinition(t *testing.T) {
	for _, g := range testgraph.Small() {
		for _, stride := range []int{16, 48} {
			for _, k := range available() {
				n := len(g.Adj)
				p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: k}
				cur := rows(n, stride, 4)
				b := block(t, k, cur, Layout{}, 2)
				edges, err := p.Run(t.Context(), b, nil, nil)
				if err != nil {
					t.Fatalf("%s: %v", g.Name, err)
				}
				want := int64(0)
				for _, a := range g.Adj {
					want += int64(len(a))
				}
				if edges != want {
					t.Errorf("%s: %d edges, not %d", g.Name, edges, want)
				}
				next := contents(t, b)
				for i, w := range definition(g, cur.S, stride) {
					if math.Abs(float64(next[i])-w) > 1e-5 {
						t.Fatalf("%s, %s, value %d: %g, not %g", g.Name, k.Name(), i, next[i], w)
					}
				}
			}
		}
	}
}

// wide is a graph of four strips, most of whose rows are isolated.
func wide() testgraph.Graph {
	n := 3*packed.StripRows + 100
	rng := rand.New(rand.NewPCG(1, 9))
	var e [][2]int
	for range 40000 {
		e = append(e, [2]int{rng.IntN(n), rng.IntN(n)})
	}
	for range 40000 {
		e = append(e, [2]int{rng.IntN(300), rng.IntN(n)})
	}
	return testgraph.New("four strips", n, e)
}

// layouts are ways to lay out a block of a few strips.
func layouts(p Precision) []Layout {
	return []Layout{
		{Precision: p},
		{Precision: p, Residency: Spilled},
		{Precision: p, Residency: External, Window: packed.StripRows, Accumulators: 1},
		{Precision: p, Residency: External, Window: 2 * packed.StripRows, Accumulators: 3},
		{Precision: p, Residency: External, Window: 8 * packed.StripRows, Accumulators: 4},
	}
}

// TestNothingShows runs two hops with every number of threads, kernel and
// place: the same bits, each row handed out once.
func TestNothingShows(t *testing.T) {
	for _, g := range []testgraph.Graph{testgraph.Random(3000, 9000, 2), wide()} {
		source, degree := g.Source(), g.Degree()
		cur := rows(len(g.Adj), 32, 6)
		for _, p := range []Precision{Float32, Float16} {
			var want []float32
			for _, k := range available() {
				for _, l := range layouts(p) {
					for _, threads := range []int{1, 2, 5} {
						if k != available()[0] && (threads != 2 || l.Residency != Resident || testing.Short()) {
							continue // one way to run each of the other kernels
						}
						if testing.Short() && threads != 2 {
							continue
						}
						pass := &Pass{Source: source, Degree: degree, Kernel: k}
						b := block(t, k, cur, l, threads)
						for range 2 {
							runOnce(t, pass, b)
						}
						got := contents(t, b)
						if want == nil {
							want = got
						} else if err := sameBits(got, want); err != nil {
							t.Errorf("%s, %s, %s, %s, %d threads: %v", g.Name, k.Name(), p, l.Residency, threads, err)
						}
						b.Free()
					}
				}
			}
		}
	}
}

// runOnce makes a hop and sees that the sink gets each row once, as it is kept.
func runOnce(t *testing.T, p *Pass, b *Block) {
	t.Helper()
	stride := b.Layout().Columns
	shown := make([]float32, b.NumRows()*int64(stride))
	seen := make([]atomic.Int32, b.NumRows())
	if _, err := p.Run(t.Context(), b, func(first int64, rows []float32) {
		copy(shown[first*int64(stride):], rows)
		for i := range len(rows) / stride {
			seen[first+int64(i)].Add(1)
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range seen {
		if s := seen[i].Load(); s != 1 {
			t.Fatalf("row %d came %d times", i, s)
		}
	}
	for i, x := range contents(t, b) {
		if b.Layout().Precision == Float16 {
			shown[i] = half.Float(half.FromFloat(shown[i]))
		}
		if x != shown[i] {
			t.Fatalf("value %d is %g, the sink saw %g", i, x, shown[i])
		}
	}
}

// TestPart: rows that are computed equal those of a whole hop, and what is skipped does not change
// them, whatever the layout.
func TestPart(t *testing.T) {
	testkit.NotUnderRace(t, "TestRecurShowsNothing and TestNothingShows start the same goroutines")
	g := wide()
	x := rows(len(g.Adj), 32, 3)
	for i := range x.S {
		x.S[i] = float32(i % 512) // exact in float16
	}
	for _, l := range append(layouts(Float32), layouts(Float16)...) {
		l.Columns = 32
		pass := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0]}
		whole := block(t, pass.Kernel, x, l, 2)
		if _, err := pass.Run(t.Context(), whole, nil, nil); err != nil {
			t.Fatal(err)
		}
		want := contents(t, whole)
		for name, role := range map[string]func(i int64) Role{
			"mixed":         func(i int64) Role { return Role(i * i % 7 % 3) },
			"whole strips":  func(i int64) Role { return Role(i >> packed.StripShift % 3) },
			"skipped first": func(i int64) Role { return Role(min(i>>packed.StripShift, 1) * int64(Computed)) },
		} {
			b := block(t, pass.Kernel, x, l, 2)
			if _, err := pass.Run(t.Context(), b, nil, func(first int64, roles []Role) (least, most Role) {
				least = Computed
				for i := range roles {
					roles[i] = role(first + int64(i))
					least, most = min(least, roles[i]), max(most, roles[i])
				}
				return least, most
			}); err != nil {
				t.Fatal(err)
			}
			for i, v := range contents(t, b) {
				if role(int64(i/32)) == Computed && v != want[i] {
					t.Fatalf("%s, %s %s: value %d is %g, not %g", name, l.Precision, l.Residency, i, v, want[i])
				}
			}
		}
	}
}

// TestEditSaveLoad changes rows, keeps them and brings them back.
func TestEditSaveLoad(t *testing.T) {
	for _, l := range append(layouts(Float32), layouts(Float16)...) {
		x := rows(2*packed.StripRows+77, 16, 5)
		b := block(t, available()[0], x, l, 3)
		if err := b.Edit(func(first int64, rows []float32) {
			for i := range rows {
				rows[i] = float32((first*16 + int64(i)) % 2048)
			}
		}); err != nil {
			t.Fatal(err)
		}
		want := contents(t, b)
		for i, v := range want {
			if v != float32(i%2048) {
				t.Fatalf("%s %s: value %d is %g", l.Precision, l.Residency, i, v)
			}
		}
		f, err := direct.NewScratch(testgraph.Scratch(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Save(f, 8192, 1), b.Edit(func(_ int64, rows []float32) { clear(rows) }), b.Load(f, 8192, 1), f.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(contents(t, b), want) {
			t.Errorf("%s %s: other rows came back", l.Precision, l.Residency)
		}
	}
}

// TestFillCounts refuses too few and too many rows.
func TestFillCounts(t *testing.T) {
	b := block(t, goKernel, rows(100, 16, 1), Layout{}, 1)
	for _, n := range []int{99, 101} {
		if err := b.Fill(func(put func([]float32) error) error { return put(make([]float32, n*16)) }); err == nil {
			t.Errorf("%d rows of 100 were accepted", n)
		}
	}
}

// TestPlanLayout: what is planned fits, more memory never gives less, and too
// little is refused.
func TestPlanLayout(t *testing.T) {
	const n = 1 << 22
	none := func(Layout) int64 { return 0 }
	last := Layout{Residency: External}
	for free := int64(32 << 20); free < 8<<30; free += free / 7 {
		l, err := PlanLayout(n, 16, 128, Float32, free, 2, none)
		if err != nil {
			if !errors.Is(err, mem.ErrBudget) || free > 64<<20 {
				t.Errorf("%s: %v", mem.Bytes(free), err)
			}
			continue
		}
		if got := l.Memory(n, 2); got > free {
			t.Errorf("%s: %+v takes %s", mem.Bytes(free), l, mem.Bytes(got))
		}
		if l.Residency > last.Residency || l.Residency == last.Residency && l.Residency != External && l.Columns < last.Columns {
			t.Errorf("%s: %+v after %+v", mem.Bytes(free), l, last)
		}
		last = l
	}
	if last.Residency != Resident || last.Columns != 128 {
		t.Errorf("8 GiB give %+v", last)
	}
	if _, err := PlanLayout(n, 16, 128, Float32, 1<<20, 2, none); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("1 MiB gives %v", err)
	}
}

// TestPlanShared: what is planned fits, is as wide as was agreed on, with more memory
// fetches no more, and is refused where the least does not fit.
func TestPlanShared(t *testing.T) {
	const n, nodes = 40*packed.StripRows + 5, 100 * packed.StripRows
	beside := func(l Layout) int64 { return int64(l.Columns) << 10 }
	for _, tc := range []struct {
		p       Precision
		columns int
	}{{Float32, 48}, {Float16, 48}} {
		p, columns := tc.p, tc.columns
		fetched, place := int64(math.MaxInt64), External
		for free := int64(1 << 20); free < 4<<30; free += free / 9 {
			l, err := PlanShared(n, nodes, Others{}, columns, p, free, 2, beside)
			if need := l.Memory(n, 2) + beside(l); (err != nil) != (need > free) || err != nil && !errors.Is(err, mem.ErrBudget) {
				t.Errorf("%s, %s: %+v takes %s, error %v", p, mem.Bytes(free), l, mem.Bytes(need), err)
			}
			if err != nil {
				if place != External {
					t.Errorf("%s, %s: refused after less was enough", p, mem.Bytes(free))
				}
				continue
			}
			if listed, err := PlanShared(n, nodes, Others{Listed: true}, columns, p, free, 2, beside); err != nil || listed.Memory(n, 2)+beside(listed) > free {
				t.Errorf("%s, %s: %+v where rows are listed, error %v", p, mem.Bytes(free), listed, err)
			} else if held := listed.Windows > 0; held && int64(listed.Windows)*listed.Window < nodes-n || !held && free > 1<<30 {
				t.Errorf("%s, %s: %+v where rows are listed", p, mem.Bytes(free), listed)
			}
			if pair, err := PlanShared(n, nodes, Others{Pair: true}, columns, p, free, 2, beside); err != nil || pair.Memory(n, 2)+beside(pair) > free {
				t.Errorf("%s, %s: %+v with one other worker, error %v", p, mem.Bytes(free), pair, err)
			} else if ahead := pair.Ahead() > 0; p == Float32 && ahead != (free > l.Memory(n, 2)+beside(l)+2*(l.Window*l.rowBytes()+pageBytes) && l.Residency == Resident && nodes-n > l.Window) {
				t.Errorf("%s, %s: %+v with one other worker", p, mem.Bytes(free), pair)
			}
			if l.Columns != columns || !l.Shared || l.Residency > place || l.Residency == place && l.Fetched(n, nodes) > fetched {
				t.Errorf("%s, %s: %+v after %v, fetching %d", p, mem.Bytes(free), l, place, fetched)
			}
			fetched, place = l.Fetched(n, nodes), l.Residency
		}
		if place != Resident || fetched != (nodes-n)*int64(columns)*p.Bytes() {
			t.Errorf("%s: 4 GiB fetch %d, with rows %s", p, fetched, place)
		}
	}
}

// lossy drops, or doubles, the edges of the first frame of a source.
type lossy struct {
	packed.Source
	edges uint32
}

func (l lossy) Edges(int) int64 { return int64(l.edges) }

func (l lossy) Open(ctx context.Context, b int, lo, hi uint32) (packed.Frames, error) {
	f, err := l.Source.Open(ctx, b, lo, hi)
	return lossyFrames{f, l.edges}, err
}

type lossyFrames struct {
	packed.Frames
	edges uint32
}

func (l lossyFrames) Next() (packed.Frame, error) {
	f, err := l.Frames.Next()
	f.Edges = l.edges
	return f, err
}

// TestConservationCatchesALostEdge loses the last edge of a graph behind the
// back of every count.
func TestConservationCatchesALostEdge(t *testing.T) {
	g := testgraph.Random(2000, 5000, 8)
	source := g.Source()
	p := &Pass{
		Source: lossy{source, uint32(source.Edges(0)) - 1},
		Degree: g.Degree(), Kernel: goKernel,
	}
	_, err := p.Run(t.Context(), block(t, goKernel, rows(2000, 16, 1), Layout{}, 1), nil, nil)
	if !errors.Is(err, ErrConservation) {
		t.Errorf("a lost edge gave %v", err)
	}
}

// TestDirectionsAreConserved: a hop of a graph with directions passes the check, in every place of
// rows and with float16 rows, and one that loses an edge does not.
func TestDirectionsAreConserved(t *testing.T) {
	for _, g := range testgraph.SmallDirected() {
		n := len(g.Adj)
		for _, l := range []Layout{{}, {Residency: Spilled, Accumulators: 1}, {Residency: External, Window: packed.StripRows, Accumulators: 1}, {Precision: Float16}} {
			p := &Pass{Source: g.Source(), Degree: g.Degree(), Divisors: g.Divisors(0.5), Sent: g.Sent(), Kernel: goKernel}
			b := block(t, goKernel, rows(n, 16, 1), l, 2)
			for hop := range 5 {
				if _, err := p.Run(t.Context(), b, nil, nil); err != nil {
					t.Fatalf("%s, hop %d, %+v: %v", g.Name, hop+1, l, err)
				}
			}
		}
		source := g.Source()
		if edges := source.Edges(0); edges > 0 {
			p := &Pass{
				Source: lossy{source, uint32(edges) - 1},
				Degree: g.Degree(), Divisors: g.Divisors(0.5), Sent: g.Sent(), Kernel: goKernel,
			}
			if _, err := p.Run(t.Context(), block(t, goKernel, rows(n, 16, 1), Layout{}, 1), nil, nil); !errors.Is(err, ErrConservation) {
				t.Errorf("%s: a lost edge gave %v", g.Name, err)
			}
		}
	}
}

// TestTooLargeValues: sums that no float32 holds are the fault of the values, and not of
// the edges.
func TestTooLargeValues(t *testing.T) {
	g := testgraph.Random(2000, 5000, 8)
	for _, tc := range []struct {
		value float32
		l     Layout
		want  string
	}{{3e38, Layout{}, "largest float32"}, {1e20, Layout{Precision: Float16}, "--precision float32"}} {
		p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: goKernel}
		cur := rows(2000, 16, 1)
		for i := 3; i < len(cur.S); i += 16 {
			cur.S[i] = tc.value
		}
		_, err := p.Run(t.Context(), block(t, goKernel, cur, tc.l, 1), nil, nil)
		if !errors.Is(err, failure.ErrData) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%g: %v", tc.value, err)
		}
	}
}

// TestConservationHolds lets a hub of many equal neighbours, the worst case of
// float32 sums, pass.
func TestConservationHolds(t *testing.T) {
	const n = 200000
	g := testgraph.Star(n)
	cur := Rows{Stride: 16, S: make([]float32, n*16)}
	for i := range cur.S {
		cur.S[i] = 0.1
	}
	p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0]}
	for _, precision := range []Precision{Float32, Float16} {
		b := block(t, p.Kernel, cur, Layout{Precision: precision}, 2)
		for range 3 {
			if _, err := p.Run(t.Context(), b, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCountIsChecked: a strip that gives fewer edges than it should is an error, however
// many windows they come in.
func TestCountIsChecked(t *testing.T) {
	g := wide()
	for _, l := range layouts(Float32) {
		p := &Pass{Source: short{g.Source()}, Degree: g.Degree(), Kernel: available()[0]}
		if _, err := p.Run(t.Context(), block(t, p.Kernel, rows(len(g.Adj), 16, 1), l, 2), nil, nil); !errors.Is(err, packed.ErrFrame) {
			t.Errorf("%s, windows of %d rows: a short strip gave %v", l.Residency, l.Window, err)
		}
	}
}

// TestRunEndsWithItsContext: a pass over edges in memory ends too.
func TestRunEndsWithItsContext(t *testing.T) {
	g := wide()
	for _, l := range layouts(Float32) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0]}
		b := block(t, p.Kernel, rows(len(g.Adj), 16, 1), l, 1)
		_, err := p.Run(ctx, b, func(int64, []float32) { cancel(why) }, nil)
		if !errors.Is(err, why) {
			t.Errorf("%s, windows of %d rows: %v", l.Residency, l.Window, err)
		}
		b.Free()
	}
}

// failing fails to open, or to read, a strip and counts what is open.
type failing struct {
	packed.Source
	strip int
	read  bool
	open  atomic.Int32
}

func (f *failing) Open(ctx context.Context, strip int, lo, hi uint32) (packed.Frames, error) {
	if strip == f.strip && !f.read {
		return nil, packed.ErrFrame
	}
	frames, err := f.Source.Open(ctx, strip, lo, hi)
	f.open.Add(1)
	return &failingFrames{frames, f, strip == f.strip}, err
}

type failingFrames struct {
	packed.Frames
	f    *failing
	fail bool
}

func (f *failingFrames) Next() (packed.Frame, error) {
	if f.fail {
		return packed.Frame{}, packed.ErrFrame
	}
	return f.Frames.Next()
}

func (f *failingFrames) Close() error {
	f.f.open.Add(-1)
	return f.Frames.Close()
}

// TestFailuresCloseFrames: whatever fails, nothing stays open.
func TestFailuresCloseFrames(t *testing.T) {
	g := wide()
	for strip := range 4 {
		for _, read := range []bool{false, true} {
			for _, l := range layouts(Float32) {
				for _, threads := range []int{1, 3} {
					if testing.Short() && (threads == 1 || strip != 2) {
						continue
					}
					source := &failing{Source: g.Source(), strip: strip, read: read}
					p := &Pass{Source: source, Degree: g.Degree(), Kernel: available()[0]}
					b := block(t, p.Kernel, rows(len(g.Adj), 16, 1), l, threads)
					if _, err := p.Run(t.Context(), b, nil, nil); !errors.Is(err, packed.ErrFrame) {
						t.Errorf("strip %d, %s: error %v", strip, l.Residency, err)
					}
					if n := source.open.Load(); n != 0 {
						t.Errorf("strip %d, %s: %d strips are left open", strip, l.Residency, n)
					}
					b.Free()
				}
			}
		}
	}
}

type short struct{ packed.Source }

func (s short) Edges(b int) int64 { return s.Source.Edges(b) + 1 }

// BenchmarkPass runs hops with rows in memory and on disk.
func BenchmarkPass(b *testing.B) {
	g := testgraph.Random(1<<18, 1<<21, 3)
	source, degree := g.Source(), g.Degree()
	for _, l := range []Layout{
		{Columns: 16},
		{Columns: 64},
		{Columns: 16, Precision: Float16},
		{Columns: 16, Residency: Spilled},
		{Columns: 16, Residency: External, Window: 2 * packed.StripRows, Accumulators: 4},
	} {
		b.Run(fmt.Sprintf("%d columns/%s/%s", l.Columns, l.Precision, l.Residency), func(b *testing.B) {
			p := &Pass{Source: source, Degree: degree, Kernel: available()[0]}
			block := block(b, p.Kernel, rows(len(degree), l.Columns, 1), l, 1)
			edges := int64(0)
			for b.Loop() {
				e, err := p.Run(b.Context(), block, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				edges += e
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
