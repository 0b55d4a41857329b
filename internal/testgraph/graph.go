package testgraph

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"ndls/internal/packed"
)

// Graph is a simple graph: Adj[i] lists the neighbours of i in ascending order. A hop adds their
// rows to row i.
type Graph struct {
	Name string
	Adj  [][]uint32
	// Directed says that i need not be among the neighbours of its neighbours.
	Directed bool
	// Weights has the weights of the edges to these neighbours; nil without weights.
	Weights [][]float32
}

// Weighted is the graph with a weight for each edge, which is given for its smaller and its
// larger end.
func (g Graph) Weighted(weight func(lo, hi uint32) float32) Graph {
	g.Weights = make([][]float32, len(g.Adj))
	for i, a := range g.Adj {
		for _, j := range a {
			g.Weights[i] = append(g.Weights[i], weight(min(uint32(i), j), max(uint32(i), j)))
		}
	}
	return g
}

// RandomWeights draws weights whose logarithms are spread evenly, from 1/spread to spread.
func (g Graph) RandomWeights(spread float64, seed uint64) Graph {
	g.Name += fmt.Sprintf(" weights to %g", spread)
	return g.Weighted(func(lo, hi uint32) float32 {
		rng := rand.New(rand.NewPCG(seed, uint64(lo)<<32|uint64(hi)))
		return float32(math.Pow(spread, 2*rng.Float64()-1))
	})
}

// Strength1 gives the strengths plus one, nil without weights.
func (g Graph) Strength1() []float32 {
	if g.Weights == nil {
		return nil
	}
	s := make([]float32, len(g.Adj))
	for i := range s {
		s[i] = float32(g.mass(i))
	}
	return s
}

// mass is d̃_i.
func (g Graph) mass(i int) float64 {
	if g.Weights == nil {
		return float64(len(g.Adj[i])) + 1
	}
	sum := 0.0
	for _, w := range g.Weights[i] {
		sum += float64(w)
	}
	return sum + 1
}

// Sent gives, in a graph with directions, how many nodes each is a neighbour of; nil elsewhere.
func (g Graph) Sent() []uint32 {
	if !g.Directed {
		return nil
	}
	s := make([]uint32, len(g.Adj))
	for _, a := range g.Adj {
		for _, j := range a {
			s[j]++
		}
	}
	return s
}

// Divisors gives what the sum of each row is divided by where that is not the degree plus one;
// else it is nil.
func (g Graph) Divisors(r float64) []float32 {
	sent := g.Sent()
	if sent == nil {
		return g.Strength1()
	}
	d := make([]float32, len(g.Adj))
	for i := range d {
		d[i] = float32(math.Pow(g.mass(i), 1-r) * math.Pow(float64(sent[i])+1, r))
	}
	return d
}

// Reversed turns every edge round.
func (g Graph) Reversed() Graph {
	r := Graph{Name: g.Name + " reversed", Adj: make([][]uint32, len(g.Adj)), Directed: g.Directed}
	for i, a := range g.Adj {
		for _, j := range a {
			r.Adj[j] = append(r.Adj[j], uint32(i))
		}
	}
	return r
}

// NewDirected builds a graph of n nodes whose edges lead from the first to the second node,
// which is a neighbour of the first; duplicates and self-loops are dropped.
func NewDirected(name string, n int, edges [][2]int) Graph {
	g := Graph{Name: name, Adj: make([][]uint32, n), Directed: true}
	for _, e := range edges {
		if e[0] != e[1] {
			g.Adj[e[0]] = append(g.Adj[e[0]], uint32(e[1]))
		}
	}
	for i := range g.Adj {
		slices.Sort(g.Adj[i])
		g.Adj[i] = slices.Compact(g.Adj[i])
	}
	return g
}

// SmallDirected lists graphs with directions: paths, stars out of a node and into it, cycles,
// nodes without edges in one direction or in both, and edges in both directions.
func SmallDirected() []Graph {
	rng := rand.New(rand.NewPCG(3, 5))
	var path, out, cycle, random [][2]int
	for i := range 8 {
		path = append(path, [2]int{i, i + 1})
		out = append(out, [2]int{0, i + 1})
		cycle = append(cycle, [2]int{i, (i + 1) % 8})
	}
	for range 220 {
		random = append(random, [2]int{min(rng.IntN(60), rng.IntN(60)), rng.IntN(70)})
	}
	star := NewDirected("star out", 9, out)
	g := NewDirected("directed random", 72, random)
	return []Graph{
		NewDirected("directed path", 9, path), star, star.Reversed(), NewDirected("cycle", 10, cycle),
		NewDirected("both ways", 4, [][2]int{{0, 1}, {1, 0}, {2, 1}}), NewDirected("no edges", 3, nil), g, g.Reversed(),
	}
}

// New builds a graph of n nodes; duplicates and self-loops are dropped.
func New(name string, n int, edges [][2]int) Graph {
	g := Graph{Name: name, Adj: make([][]uint32, n)}
	for _, e := range edges {
		if e[0] != e[1] {
			g.Adj[e[0]] = append(g.Adj[e[0]], uint32(e[1]))
			g.Adj[e[1]] = append(g.Adj[e[1]], uint32(e[0]))
		}
	}
	for i := range g.Adj {
		slices.Sort(g.Adj[i])
		g.Adj[i] = slices.Compact(g.Adj[i])
	}
	return g
}

// Path is 0–1–…–(n−1).
func Path(n int) Graph {
	var e [][2]int
	for i := 1; i < n; i++ {
		e = append(e, [2]int{i - 1, i})
	}
	return New(fmt.Sprintf("path%d", n), n, e)
}

