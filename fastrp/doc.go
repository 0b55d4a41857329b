// Package fastrp makes features for graphs that have none: the embedding of FastRP
// (Chen, Sultan, Tian, Chen and Skiena, CIKM 2019).
//
// # Model
//
// A node begins with a random row, and each hop is the mean over its neighbours and itself.
// The embedding is the weighted sum of the hops, of each row divided by its length:
//
//	N^(0) = D̃^β R,   N^(k) = D̃⁻¹ Ã N^(k−1),   row i:  Σ_k w_k N_i^(k) / ‖N_i^(k)‖₂
//
// R is a very sparse random projection (Achlioptas 2003; Li, Hastie and Church 2006): an entry
// is 1 or −1, each with probability 1/(2s), and else 0. The paper has ±√s; that factor, and
// the volume by which it divides degrees, are gone once rows are divided by their length. The
// degree d̃ counts the node itself, as everywhere in ndls: the paper's walk has no self-loop.
// A row of zeros stays zero.
//
// # Algorithm
//
// Hops are made of columns, some panels at a time, and the length of a row needs all columns.
// The hops that have a weight are stored, of the rows that are wanted only, and
// [Projection.Embed] adds them up when the columns of a row are put together. One sweep over
// the edges is enough so. To find lengths in a sweep of their own would take every pass twice.
//
// # Memory
//
// A few rows. The caller stores 4·w·d bytes, or 2·w·d as float16, for each wanted row, for w
// weights that are not zero and d dimensions in whole panels of 16.
//
// # Determinism
//
// An entry of R depends on the seed, the input id of its node and its column alone. Sums are
// float64 in ascending order of column and hop.
//
// # Not supported
//
// Edge weights, features of the nodes beside the random rows.
package fastrp
