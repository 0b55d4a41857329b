// Package vector holds what the generators of assembly share: the instruction sets, and the loading
// of rows of either precision.
package vector

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ISA is an instruction set: how wide a register is and how to get one.
type ISA struct {
	Name  string
	Lanes int
	Reg   func() VecVirtual
}

// ISAs are those that code is generated for.
var ISAs = []ISA{
	{"AVX512", 16, ZMM},
	{"AVX2", 8, YMM},
}

// Precision is the type of the rows that are summed.
type Precision struct {
	Name  string
	Bytes int
}

// Precisions are float32 and float16.
var Precisions = []Precision{{"", 4}, {"Half", 2}}

// Columns are the widths that code is generated for.
var Columns = []int{16, 32, 64}

// Load loads lanes values at m as float32.
func (p Precision) Load(m Mem, x VecVirtual) {
	if p.Bytes == 2 {
		VCVTPH2PS(m, x)
	} else {
		VMOVUPS(m, x)
	}
}

// Add adds the lanes values at m to x.
func (p Precision) Add(v ISA, m Mem, x VecVirtual) {
	if p.Bytes == 2 {
		y := v.Reg()
		VCVTPH2PS(m, y)
		VADDPS(y, x, x)
	} else {
		VADDPS(m, x, x)
	}
}
