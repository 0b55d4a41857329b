package vector

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// EachRow writes a loop over n rows: what row writes for each, then at the label next the steps
// that advance writes to the row behind it. The loop goes to the label done at the end.
func EachRow(n Register, row, advance func()) {
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	row()
	Label("next")
	advance()
	DECQ(n)
	JMP(LabelRef("row"))
}

// End writes the label done and the end of the function.
func End() {
	Label("done")
	VZEROUPPER()
	RET()
}

// EachPanel writes a loop over a row of bytes bytes, a panel of 16 columns at a time: panel
// writes what is done with the one that begins at byte at.
func EachPanel(label string, bytes Register, panel func(at GPVirtual)) {
	at := GP64()
	XORQ(at, at)
	Label(label)
	panel(at)
	ADDQ(Imm(64), at)
	CMPQ(at, bytes)
	JLT(LabelRef(label))
}

// EachRegister writes such a loop, a register at a time: each gets where the columns of a
// register are.
func (v ISA) EachRegister(label string, bytes Register, each func(at Register, disp int)) {
	EachPanel(label, bytes, func(at GPVirtual) {
		for c := 0; c < 16; c += v.Lanes {
			each(at, c*4)
		}
	})
}

// DivideRow divides a row of bytes bytes by the values of a register.
func (v ISA) DivideRow(row, bytes Register, by VecVirtual) {
	v.EachRegister("column", bytes, func(at Register, disp int) {
		y := v.Reg()
		VMOVUPS(Mem{Base: row, Index: at, Scale: 1, Disp: disp}, y)
		VDIVPS(by, y, y)
		VMOVUPS(y, Mem{Base: row, Index: at, Scale: 1, Disp: disp})
	})
}

// Broadcast loads a float32 parameter into every lane of a register.
func (v ISA) Broadcast(param string) VecVirtual {
	x, all := XMM(), v.Reg()
	Load(Param(param), x)
	VBROADCASTSS(x, all)
	return all
}

// Divisor loads a float64, as float32 and times share, into every lane of a register.
func (v ISA) Divisor(divisor Register, share VecVirtual) VecVirtual {
	x, all := XMM(), v.Reg()
	VXORPS(x, x, x)
	VCVTSD2SS(Mem{Base: divisor}, x, x)
	VBROADCASTSS(x, all)
	VMULPS(share, all, all)
	return all
}
