package partition

import (
	"ndls/dataset"
	"ndls/internal/mem"
)

// members holds the nodes of a graph that is restricted to some splits. What the dataset says of other nodes, and edges of other nodes, are
// ignored.
type members struct {
	ids   *idSet            // of all nodes in a split
	split *mem.Array[uint8] // by rank in ids
	last  dataset.Split     // the splits from Train to this one are members
}

// rank allocates the splits of the ids that were added.
func (m *members) rank(b *mem.Budget) (err error) {
	if err := m.ids.rankAll(); err != nil {
		return err
	}
	m.split, err = mem.Alloc[uint8](b, m.ids.n, "splits")
	return err
}

// splitOf returns the split of a member, and NoSplit for any other node.
func (m *members) splitOf(id uint32) dataset.Split {
	rank, ok := m.ids.rank(id)
	if !ok {
		return dataset.NoSplit
	}
	if s := dataset.Split(m.split.S[rank]); s <= m.last {
		return s
	}
	return dataset.NoSplit
}

func (m *members) free() {
	if m != nil && m.ids != nil {
		m.ids.free()
		m.split.Free()
	}
}

// limit returns one more than the largest input id that the dataset may have.
func (j *job) limit() int64 {
	if n := max(j.info.NumNodes, j.stated); n >= 0 {
		return n
	}
	return int64(dataset.MaxID) + 1
}

// holds reports whether the node of an input id belongs to the graph.
func (j *job) holds(id uint32) bool {
	return j.members == nil || j.members.splitOf(id) != dataset.NoSplit
}
