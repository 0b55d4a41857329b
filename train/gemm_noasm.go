//go:build (!amd64 || noasm) && !openblas

package train

// panel adds a·b, or aᵀ·b, to c. Without its assembly, gonum's loops are open to
// fused multiply-adds.
func panel(transA bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	panelGo(transA, m, n, k, a, lda, b, ldb, c, ldc)
}
