//go:build amd64 && !noasm

package spmv

import "golang.org/x/sys/cpu"

var avx512Kernel = &Kernel{
	name:         "avx512",
	accumulate:   [3]accumulateFunc{accumulate16AVX512, accumulate32AVX512, accumulate64AVX512},
	sumCSR:       [3]sumCSRFunc{sumCSR16AVX512, sumCSR32AVX512, sumCSR64AVX512},
	gather:       [3]gatherFunc{gather16AVX512, gather32AVX512, gather64AVX512},
	divideRows:   divideRowsAVX512,
	addRows:      addRowsAVX512,
	squareNorms:  squareNormsAVX512,
	weightedSums: weightedSumsAVX512,
}

var avx2Kernel = &Kernel{
	name:         "avx2",
	accumulate:   [3]accumulateFunc{accumulate16AVX2, accumulate32AVX2, accumulate64AVX2},
	sumCSR:       [3]sumCSRFunc{sumCSR16AVX2, sumCSR32AVX2, sumCSR64AVX2},
	gather:       [3]gatherFunc{gather16AVX2, gather32AVX2, gather64AVX2},
	divideRows:   divideRowsAVX2,
	addRows:      addRowsAVX2,
	squareNorms:  squareNormsAVX2,
	weightedSums: weightedSumsAVX2,
}

// available lists the kernels this processor runs, fastest first.
func available() []*Kernel {
	var all []*Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 {
		all = append(all, avx512Kernel)
	}
	if cpu.X86.HasAVX2 {
		all = append(all, avx2Kernel)
	}
	return append(all, goKernel)
}
