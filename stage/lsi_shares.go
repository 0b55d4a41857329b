package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/lsi"
	"ndls/shards"
	"ndls/tiles"
)

// K of some rows, as members of a gang commit it: a uint16 per node, little-endian, in order of node. The highest bit is set if K is
// capped.
const (
	lsiSharePath = "lsi/rows-%d-%d.k"
	lsiShareRow  = 2
	cappedBit    = 1 << 15
)

// lsiShares returns the files that hold K of n nodes, and whether all exist.
func (env lsiRun) lsiShares(n int64) ([]catalog.Entry, bool) {
	var all []catalog.Entry
	for _, e := range env.Catalog.Entries(catalog.KindLSIPart) {
		if e.Rows == e.Hi-e.Lo && e.Bytes == lsiShareRow*e.Rows {
			all = append(all, e)
		}
	}
	return tiles.Cover(all, 0, n)
}

// commitShare commits K of the task's rows.
func (env lsiRun) commitShare(ctx context.Context, g engine, _ []uint32, table *lsi.Table) error {
	files := env.Catalog.Batch()
	defer files.Abort()
	share := catalog.Describe(catalog.KindLSIPart, fmt.Sprintf(lsiSharePath, g.lo, g.hi)).Holding(g.lo, g.hi).Counting(g.hi - g.lo)
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

// joinLSI commits a K table, in a folder, from the shares that workers committed.
func (env lsiRun) joinLSI(ctx context.Context, kind, folder string, shares []catalog.Entry) error {
	defer env.Release()
	s := env.Summary
	for _, e := range shares {
		// Intervals are committed before the ends of their sources are read, so check the sources first.
		if err := env.Catalog.Verify(ctx, e); err != nil {
			return err
		}
	}
	rows, err := tiles.OpenParts(ctx, env.Catalog, shares, lsiShareRow)
	if err != nil {
		return err
	}
	defer rows.Close()
	most := min(s.IntervalRows, s.Nodes)
	ids, err := mem.Alloc[uint32](env.Budget, most, "input ids")
	if err != nil {
		return err
	}
	defer ids.Free()
	k, err := mem.Alloc[uint16](env.Budget, most, "K table")
	if err != nil {
		return err
	}
	defer k.Free()
	var failed error
	err = env.nodeTable().readNodes(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			node := first + int64(i)
			interval := node / s.IntervalRows
			lo, hi := interval*s.IntervalRows, min((interval+1)*s.IntervalRows, s.Nodes)
			ids.S[node-lo] = uint32(id)
			if node != hi-1 || failed != nil {
				continue
			}
			if failed = rows.Read(mem.AsBytes(k.S[:hi-lo]), lo); failed == nil {
				failed = env.commitInterval(ctx, kind, folder, int(interval), ids.S[:hi-lo], k.S)
			}
		}
	})
	return errors.Join(failed, err)
}

func (env lsiRun) commitInterval(ctx context.Context, kind, folder string, interval int, ids []uint32, k []uint16) error {
	return env.Catalog.Write(ctx, fileOfK(kind, folder, interval).Counting(int64(len(ids))), func(f *catalog.File) error {
		return env.writeLSI(ctx, f, int64(interval)*env.Summary.IntervalRows, ids,
			func(i int64) (int, bool) { return int(k[i] &^ cappedBit), k[i]&cappedBit != 0 })
	})
}
