package infer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/dataset/prepare"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/smooth"
)

// kept gives rows of the hops X^(0), …, X^(H) that a run has stored for its nodes.
type kept interface {
	// last is H, width the number of columns.
	last() int
	width() int
	// row puts the row of a node at all hops, one after the other. It is safe for concurrent
	// use.
	row(node uint32, to []float32) error
}

// neighbours holds the edges of the new nodes: neighbour lists of nodes 0 to m-1 one after the
// other, each in ascending order. A neighbour below m is a new node, m+i is the i-th of the old
// nodes that have an edge to a new one. weight holds the weight of each edge, 1 in a graph without
// weights.
type neighbours struct {
	m      int
	start  []int64
	of     []uint32
	weight []float32
}

// list is some neighbours of a node, in ascending order, and the weights of the edges to them.
type list struct {
	node   []uint32
	weight []float32
}

// list is the neighbours of a node: the new ones, then the old ones from m on.
func (g *neighbours) list(v uint32) (fresh, old list) {
	of, weight := g.of[g.start[v]:g.start[v+1]], g.weight[g.start[v]:g.start[v+1]]
	at, _ := slices.BinarySearch(of, uint32(g.m))
	return list{of[:at], weight[:at]}, list{of[at:], weight[at:]}
}

// to is the weight of the edge to a node of the list.
func (l list) to(u uint32) float32 {
	at, _ := slices.BinarySearch(l.node, u)
	return l.weight[at]
}

// degree1 is d̃ of a new node: the sum of the weights of its edges, and 1 for itself.
func (g *neighbours) degree1(v uint32) float64 {
	sum := 0.0
	for _, w := range g.weight[g.start[v]:g.start[v+1]] {
		sum += float64(w)
	}
	return sum + 1
}

// engine computes rows of new nodes, some at a time.
type engine struct {
	neighbours
	kept kept
	r    float64
	// node is the old nodes with an edge to a new one, in ascending order, and degree1 is their
	// d̃. mean says which of the stationary rows is theirs.
	node, mean []uint32
	degree1    []float64
	// fill says what becomes of missing numbers of new nodes, which are NaN in X^(0); nil if there are none.
	fill *prepare.Columns
	// means are the stationary rows z̄ of components, alone says that new nodes without a way
	// to an old one have one of their own.
	means   []float64
	alone   bool
	rule    smooth.Rule
	epsilon float64
	threads int
}

// batch is some new nodes with all new nodes that can be reached from them by new nodes.
type batch struct {
	e     *engine
	nodes []uint32 // ascending within a patch, patch by patch
	// patch has the number of nodes of each patch.
	patch []uint32
	at    []uint32 // of each new node: its place in the batch, if it is in it
	// hops has the rows Z^(0), …, Z^(H) of each node. Those of hop 0 are filled, others zero.
	hops []float32
	// blanks are the missing numbers, by node and column; those of node i begin at starts[i].
	blanks []blank
	starts []int
	// What comes out: K, whether it is H for want of more hops, and output rows.
	k      []uint16
	capped []bool
	out    []float32
}

// stride is the number of values of a node in hops.
func (e *engine) stride() int { return (e.kept.last() + 1) * e.kept.width() }

// outWidth is the number of values of an output row: of one hop, or of all of them where the
// rule adds none up.
func (e *engine) outWidth() int {
	if e.rule.Sums() {
		return e.kept.width()
	}
	return e.stride()
}

// row is Z^(hop) of the i-th node of the batch.
func (b *batch) row(i, hop int) []float32 {
	w := b.e.kept.width()
	return b.hops[i*b.e.stride()+hop*w:][:w]
}

