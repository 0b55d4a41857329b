// Package stationary takes a column block to the coordinates in which a hop is
// a plain neighbourhood mean and the stationary state is zero, and back.
//
// # Model
//
// With Z = D̃^(−r) X every hop is Z ← D̃⁻¹ Ã Z. The limit is one row, z̄ = Σ_j d̃_j Z_j
// / vol, for the whole graph (equation 2 of the paper) or for each component
// (appendix A.1), and X^∞_i = d̃_i^r z̄. The row z̄ does not change from hop to hop,
// so [Mean.Subtract] takes it away once, and from then on
//
//	‖X_i^(k) − X_i^∞‖₂ = d̃_i^r ‖Z_i^(k)‖₂.
//
// Where edges have weights, Ã = A_w + I with the matrix A_w of weights, and d̃_i is the
// strength of node i, the sum of the weights of its edges, plus one. Everything else stays.
//
// Where edges have directions there is no such limit, and [State.Scale] and [State.Up] alone
// are used: Degree is then how often the row of a node is added to the rows of others, the
// degree of a column of the matrix.
//
// [State.Scale] alone serves smoothing: there, small entries beside large
// stationary ones keep their relative precision only if nothing is subtracted.
//
// # Memory
//
// 8 bytes for each component, and 8·b bytes a component for a [Mean] of b
// columns.
//
// # Determinism
//
// Means are float64 sums in ascending order of node.
package stationary
