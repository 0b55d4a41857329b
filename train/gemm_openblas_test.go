//go:build openblas

package train

// exactProducts says that sums do not depend on how rows are grouped.
const exactProducts = false
