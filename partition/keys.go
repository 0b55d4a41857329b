package partition

import (
	"math/bits"

	"ndls/internal/extsort"
	"ndls/internal/packed"
)

// pairKey orders edges of input ids, or of their ranks: by (smaller, larger) end, or by (source, destination) with directions. It never
// equals extsort.End, because ids end at dataset.MaxID.
func pairKey(lo, hi uint32) uint64 { return uint64(lo)<<32 | uint64(hi) }

func pairOfKey(key uint64) (lo, hi uint32) { return uint32(key >> 32), uint32(key) }

const (
	rowBits = packed.BlockShift
	rowMask = BlockRows - 1
)

// edgeKeys orders the directed edges of a graph by (group of dst, src, dst). A group is a block, or the part of a block in one file of
// edges ([cuts]). The groups of reversed edges follow all others. No bit is unused between group and src, so that a digit of a radix sort
// separates as many keys as it can. No key equals extsort.End, because node ids end at dataset.MaxID.
type edgeKeys struct {
	shift  uint     // number of bits below the group
	groups []uint16 // by strip; at most 256 KiB
	base   []uint32 // by group, the first row of its block
}

// keyBits returns the number of bits of a key below the group, in a graph of this number of nodes.
func keyBits(nodes int64) uint { return uint(rowBits + bits.Len64(uint64(nodes-1))) }

// newEdgeKeys returns the keys of a graph with these cuts.
func newEdgeKeys(c cuts) *edgeKeys {
	nodes := c[len(c)-1]
	k := &edgeKeys{shift: keyBits(nodes), groups: make([]uint16, packed.Strips(nodes))}
	for strip := range k.groups {
		row := int64(strip) << packed.StripShift
		if row == c[0] {
			c = c[1:]
			k.base = append(k.base, uint32(row&^rowMask))
		} else if row&rowMask == 0 {
			k.base = append(k.base, uint32(row))
		}
		k.groups[strip] = uint16(len(k.base) - 1)
	}
	return k
}

func (k *edgeKeys) of(src, dst uint32) uint64 {
	return uint64(k.groups[dst>>packed.StripShift])<<(k.shift&63) | uint64(src)<<rowBits | uint64(dst&rowMask)
}

// reversedOffset returns the difference between the key of a reversed edge and that of the same edge not reversed.
func (k *edgeKeys) reversedOffset() uint64 { return uint64(len(k.base)) << (k.shift & 63) }

// edge returns the edge of a key, reversed or not.
func (k *edgeKeys) edge(key uint64) (src, dst uint32) {
	group := int(key >> (k.shift & 63))
	if group >= len(k.base) {
		group -= len(k.base)
	}
	return uint32(key & (1<<(k.shift&63) - 1) >> rowBits), k.base[group] | uint32(key&rowMask)
}

// first returns the smallest key of edges into a row that begins a group, or of the end of all rows; with reversed, of reversed edges. It
// is extsort.End if no larger key exists.
func (k *edgeKeys) first(row int64, reversed bool) uint64 {
	group := uint64(len(k.base))
	if strip := row >> packed.StripShift; strip < int64(len(k.groups)) && row&(packed.StripRows-1) == 0 {
		group = uint64(k.groups[strip])
	}
	if reversed {
		group += uint64(len(k.base))
	}
	if group >= 1<<(64-k.shift) {
		return extsort.End
	}
	return group << k.shift
}

// visits calls visit for items in ascending order.
type visits[T extsort.Item] func(visit func([]T) error) error

// batched visits the keys that each adds, in batches.
func batched(each func(add func(key uint64) error) error) visits[uint64] {
	return func(visit func([]uint64) error) error {
		batch := make([]uint64, 0, extsort.BatchKeys)
		err := each(func(key uint64) error {
			batch = append(batch, key)
			if len(batch) < cap(batch) {
				return nil
			}
			full := batch
			batch = batch[:0]
			return visit(full)
		})
		if err == nil && len(batch) > 0 {
			err = visit(batch)
		}
		return err
	}
}
