// Package lsi finds the local smoothing iteration of every node: the number of
// hops after which its influence row comes within ε of the stationary row.
//
// # Model
//
// K(i, ε) = min{k : ‖Ĩ_i − I(k)_i‖₂ < ε} with I(k) = Â^k (definition 3.1 of the
// paper), K = Kmax and capped where no k ≤ Kmax is near enough. No n × n matrix
// is formed: a [Probe] P of s columns is propagated in place of the identity,
// and the distance is a row norm of Â^k P − Â^∞ P.
//
//	influence-exact    P = identity: the definition itself
//	influence-sketch   P = random signs/√s: the definition within the
//	                   Johnson–Lindenstrauss error, √(2/s) of the squared norm
//	feature            P = L1-normalised features: distance in feature space,
//	                   what the paper's authors released
//	feature-sketch     features × random signs/√s
//
// Where edges have weights, strengths take the place of degrees (package internal/stationary).
//
// The rows of a sketch are float16, times 2^13: rounding them is far less than the error
// that the sketch has. The error of K that comes of it is in docs/decisions. With weights they
// are float32, because strengths have no bound.
//
// # Algorithm
//
// Rows are deflated (package internal/stationary), so that after each hop the
// distance of node i is d̃_i^r ‖Z_i‖₂. Squared distances add over column blocks: a
// probe wider than one block goes block by block through a window of hops, with
// one n-vector of partial sums for each hop in a scratch file; the order of the
// additions is that of a single block. Between windows the rows of every block wait in
// another scratch file. The first block of a sketch estimates all distances by itself, and
// ends the window at the hop at which it takes all nodes to be near enough; windows of
// other probes have 8 hops, then as many as all before. None has more than 32.
//
// With settled rows every window has 8 hops. A row is recomputed up to hop
//
//	F(i) = max(K(i) + slack, 1 + the end of the window in which K(i) was found)
//
// and decays from then on (package hops). K of the nodes that have not
// settled is then that of rows whose neighbours decay; the error is towards a
// smaller K.
//
// A run can find K for looser ε on its way: that never takes more hops.
//
// # Format of the checkpoint
//
// A state as package hops describes it. The header has the window, the hop
// of each panel's rows, which never rises from one to the next, and what was
// measured. Then come
//
//	K         n uint16, 65535 where it is not known yet; then n more for each looser ε
//	rows      and decays of the panels that have begun and are not at Kmax
//	sums      n float64 for each hop that some panels have reached and others
//	          have not: what the first of them add up to
//
// A state can be saved after any hop of any block, since all that a block leaves
// is stored by panel. In the rest of a window blocks are cut where the hops of
// panels differ; where they do not, an exact run begins a window of its own.
// A run with a single block that resumes from the middle of a window of several needs
// 8·n bytes more than it planned for; if they are not free, it starts from hop 0.
//
// # Memory
//
// The column block (package spmv) and [Options.MemoryBytes]: 2·n bytes of K, as many for each looser ε, 8·n of partial
// sums where there is more than one block, n·b/8 + n for blocks of b columns with settled
// rows, for decays and for which rows are read, and the stationary rows. With several blocks the scratch files
// take up to n·s·e bytes for a probe of s columns of e bytes, and 8·n bytes for each hop
// of the longest window, at most 33·8·n. Saving and going on move rows through 2^21
// bytes, a scratch file through 2^18 for each thread.
//
// # Determinism
//
// K depends on the graph, the probe and the options alone: not on the number of
// blocks, threads, the kernel, where rows live, or the states that a run resumed from.
//
// # The second largest eigenvalue
//
// [SecondEigenvalue] finds λ₂, from which [Bound] follows (theorem 3.1 of the paper), by the
// Lanczos iteration on 16 columns. It takes a block of 16 columns, and 128·n bytes. Sums are
// float64, strip by strip in ascending order: the result does not depend on threads, nor on where
// rows live.
//
// # Not supported
//
// Edges with directions: the stationary formula holds for edges without them only.
package lsi
