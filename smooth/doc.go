// Package smooth turns hops into output rows: what a [Rule] makes of X^(0),
// X^(1), … for each node.
//
// # Model
//
// The rules, with K_i the node's LSI and weights w_k of hop k:
//
//	ndls            1/(K_i+1) Σ_{k=0..K_i} X_i^(k)                     (definition 3.2 of the paper)
//	ndls-reference  1/K_i Σ_{k=0..K_i−1} ((1−α)X_i^(k) + αX_i^(0)),
//	                X_i^(0) where K_i = 0                             (the authors' released code)
//	sgc             X_i^(K)
//	s2gc            1/K Σ_{k=1..K} ((1−α)X_i^(k) + αX_i^(0))
//	gbp             Σ_{k=0..K} α(1−α)^k X_i^(k)
//
// The last three use one depth K for all nodes.
//
// # Algorithm
//
// A column block is scaled to Z = D̃^(−r) X, hops run until no target needs
// another, and each hop's finished rows are added, while in cache, to
// the running sums of the targets that still count it. Every rule is a weighted
// sum over the node's first hops, a factor, and a share of X^(0).
//
// Where several blocks make the same hops, rows that no target needs any more are left
// out of the last ones (package hops).
//
// After each hop the sums are those of the same rule with K_i cut at that hop:
// [Smoother.Prefix] gives the output rows that follow, so that one run has those of
// every depth.
//
// With settled rows the block is deflated and row i is recomputed up to the hop that
// [Choose] has chosen for a deviation, or up to hop K_i + slack (package hops); what deflation took away comes back with the sum,
// as Σ_k w_k times the stationary row.
//
// # Format of the checkpoint
//
// A state as package hops describes it, of panels [First, Last) at a hop
// k > 0: their rows and decays, and then, strip by strip, for each panel the
// float32 running sums of the strip's targets. Stationary rows are not in it: they
// are computed again from X^(0). The header has a checksum of hop counts, targets
// and weights, so that a run never resumes from the sums of another rule.
//
// # Memory
//
// The column block (package spmv) and [MemoryBytes]: 2·n bytes of hop counts, and 4·b
// bytes for each target in a block of b columns, or for 2^15 rows a thread if the
// sums are on disk; n·b/8 + n bytes with settled rows, for decays and for which rows
// are read, and 2·n of last hops that were chosen; else 9/8·n bytes where there are several blocks. Saving adds nothing that
// grows. Choosing last hops takes 6·n bytes and 2 MiB a thread beside a block of 16
// columns, and 2·n bytes of the scratch folder for each hop.
//
// # Determinism
//
// Sums are float32 in ascending order of hop, and do not depend on blocks, threads,
// the kernel, which rows are targets, where rows and sums live, or the states that
// a run resumed from.
//
// # Not supported
//
// SIGN's concatenated hops and Correct & Smooth.
package smooth
