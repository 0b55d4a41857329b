//go:build amd64 && !noasm

package spmv

import "golang.org/x/sys/cpu"

var avx512Kernel = &Kernel{
	name: "avx512",
	accumulate: [2][3]accumulateFunc{
		{accumulate16AVX512, accumulate32AVX512, accumulate64AVX512},
		{accumulateHalf16AVX512, accumulateHalf32AVX512, accumulateHalf64AVX512},
	},
	widen:        widenAVX512,
	narrow:       narrowAVX512,
	divideRows:   divideRowsAVX512,
	addRows:      addRowsAVX512,
	squareNorms:  squareNormsAVX512,
	weightedSums: weightedSumsAVX512,
}

var avx2Kernel = &Kernel{
	name: "avx2",
	accumulate: [2][3]accumulateFunc{
		{accumulate16AVX2, accumulate32AVX2, accumulate64AVX2},
		{accumulateHalf16AVX2, accumulateHalf32AVX2, accumulateHalf64AVX2},
	},
	widen:        widenAVX2,
	narrow:       narrowAVX2,
	divideRows:   divideRowsAVX2,
	addRows:      addRowsAVX2,
	squareNorms:  squareNormsAVX2,
	weightedSums: weightedSumsAVX2,
}

// available lists the kernels this processor runs, fastest first.
func available() []*Kernel {
	var all []*Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasBMI2 {
		all = append(all, avx512Kernel)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && hasF16C() {
		all = append(all, avx2Kernel)
	}
	return append(all, goKernel)
}
