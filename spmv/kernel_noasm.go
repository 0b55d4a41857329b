//go:build !amd64 || noasm

package spmv

// available lists the kernels this build has.
func available() []*Kernel { return []*Kernel{goKernel} }
