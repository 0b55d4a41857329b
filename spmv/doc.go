// Package spmv multiplies: one pass streams the packed edges of a graph past a
// column block of dense rows and leaves the next hop.
//
// # Model
//
// With Z = D̃^(−r) X a hop is Z^(k+1) = D̃⁻¹ Ã Z^(k), the mean over a node and its
// neighbours, whatever the convolution coefficient r of the paper's Â =
// D̃^(r−1) Ã D̃^(−r) is. No edge carries a weight. [Pass.Run] computes the sum of
// each row, divides it by the degree plus one, and hands finished rows to a
// [Sink] while they are in cache.
//
// # Algorithm
//
// Strips of 2^15 destination rows are handed out from a queue. The edges of a
// strip are sorted by source and are added, as they are decoded 128 edges behind
// their prefetch, to float32 accumulators that the caches hold. Where there are
// fewer strips than threads a strip is shared out in slices of columns.
//
// A [Block] holds its rows as a [Layout] says: float32 or float16; both hops in
// memory, the next one on disk, or both on disk. In that case strips are
// accumulated in groups, for each of which the hop is read window by window.
//
// Where several workers share the rows of a graph out among them ([NewShared]), a
// block has some of them, and the windows of the others' come from [Peers], one on its
// way while the other is added. The degree-weighted sums are those of all workers:
// conservation is checked over the whole graph, with the same result everywhere.
//
// Kernels for 16, 32 and 64 columns exist for AVX-512, AVX2 and in Go; wider
// rows are done in slices. [Select] chooses by CPU feature.
//
// # Memory
//
// [Layout.Memory]: for n rows of b columns of e bytes and t threads
//
//	resident   2·n·b·e, and t·2^15·b·4 of accumulators for float16
//	spilled    n·b·e + t·2^15·b·(4+e)
//	external   w·b·e + a·2^15·b·4 + t·2^15·b·e for a window of w rows and a
//	           strips at a time, at least 2^15 rows and one strip
//	shared     2·n·b·e unless external, 2·w·b·e for windows, and as external rows
//	           do where they are, or are float16, a·2^15·b·4 and a strip a thread
//
// and what the source reads ahead of two strips, per thread; [Block.Save] takes
// 2^18 bytes per thread where a block is wider than a panel. [Layout.Disk] is n·b·e for spilled
// and twice that for external rows.
//
// # Determinism
//
// A row is the float32 sum of itself, then of its neighbours in ascending order
// of id, divided by its degree plus one. No fused multiply-add. The bits depend
// on the edges, the rows and their precision alone: not on kernel, threads,
// slices, the place of the rows or the order of strips. Rounding to float16 is to
// the nearest, ties to even. Squared norms are float64: within 16 columns lanes l
// and l+8 first, then halves of 4, 2 and 1; panels of 16 columns in ascending
// order.
//
// # Not supported
//
// Directed graphs and edge weights.
package spmv
