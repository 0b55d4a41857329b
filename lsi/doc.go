// Package lsi finds the local smoothing iteration of every node: the number of hops after which its
// influence row is within ε of the stationary row.
//
// # Model
//
// K(i, ε) = min{k : ‖Ĩ_i − I(k)_i‖₂ < ε} with I(k) = Â^k (definition 3.1 of the paper). If no k ≤
// Kmax is near enough, K is Kmax and marked as capped. No n × n matrix is formed: a [Probe] P of s
// columns is propagated in place of the identity, and the distance is a row norm of Â^k P − Â^∞ P.
//
//	influence-exact    P = identity: the definition itself
//	influence-sketch   P = random signs/√s: the definition within the
//	                   Johnson–Lindenstrauss error, √(2/s) of the squared norm;
//	                   with [Directions] beside them, of what lies outside these
//	feature            P = L1-normalised features: distance in feature space,
//	                   as in the code that the paper's authors released
//	feature-sketch     features × random signs/√s
//
// With weighted edges, strengths take the place of degrees (package internal/stationary).
//
// The rows of a sketch are float16, times 2^13. Rounding them adds far less error than the sketch
// has; docs/decisions gives the resulting error of K. With weights they are float32, because
// strengths have no bound.
//
// # Algorithm
//
// Rows are deflated (package internal/stationary), so that after each hop the distance of node i is
// d̃_i^r ‖Z_i‖₂. Squared distances add over column blocks. A probe wider than one block runs block
// by block through a window of hops, with n partial sums for each hop in a scratch file; they are
// added in the order of a single block. Between windows the rows of every block wait in another
// scratch file. The first block of a sketch estimates all distances by itself, and ends the window
// at the hop at which it estimates that all nodes have settled; where it holds directions, which
// have more than their share of the distances, the window ends some hops later than it could. The first window of other probes
// has 8 hops; each later one is as long as all before it together, but not longer than 32 hops.
//
// A run can find K for looser ε as well; that needs no further hops.
//
// # Polynomials
//
// With [Options.Tolerance] only the first 8 hops are made one by one. The rows of later hops are
//
//	Z^(8+h) = Σ_j c_hj T_j Z^(8)
//
// with Chebyshev's polynomials T_j (package internal/chebyshev), each of which is a pass. The degree
// J is the least for which the last hop has at most the tolerance of its weight after T_J: 46 for
// Kmax 200 and 0.001. Kmax is at most 4096. A hop up to 8 + J is right up to rounding; in a later one the distance of node
// i is off by at most Σ_{j>J} c_hj times its distance after 8 hops if r is ½ and the probe is the
// identity. For other r the bound has a factor of the largest over the smallest d̃^|r−½|.
//
// Rows T_j of the nodes whose K is unknown after 8 hops are kept, in memory if they take a small part of
// what is free, else in a scratch file. With [Options.KeptRoom] they are made and kept for one batch of these nodes after the
// other, with the same bits. When a block has made its passes, the rows of each node become
// few rows, the basis, of which every hop is a sum: at most 14 for the even hops of Kmax 200, and 13 for
// the odd ones. What that adds to the cut is at most 2^−6 of the tolerance. The squared length after each
// hop is a quadratic form in the products of these rows with each other, 196 numbers, which add up
// panel by panel. Eight more numbers are squared lengths, for the hops that follow. After the last block the first hop below ε is K.
//
// With [Options.Standing] polynomials begin after up to 8 more hops, and compute the rows that still move then alone, by the edges
// between them, if at most half of the edges lead into such rows ([hops.Graph.FindMoving]). The others are
// taken for their stationary rows. Finding them takes 10 to 16 passes over 16 columns.
//
// K is uncertain if a distance up to K lies nearer to ε than what is cut, what Standing allows, and what rounding changes, as a
// share of the distance after 8 hops: 2^−20 with float32 rows, and 2^−6 over the root of the number of
// columns with float16 rows. The bound for rounding was measured, and so was that for sketches and
// features, whose rows are not those of the identity.
//
// Hops are made one by one as long as K of more than a fifth of the nodes is unknown, since the rows of all of
// them are kept and added: polynomials begin after 8 hops, or after the first 16, 32, 48 … from which that holds, with fewer
// passes. No polynomials are made if no pass is saved, or if fewer hops are expected than passes (the
// number of nodes with unknown K falls by the same factor with each hop). That depends on the numbers
// of nodes and unknown K alone. So does the way of workers that share the panels ([Stretch]): they have
// the same bits. Rows that stand are left out only if polynomials begin after 8 hops.
//
// # Format of the checkpoint
//
// A state as package hops describes it. The header has the window, the hop of each panel's rows,
// which never rises from one panel to the next, and the distances so far. Then follow
//
//	K         n uint16, 65535 while unknown; then n more for each looser ε
//	rows      of the panels that have begun and are not at Kmax
//	sums      n float64 for each hop that some panels have reached and others
//	          have not: the sums of the first of them
//
// While polynomials are made, states are saved between blocks only: they have the rows after the last hop of
// the blocks to come, and in place of sums the products of each node. A run that is killed within a block
// makes that block's polynomials again.
//
// A state can otherwise be saved after any hop of any block, because all data of a block are stored by panel.
// In the rest of a window blocks are cut where the hops of panels differ; where they do not differ,
// a window of its own begins. A run with a single block that resumes from the middle
// of a window of several blocks needs 8·n bytes more than planned; if they are not free, it starts
// from hop 0.
//
// # Memory
//
// The column block (package spmv) and [Options.MemoryBytes], for n nodes and blocks of b columns:
//
//	2·n bytes             K; as many for each looser ε
//	8·n bytes             partial sums, with more than one block
//	n/8 bytes             which of all rows move, with [Options.Standing]; twice as many while they are looked for
//	n/4 bytes             which K are unknown or uncertain, if hops are made of polynomials, and for
//	                      each thread some (J+9)·512·16·e + 2^12·products bytes
//
// and the stationary rows. [Directions] hold [DirectionsBytes], 8·q·s bytes for q of them beside s random
// columns and some buffers, and a scratch file of 4·n·q bytes; a block in which they are found comes before
// the other ones. All of their work runs on all threads, but for the decomposition of q × q numbers. With several
// blocks the scratch files have up to n·s·e bytes for a probe of s columns of e bytes, and 8·n bytes for each hop of the
// longest window, at most 33·8·n. Saving and resuming move rows through 2^21 bytes, a scratch file through 2^18 bytes for
// each thread.
//
// # Determinism
//
// K depends on the graph, the probe and the options alone: not on the number of blocks, threads,
// the kernel, the place of rows, or the states from which a run resumed.
//
// # The second largest eigenvalue
//
// [SecondEigenvalue] finds λ₂, from which [Bound] follows (theorem 3.1 of the paper), by the
// Lanczos iteration on 16 columns. It needs a block of 16 columns, and 128·n bytes. Sums are
// float64, strip by strip in ascending order: the result does not depend on threads or on the place
// of rows.
//
// # Not supported
//
// Edges with directions: the stationary formula holds only without them.
package lsi
