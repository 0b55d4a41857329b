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

// edgeKeys orders the directed edges of a graph by (block of dst, src, dst). Its number is
// that of the bits below the block: no bit is left out between block and src, so that a
// digit of a radix sort tells as many keys apart as it can. No key is extsort.End: node
// ids end at dataset.MaxID.
type edgeKeys uint

// edgeKeysOf are the keys of a graph of so many nodes.
func edgeKeysOf(nodes int64) edgeKeys { return edgeKeys(rowBits + bits.Len64(uint64(nodes-1))) }

func (k edgeKeys) of(src, dst uint32) uint64 {
	return uint64(dst>>rowBits)<<(k&63) | uint64(src)<<rowBits | uint64(dst&rowMask)
}

// edge is the edge of a key.
func (k edgeKeys) edge(key uint64) (src, dst uint32) {
	return uint32(key & (1<<(k&63) - 1) >> rowBits), uint32(key>>(k&63))<<rowBits | uint32(key&rowMask)
}

// first is the smallest key into a block, or extsort.End.
func (k edgeKeys) first(block int64) uint64 {
	if uint64(block) >= 1<<(64-k) {
		return extsort.End
	}
	return uint64(block) << k
}
