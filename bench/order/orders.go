package main

import (
	"math/bits"

	"ndls/internal/mem"
	"ndls/internal/packed"
)

// order is a permutation of the nodes.
type order struct {
	name string
	find finder
}

// finder gives the nodes in an order.
type finder func(b *mem.Budget, g *graph, to []uint32) error

// reference is the order that the product uses.
const reference = "degree"

var orders = []order{
	{reference, byDegree},
	{"shuffled-degree", byShuffledDegree},
	{"random", random},
	{"grouped-random", grouped(random)},
	{"input", byInput},
	{"hubs-input", hubsFirst(byInput)},
	{"grouped-input", grouped(byInput)},
	{"bfs", breadthFirst},
	{"hubs-bfs", hubsFirst(breadthFirst)},
	{"clusters", clusters},
	{"hubs-clusters", hubsFirst(clusters)},
	{"grouped-clusters", grouped(clusters)},
}

func byShuffledDegree(_ *mem.Budget, _ *graph, to []uint32) error {
	for i := range to {
		to[i] = uint32(i)
	}
	return nil
}

func random(b *mem.Budget, g *graph, to []uint32) error {
	err := byShuffledDegree(b, g, to)
	shuffle(to)
	return err
}

func byInput(_ *mem.Budget, g *graph, to []uint32) error {
	for v, in := range g.input.S {
		to[in] = uint32(v)
	}
	return nil
}

// byDegree is how package partition numbers nodes.
func byDegree(b *mem.Budget, g *graph, to []uint32) error {
	return sorted(byInput, g.degree)(b, g, to)
}

// grouped sorts by the power of two below the degree, else as another order.
func grouped(find finder) finder {
	return func(b *mem.Budget, g *graph, to []uint32) error {
		return sorted(find, func(v uint32) int { return bits.Len(uint(g.degree(v))) })(b, g, to)
	}
}

// sorted sorts by descending key, else as another order.
func sorted(find finder, key func(v uint32) int) finder {
	return func(b *mem.Budget, g *graph, to []uint32) error {
		nodes, err := mem.Alloc[uint32](b, g.n, "nodes in another order")
		if err != nil {
			return err
		}
		defer nodes.Free()
		if err := find(b, g, nodes.S); err != nil {
			return err
		}
		return descending(b, to, nodes.S, key)
	}
}

// hubsFirst moves the nodes above the mean degree to the front of an order.
func hubsFirst(find finder) finder {
	return func(b *mem.Budget, g *graph, to []uint32) error {
		if err := find(b, g, to); err != nil {
			return err
		}
		hubs := uint32(0) // are the first nodes
		for mean := int(g.numEdges() / g.n); g.degree(hubs) > mean; {
			hubs++
		}
		at := len(to)
		for i := len(to) - 1; i >= 0; i-- {
			if to[i] >= hubs {
				at--
				to[at] = to[i]
			}
		}
		return byShuffledDegree(b, g, to[:hubs])
	}
}

// breadthFirst visits the neighbours of a node by descending degree, and starts
// again at the largest degree that is left.
func breadthFirst(b *mem.Budget, g *graph, to []uint32) error {
	seen, err := mem.Alloc[bool](b, g.n, "visited nodes")
	if err != nil {
		return err
	}
	defer seen.Free()
	queue := to[:0]
	visit := func(v uint32) {
		if !seen.S[v] {
			seen.S[v] = true
			queue = append(queue, v)
		}
	}
	for start, at := uint32(0), 0; at < len(to); start++ {
		for visit(start); at < len(queue); at++ {
			for _, v := range g.of(queue[at]) {
				visit(v)
			}
		}
	}
	return nil
}

const (
	propagationRounds = 5
	// clusterNodes bounds a cluster, so that it fits a strip.
	clusterNodes = packed.StripRows
)

// clusters orders the clusters of propagation by descending size.
func clusters(b *mem.Budget, g *graph, to []uint32) error {
	labels, err := mem.Alloc[uint32](b, g.n, "labels")
	if err != nil {
		return err
	}
	defer labels.Free()
	sizes, err := mem.Alloc[uint32](b, g.n, "cluster sizes")
	if err != nil {
		return err
	}
	defer sizes.Free()
	if err := propagate(b, g, labels.S, sizes.S); err != nil {
		return err
	}
	ranked, err := mem.Alloc[uint32](b, g.n, "clusters")
	if err != nil {
		return err
	}
	defer ranked.Free()
	if err := byShuffledDegree(b, g, to); err != nil {
		return err
	}
	if err := descending(b, ranked.S, to, func(l uint32) int { return int(sizes.S[l]) }); err != nil {
		return err
	}
	at := uint32(0)
	for _, l := range ranked.S {
		sizes.S[l], at = at, at+sizes.S[l]
	}
	for v, l := range labels.S {
		to[sizes.S[l]] = uint32(v)
		sizes.S[l]++
	}
	return nil
}

// propagate gives each node the label that most of its neighbours have and whose
// cluster has room, nodes of small degree first; of several labels that of the
// neighbour of smallest degree, who says most about where a node belongs.
func propagate(b *mem.Budget, g *graph, labels, sizes []uint32) error {
	counts, err := mem.Alloc[uint32](b, g.n, "label counts")
	if err != nil {
		return err
	}
	defer counts.Free()
	for v := range labels {
		labels[v], sizes[v] = uint32(v), 1
	}
	met := make([]uint32, 0, g.maxDegree())
	for range propagationRounds {
		for v := len(labels) - 1; v >= 0; v-- {
			met = met[:0]
			for _, u := range g.of(uint32(v)) {
				l := labels[u]
				if counts.S[l] == 0 {
					met = append(met, l)
				}
				counts.S[l]++
			}
			old := labels[v]
			best, most := old, counts.S[old]
			for i := len(met) - 1; i >= 0; i-- {
				l := met[i]
				if counts.S[l] > most && sizes[l] < clusterNodes {
					best, most = l, counts.S[l]
				}
			}
			for _, l := range met {
				counts.S[l] = 0
			}
			labels[v] = best
			sizes[old]--
			sizes[best]++
		}
	}
	return nil
}
