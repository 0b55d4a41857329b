// Package smooth turns hops into output rows: what a [Rule] makes of X^(0),
// X^(1), … for each node.
//
// # Model
//
// The rules, with K_i the node's LSI and weights w_k of hop k:
//
//	ndls            1/(K_i+1) Σ_{k=0..K_i} ((1−β)X_i^(k) + βX_i^(0)), with a residual share β
//	                that is 0 in definition 3.2 of the paper
//	ndls-reference  1/K_i Σ_{k=0..K_i−1} ((1−α)X_i^(k) + αX_i^(0)),
//	                X_i^(0) where K_i = 0                             (the authors' released code)
//	sgc             X_i^(K)
//	s2gc            1/K Σ_{k=1..K} ((1−α)X_i^(k) + αX_i^(0))
//	gbp             Σ_{k=0..K} α(1−α)^k X_i^(k)
//	appnp           Σ_{k=0..K−1} α(1−α)^k X_i^(k) + (1−α)^K X_i^(K)
//	sign            none: the hops themselves are the output
//	nafs            none: [Blend] makes the row when all columns of all hops are there,
//	                Σ_{k=0..K} w_ik X_i^(k) with w_ik ∝ exp ‖X_i^(k) − X_i^∞‖
//	fastrp          none: package fastrp makes rows of hops of D̃⁻¹Ã
//
// Labels have two more, which Correct & Smooth consists of ([Propagation],
// [ClampedPropagation]): K_i steps of G ← (1−α)X^(0) + α Â G, where the last hop weighs α^K_i and
// hop k before it (1−α)α^k; and steps after which known rows are set again.
//
// All but the first two use one depth K for all nodes, or, but for fastrp, the smaller one of that
// and K_i ([Rule.ByNode]). Then gbp scales the weights of a node to the sum that those of all K
// hops have, a row of s2gc with K_i = 0 is X_i^(0), and hops of sign after hop K_i repeat that one.
// appnp is Z^(K) of the steps Z^(k+1) = (1−α)ÂZ^(k) + αX from Z^(0) = X. Beside any rule, the rows of some hops can be
// had as they are ([Smoother.Hop]): X^(k) = D̃^r Z^(k).
//
// Rules with one depth for all nodes, but nafs and fastrp, also take hops of a graph with
// directions ([hops.Graph]), where the row of a node takes those at the other end of its edges,
// and no K is defined.
//
// # Algorithm
//
// A column block is scaled to Z = D̃^(−r) X, hops run until no target needs
// another, and each hop's finished rows are added, while in cache, to
// the running sums of the targets that still count it. Every rule that adds hops up
// is a weighted sum over the node's first hops, a factor, and a share of X^(0). The last hop of a
// node may weigh otherwise than it does for nodes that count later ones. Where sign repeats hops,
// the running sum of a target is the row of its last hop.
//
// Several rules may add up the same hops side by side ([Options.Beside]): each has its own sums and its own
// number of hops of each node, and the bits that it has alone.
//
// Where several blocks make the same hops, rows that no target needs any more are left
// out of the last ones (package hops).
//
// Several blocks may be run side by side, by a [Smoother] each ([Smoother.Another]).
//
// After each hop the sums are those of the same rule with K_i cut at that hop:
// [Smoother.Prefix] gives the output rows that follow, so that one run has those of
// every depth.
//
// With settled rows the block is deflated and row i is recomputed up to the hop that [Choose] has
// chosen for a deviation, or up to hop K_i + slack (package hops); what deflation took away comes
// back with the sum, as Σ_k w_k times the stationary row. A row with a decay ρ whose last hop F was
// chosen has its later hops added at hop F: they are Z^(F) times Σ_{k>F} w_k ρ^(k−F).
//
// # Format of the checkpoint
//
// A state as package hops describes it, of panels [First, Last) at a hop
// k > 0: their rows and decays, and then, strip by strip, for each panel the
// float32 running sums of the strip's targets. Stationary rows are not in it: they
// are computed again from X^(0). The header has a checksum of hop counts, targets
// and weights, so that a run never resumes from the sums of another rule.
//
// A state of [Choose] has a header of its own, which also has the share, the number of panels and
// the trials so far. Until all passes are made, the rows, the sums and the float32 weight of each
// row come after it, then the exact rows of the sample. The codes of all hops that were made
// follow, a byte for each row, strip by strip.
//
// # Memory
//
// The column block (package spmv) and [MemoryBytes]: 2·n bytes of hop counts, and, but for nafs,
// and sign with one depth, 4·b bytes for each target in a block of b columns, or for 2^15 rows a
// thread if the sums are on disk; n·b/8 + n bytes with settled rows, for decays and for which rows
// are read, and 4·n for last hops that were chosen; else 9/8·n bytes where there are several
// blocks. Hop 0 of the next block takes 4·n·b bytes where blocks stay as they are beside it
// ([Options.Ahead]). Where blocks are run side by side ([Options.SideBySide]), each team takes all of that but hop counts,
// which rows are needed, and lists of rows that are read. Saving adds nothing that grows. Choosing last hops takes 5·n bytes, a bit for each row of
// the graph, 2 MiB a thread and 5 MiB beside a block of 16 columns. In the scratch folder it takes
// 68·n bytes for the panel and the influences, and 2·n for each hop.
//
// # Determinism
//
// Sums are float32 in ascending order of hop, and do not depend on blocks, threads,
// the kernel, which rows are targets, where rows and sums live, or the states that
// a run resumed from.
//
// # Not supported
//
// Hops of rows that settle; rows that settle under other rules than ndls and
// ndls-reference; for nafs, averages over several r.
package smooth
