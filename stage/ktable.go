package stage

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// readLSI visits the K table in order of node.
func readLSI(ctx context.Context, cat *catalog.Catalog, visit func(node int64, k int32, capped bool)) error {
	lo := int64(0)
	for _, e := range cat.Entries(catalog.KindLSI) {
		r, err := cat.OpenVerified(ctx, e)
		if err != nil {
			return err
		}
		err = shards.ReadLSI(r, e.Path, func(first int64, b shards.LSIBatch) error {
			for i := range b.ID {
				visit(lo+first+int64(i), b.K[i], b.Capped[i])
			}
			return nil
		})
		if err == nil {
			err = r.Finish()
		}
		_ = r.Close()
		if err != nil {
			return err
		}
		lo += e.Rows
	}
	return nil
}

// kTable loads K by node, of the task's rows of n; values above most become most, as they would be with
// that Kmax.
func (env *Env) kTable(ctx context.Context, n int64, most int) (*mem.Array[uint16], error) {
	lo, hi := env.Span(n)
	a, err := mem.Alloc[uint16](env.Budget, hi-lo, "K table")
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = readLSI(ctx, env.Catalog, func(node int64, k int32, _ bool) {
		if lo <= node && node < hi {
			a.S[node-lo] = uint16(min(int(k), most))
		}
		rows++
	})
	if err == nil && rows != n {
		err = fmt.Errorf("the K table has %d rows for %d nodes: run `ndls lsi` again: %w", rows, n, seal.ErrCorrupt)
	}
	if err != nil {
		a.Free()
		return nil, err
	}
	return a, nil
}
