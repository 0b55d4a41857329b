package testgraph

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"ndls/internal/packed"
)

// Graph is a simple undirected graph: Adj[i] lists the neighbours of i in
// ascending order.
type Graph struct {
	Name string
	Adj  [][]uint32
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
	type edge struct{ src, dst uint32 }
	for strip := range s.frames {
		lo := strip << packed.StripShift
		var edges []edge
		for d := lo; d < min(lo+packed.StripRows, len(g.Adj)); d++ {
			for _, u := range g.Adj[d] {
				edges = append(edges, edge{u, uint32(d)})
			}
		}
		slices.SortFunc(edges, func(x, y edge) int {
			return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.dst, y.dst))
		})
		enc := packed.NewEncoder(func(f packed.Frame, _ []byte) error {
			f.Words = append(make([]byte, 0, len(f.Words)+1), f.Words...) // a byte follows the last word
			s.frames[strip] = append(s.frames[strip], f)
			return nil
		})
		for _, e := range edges {
			if err := enc.Add(e.src, e.dst); err != nil {
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
