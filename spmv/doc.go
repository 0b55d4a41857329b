// Package spmv multiplies: one pass streams the packed edges of a graph past a
// column block of dense rows and leaves the next hop.
//
// # Model
//
// With Z = D̃^(−r) X a hop is Z^(k+1) = D̃⁻¹ Ã Z^(k), the mean over a node and its
// neighbours, whatever the convolution coefficient r of the paper's Â =
// D̃^(r−1) Ã D̃^(−r) is. Where edges have weights, Ã = A_w + I and D̃ has the strengths plus one,
// and each neighbour counts with the weight of its edge. [Pass.Run] computes the sum of
// each row, divides it by the degree plus one, and hands finished rows to a
// [Sink] while they are in cache.
//
// # Algorithm
//
// The rows of the present hop are read in windows of source rows, in ascending order. A
// window is all rows of the block if they are in memory, else a part of them from disk,
// or rows that another worker of the group (package group) has. For each window the
// strips of 2^15 destination rows are handed out to the threads. The edges of a strip
// are sorted by source. A kernel decodes them 32 edges ahead of their sums, prefetches
// both rows of each, and adds the source row to a float32 accumulator that the caches
// hold. With a single window one thread starts, sums, divides and stores a strip while
// the strip is in its cache. Where there are fewer strips than threads, several threads
// share a strip in slices of columns.
//
// A [Layout] says where the rows of a [Block] are: float32 or float16; both hops in memory, the
// next one on disk, or both on disk. With rows on disk, and with float16 rows of which other
// workers have some, strips are accumulated in groups, and the windows are read once for each
// group. Where other workers have rows, a window is fetched while the one before is added, or
// several, where there is one other worker and memory for them. Where these send the rows alone
// that are read, and there is memory for all windows, those after the block's own rows are fetched
// first, and held until it is their turn.
//
// [Pass.Recur] makes Chebyshev's polynomials T_j of P = D̃⁻¹ Ã in place of powers, T_{j+1} Z = 2 P T_j Z − T_{j−1} Z, also one pass
// each. T_{j+1} Z is written over T_{j−1} Z: the sum of a row starts with the row of T_j Z minus d̃/2 times that of T_{j−1} Z, in the
// place of that, and is divided by d̃/2 at the end. So a step needs no memory and no disk beside those of a hop, wherever rows are.
//
// [Roles] says which rows a hop computes. Whole strips of rows that no later hop needs are skipped.
//
// In a graph with directions, a hop is Z ← V⁻¹ M̃ Z with any positive divisors V, where M̃ is the
// matrix of the edges of one direction plus I. What is conserved from before to after it is
// Σ_j s_j Z_j = Σ_i v_i Z_i, where s_j counts how often row j is added.
//
// The degree-weighted sums cover all workers: conservation is checked over the
// whole graph, with the same result on every worker.
//
// Kernels for 16, 32 and 64 columns exist for AVX-512, AVX2 and in Go; wider
// rows are done in slices.
// [Select] chooses by CPU feature.
//
// # Memory
//
// [Layout.Memory]: for n rows of b columns of e bytes and t threads
//
//	resident   2·n·b·e, and t·2^15·b·4 of accumulators for float16
//	spilled    n·b·e + t·2^15·b·(4+e)
//	external   w·b·e + a·2^15·b·4 + t·2^15·b·e for a window of w rows and a
//	           strips at a time, at least 2^15 rows and one strip
//	shared     2·n·b·e unless external, 2·w·b·e for windows, or as many windows as the rows of
//	           others take, or, of two workers, as many of these as half of what is left holds,
//	           and, if rows are external or float16, a·2^15·b·4 and a strip a thread
//
// and what the source reads ahead of two strips, per thread. [Block.Save] takes 2^18
// bytes per thread for a block that is wider than a panel. [Layout.Disk] is n·b·e for
// spilled and twice that for external rows.
//
// # Determinism
//
// A row is the float32 sum of itself, then of its neighbours in ascending order
// of id, divided by its degree plus one. In a recurrence the sum starts with the difference of itself and the product, rounded to
// float32, of half the divisor and the row two steps before, and half of the degree plus one divides. A
// weighted neighbour is rounded to float32 before it is added. No fused multiply-add. The bits depend
// on the edges, the rows and their precision alone: not on kernel, threads,
// slices, windows, workers, the order of strips, or where rows live. Rounding to
// float16 is to the nearest, ties to even. Squared norms are float64: within 16 columns lanes l
// and l+8 first, then halves of 4, 2 and 1; panels of 16 columns in ascending
// order.
package spmv