// Star joins node 0 to all others.
func Star(n int) Graph {
	var e [][2]int
	for i := 1; i < n; i++ {
		e = append(e, [2]int{0, i})
	}
	return New(fmt.Sprintf("star%d", n), n, e)
}

// Clique joins all pairs.
func Clique(n int) Graph {
	var e [][2]int
	for i := range n {
		for j := range i {
			e = append(e, [2]int{i, j})
		}
	}
	return New(fmt.Sprintf("clique%d", n), n, e)
}

// Bipartite joins every one of a nodes to every one of b others.
func Bipartite(a, b int) Graph {
	var e [][2]int
	for i := range a {
		for j := range b {
			e = append(e, [2]int{i, a + j})
		}
	}
	return New(fmt.Sprintf("bipartite%d+%d", a, b), a+b, e)
}

// TwoComponents is a clique and a path that do not touch, and an isolated node.
func TwoComponents() Graph {
	e := [][2]int{{0, 1}, {0, 2}, {1, 2}, {3, 4}, {4, 5}, {5, 6}}
	return New("two components and an isolated node", 8, e)
}

// Random draws m pairs, duplicates and self-loops included in the draw.
func Random(n, m int, seed uint64) Graph {
	rng := rand.New(rand.NewPCG(seed, 1))
	e := make([][2]int, m)
	for i := range e {
		e[i] = [2]int{rng.IntN(n), rng.IntN(n)}
	}
	return New(fmt.Sprintf("random n=%d m=%d seed=%d", n, m, seed), n, e)
}

// Small lists one graph of every shape that has made trouble.
func Small() []Graph {
	return []Graph{
		Path(2), Path(9), Star(12), Clique(6), Bipartite(3, 4), TwoComponents(),
		New("isolated nodes only", 3, nil), Random(60, 150, 7),
	}
}

// SmallWeighted lists graphs with weights: one of every shape, and one whose weights lie far
// apart.
func SmallWeighted() (all []Graph) {
	for i, g := range Small() {
		all = append(all, g.RandomWeights(10, uint64(i)))
	}
	return append(all, Random(60, 100, 8).RandomWeights(1000, 9))
}

// Degree gives the degrees, self-loops not counted.
func (g Graph) Degree() []uint32 {
	d := make([]uint32, len(g.Adj))
	for i, a := range g.Adj {
		d[i] = uint32(len(a))
	}
	return d
}

// Components numbers components by their smallest node and returns how many
// there are.
func (g Graph) Components() ([]uint32, int) {
	c := make([]uint32, len(g.Adj))
	for i := range c {
		c[i] = ^uint32(0)
	}
	count := 0
	for i := range c {
		if c[i] != ^uint32(0) {
			continue
		}
		stack := []uint32{uint32(i)}
		c[i] = uint32(count)
		for len(stack) > 0 {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, v := range g.Adj[u] {
				if c[v] == ^uint32(0) {
					c[v] = uint32(count)
					stack = append(stack, v)
				}
			}
		}
		count++
	}
	return c, count
}

// Source packs the graph in memory.
func (g Graph) Source() packed.Source {
	s := &source{n: int64(len(g.Adj)), frames: make([][]packed.Frame, packed.Strips(int64(len(g.Adj))))}
	type edge struct {
		src, dst uint32
		weight   float32
	}
	for strip := range s.frames {
		lo := strip << packed.StripShift
		var edges []edge
		for d := lo; d < min(lo+packed.StripRows, len(g.Adj)); d++ {
			for i, u := range g.Adj[d] {
				e := edge{src: u, dst: uint32(d)}
				if g.Weights != nil {
					e.weight = g.Weights[d][i]
				}
				edges = append(edges, e)
			}
		}
		slices.SortFunc(edges, func(x, y edge) int {
			return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.dst, y.dst))
		})
		emit := func(f packed.Frame, _ []byte) error {
			f.Words = append(make([]byte, 0, len(f.Words)+1), f.Words...) // a byte follows the last word
			f.Weights = slices.Clone(f.Weights)
			s.frames[strip] = append(s.frames[strip], f)
			return nil
		}
		enc := packed.NewEncoder(emit)
		add := func(e edge) error { return enc.Add(e.src, e.dst) }
		if g.Weights != nil {
			enc = packed.NewWeightedEncoder(emit)
			add = func(e edge) error { return enc.AddWeighted(e.src, e.dst, e.weight) }
		}
		for _, e := range edges {
			if err := add(e); err != nil {
				panic(err)
			}
		}
		if err := enc.Flush(); err != nil {
			panic(err)
		}
	}
	return s
}

type source struct {
	n      int64
	frames [][]packed.Frame
}

func (s *source) NumNodes() int64 { return s.n }
func (s *source) Strips() int     { return len(s.frames) }

func (s *source) Edges(strip int) (edges int64) {
	for _, f := range s.frames[strip] {
		edges += int64(f.Edges)
	}
	return edges
}

func (s *source) Open(_ context.Context, strip int, lo, hi uint32) (packed.Frames, error) {
	return &frames{s.frames[strip], lo, hi}, nil
}

type frames struct {
	rest   []packed.Frame
	lo, hi uint32
}

func (f *frames) Next() (packed.Frame, error) {
	for len(f.rest) > 0 {
		frame, ok := f.rest[0].Trim(f.lo, f.hi)
		f.rest = f.rest[1:]
		if ok {
			return frame, nil
		}
	}
	return packed.Frame{}, io.EOF
}

func (f *frames) Close() error { return nil }
