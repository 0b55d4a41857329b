// Package depth holds the stages that find and examine K, the local smoothing iteration of each node.
//
// # Model
//
// [Stage] finds K by package lsi. Takers divide the panels of the probe: each is one worker, or a group of workers that share the rows.
// The coordinator chooses how many there are, and how large, by memory and time (package placement):
//
//	takers   of each       hops            measured
//	one      one worker    all at once     no files between hops (docs/decisions/0012)
//	one      a group       all at once     rows that fit no worker (docs/decisions/0019)
//	several  one worker    in stretches    8.0 CPU seconds by each of two for 12.0 by one (docs/decisions/0012)
//	several  a group       in stretches    22 to 50 % less than one taker by 4 and 8 workers (bench/sharing)
//
// One taker adds the squared lengths of all panels by itself, and knows K after each hop (lsi.Run). Several commit what they have at the
// end of a stretch, and then K is found by ranges of nodes (stretches.go, lsi.Stretch). Small graphs, two panels of float16 rows, and more
// panels than 256 have one taker. Each worker commits K of the rows of which it has found it, and the task of the whole stage joins them to
// tables; a worker that has all rows writes the tables at once. In all ways few polynomials make the late hops where that pays
// (docs/decisions/0091).
//
// [Tables] reads the tables of K. [Find] and [Probe] serve label smoothing, which has an ε of its own. [SpectrumStage] computes λ₂ and
// compares K with the bound of theorem 3.1.
//
// # Memory
//
// With n nodes, b columns of a block and C components: lsi takes 2·n·b·4 + 6·n (+ 8·n with several blocks) + 8·C·b, spectrum a block of 16
// columns and 132·n.
//
// # Determinism
//
// K does not depend on how hops are cut into stretches, panels and pieces: squared lengths are added in order of panel.
package depth
