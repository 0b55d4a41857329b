package infer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/share"
)

// joined is the edges of the new nodes, and the old nodes they lead to.
type joined struct {
	neighbours
	node *mem.Array[uint32] // old nodes, ascending

	start  *mem.Array[int64]
	of     *mem.Array[uint32]
	weight *mem.Array[float32]
	// edges counts the edges, loops, repeated and old those that are left out: from a node to
	// itself, named again, and between two old nodes.
	edges, loops, repeated, old int64
}

func (j *joined) free() {
	j.node.Free()
	j.start.Free()
	j.of.Free()
	j.weight.Free()
}

// row is a row of the list of edges. One of its ends is a new node.
type row struct {
	u, v   uint32
	weight float32
}

// entry is a neighbour of a new node.
type entry struct {
	node   uint32
	weight float32
}

// badEdge is an error about an edge from a new node to a new one, or to a node of the run.
type badEdge struct {
	fresh, other uint32
	old          bool
	problem      string
}

func (e *badEdge) Error() string {
	return fmt.Sprintf("the edge between nodes %d and %d: %s", e.fresh, e.other, e.problem)
}

// join reads the edges. nodes are the result of [ids.resolve], most bounds the number of rows.
func join(ctx context.Context, b *mem.Budget, x *ids, nodes []uint32, most int64, threads int) (_ *joined, err error) {
	j := &joined{}
	defer func() {
		if err != nil {
			j.free()
		}
	}()
	all, err := mem.Alloc[row](b, most, "edges of new nodes")
	if err != nil {
		return nil, err
	}
	defer all.Free()
	rows, err := j.read(ctx, b, x, nodes, all.S)
	if err != nil {
		return nil, err
	}
	// Old nodes have the number of their place among those that are used, in order of node.
	m := uint32(x.m)
	place := func(u uint32) uint32 {
		if u < m {
			return u
		}
		at, _ := slices.BinarySearch(j.node.S, nodes[u-m]-1)
		return m + uint32(at)
	}
	for i, r := range rows {
		rows[i].u, rows[i].v = place(r.u), place(r.v)
	}
	entries, err := j.distribute(b, x.m, rows)
	if err != nil {
		return nil, err
	}
	defer entries.Free()
	named := int64(len(rows))
	all.Free()
	if err := j.fill(b, x.m, entries.S, x.ds.Info().AddRepeated, threads); err != nil {
		return nil, err
	}
	for v := range m {
		fresh, old := j.list(v)
		at, _ := slices.BinarySearch(fresh.node, v)
		j.edges += int64(len(old.node) + len(fresh.node) - at) // each edge once
	}
	j.repeated = named - j.edges
	return j, nil
}

// read puts the rows with a new node, and lists the old nodes in them.
func (j *joined) read(ctx context.Context, b *mem.Budget, x *ids, nodes []uint32, rows []row) ([]row, error) {
	used, err := mem.Alloc[bool](b, int64(x.others), "old nodes beside new ones")
	if err != nil {
		return nil, err
	}
	defer used.Free()
	m, n := uint32(x.m), 0
	x.number(nodes)
	if err := eachEdge(ctx, x.ds, func(e dataset.Edge, weight float32) error {
		switch {
		case e.U >= m && e.V >= m:
			j.old++
			return nil
		case e.U == e.V:
			j.loops++
			return nil
		}
		if u := max(e.U, e.V); u >= m {
			used.S[u-m] = true
		}
		rows[n] = row{e.U, e.V, weight}
		n++
		return nil
	}); err != nil {
		return nil, err
	}
	return rows[:n], j.oldNodes(b, nodes, used.S)
}

// oldNodes lists the nodes of the run with an edge to a new node.
func (j *joined) oldNodes(b *mem.Budget, nodes []uint32, used []bool) (err error) {
	n := int64(0)
	for _, u := range used {
		if u {
			n++
		}
	}
	if j.node, err = mem.Alloc[uint32](b, n, "old nodes beside new ones"); err != nil {
		return err
	}
	at := 0
	for o, u := range used {
		if u {
			j.node.S[at] = nodes[o] - 1
			at++
		}
	}
	slices.Sort(j.node.S)
	return nil
}

