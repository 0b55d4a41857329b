package worker

import (
	"context"
	"slices"

	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/shards"
)

// byID finds nodes by input id.
type byID struct {
	keys *mem.Array[uint64] // input id and node, by ascending id
}

// nodesByID sorts the nodes by their input id: 8·n bytes, twice that while it sorts.
func (j *job) nodesByID(ctx context.Context, n int64) (*byID, error) {
	keys, err := mem.Alloc[uint64](j.budget, n, "nodes by id")
	if err != nil {
		return nil, err
	}
	other, err := mem.Alloc[uint64](j.budget, n, "nodes by id")
	if err != nil {
		keys.Free()
		return nil, err
	}
	defer other.Free()
	if err := j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			node := first + int64(i)
			keys.S[node] = uint64(id)<<32 | uint64(node)
		}
	}); err != nil {
		keys.Free()
		return nil, err
	}
	extsort.SortKeys(keys.S, other.S, max(j.res.Threads, 1))
	return &byID{keys}, nil
}

// of is the node of an input id.
func (b *byID) of(id int64) (node int64, ok bool) {
	if id < 0 || id>>32 != 0 {
		return 0, false
	}
	at, _ := slices.BinarySearch(b.keys.S, uint64(id)<<32)
	if at == len(b.keys.S) || int64(b.keys.S[at]>>32) != id {
		return 0, false
	}
	return int64(uint32(b.keys.S[at])), true
}

func (b *byID) free() { b.keys.Free() }
