// Package hops takes a column block from X^(0) from hop to hop, with every row
// recomputed or, once rows have settled, with fewer and fewer of them.
//
// # Model
//
// Rows are those of Z = D̃^(−r) X (package internal/stationary), deflated where a
// row may settle. With a [Closure] row i is recomputed up to hop F(i); from then
// on panel g of the row is scaled by its own decay, taken once:
//
//	ρ_ig = min(1, ‖Z_ig^(F)‖ / ‖Z_ig^(F−1)‖), rounded to 1/65535
//
// A panel is 16 columns, so that the result does not depend on how columns are
// cut into blocks.
//
// Late hops need fewer rows than the graph has. [Streams] copies the edges that they
// need, when that saves time, and all column blocks that make the same hops read the
// copies. There are two reasons for a row to be left out. A settled row needs no edges;
// once no recomputed row reads it and it is not counted, it is not touched. And a row is not needed
// where no row that is counted at a later hop is near enough: row j is needed up to hop
//
//	R(j) = max over rows i of  (last hop that counts i) − dist(i, j)
//
// where dist(i, j) is the number of edges on a shortest way from j to i. [Graph.FindNeeded] finds
// R for the last hops, by steps from row to row. Leaving such rows out changes no bit of the others.
//
// The workers of a group have a range of the rows each. Each copies the edges into its own rows,
// and touches all of them at every hop: it has no list of those that the others read. All of them make the same hops,
// save at the same hop, and resume only if each has a state of that hop and of its own
// range; otherwise all start from hop 0.
//
// # Format
//
// A state is what a run saves between two hops, as [Checkpoints] ask for. Another run
// can resume from it in another process, with blocks of another width, another
// residency, other threads and another kernel. Integers are little-endian.
//
//	"ndlshops", uint32 version 1
//	frames: uint32 length of the payload, at most 2^18
//	        uint32 CRC-32C of all payload so far, this frame's included
//	        payload
//	a frame of length 0, and nothing behind it
//
// The payload is a uint32 length, a header in JSON that says what the state is of,
// and the engine's numbers (packages lsi and smooth). Rows of a block are in strips
// of 2^15: for each panel of 16 columns in ascending order the strip's rows, 16
// float32 or float16 values each, and then, where rows settle, for each panel the
// uint16 decay of each row. A reader that wants some panels skips the others.
//
// A state of another version, program, graph or plan, and one that is damaged, is
// refused with a reason, and work starts from hop 0.
//
// # Memory
//
// 2·n·b/16 bytes of decays for a block of b columns with a closure, in whole 8 KiB for each panel,
// and n/8 bytes for each of up to 8 copies of the edges. 9/8·n bytes where rows that are not needed
// are left out. A copy takes 3 to 4 bytes an edge, and 4 more with weights, of the scratch folder,
// or of memory where all copies take up to a quarter of what is free. Copies that serve several
// blocks have at most half the edges of the one before, so all take at most 4/3 of the graph's own
// stream: an edge takes more bytes where there are few. Writing or reading a state takes 2^18
// bytes, a header of up to 2^20, and no copy of the rows.
//
// # Determinism
//
// Rows depend on the edges, X^(0), r and F alone: not on blocks, threads, where
// rows live, when edges are copied, or where a run was interrupted. The bytes of a
// state depend on the panels that it has, the hop and the header, but for rows that
// no hop reads any more.
//
// # Not supported
//
// Saving within a hop. Resuming from states of other ranges.
package hops