// distribute puts the ends of the rows in lists, one for each new node: that of node v is from
// start[v] to start[v+1].
func (j *joined) distribute(b *mem.Budget, m int, rows []row) (_ *mem.Array[entry], err error) {
	if j.start, err = mem.Alloc[int64](b, int64(m+1), "edges of new nodes"); err != nil {
		return nil, err
	}
	start := j.start.S
	ends := func(visit func(v uint32, to entry)) {
		for _, r := range rows {
			if r.u < uint32(m) {
				visit(r.u, entry{r.v, r.weight})
			}
			if r.v < uint32(m) {
				visit(r.v, entry{r.u, r.weight})
			}
		}
	}
	ends(func(v uint32, _ entry) { start[v+1]++ })
	for v := range m {
		start[v+1] += start[v]
	}
	entries, err := mem.Alloc[entry](b, start[m], "edges of new nodes")
	if err != nil {
		return nil, err
	}
	ends(func(v uint32, to entry) {
		entries.S[start[v]] = to
		start[v]++
	})
	// Each start is now that of the next node.
	copy(start[1:], start[:m])
	start[0] = 0
	return entries, nil
}

// fill sorts the lists, and keeps each neighbour once.
func (j *joined) fill(b *mem.Budget, m int, entries []entry, add bool, threads int) (err error) {
	length, err := mem.Alloc[uint32](b, int64(m), "edges of new nodes")
	if err != nil {
		return err
	}
	defer length.Free()
	start := j.start.S
	if err := share.Ranges(threads, m, nodesTogether, func(lo, hi int) error {
		for v := lo; v < hi; v++ {
			n, problem := merge(entries[start[v]:start[v+1]], add)
			if problem != "" {
				return j.bad(m, v, entries[start[v]+int64(n)].node, problem)
			}
			length.S[v] = uint32(n)
		}
		return nil
	}); err != nil {
		return err
	}
	total := int64(0)
	for _, n := range length.S {
		total += int64(n)
	}
	if j.of, err = mem.Alloc[uint32](b, total, "edges of new nodes"); err != nil {
		return err
	}
	if j.weight, err = mem.Alloc[float32](b, total, "edges of new nodes"); err != nil {
		return err
	}
	at := int64(0)
	for v, n := range length.S {
		from := entries[start[v]:][:n]
		start[v] = at
		for i, e := range from {
			j.of.S[at+int64(i)], j.weight.S[at+int64(i)] = e.node, e.weight
		}
		at += int64(n)
	}
	start[m] = at
	j.neighbours = neighbours{m: m, start: start, of: j.of.S, weight: j.weight.S}
	return nil
}

// bad is an error about the edge from new node v to neighbour u.
func (j *joined) bad(m, v int, u uint32, problem string) error {
	e := &badEdge{fresh: uint32(v), other: u, problem: problem}
	if e.old = int(u) >= m; e.old {
		e.other = j.node.S[int(u)-m]
	}
	return e
}

// merge sorts a list, makes one entry of those with the same node, and returns how many are
// left. Where something is wrong with the weight of an edge, problem says what, and list[n] has
// the node that it leads to.
func merge(list []entry, add bool) (n int, problem string) {
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.weight, b.weight))
	})
	strength := 0.0
	for at := 0; at < len(list); {
		u := list[at].node
		var rows dataset.EdgeRows
		for ; at < len(list) && list[at].node == u; at++ {
			rows.Add(list[at].weight)
		}
		weight, problem := rows.Weight(add)
		if strength += float64(weight); problem == "" && strength+1 > math.MaxFloat32 {
			problem = "with it, the weights of the edges of one node add up to more than 3.4e38, the largest float32: scale all weights down"
		}
		list[n] = entry{u, weight}
		if problem != "" {
			return n, problem
		}
		n++
	}
	return n, ""
}

// edgeBatch is the number of edges that are read at a time.
const edgeBatch = 1 << 12

// eachEdge visits the edges. In a dataset without weights each has weight 1.
func eachEdge(ctx context.Context, ds dataset.Dataset, visit func(e dataset.Edge, weight float32) error) error {
	var weights []float32
	if ds.Info().Weighted {
		weights = make([]float32, edgeBatch)
	}
	return dataset.ReadEdges(ctx, ds, dataset.Share{Last: 1, Of: 1}, make([]dataset.Edge, edgeBatch), weights,
		func(edges []dataset.Edge, weights []float32) error {
			for i, e := range edges {
				weight := float32(1)
				if weights != nil {
					weight = weights[i]
				}
				if err := visit(e, weight); err != nil {
					return err
				}
			}
			return nil
		})
}
