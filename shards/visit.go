package shards

import (
	"context"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/seal"
)

// VisitNodes visits some columns of the node table in a catalogue, like [ReadNodePart], and compares its bytes with its checksum. An
// error of visit ends it.
func VisitNodes(ctx context.Context, c *catalog.Catalog, want NodeColumns, by Readers, visit func(first int64, b NodeBatch) error) error {
	entries := c.Entries(catalog.KindNodes)
	if len(entries) != 1 {
		return fmt.Errorf("the catalogue names %d node tables: run `ndls partition` first: %w", len(entries), seal.ErrCorrupt)
	}
	r, err := c.OpenVerified(ctx, entries[0])
	if err != nil {
		return err
	}
	err = ReadNodePart(r, entries[0].Path, 0, want, by, func(first int64, b NodeBatch) error {
		if err := visit(first, b); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	if err == nil {
		err = r.Finish()
	}
	return errors.Join(err, r.Close())
}

// VisitK visits the K table in these files in order of node, and compares their bytes with their checksums.
func VisitK(ctx context.Context, c *catalog.Catalog, files []catalog.Entry, by Readers,
	visit func(node int64, k int32, capped bool),
) error {
	return VisitLSI(ctx, c, files, by, func(first int64, b LSIBatch) {
		for i, k := range b.K {
			visit(first+int64(i), k, b.Capped[i])
		}
	})
}

// VisitLSI is VisitK for batches of rows with their ids; first is the first node of a batch.
func VisitLSI(ctx context.Context, c *catalog.Catalog, files []catalog.Entry, by Readers, visit func(first int64, b LSIBatch)) error {
	lo := int64(0)
	for _, e := range files {
		r, err := c.OpenVerified(ctx, e)
		if err != nil {
			return err
		}
		err = ReadLSI(r, e.Path, by, func(first int64, b LSIBatch) error {
			visit(lo+first, b)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		})
		if err == nil {
			err = r.Finish()
		}
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		lo += e.Rows
	}
	return nil
}
