// Package array streams numbers that lie in files as arrays: vectors, matrices, edge
// lists, sparse matrices and .npz archives of them.
//
// # Model
//
// A [Vector] is n numbers of one type somewhere in a [source.Source]. A [Dense] matrix
// has a row for each node, an [Edges] list a pair for each edge; [CSR] is a sparse
// matrix in compressed rows. What contradicts itself is refused with the name of the
// array and the row.
//
// # Memory
//
// A stream of a vector holds buffers of about 256 KiB, whatever the size of the vector.
//
// # Not supported
//
// Big-endian arrays, and matrices of features in Fortran order.
package array
