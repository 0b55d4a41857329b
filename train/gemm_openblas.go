//go:build openblas

package train

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/netlib/blas/netlib"
)

// #cgo LDFLAGS: -lopenblas
// void openblas_set_num_threads(int);
import "C"

// A run is one thread, and several runs are trained side by side: threads of
// OpenBLAS's own would get in the way of theirs.
func init() { C.openblas_set_num_threads(1) }

var sgemm netlib.Implementation

// addProduct adds a·b to c, for a of m×k, b of k×n and c of m×n, row-major and
// dense.
func addProduct(m, n, k int, a, b, c []float32) {
	sgemm.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, a, k, b, n, 1, c, n)
}

// addTransposed adds aᵀ·b to c, for a of k×m, b of k×n and c of m×n.
func addTransposed(m, n, k int, a, b, c []float32) {
	sgemm.Sgemm(blas.Trans, blas.NoTrans, m, n, k, 1, a, m, b, n, 1, c, n)
}

// addProductT adds a·bᵀ to c, for a of m×k, b of n×k and c of m×n.
func addProductT(m, n, k int, a, b, c, _ []float32) {
	sgemm.Sgemm(blas.NoTrans, blas.Trans, m, n, k, 1, a, k, b, k, 1, c, n)
}
