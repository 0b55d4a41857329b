// Package array streams numbers that lie in files as arrays: vectors, matrices, edge
// lists, sparse matrices and .npz archives of them.
//
// # Model
//
// A [Vector] is n numbers of one type somewhere in a [source.Source]. Those of a matrix come row
// by row, whatever the order in which it is stored. A [Dense] matrix has a row for each node, an
// [Edges] list a pair for each edge; [Sparse] is a sparse matrix in compressed rows, in compressed
// columns, or entry by entry, as scipy.sparse.save_npz writes it. What contradicts itself is
// refused with the name of the array and the row.
//
// # Memory
//
// A stream of a vector holds buffers of about 256 KiB, whatever the size of the vector; of a matrix
// that is stored column by column, 8 MiB more. Rows of sparse features in compressed columns or entry
// by entry take 16 MiB. Packed files are read again for each of these parts, up to 128 times. A row of
// features is held, with at most 2^20 values or entries.
//
// # Not supported
//
// Arrays of more than two dimensions in Fortran order; sparse matrices in other forms.
package array
