package partition

import (
	"math/bits"

	"ndls/internal/extsort"
	"ndls/internal/packed"
)

// pairKey orders edges of input ids, or of their ranks, by one end and then the other: the
// smaller and the larger one, or, where edges have directions, source and destination. It is
// never extsort.End: ids end at dataset.MaxID.
func pairKey(lo, hi uint32) uint64 { return uint64(lo)<<32 | uint64(hi) }

func pairOfKey(key uint64) (lo, hi uint32) { return uint32(key >> 32), uint32(key) }

const (
	rowBits = packed.BlockShift
	rowMask = BlockRows - 1
)

// edgeKeys orders the directed edges of a graph by (group of dst, src, dst). A group is a block, or
// the part of a block that one of the files of the edges has ([cuts]). In a graph with directions
// the groups of the reversed edges follow all others. No bit is left out between group and src, so
// that a digit of a radix sort tells as many keys apart as it can. No key is extsort.End: node ids
// end at dataset.MaxID.
type edgeKeys struct {
	shift  uint     // how many bits are below the group
	groups []uint16 // of each strip; at most 256 KiB
	base   []uint32 // first row of the block of each group
}

// keyBits is how many bits of a key are below the group, in a graph of so many nodes.
func keyBits(nodes int64) uint { return uint(rowBits + bits.Len64(uint64(nodes-1))) }

// newEdgeKeys are the keys of a graph whose files are so cut.
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

// reversed is what the key of a reversed edge has beyond that of the same edge.
func (k *edgeKeys) reversed() uint64 { return uint64(len(k.base)) << (k.shift & 63) }

// edge is the edge of a key, reversed or not.
func (k *edgeKeys) edge(key uint64) (src, dst uint32) {
	group := int(key >> (k.shift & 63))
	if group >= len(k.base) {
		group -= len(k.base)
	}
	return uint32(key & (1<<(k.shift&63) - 1) >> rowBits), k.base[group] | uint32(key&rowMask)
}

// first is the smallest key into a row with which a group begins, or one past all rows, of the
// reversed edges where wanted; extsort.End where there can be none.
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
