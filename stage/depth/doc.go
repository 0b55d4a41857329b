// Package depth holds the stages that find and examine K, the local smoothing iteration of each node.
//
// # Model
//
// [Stage] finds K by package lsi: alone, by a group of workers that share the rows, or by workers that share the panels of the probe, in
// stretches of hops (stretches.go). [Tables] reads the tables of K. [Find] and [Probe] serve label smoothing, which has an ε of its own.
// [SpectrumStage] computes λ₂ and compares K with the bound of theorem 3.1.
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
