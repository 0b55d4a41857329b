package partition

// forest is a union-find structure over nodes: a node's parent is itself or a
// smaller node of its component.
type forest []uint32

// newForest makes every node a component of its own.
func newForest(parent []uint32) forest {
	for i := range parent {
		parent[i] = uint32(i)
	}
	return parent
}

// root is the smallest node known to be connected to v. It halves the path.
func (f forest) root(v uint32) uint32 {
	for f[v] != v {
		f[v] = f[f[v]]
		v = f[v]
	}
	return v
}

// join connects the components of u and v.
func (f forest) join(u, v uint32) {
	u, v = f.root(u), f.root(v)
	f[max(u, v)] = min(u, v)
}

// number replaces parents by component numbers, which count up in the order of
// the components' smallest nodes.
func (f forest) number() {
	next := uint32(0)
	for v, parent := range f {
		if parent == uint32(v) {
			f[v] = next
			next++
		} else {
			// The parent is smaller, so it has its number already.
			f[v] = f[parent]
		}
	}
}
