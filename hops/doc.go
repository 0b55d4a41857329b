// Package hops advances a column block from X^(0) hop by hop. Every row is computed, or only those that later hops need.
//
// # Model
//
// Rows are rows of Z = D̃^(−r) X (package internal/stationary), deflated if the caller gives the stationary rows. A panel is 16 columns.
//
// Late hops need fewer rows than the graph has. [Streams] copies the edges that they need, if that saves time, and all column blocks that
// make the same hops read the copies. A row can be left out if no row that is counted at a later hop is near enough: row j is needed up to
// hop
//
//	R(j) = max over rows i of  (last hop that counts i) − dist(i, j)
//
// where dist(i, j) is the number of edges on a shortest path from j to i. [Graph.FindNeeded] computes R for the last hops, by steps from
// row to row. Leaving such rows out changes no bit of the others.
//
// A walk that recurs makes T_j Z at hop j, with Chebyshev's polynomials T_j of D̃⁻¹ Ã ([spmv.Pass.Recur]), in place of powers. Row i of
// hop j is made of itself and its neighbours one hop earlier, and of itself two hops earlier, so that the same rows are needed.
//
// Rows that stand differ little from their stationary rows after some hops. [Graph.FindMoving] finds the others, which move, and
// [Streams.Restrict] has later hops of deflated rows compute these alone: rows that stand are zero, and a copy has the edges between rows
// that move. This changes later rows, within what the caller allows.
//
// Each worker of a group has a range of the rows. It copies the edges into its own rows. All workers make the same hops, save at the same
// hop, and resume only if each has a state of that hop and of its own range; otherwise all start from hop 0.
//
// # Format
//
// A state holds what a run saves between two hops, as [Checkpoints] require. Another process can resume from it, with blocks of another
// width, another residency, other threads and another kernel. Integers are little-endian.
//
//	"ndlshops", uint32 version 1
//	frames: uint32 length of the payload, at most 2^18
//	        uint32 CRC-32C of all payload so far, this frame's included
//	        payload
//	a frame of length 0, and nothing behind it
//
// The payload is a uint32 length, a JSON header that describes what the state belongs to, and the engine's numbers (packages lsi and
// smooth). Rows of a block are in strips of 2^15. Each strip has, for each panel of 16 columns in ascending order, its rows of 16 float32
// or float16 values. If the walk recurs, the rows before these follow in the same order. A reader skips panels that it does not want.
//
// A damaged state, or one of another version, program, graph or plan, is refused with a reason, and work starts from hop 0.
//
// # Memory
//
// Leaving out rows that are not needed takes 9/8·n bytes, and leaving out rows that stand a bit for each row of the graph
// ([Capacity.MovingBytes]). A copy takes 3 to 4 bytes per edge, and 4 more
// with weights, in the scratch folder, or in memory if all copies take at most a quarter of what is free. Copies for several blocks have at
// most half the edges of the one before, so all take at most 4/3 of the graph's own stream: an edge takes more bytes if there are few.
// Writing or reading a state takes 2^18 bytes, a header of up to 2^20, and no copy of the rows.
//
// # Determinism
//
// Rows depend on the edges, X^(0), r and the rows that move alone: not on blocks, threads, the residency of rows, when edges are copied, or
// where a run was interrupted. The bytes of a state depend on its panels, the hop and the header, except for rows that no later hop reads.
//
// # Not supported
//
// Saving within a hop. Resuming from states of other ranges.
package hops
