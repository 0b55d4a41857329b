//go:build !openblas

package train

// Panels keep the rows of b that are used again in the first-level cache, and
// every call below the size at which gonum starts goroutines of its own: the
// threads of a run are those it was given.
const (
	panelRows  = 64
	panelCols  = 128
	panelInner = 128
)

// addProduct adds a·b to c, for a of m×k, b of k×n and c of m×n, row-major and
// dense. Every element of c receives its products in ascending order of the
// inner index, those with a zero element of a left out.
func addProduct(m, n, k int, a, b, c []float32) {
	for j := 0; j < n; j += panelCols {
		for l := 0; l < k; l += panelInner {
			for i := 0; i < m; i += panelRows {
				panel(false, min(panelRows, m-i), min(panelCols, n-j), min(panelInner, k-l),
					a[i*k+l:], k, b[l*n+j:], n, c[i*n+j:], n)
			}
		}
	}
}

// addTransposed adds aᵀ·b to c, for a of k×m, b of k×n and c of m×n. The order
// of the sums is that of addProduct.
func addTransposed(m, n, k int, a, b, c []float32) {
	for j := 0; j < n; j += panelCols {
		for l := 0; l < k; l += panelInner {
			for i := 0; i < m; i += panelRows {
				panel(true, min(panelRows, m-i), min(panelCols, n-j), min(panelInner, k-l),
					a[l*m+i:], m, b[l*n+j:], n, c[i*n+j:], n)
			}
		}
	}
}

// addProductT adds a·bᵀ to c, for a of m×k, b of n×k and c of m×n, through bᵀ,
// which it writes to scratch: gonum would take dot products, whose sums are in
// another order.
func addProductT(m, n, k int, a, b, c, scratch []float32) {
	transpose(n, k, b, scratch)
	addProduct(m, n, k, a, scratch[:n*k], c)
}

// transpose writes the m×n matrix a to dst as n×m.
func transpose(m, n int, a, dst []float32) {
	for i := range m {
		for j, v := range a[i*n : i*n+n] {
			dst[j*m+i] = v
		}
	}
}

// panelGo is the twin of panel in plain Go: it gives the same bits on every
// platform.
func panelGo(transA bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	rowStep, innerStep := lda, 1
	if transA {
		rowStep, innerStep = 1, lda
	}
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		for l := range k {
			v := a[i*rowStep+l*innerStep]
			if v == 0 {
				continue
			}
			for j, w := range b[l*ldb : l*ldb+n] {
				// The conversion forbids a fused multiply-add.
				row[j] += float32(v * w)
			}
		}
	}
}
