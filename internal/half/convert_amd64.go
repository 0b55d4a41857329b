//go:build amd64 && !noasm

package half

import "golang.org/x/sys/cpu"

var hasF16C = cpu.X86.HasF16C && cpu.X86.HasAVX

// encodeMost encodes the first n values.
func encodeMost(dst []byte, values []float32) (n int, exact bool) {
	if n = len(values) &^ 7; n == 0 || !hasF16C {
		return 0, true
	}
	return n, encodeF16C(&dst[0], &values[0], uintptr(n)) == 0
}

// decodeMost decodes the first n values.
func decodeMost(dst []float32, src []byte) (n int) {
	if n = len(dst) &^ 7; n == 0 || !hasF16C {
		return 0
	}
	decodeF16C(&dst[0], &src[0], uintptr(n))
	return n
}
