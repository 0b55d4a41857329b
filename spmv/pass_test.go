package spmv

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"ndls/internal/packed"
	"ndls/internal/testgraph"
)

// hop is the definition, in float64.
func hop(g testgraph.Graph, x []float32, stride int) []float64 {
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

func TestPassEqualsDefinition(t *testing.T) {
	for _, g := range testgraph.Small() {
		for _, stride := range []int{16, 48} {
			for _, k := range available() {
				n := len(g.Adj)
				p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: k, Threads: 2}
				cur, next := rows(n, stride, 4), rows(n, stride, 5)
				edges, err := p.Run(cur, next, nil)
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
				for i, w := range hop(g, cur.S, stride) {
					if math.Abs(float64(next.S[i])-w) > 1e-5 {
						t.Fatalf("%s, %s, value %d: %g, not %g", g.Name, k.Name(), i, next.S[i], w)
					}
				}
			}
		}
	}
}

// wide is a graph of three blocks, most of whose rows are isolated.
func wide() testgraph.Graph {
	n := 2*packed.BlockRows + 100
	rng := rand.New(rand.NewPCG(1, 9))
	var e [][2]int
	for range 4000 {
		e = append(e, [2]int{rng.IntN(n), rng.IntN(n)})
	}
	for range 4000 {
		e = append(e, [2]int{rng.IntN(300), rng.IntN(n)})
	}
	return testgraph.New("three blocks", n, e)
}

// TestThreadsAndSlicesDoNotShow runs several blocks with every number of
// threads and every kernel: the same bits, each row handed out once.
func TestThreadsAndSlicesDoNotShow(t *testing.T) {
	graphs := []testgraph.Graph{testgraph.Random(3000, 9000, 2)}
	if !testing.Short() {
		graphs = append(graphs, wide())
	}
	for _, g := range graphs {
		n, stride := len(g.Adj), 32
		source, degree := g.Source(), g.Degree()
		cur := rows(n, stride, 6)
		var want []float32
		for _, k := range available() {
			for _, threads := range []int{1, 2, 5, 9} {
				next := Rows{Stride: stride, S: make([]float32, n*stride)}
				var mu sync.Mutex
				seen := make([]int, n)
				_, err := (&Pass{Source: source, Degree: degree, Kernel: k, Threads: threads}).Run(cur, next,
					func(first int64, rows []float32) {
						if !slices.Equal(rows, next.Slice(first, first+int64(len(rows)/stride))) {
							t.Error("the sink sees other rows than are kept")
						}
						mu.Lock()
						defer mu.Unlock()
						for i := range len(rows) / stride {
							seen[first+int64(i)]++
						}
					})
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range seen {
					if s != 1 {
						t.Fatalf("row %d came %d times", i, s)
					}
				}
				if want == nil {
					want = next.S
				} else if err := sameBits(next.S, want); err != nil {
					t.Errorf("%s, %s, %d threads: %v", g.Name, k.Name(), threads, err)
				}
			}
		}
	}
}

// lossy drops, or doubles, the edges of the first frame of a source.
type lossy struct {
	packed.Source
	edges uint32
}

func (l lossy) Edges(int) int64 { return int64(l.edges) }

func (l lossy) Open(b int) (packed.Frames, error) {
	f, err := l.Source.Open(b)
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
		Degree: g.Degree(), Kernel: goKernel, Threads: 1,
	}
	_, err := p.Run(rows(2000, 16, 1), rows(2000, 16, 2), nil)
	if !errors.Is(err, ErrConservation) {
		t.Errorf("a lost edge gave %v", err)
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
	p := &Pass{Source: g.Source(), Degree: g.Degree(), Kernel: available()[0], Threads: 2}
	next := rows(n, 16, 1)
	for range 3 {
		if _, err := p.Run(cur, next, nil); err != nil {
			t.Fatal(err)
		}
		cur, next = next, cur
	}
}

// TestCountIsChecked: a block that gives fewer edges than it should is an error.
func TestCountIsChecked(t *testing.T) {
	g := testgraph.Clique(5)
	p := &Pass{Source: short{g.Source()}, Degree: g.Degree(), Kernel: goKernel, Threads: 1}
	if _, err := p.Run(rows(5, 16, 1), rows(5, 16, 2), nil); !errors.Is(err, packed.ErrFrame) {
		t.Errorf("a short block gave %v", err)
	}
}

type short struct{ packed.Source }

func (s short) Edges(b int) int64 { return s.Source.Edges(b) + 1 }

func BenchmarkPass(b *testing.B) {
	g := testgraph.Random(1<<18, 1<<21, 3)
	source, degree := g.Source(), g.Degree()
	for _, stride := range []int{16, 64} {
		b.Run(fmt.Sprintf("columns=%d", stride), func(b *testing.B) {
			cur, next := rows(len(degree), stride, 1), rows(len(degree), stride, 2)
			p := &Pass{Source: source, Degree: degree, Kernel: available()[0], Threads: 1}
			edges := int64(0)
			for b.Loop() {
				e, err := p.Run(cur, next, nil)
				if err != nil {
					b.Fatal(err)
				}
				edges += e
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
