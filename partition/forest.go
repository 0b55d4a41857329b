package partition

import "sync/atomic"

// forest is a union-find structure over nodes by the rank of their input ids: a
// node's parent is itself or one of its component before it. Input ids that are
// near to each other are often neighbours, and near in memory. Several threads may join
// components at a time: what is connected in the end does not depend on their order.
type forest []uint32

// newForest makes every node a component of its own.
func newForest(parent []uint32) forest {
	for i := range parent {
		parent[i] = uint32(i)
	}
	return parent
}

// root is the first node known to be connected to v. It halves the path: a node that has
// a parent gets another one, of those before that parent, whatever other threads do.
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

// join connects the components of u and v. Mostly they have the same parent already.
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
		// Another thread may have given u a parent since.
		if atomic.CompareAndSwapUint32(&f[u], u, v) {
			return
		}
	}
}

// number gives the components numbers in the order of their smallest node ids,
// and writes them to component by node id. It uses f up. It returns how many components there are,
// and the nodes of the largest.
func (f forest) number(nodeOf, component []uint32) (components, largest int64) {
	for rank, parent := range f {
		f[rank] = f[parent] // the parent comes before, so it knows its root
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
