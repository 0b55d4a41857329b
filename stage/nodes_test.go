package stage

import (
	"testing"

	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/rng"
)

// TestByID finds the nodes of all ids, the largest too, and of no other number.
func TestByID(t *testing.T) {
	nodes := map[int64]int64{0: 0, 1<<32 - 2: 1}
	keys := []uint64{0, (1<<32-2)<<32 | 1}
	for len(nodes) < 50_000 {
		id := int64(rng.Hash(1, uint64(len(keys))) >> 32)
		if _, ok := nodes[id]; !ok {
			nodes[id] = int64(len(keys))
			keys = append(keys, uint64(id)<<32|uint64(len(keys)))
		}
	}
	extsort.SortKeys(keys, 2)
	b := &byID{&mem.Array[uint64]{S: keys}}
	for id, want := range nodes {
		if node, ok := b.Of(id); !ok || node != want {
			t.Fatalf("node %d, %v of id %d, want %d", node, ok, id, want)
		}
		for _, other := range []int64{id - 1, id + 1, -id - 1, id + 1<<32} {
			if _, is := nodes[other]; is {
				continue
			}
			if node, ok := b.Of(other); ok {
				t.Fatalf("node %d of id %d, which is none", node, other)
			}
		}
	}
}
