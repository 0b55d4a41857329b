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
// Semi-external memory: dense rows in RAM, edges streamed. Destination blocks of
// 2^20 rows are handed out from a queue; the edges of a block are sorted by
// source and accumulate straight into the rows of the next hop. Where there are
// fewer blocks than threads a block is handed out in slices of columns.
//
// Kernels for 16, 32 and 64 columns exist for AVX-512, AVX2 and in Go; wider
// rows are done in slices. [Select] chooses by CPU feature.
//
// # Memory
//
// Two [Rows] of n × b × 4 bytes, owned by the caller; b is a multiple of 16. The
// pass itself adds what the source reads ahead, per thread.
//
// # Determinism
//
// A row is the float32 sum of itself, then of its neighbours in ascending order
// of id, divided by its degree plus one. No fused multiply-add. The bits depend
// on the edges and the rows alone: not on kernel, threads, slices or block order.
// Squared norms are float64: within 16 columns lanes l and l+8 first, then halves
// of 4, 2 and 1; granules of 16 columns in ascending order.
//
// # Not supported
//
// Directed graphs and edge weights.
package spmv
