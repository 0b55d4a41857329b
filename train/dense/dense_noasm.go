//go:build !amd64 || noasm

package dense

// available lists the kernels that this build has.
func available() []*Kernel { return []*Kernel{goKernel} }
