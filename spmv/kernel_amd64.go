//go:build amd64 && !noasm

package spmv

import "golang.org/x/sys/cpu"

var avx512Kernel = &Kernel{
	name: "avx512",
	accumulate: [2][3][2]accumulateFunc{
		{
			{accumulate16NarrowAVX512, accumulate16WideAVX512},
			{accumulate32NarrowAVX512, accumulate32WideAVX512},
			{accumulate64NarrowAVX512, accumulate64WideAVX512},
		},
		{
			{accumulateHalf16NarrowAVX512, accumulateHalf16WideAVX512},
			{accumulateHalf32NarrowAVX512, accumulateHalf32WideAVX512},
			{accumulateHalf64NarrowAVX512, accumulateHalf64WideAVX512},
		},
	},
	widen:       widenAVX512,
	narrow:      narrowAVX512,
	squareNorms: squareNormsAVX512,
	copyRows:    copyComputedAVX512,
	divideSome:  divideComputedAVX512,
	accumulateWeighted: [2][3][2]accumulateWeightedFunc{
		{
			{accumulateWeighted16NarrowAVX512, accumulateWeighted16WideAVX512},
			{accumulateWeighted32NarrowAVX512, accumulateWeighted32WideAVX512},
			{accumulateWeighted64NarrowAVX512, accumulateWeighted64WideAVX512},
		},
		{
			{accumulateWeightedHalf16NarrowAVX512, accumulateWeightedHalf16WideAVX512},
			{accumulateWeightedHalf32NarrowAVX512, accumulateWeightedHalf32WideAVX512},
			{accumulateWeightedHalf64NarrowAVX512, accumulateWeightedHalf64WideAVX512},
		},
	},
	divideRows:   divideRowsAVX512,
	startRows:    startRowsAVX512,
	addRows:      addRowsAVX512,
	addWeighed:   addWeighedAVX512,
	weightedSums: weightedSumsAVX512,
}

var avx2Kernel = &Kernel{
	name: "avx2",
	accumulate: [2][3][2]accumulateFunc{
		{
			{accumulate16NarrowAVX2, accumulate16WideAVX2},
			{accumulate32NarrowAVX2, accumulate32WideAVX2},
			{accumulate64NarrowAVX2, accumulate64WideAVX2},
		},
		{
			{accumulateHalf16NarrowAVX2, accumulateHalf16WideAVX2},
			{accumulateHalf32NarrowAVX2, accumulateHalf32WideAVX2},
			{accumulateHalf64NarrowAVX2, accumulateHalf64WideAVX2},
		},
	},
	widen:       widenAVX2,
	narrow:      narrowAVX2,
	squareNorms: squareNormsAVX2,
	copyRows:    copyComputedAVX2,
	divideSome:  divideComputedAVX2,
	accumulateWeighted: [2][3][2]accumulateWeightedFunc{
		{
			{accumulateWeighted16NarrowAVX2, accumulateWeighted16WideAVX2},
			{accumulateWeighted32NarrowAVX2, accumulateWeighted32WideAVX2},
			{accumulateWeighted64NarrowAVX2, accumulateWeighted64WideAVX2},
		},
		{
			{accumulateWeightedHalf16NarrowAVX2, accumulateWeightedHalf16WideAVX2},
			{accumulateWeightedHalf32NarrowAVX2, accumulateWeightedHalf32WideAVX2},
			{accumulateWeightedHalf64NarrowAVX2, accumulateWeightedHalf64WideAVX2},
		},
	},
	divideRows:   divideRowsAVX2,
	startRows:    startRowsAVX2,
	addRows:      addRowsAVX2,
	addWeighed:   addWeighedAVX2,
	weightedSums: weightedSumsAVX2,
}

// available lists the kernels this processor runs, fastest first.
func available() []*Kernel {
	var all []*Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 {
		all = append(all, avx512Kernel)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasF16C {
		all = append(all, avx2Kernel)
	}
	return append(all, goKernel)
}
