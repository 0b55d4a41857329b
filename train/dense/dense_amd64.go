//go:build amd64 && !noasm

package dense

import "golang.org/x/sys/cpu"

// available lists the kernels that this processor runs, fastest first.
func available() []*Kernel {
	var all []*Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ {
		all = append(all, &Kernel{"avx512", 12, 32, tileAVX512, tileHalfAVX512, tileRowsAVX512, tileRowsHalfAVX512, tileColumnsAVX512, tileColumnsHalfAVX512, freshColumnsAVX512, freshColumnsHalfAVX512, expsAVX512, scaleAVX512, largestAVX512, rectifyAVX512, sumAVX512, dropAVX512, adamAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, &Kernel{"avx2", 6, 16, tileAVX2, tileHalfAVX2, tileRowsAVX2, tileRowsHalfAVX2, tileColumnsAVX2, tileColumnsHalfAVX2, freshColumnsAVX2, freshColumnsHalfAVX2, expsAVX2, scaleAVX2, largestAVX2, rectifyAVX2, sumAVX2, dropAVX2, adamAVX2})
	}
	return append(all, goKernel)
}
