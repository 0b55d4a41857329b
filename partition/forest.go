package partition

// forest is a union-find structure over nodes by the rank of their input ids: a
// node's parent is itself or one of its component before it. Input ids that are
// near to each other are often neighbours, and near in memory.
type forest []uint32

// newForest makes every node a component of its own.
func newForest(parent []uint32) forest {
	for i := range parent {
		parent[i] = uint32(i)
	}
	return parent
}

// root is the first node known to be connected to v. It halves the path.
func (f forest) root(v uint32) uint32 {
	for f[v] != v {
		f[v] = f[f[v]]
		v = f[v]
	}
	return v
}

// join connects the components of u and v.
func (f forest) join(u, v uint32) {
	if f[u] == f[v] {
		return
	}
	u, v = f.root(u), f.root(v)
	f[max(u, v)] = min(u, v)
}

// number gives the components numbers in the order of their smallest node ids,
// and writes them to component by node id. It uses f up.
func (f forest) number(nodeOf, component []uint32) {
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
}
