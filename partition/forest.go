package partition

import "sync/atomic"

// forest is a union-find structure over nodes by rank of their input ids. The parent of a node is the node itself or an earlier one of its
// component. Neighbours often have close input ids, which are close in memory. Several threads may join components at the same time; the
// result does not depend on their order.
type forest []uint32

// newForest makes every node a component of its own.
func newForest(parent []uint32) forest {
	for i := range parent {
		parent[i] = uint32(i)
	}
	return parent
}

// root returns the first node known to be connected to v. It halves the path: a node gets an earlier parent, whatever other threads do.
func (f forest) root(v uint32) uint32 {
	for {
		parent := atomic.LoadUint32(&f[v])
		if parent == v {
			return v
		}
		before := atomic.LoadUint32(&f[parent])
		if before != parent {
			atomic.StoreUint32(&f[v], before)
		}
		v = before
	}
}

// join connects the components of u and v, which mostly have the same parent already.
func (f forest) join(u, v uint32) {
	if atomic.LoadUint32(&f[u]) != atomic.LoadUint32(&f[v]) {
		f.connect(u, v)
	}
}

func (f forest) connect(u, v uint32) {
	for {
		u, v = f.root(u), f.root(v)
		if u == v {
			return
		}
		if u < v {
			u, v = v, u
		}
		// Another thread may have given u a parent meanwhile.
		if atomic.CompareAndSwapUint32(&f[u], u, v) {
			return
		}
	}
}

// number numbers the components in the order of their smallest node ids and writes the numbers to component by node id. It destroys f. It
// returns the number of components and the number of nodes of the largest.
func (f forest) number(nodeOf, component []uint32) (components, largest int64) {
	for rank, parent := range f {
		f[rank] = f[parent] // the parent comes earlier, so its root is known
		component[nodeOf[rank]] = f[rank]
	}
	const none = ^uint32(0)
	for i := range f {
		f[i] = none
	}
	next := uint32(0)
	for node, root := range component {
		if f[root] == none {
			f[root] = next
			next++
		}
		component[node] = f[root]
	}
	sizes := f
	clear(sizes)
	for _, c := range component {
		sizes[c]++
		largest = max(largest, int64(sizes[c]))
	}
	return int64(next), largest
}
