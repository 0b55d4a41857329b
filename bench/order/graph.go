package main

import (
	"context"
	"fmt"
	"slices"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/rng"
)

// graph is undirected, without self-loops and repetitions. Its nodes are numbered
// by descending degree; those of equal degree are shuffled.
type graph struct {
	n          int64
	offsets    *mem.Array[int64]  // of each node's neighbours, then the end
	neighbours *mem.Array[uint32] // ascending
	input      *mem.Array[uint32] // place in the input of each node
}

func (g *graph) numEdges() int64 { return int64(len(g.neighbours.S)) }

func (g *graph) of(v uint32) []uint32 { return g.neighbours.S[g.offsets.S[v]:g.offsets.S[v+1]] }

func (g *graph) degree(v uint32) int { return int(g.offsets.S[v+1] - g.offsets.S[v]) }

func (g *graph) maxDegree() int { return g.degree(0) }

func (g *graph) free() {
	g.offsets.Free()
	g.neighbours.Free()
	g.input.Free()
}

// load reads the edges of a data set.
func load(ctx context.Context, b *mem.Budget, d dataset.Dataset) (*graph, error) {
	rows, n := int64(0), max(d.Info().NumNodes, 0)
	if err := dataset.EachEdges(ctx, d, func(batch []dataset.Edge) error {
		for _, e := range batch {
			n = max(n, int64(e.U)+1, int64(e.V)+1)
		}
		rows += int64(len(batch))
		return nil
	}); err != nil {
		return nil, err
	}
	if rows == 0 {
		return nil, fmt.Errorf("%s has no edges", d.Info().Name)
	}
	place, err := mem.Alloc[uint32](b, n, "places of the input ids")
	if err != nil {
		return nil, err
	}
	defer place.Free()
	keys, err := mem.Alloc[uint64](b, rows, "edges")
	if err != nil {
		return nil, err
	}
	defer keys.Free()
	pairs := keys.S[:0]
	if err := dataset.EachEdges(ctx, d, func(batch []dataset.Edge) error {
		for _, e := range batch {
			place.S[e.U], place.S[e.V] = 1, 1
			if e.U != e.V {
				pairs = append(pairs, uint64(min(e.U, e.V))<<32|uint64(max(e.U, e.V)))
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Sort(pairs)
	if d.Info().NumNodes < 0 {
		n = 0 // the nodes are the ids that occur
	}
	next := uint32(0)
	for id := range place.S {
		occurs := place.S[id]
		if int64(id) < n {
			occurs = 1
		}
		place.S[id] = next
		next += occurs
	}
	return newGraph(b, int64(next), slices.Compact(pairs), place.S)
}

// newGraph makes a graph of n nodes from its edges, each once, as pairs of input
// ids that place numbers.
func newGraph(b *mem.Budget, n int64, pairs []uint64, place []uint32) (_ *graph, err error) {
	g := &graph{n: n}
	defer func() {
		if err != nil {
			g.free()
		}
	}()
	work, err := mem.Alloc[uint32](b, 3*n, "relabelling")
	if err != nil {
		return nil, err
	}
	defer work.Free()
	degree, shuffled, node := work.S[:n], work.S[n:2*n], work.S[2*n:]
	for _, p := range pairs {
		degree[place[p>>32]]++
		degree[place[uint32(p)]]++
	}
	for i := range shuffled {
		shuffled[i] = uint32(i)
	}
	shuffle(shuffled)
	if g.input, err = mem.Alloc[uint32](b, n, "input order"); err != nil {
		return nil, err
	}
	if err := descending(b, g.input.S, shuffled, func(v uint32) int { return int(degree[v]) }); err != nil {
		return nil, err
	}
	if g.offsets, err = mem.Alloc[int64](b, n+1, "offsets"); err != nil {
		return nil, err
	}
	at := int64(0)
	for v, in := range g.input.S {
		node[in] = uint32(v)
		g.offsets.S[v] = at
		at += int64(degree[in])
	}
	if g.neighbours, err = mem.Alloc[uint32](b, at, "neighbours"); err != nil {
		return nil, err
	}
	// Adding moves each offset to the end of its node; shifting them back by one
	// node restores them.
	add := func(u, v uint32) {
		g.neighbours.S[g.offsets.S[u]] = v
		g.offsets.S[u]++
	}
	for _, p := range pairs {
		u, v := node[place[p>>32]], node[place[uint32(p)]]
		add(u, v)
		add(v, u)
	}
	copy(g.offsets.S[1:], g.offsets.S[:n])
	g.offsets.S[0] = 0
	for v := range uint32(n) {
		slices.Sort(g.of(v))
	}
	return g, nil
}

func shuffle(ids []uint32) {
	rng.New(1).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
}

// descending sorts nodes by descending key, which is not negative, into to; those
// of equal key stay as they are.
func descending(b *mem.Budget, to, nodes []uint32, key func(v uint32) int) error {
	largest := 0
	for _, v := range nodes {
		largest = max(largest, key(v))
	}
	next, err := mem.Alloc[uint32](b, int64(largest)+1, "counts")
	if err != nil {
		return err
	}
	defer next.Free()
	for _, v := range nodes {
		next.S[key(v)]++
	}
	at := uint32(0)
	for k := largest; k >= 0; k-- {
		next.S[k], at = at, at+next.S[k]
	}
	for _, v := range nodes {
		to[next.S[key(v)]] = v
		next.S[key(v)]++
	}
	return nil
}
