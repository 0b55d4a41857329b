package depth

import (
	"context"
	"encoding/binary"
	"fmt"

	"ndls/catalog"
	"ndls/lsi"
	"ndls/stage/graph"
)

// lsiShares returns the files that hold K of n nodes, and whether all exist.
func (env lsiRun) lsiShares(n int64) ([]catalog.Entry, bool) {
	var all []catalog.Entry
	for _, e := range env.Catalog.Entries(catalog.KindLSIPart) {
		if e.Rows == e.Hi-e.Lo && e.Bytes == lsiShareRow*e.Rows {
			all = append(all, e)
		}
	}
	return catalog.Cover(all, 0, n)
}

// commitShare commits K of the task's rows.
func (env lsiRun) commitShare(ctx context.Context, g graph.Engine, _ []uint32, table *lsi.Table) error {
	files := env.Catalog.Batch()
	defer files.Abort()
	share := catalog.Describe(catalog.KindLSIPart, fmt.Sprintf(lsiSharePath, g.Lo, g.Hi)).Holding(g.Lo, g.Hi).Counting(g.Hi - g.Lo)
	if err := files.Write(ctx, share, func(f *catalog.File) error {
		var buf []byte
		for i := range f.Rows {
			k, capped := table.K(i)
			if capped {
				k |= cappedBit
			}
			buf = binary.LittleEndian.AppendUint16(buf, uint16(k))
			if len(buf) == 1<<16 || i == f.Rows-1 {
				if _, err := f.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := env.addSample(ctx, files, g, table); err != nil {
		return err
	}
	return files.Commit(ctx)
}
