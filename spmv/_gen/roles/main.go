// Command roles writes the assembly kernels for hops that compute a part of the rows.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"ndls/spmv/gen/vector"
)

const (
	// skipped and computed are roles of package spmv.
	skipped, computed = 1, 2
)

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, v := range vector.ISAs {
		copyComputed(v)
		divideComputed(v)
	}
	Generate()
}

// copyComputed: to[i] = from[i] where roles[i] is Computed.
func copyComputed(v vector.ISA) {
	name := "copyComputed" + v.Name
	TEXT(name, NOSPLIT, "func(to, from *float32, roles *byte, n, bytes uintptr)")
	Doc(name + " copies row i, of n rows of bytes bytes (a multiple of 64, without gaps), wherever roles[i] is Computed.")
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	roles := Load(Param("roles"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	vector.EachRow(n, func() {
		CMPB(Mem{Base: roles}, Imm(computed))
		JNE(LabelRef("next"))
		v.EachRegister("column", bytes, func(at Register, disp int) {
			x := v.Reg()
			VMOVUPS(Mem{Base: from, Index: at, Scale: 1, Disp: disp}, x)
			VMOVUPS(x, Mem{Base: to, Index: at, Scale: 1, Disp: disp})
		})
	}, func() {
		ADDQ(bytes, to)
		ADDQ(bytes, from)
		INCQ(roles)
	})
	vector.End()
}

// divideComputed: rows[i] /= share * divisors[i] where roles[i] is Computed, 0 where it is Skipped.
func divideComputed(v vector.ISA) {
	name := "divideComputed" + v.Name
	TEXT(name, NOSPLIT, "func(rows *float32, divisors *float64, roles *byte, n, bytes uintptr, share float32)")
	Doc(name + " divides row i, of n rows of bytes bytes (a multiple of 64, without gaps), by share times its divisor as float32 wherever roles[i] is Computed, and clears it wherever it is Skipped.")
	rows := Load(Param("rows"), GP64())
	divisors := Load(Param("divisors"), GP64())
	roles := Load(Param("roles"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	share := v.Broadcast("share")
	zero := v.Reg()
	VXORPS(zero.AsX(), zero.AsX(), zero.AsX())
	role := GP64()
	vector.EachRow(n, func() {
		MOVBLZX(Mem{Base: roles}, role.As32())
		CMPL(role.As32(), Imm(computed))
		JNE(LabelRef("other"))
		v.DivideRow(rows, bytes, v.Divisor(divisors, share))
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(Imm(8), divisors)
		INCQ(roles)
	})
	Label("other")
	CMPL(role.As32(), Imm(skipped))
	JNE(LabelRef("next"))
	v.EachRegister("clear", bytes, func(at Register, disp int) {
		VMOVUPS(zero, Mem{Base: rows, Index: at, Scale: 1, Disp: disp})
	})
	JMP(LabelRef("next"))
	vector.End()
}
