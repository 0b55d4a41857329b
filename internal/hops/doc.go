// Package hops takes a column block from X^(0) from hop to hop, with every row
// recomputed or, once rows have settled, with fewer and fewer of them.
//
// # Model
//
// Rows are those of Z = D̃^(−r) X (package internal/stationary), deflated where a
// row may settle. With a [Closure] row i is recomputed up to hop F(i); from then
// on granule g of the row is scaled by its own decay, taken once:
//
//	ρ_ig = min(1, ‖Z_ig^(F)‖ / ‖Z_ig^(F−1)‖), rounded to 1/65535
//
// A granule is 16 columns, so that the result does not depend on how columns are
// cut into blocks. Only edges into rows that are still recomputed have to be
// streamed: the stream is written anew for those rows when that pays.
//
// # Memory
//
// 2·n·b/16 bytes of decays for a block of b columns with a closure. What is
// written anew takes 4 bytes an edge of the scratch folder, or of memory where it
// is small.
//
// # Determinism
//
// Rows depend on the edges, X^(0), r and F alone: not on blocks, threads, where
// rows live, or when the stream is written anew.
package hops
