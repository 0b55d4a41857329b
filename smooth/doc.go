// Package smooth turns hops X^(0), X^(1), … into output rows by a [Rule].
//
// # Model
//
// The rules, with K_i the LSI of node i, K a depth for all nodes, and β or α a share:
//
//	ndls            1/(K_i+1) Σ_{k=0..K_i} ((1−β)X_i^(k) + βX_i^(0)); β is 0 in the paper
//	ndls-reference  1/K_i Σ_{k=0..K_i−1} ((1−α)X_i^(k) + αX_i^(0)), X_i^(0) if K_i = 0;
//	                the authors' released code
//	sgc             X_i^(K)
//	s2gc            1/K Σ_{k=1..K} ((1−α)X_i^(k) + αX_i^(0))
//	gbp             Σ_{k=0..K} α(1−α)^k X_i^(k)
//	appnp           Σ_{k=0..K−1} α(1−α)^k X_i^(k) + (1−α)^K X_i^(K)
//	sign            the hops themselves
//	nafs            Σ_{k=0..K} w_ik X_i^(k) with w_ik ∝ exp ‖X_i^(k) − X_i^∞‖, by [Blend]
//	fastrp          rows of hops of D̃⁻¹Ã, by package fastrp
//
// Labels have two more rules, [Propagation] and [ClampedPropagation], for Correct & Smooth.
//
// All rules but the first two use the depth K. Except for fastrp they can also use min(K, K_i)
// ([Rule.ByNode]). Then gbp scales the weights of a node to the sum of the weights of K hops, s2gc
// with K_i = 0 gives X_i^(0), and sign repeats hop K_i. Beside any rule, [Smoother.Hop] returns
// rows of single hops, X^(k) = D̃^r Z^(k).
//
// Rules with one depth for all nodes, except nafs and fastrp, also work on a graph with directions
// ([hops.Graph]).
//
// # Algorithm
//
// A column block is scaled to Z = D̃^(−r) X. Hops run until no target needs another. Each hop's
// finished rows are added, while in cache, to the running sums of the targets that still count the
// hop. An output row is a weighted sum of hops, times a factor, plus a share of X^(0).
//
// With a tolerance, rules that add hops up sum few of Chebyshev's polynomials T_j of D̃⁻¹Ã in place of hops, one pass each
// ([hops.Walk]):
//
//	Σ_k a_k Z_i^(k) = Σ_j w_j(K_i) (T_j Z)_i,    w_j(K) = Σ_{k≤K} a_k c_kj
//
// c_kj is the probability that k steps ±1 end at distance j from where they began. The sum ends at the least J for which no node has more
// than the tolerance of its weights after T_J. A node with K ≤ J has its row up to rounding. All workers agree on J, which depends on the
// rule, the tolerance and the K of all nodes, not on the targets. If J is not below the largest K, hops are made. Passes end with the last
// polynomial that a target needs.
//
// With [Options.Standing], for rules with a depth for each node, few edges may lead into rows that still move after 8 to 24 hops
// ([hops.Graph.FindMoving]). If so, these hops are made first, the stationary row is added with the weights of all later hops at once, and
// polynomials of the deflated rows that move are added alone, by the edges between these rows. Rows that stand are zero from then on.
//
// Several rules can sum the same hops side by side ([Options.Beside]), with the same bits as alone.
// Several blocks can run side by side ([Smoother.Another]), and then the last hops leave out rows
// that no target needs. Rules beside each other go the way that they go alone, by hops or by polynomials, one way after the other.
// [Smoother.Prefix] returns the output rows for every smaller depth of the same run.
//
// # Format of the checkpoint
//
// A state as package hops describes it, of panels [First, Last) at a hop k > 0: their rows, and the
// rows one pass earlier if, after the plain hops, polynomials take the place of hops, then, strip by strip and panel by
// panel, the float32 running sums of the strip's targets. The header has a checksum of hop counts,
// targets and weights, so that a run never resumes from the sums of another rule.
//
// # Memory
//
// The column block (package spmv) and [MemoryBytes], for n rows and blocks of b columns:
//
//	2·n bytes                 hop counts
//	4·b bytes a target        running sums; 4·b·2^15 bytes a thread if they are on disk; none
//	                          for nafs, and for sign with one depth
//	9/8·n bytes               several blocks: which rows are needed
//	n/8 bytes, 8·c·b          [Options.Standing]: which of all rows move, and the stationary rows of c components
//	4·b·J bytes a target      [Options.Depths]: the rows of all J passes and of hop 0, in place of sums, and on disk where these are
//	4·n·b bytes               [Options.Ahead]: hop 0 of the next block
//
// Blocks side by side ([Options.SideBySide]) share hop counts and needed rows; each has the rest.
// Saving adds a constant.
//
// # Determinism
//
// Sums are float32 in ascending order of hop, or of j; weights are rounded to float32 from float64.
// They do not depend on blocks, threads, the kernel, the set of targets, the place of rows and
// sums, or the states from which a run resumed.
//
// # Not supported
//
// For nafs, averages over several r.
package smooth
