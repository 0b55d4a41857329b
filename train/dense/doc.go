// Package dense holds the kernels of the network and of its training, on the processor's vectors:
// products of float32 matrices, softmax, rectifier, dropout and Adam. Their bits depend on the
// numbers alone, neither on the processor nor on how a product is cut.
//
// # Model
//
// [Kernel.PackLeft] and similar functions copy a matrix into panels, in the order in which the sums
// read it. [Kernel.Add] adds an [Area] of the product of two packed matrices to a third one.
// [Kernel.AddRows] does so for unpacked rows and a packed matrix, and [Kernel.AddColumns] for the
// transpose of such rows. Several threads may add different areas at the same time.
//
// [Kernel.Largest], [Kernel.Exps] and [Kernel.Scale] are the parts of a softmax, [Kernel.Rectify]
// is the rectifier, [Kernel.Drop] dropout, [Kernel.Step] a step of Adam, and [Kernel.Sum] adds
// values to others. [Normalize] and [NormalizeBack] are LayerNorm, in plain Go on every processor.
//
// # Algorithm
//
// c[i][j] receives the products a[i][l]·b[l][j] in ascending order of l, each by one fused
// multiply-add: IEEE 754's fusedMultiplyAdd of binary32, which rounds once. The registers hold a
// tile of c, 12 × 32 values with AVX-512 and 6 × 16 with AVX2, or the left half of a tile at the
// right edge. A tile is summed over as many l as its panels of a and b fit the first-level cache
// (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34, 2008).
//
// The twin in Go multiplies in float64, where a product of two float32 is exact. It rounds the sum
// to odd, and that to float32, which gives the same bits as one rounding (Boldo and Melquiond,
// Emulation of a FMA and Correctly Rounded Sums, IEEE TC 57, 2008).
//
// # Memory
//
// A packed matrix of m × k values has 4 k ⌈m/w⌉ w bytes; w is the width of a tile in that
// direction. The caller provides the memory.
//
// # Determinism
//
// All kernels give the same bits, except for the payloads of NaN.
package dense
