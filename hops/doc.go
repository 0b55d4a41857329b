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
// cut into blocks. Only edges into rows that are still recomputed have to be
// streamed: a [Walk] rewrites the stream for those rows when that saves time.
//
// The workers of a group have a range of the rows each. All of them make the same hops,
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
// 2·n·b/16 bytes of decays for a block of b columns with a closure, in whole 8 KiB
// for each panel. A rewritten stream takes 4 bytes an edge of the scratch
// folder, or of memory where it is small. Writing or reading a state takes 2^18
// bytes, a header of up to 2^20, and no copy of the rows.
//
// # Determinism
//
// Rows depend on the edges, X^(0), r and F alone: not on blocks, threads, where
// rows live, when the stream is rewritten, or where a run was interrupted. The
// bytes of a state depend on the panels that it has, the hop and the header.
//
// # Not supported
//
// Saving within a hop. Rewriting the stream where several workers share the rows.
// Resuming from states of other ranges.
package hops
