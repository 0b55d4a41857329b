package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// nodeTable reads the node table.
type nodeTable struct{ *Env }

func (env *Env) nodeTable() nodeTable { return nodeTable{env} }

// readers returns the threads and the budget for reading tables.
func (env nodeTable) readers() shards.Readers {
	return shards.Readers{Threads: env.Resources.Threads, Budget: env.Budget}
}

// readNodes visits some columns of the node table, in order.
func (env nodeTable) readNodes(ctx context.Context, want shards.NodeColumns, visit func(first int64, b shards.NodeBatch)) error {
	return shards.VisitNodes(ctx, env.Catalog, want, env.readers(), func(first int64, b shards.NodeBatch) error {
		visit(first, b)
		return nil
	})
}

// ids loads the input ids of the task's nodes, of n in all.
func (env nodeTable) ids(ctx context.Context, n int64) (*mem.Array[uint32], error) {
	lo, hi := env.Span(n)
	ids, err := mem.Alloc[uint32](env.Budget, hi-lo, "input ids")
	if err != nil {
		return nil, err
	}
	err = env.readNodes(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if node := first + int64(i); lo <= node && node < hi {
				ids.S[node-lo] = uint32(id)
			}
		}
	})
	if err != nil {
		ids.Free()
		return nil, err
	}
	return ids, nil
}

// names opens the ids of the nodes from node on, for writing rows of them. It returns nil if ids are numbers. The caller closes them.
func (env nodeTable) names(ctx context.Context, node int64) (_ *shards.IDReader, closeFile func(), err error) {
	if env.Summary.IDs == "" {
		return nil, func() {}, nil
	}
	entries := env.Catalog.Entries(catalog.KindNodes)
	if len(entries) != 1 {
		return nil, nil, fmt.Errorf("the catalogue names %d node tables: run `ndls partition` first: %w", len(entries), seal.ErrCorrupt)
	}
	r, err := env.Catalog.Open(ctx, entries[0])
	if err != nil {
		return nil, nil, err
	}
	names, err := shards.OpenNodeIDs(r, entries[0].Path)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	names.SkipTo(node)
	return names, func() { _ = r.Close() }, nil
}

// quoteID returns the input id of a node as messages show it. id is the number of the id, or the id itself if ids are not numbered.
func (env nodeTable) quoteID(ctx context.Context, node, id int64) string {
	names, closeNames, err := env.names(ctx, node)
	if err != nil {
		return "with number " + strconv.FormatInt(id, 10)
	}
	defer closeNames()
	if names == nil {
		return strconv.FormatInt(id, 10)
	}
	keys, err := names.Keys([]int64{id})
	if err != nil {
		return "with number " + strconv.FormatInt(id, 10)
	}
	return names.IDs().Type.Quote(keys[0])
}

// nodesByKey returns a table of the nodes by the keys of their ids, for graphs whose ids are numbered.
func (env nodeTable) nodesByKey(ctx context.Context, n int64) (_ *inputid.Table, err error) {
	names, closeNames, err := env.names(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer closeNames()
	t, err := inputid.NewTable(env.Budget, names.IDs().Type, n)
	if err != nil {
		return nil, err
	}
	node := uint32(0)
	if err := names.Each(func(keys [][]byte) error {
		for _, key := range keys {
			if err := t.Add(key, node); err != nil {
				return err
			}
			node++
		}
		return ctx.Err()
	}); err != nil {
		t.Free()
		return nil, err
	}
	return t, nil
}

// byID finds nodes by input id, or by its number if ids are numbered.
type byID struct {
	keys *mem.Array[uint64] // input id and node, by ascending id
}

// nodesByID sorts the nodes by input id. It uses 8·n bytes.
func (env nodeTable) nodesByID(ctx context.Context, n int64) (*byID, error) {
	keys, err := mem.Alloc[uint64](env.Budget, n, "nodes by id")
	if err != nil {
		return nil, err
	}
	if err := env.readNodes(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			node := first + int64(i)
			keys.S[node] = uint64(id)<<32 | uint64(node)
		}
	}); err != nil {
		keys.Free()
		return nil, err
	}
	extsort.SortKeys(keys.S, max(env.Resources.Threads, 1))
	return &byID{keys}, nil
}

// of returns the node of an input id.
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