// run computes the batch. hops has X^(0).
func (b *batch) run(ctx context.Context) error {
	e := b.e
	b.findBlanks()
	if err := b.addOld(); err != nil {
		return err
	}
	b.fillBlanks()
	for i, v := range b.nodes {
		scale(b.row(i, 0), elementary.Pow(e.neighbours.degree1(v), -e.r))
	}
	for hop := 1; hop <= e.kept.last(); hop++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := share.Ranges(e.threads, len(b.nodes), nodesTogether, func(lo, hi int) error {
			for i := lo; i < hi; i++ {
				b.step(i, hop)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	first := 0
	for _, size := range b.patch {
		n := int(size)
		zbar := b.stationary(first, first+n)
		if err := share.Ranges(e.threads, n, nodesTogether, func(lo, hi int) error {
			for i := first + lo; i < first+hi; i++ {
				b.finish(i, zbar)
			}
			return nil
		}); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// nodesTogether is the number of nodes that a thread takes at a time.
const nodesTogether = 16

// addOld adds up, for each hop and node, the rows of old neighbours at the hop before, in
// ascending order of old node. Threads read rows of old nodes, and then take a hop each.
func (b *batch) addOld() error {
	e := b.e
	edges := 0
	for _, v := range b.nodes {
		_, old := e.list(v)
		edges += len(old.node)
	}
	pairs := make([]uint64, 0, edges) // an old node, and the place of a new neighbour of it
	for i, v := range b.nodes {
		_, old := e.list(v)
		for _, u := range old.node {
			pairs = append(pairs, uint64(u-uint32(e.m))<<32|uint64(i))
		}
	}
	slices.Sort(pairs)
	var (
		rows   = make([]float32, oldTogether*e.stride())
		old    [oldTogether]uint32
		row    []uint8   // of each pair
		weight []float32 // of its edge
		down   [oldTogether]float64
	)
	for len(pairs) > 0 {
		n := 0
		row, weight = row[:0], weight[:0]
		for _, p := range pairs {
			u := uint32(p >> 32)
			if n == 0 || old[n-1] != u {
				if n == oldTogether {
					break
				}
				old[n], down[n] = u, elementary.Pow(e.degree1[u], -e.r)
				n++
			}
			_, of := e.list(b.nodes[uint32(p)])
			row, weight = append(row, uint8(n-1)), append(weight, of.to(uint32(e.m)+u))
		}
		if err := share.Each(e.threads, n, func(k int) error {
			return e.kept.row(e.node[old[k]], rows[k*e.stride():(k+1)*e.stride()])
		}); err != nil {
			return err
		}
		part := pairs[:len(row)]
		for i, p := range part {
			b.addKnown(int(uint32(p)), weight[i], rows[int(row[i])*e.stride():], true)
		}
		_ = share.Each(e.threads, n, func(k int) error {
			scale(rows[k*e.stride():(k+1)*e.stride()], down[k])
			return nil
		})
		_ = share.Each(e.threads, e.kept.last(), func(hop int) error {
			w := e.kept.width()
			for i, p := range part {
				add(b.row(int(uint32(p)), hop+1), weight[i], rows[int(row[i])*e.stride()+hop*w:][:w])
			}
			return nil
		})
		pairs = pairs[len(row):]
	}
	return nil
}

// oldTogether is the number of rows of old nodes that are read before they are added.
const oldTogether = 256

// step makes a hop of a node: its own row and those of its new neighbours join those of the
// old ones.
func (b *batch) step(i, hop int) {
	e, v := b.e, b.nodes[i]
	to := b.row(i, hop)
	add(to, 1, b.row(i, hop-1))
	fresh, _ := e.list(v)
	for k, u := range fresh.node {
		add(to, fresh.weight[k], b.row(int(b.at[u]), hop-1))
	}
	scale(to, 1/e.neighbours.degree1(v))
}

// stationary is z̄ of the nodes [lo, hi) of a patch: the mean over the edges that lead from
// the patch to old nodes, by their weights, of the stationary rows there. A patch without such
// edges has its own.
func (b *batch) stationary(lo, hi int) []float64 {
	e, w := b.e, b.e.kept.width()
	sum, total := make([]float64, w), 0.0
	for _, v := range b.nodes[lo:hi] {
		_, old := e.list(v)
		for k, u := range old.node {
			weight := float64(old.weight[k])
			for c, x := range e.means[int(e.mean[u-uint32(e.m)])*w:][:w] {
				sum[c] += float64(weight * x)
			}
			total += weight
		}
	}
	switch {
	case total > 0:
	case !e.alone:
		return e.means[:w]
	default:
		for i := lo; i < hi; i++ {
			d := e.neighbours.degree1(b.nodes[i])
			for c, x := range b.row(i, 0) {
				sum[c] += float64(d * float64(x))
			}
			total += d
		}
	}
	for c := range sum {
		sum[c] /= total
	}
	return sum
}

// finish finds K of a node and makes its output row.
func (b *batch) finish(i int, zbar []float64) {
	e, w := b.e, b.e.kept.width()
	up := elementary.Pow(e.neighbours.degree1(b.nodes[i]), e.r)
	k, capped := e.kept.last(), true
	for hop := range e.kept.last() + 1 {
		if up*distance(b.row(i, hop), zbar) < e.epsilon {
			k, capped = hop, false
			break
		}
	}
	b.k[i], b.capped[i] = uint16(k), capped
	out := b.out[i*e.outWidth():][:e.outWidth()]
	if !e.rule.Sums() {
		copy(out, b.hops[i*e.stride():])
		scale(out, up)
		return
	}
	weights := e.rule.Weights(k)
	sum := make([]float64, w)
	for hop, weight := range weights {
		if weight == 0 {
			continue
		}
		for c, x := range b.row(i, hop) {
			sum[c] += float64(weight * float64(x))
		}
	}
	for c, x := range sum {
		out[c] = float32(up * x)
	}
}

// distance is ‖z − z̄‖₂.
func distance(z []float32, zbar []float64) float64 {
	square := 0.0
	for c, x := range z {
		d := float64(x) - zbar[c]
		square += float64(d * d)
	}
	return math.Sqrt(square)
}

func scale(row []float32, by float64) {
	if by == 1 {
		return
	}
	for c, x := range row {
		row[c] = float32(float64(x) * by)
	}
}

// add adds a row times a weight.
func add(to []float32, weight float32, row []float32) {
	for c, x := range row {
		to[c] += float32(weight * x)
	}
}

// patches puts the new nodes in the order of patches, a patch being the new nodes that can be
// reached from each other by new nodes, and gives the size of each patch. Patches are in order
// of their first nodes. sizes has space for as many patches as there are nodes.
func (g *neighbours) patches(order, root, sizes []uint32) []uint32 {
	for v := range root {
		root[v] = uint32(v)
	}
	find := func(v uint32) uint32 {
		for root[v] != v {
			root[v] = root[root[v]]
			v = root[v]
		}
		return v
	}
	for v := range uint32(g.m) {
		fresh, _ := g.list(v)
		for _, u := range fresh.node {
			a, b := find(v), find(u)
			root[max(a, b)] = min(a, b)
		}
	}
	for v := range order {
		order[v] = uint32(v)
	}
	for v := range uint32(g.m) {
		root[v] = find(v)
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return int(int64(root[a]) - int64(root[b])) })
	patches := 0
	for i, v := range order {
		if i == 0 || root[order[i-1]] != root[v] {
			sizes[patches] = 0
			patches++
		}
		sizes[patches-1]++
	}
	return sizes[:patches]
}

// run computes all new nodes. features puts X^(0) of some nodes, in order of nodes; done takes
// what came out of a batch.
func (e *engine) run(ctx context.Context, b *mem.Budget, features func(nodes []uint32, put func(i int, row []float32)) error,
	done func(*batch) error,
) error {
	order, err := mem.Alloc[uint32](b, int64(e.m), "order of new nodes")
	if err != nil {
		return err
	}
	defer order.Free()
	at, err := mem.Alloc[uint32](b, int64(e.m), "places of new nodes")
	if err != nil {
		return err
	}
	defer at.Free()
	patchSizes, err := mem.Alloc[uint32](b, int64(e.m), "sizes of patches")
	if err != nil {
		return err
	}
	defer patchSizes.Free()
	sizes := e.patches(order.S, at.S, patchSizes.S)
	most := b.Free() / 2
	for first := 0; first < e.m; {
		n, patches, bytes := 0, 0, int64(0)
		for patches < len(sizes) {
			more, size := int64(0), int(sizes[patches])
			for _, v := range order.S[first+n : first+n+size] {
				_, old := e.list(v)
				more += e.nodeBytes() + 16*int64(len(old.node))
			}
			if n > 0 && (bytes+more > most || n+size > mostTogether) {
				break
			}
			n, patches, bytes = n+size, patches+1, bytes+more
		}
		if err := e.one(ctx, b, order.S[first:first+n], sizes[:patches], at.S, bytes, features, done); err != nil {
			return err
		}
		first, sizes = first+n, sizes[patches:]
	}
	return nil
}

// mostTogether bounds the nodes of a batch of several patches.
const mostTogether = 1 << 14

// nodeBytes returns the memory of a node in a batch, without its neighbours.
func (e *engine) nodeBytes() int64 {
	bytes := 4*int64(e.stride()) + 4*int64(e.outWidth()) + 16
	if e.fill != nil && e.fill.Neighbours {
		bytes += 24*int64(e.fill.Numbers) + 8
	}
	return bytes
}

func (e *engine) one(ctx context.Context, budget *mem.Budget, nodes, patch, at []uint32, bytes int64,
	features func(nodes []uint32, put func(i int, row []float32)) error, done func(*batch) error,
) error {
	hops, err := mem.Alloc[float32](budget, int64(len(nodes)*e.stride()), "hops of new nodes")
	if err != nil {
		return fmt.Errorf("%d new nodes that are joined by edges are computed together: %w", len(nodes), err)
	}
	defer hops.Free()
	rest := bytes - 4*int64(len(hops.S))
	if err := budget.Reserve(rest, "rows of new nodes"); err != nil {
		return fmt.Errorf("%d new nodes that are joined by edges are computed together: %w", len(nodes), err)
	}
	defer budget.Release(rest)
	b := &batch{
		e: e, nodes: nodes, patch: patch, at: at, hops: hops.S,
		k: make([]uint16, len(nodes)), capped: make([]bool, len(nodes)), out: make([]float32, len(nodes)*e.outWidth()),
	}
	for i, v := range nodes {
		at[v] = uint32(i)
	}
	if err := features(nodes, func(i int, row []float32) { copy(b.row(i, 0), row) }); err != nil {
		return err
	}
	if err := b.run(ctx); err != nil {
		return err
	}
	return done(b)
}
