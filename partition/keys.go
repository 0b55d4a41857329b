package partition

import (
	"ndls/internal/extsort"
	"ndls/internal/packed"
)

// pairKey orders undirected edges of input ids, or of their ranks, by the
// smaller and then the larger end. It is never extsort.End: ids end at
// dataset.MaxID.
func pairKey(lo, hi uint32) uint64 { return uint64(lo)<<32 | uint64(hi) }

func pairOfKey(key uint64) (lo, hi uint32) { return uint32(key >> 32), uint32(key) }

const (
	rowBits   = packed.BlockShift
	rowMask   = BlockRows - 1
	blockBits = 32 - rowBits
)

// edgeKey orders directed edges by (block of dst, src, dst). It is never
// extsort.End: node ids end at dataset.MaxID.
func edgeKey(src, dst uint32) uint64 {
	return uint64(dst>>rowBits)<<(64-blockBits) | uint64(src)<<rowBits | uint64(dst&rowMask)
}

func edgeOfKey(key uint64) (src, dst uint32) {
	return uint32(key >> rowBits), uint32(key>>(64-blockBits))<<rowBits | uint32(key&rowMask)
}

// firstKey is the smallest edgeKey into an interval of so many blocks.
func firstKey(interval, blocks int) uint64 {
	if block := uint64(interval) * uint64(blocks); block < 1<<blockBits {
		return block << (64 - blockBits)
	}
	return extsort.End
}
