//go:build amd64 && !noasm

package pass

// loopsOf returns the loops for the instructions that the kernel of a name uses.
func loopsOf(kernel string) table {
	switch kernel {
	case "avx512":
		return avx512Loops
	case "avx2":
		return avx2Loops
	}
	return goLoops
}

var (
	avx512Loops = table{
		{{sumCSR16AVX512, gather16AVX512}, {sumCSR32AVX512, gather32AVX512}, {sumCSR64AVX512, gather64AVX512}},
		{{sumCSRHalf16AVX512, gatherHalf16AVX512}, {sumCSRHalf32AVX512, gatherHalf32AVX512}, {sumCSRHalf64AVX512, gatherHalf64AVX512}},
	}
	avx2Loops = table{
		{{sumCSR16AVX2, gather16AVX2}, {sumCSR32AVX2, gather32AVX2}, {sumCSR64AVX2, gather64AVX2}},
		{{sumCSRHalf16AVX2, gatherHalf16AVX2}, {sumCSRHalf32AVX2, gatherHalf32AVX2}, {sumCSRHalf64AVX2, gatherHalf64AVX2}},
	}
)
