// Command gen writes the assembly of package half.
//
//go:generate go run . -out ../convert_amd64.s -stubs ../stubs_amd64.go -pkg half
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// lanes is the number of values that are converted at a time.
const lanes = 8

func main() {
	ConstraintExpr("amd64,!noasm")
	encode()
	decode()
	Generate()
}

// encode rounds each value, and compares it with what it became.
func encode() {
	TEXT("encodeF16C", NOSPLIT, "func(dst *byte, src *float32, n uintptr) (inexact uint32)")
	Pragma("noescape")
	Doc("encodeF16C rounds n values, a multiple of 8. It returns 0 if all are exact.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	differ := YMM()
	VXORPS(differ, differ, differ)
	Label("encode")
	value, back, rounded := YMM(), YMM(), XMM()
	VMOVUPS(Mem{Base: src}, value)
	VCVTPS2PH(Imm(0), value, rounded)
	VMOVUPS(rounded, Mem{Base: dst})
	VCVTPH2PS(rounded, back)
	VCMPPS(Imm(4), value, back, back) // unequal, or not numbers
	VORPS(back, differ, differ)
	ADDQ(Imm(4*lanes), src)
	ADDQ(Imm(2*lanes), dst)
	SUBQ(Imm(lanes), n)
	JNZ(LabelRef("encode"))
	inexact := GP32()
	VMOVMSKPS(differ, inexact)
	VZEROUPPER()
	Store(inexact, ReturnIndex(0))
	RET()
}

func decode() {
	TEXT("decodeF16C", NOSPLIT, "func(dst *float32, src *byte, n uintptr)")
	Pragma("noescape")
	Doc("decodeF16C converts n values, a multiple of 8.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("decode")
	value := YMM()
	VCVTPH2PS(Mem{Base: src}, value)
	VMOVUPS(value, Mem{Base: dst})
	ADDQ(Imm(2*lanes), src)
	ADDQ(Imm(4*lanes), dst)
	SUBQ(Imm(lanes), n)
	JNZ(LabelRef("decode"))
	VZEROUPPER()
	RET()
}
