//go:build !noasm && !openblas

package train

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

var sgemm gonum.Implementation

// panel adds a·b, or aᵀ·b, to c. Both forms are chains of axpy in gonum, whose
// assembly multiplies and adds element by element; with b transposed it would
// take dot products, which sum in another order than Go code.
func panel(transA bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	form := blas.NoTrans
	if transA {
		form = blas.Trans
	}
	sgemm.Sgemm(form, blas.NoTrans, m, n, k, 1, a, lda, b, ldb, 1, c, ldc)
}
