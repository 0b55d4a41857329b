package worker

import (
	"context"
	"slices"

	"ndls/internal/mem"
)

// byID finds nodes by input id.
type byID struct {
	ids   *mem.Array[uint32] // by node
	order *mem.Array[uint32] // nodes by ascending id
}

// nodesByID sorts the nodes by their input id: 8·n bytes.
func (j *job) nodesByID(ctx context.Context, n int64) (*byID, error) {
	ids, err := j.ids(ctx, n)
	if err != nil {
		return nil, err
	}
	order, err := mem.Alloc[uint32](j.budget, n, "nodes by id")
	if err != nil {
		ids.Free()
		return nil, err
	}
	for i := range order.S {
		order.S[i] = uint32(i)
	}
	slices.SortFunc(order.S, func(a, b uint32) int { return int(int64(ids.S[a]) - int64(ids.S[b])) })
	return &byID{ids, order}, nil
}

func (b *byID) of(id int64) (node int64, ok bool) {
	at, ok := slices.BinarySearchFunc(b.order.S, id, func(node uint32, id int64) int {
		return int(int64(b.ids.S[node]) - id)
	})
	if !ok {
		return 0, false
	}
	return int64(b.order.S[at]), true
}

func (b *byID) free() {
	b.ids.Free()
	b.order.Free()
}
