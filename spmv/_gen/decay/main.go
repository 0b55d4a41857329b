// Command decay writes the assembly kernels for rows that settle.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"ndls/spmv/gen/vector"
)

const (
	// skipped, kept and computed are the roles of package spmv, oneDecay is the decay that
	// leaves a row as it is.
	skipped, kept, computed = 1, 2, 3
	oneDecay                = 65535
)

func main() {
	ConstraintExpr("amd64,!noasm")
	one := ConstData("one_decay", F32(oneDecay))
	mask := GLOBL("combinations_mask", RODATA|NOPTR)
	for i := range 16 {
		word := ^uint32(0)
		if i == 15 {
			word = 0
		}
		DATA(4*i, U32(word))
	}
	for _, v := range vector.ISAs {
		decayRows(v, one)
		copyComputed(v)
		divideComputed(v)
		products(v, mask)
	}
	Generate()
}

// decayRows: to[i] = decay[i]/oneDecay · from[i] where roles[i] is Kept, one panel.
func decayRows(v vector.ISA, one Mem) {
	name := "decayRows" + v.Name
	TEXT(name, NOSPLIT, "func(to, from *float32, decay *uint16, roles *byte, n, bytes uintptr)")
	Doc(name + " replaces 16 columns of row i, of n rows with a stride of bytes bytes, by decay[i]/65535 of those at from wherever roles[i] is Kept.")
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	decay := Load(Param("decay"), GP64())
	roles := Load(Param("roles"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	whole := XMM()
	VMOVSS(one, whole)
	vector.EachRow(n, func() {
		CMPB(Mem{Base: roles}, Imm(kept))
		JNE(LabelRef("next"))
		d, x := GP64(), XMM()
		MOVWLZX(Mem{Base: decay}, d.As32())
		VXORPS(x, x, x)
		VCVTSI2SSL(d.As32(), x, x)
		VDIVSS(whole, x, x)
		rate := v.Reg()
		VBROADCASTSS(x, rate)
		for c := 0; c < 16; c += v.Lanes {
			y := v.Reg()
			VMULPS(Mem{Base: from, Disp: c * 4}, rate, y)
			VMOVUPS(y, Mem{Base: to, Disp: c * 4})
		}
	}, func() {
		ADDQ(bytes, to)
		ADDQ(bytes, from)
		ADDQ(Imm(2), decay)
		INCQ(roles)
	})
	vector.End()
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

// divideComputed: rows[i] /= degree[i] + 1 where roles[i] is Computed, 0 where it is Skipped.
func divideComputed(v vector.ISA) {
	name := "divideComputed" + v.Name
	TEXT(name, NOSPLIT, "func(rows *float32, degree *uint32, roles *byte, n, bytes uintptr)")
	Doc(name + " divides row i, of n rows of bytes bytes (a multiple of 64, without gaps), by its degree plus one wherever roles[i] is Computed, and clears it wherever it is Skipped.")
	rows := Load(Param("rows"), GP64())
	degree := Load(Param("degree"), GP64())
	roles := Load(Param("roles"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	zero := v.Reg()
	VXORPS(zero.AsX(), zero.AsX(), zero.AsX())
	role := GP64()
	vector.EachRow(n, func() {
		MOVBLZX(Mem{Base: roles}, role.As32())
		CMPL(role.As32(), Imm(computed))
		JNE(LabelRef("other"))
		v.DivideRow(rows, bytes, v.Degree1(degree))
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(Imm(4), degree)
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

// products: out[3i:] = |now|², |then|² and now·then over the first 15 columns of row i.
func products(v vector.ISA, mask Mem) {
	name := "products" + v.Name
	TEXT(name, NOSPLIT, "func(out *float64, now, then *float32, n uintptr)")
	Doc(name + " writes three sums for each of n rows of 16 columns, over the first 15: of the squares of now, of those of then, and of their products, in float64.")
	out := Load(Param("out"), GP64())
	now := Load(Param("now"), GP64())
	then := Load(Param("then"), GP64())
	n := Load(Param("n"), GP64())
	half := v.Lanes / 2 // float64 values of a register
	masks := make([]VecVirtual, 16/v.Lanes)
	for i := range masks {
		masks[i] = v.Reg()
		VMOVUPS(mask.Offset(i*v.Lanes*4), masks[i])
	}
	vector.EachRow(n, func() {
		// a and b have the values as float64, in registers of half values each.
		load := func(at Register) (x []VecVirtual) {
			for i, m := range masks {
				y := v.Reg()
				if v.Lanes == 16 {
					VPANDD(Mem{Base: at}, m, y)
				} else {
					VANDPS(Mem{Base: at, Disp: i * 32}, m, y)
				}
				lo, hi := v.Reg(), v.Reg()
				if v.Lanes == 16 {
					VCVTPS2PD(y.AsY(), lo)
					upper := YMM()
					VEXTRACTF64X4(Imm(1), y, upper)
					VCVTPS2PD(upper, hi)
				} else {
					VCVTPS2PD(y.AsX(), lo)
					upper := XMM()
					VEXTRACTF128(Imm(1), y, upper)
					VCVTPS2PD(upper, hi)
				}
				x = append(x, lo, hi)
			}
			return x
		}
		a, b := load(now), load(then)
		for i, pair := range [][2][]VecVirtual{{a, a}, {b, b}, {a, b}} {
			p := make([]VecVirtual, len(a))
			for k := range p {
				p[k] = v.Reg()
				VMULPD(pair[1][k], pair[0][k], p[k])
			}
			// Lane l adds values l and l+8, then the lanes are added as in squareNorms.
			var four VecVirtual
			if half == 8 {
				VADDPD(p[1], p[0], p[0])
				four = YMM()
				VEXTRACTF64X4(Imm(1), p[0], four)
				VADDPD(four, p[0].AsY(), four)
			} else {
				VADDPD(p[2], p[0], p[0])
				VADDPD(p[3], p[1], p[1])
				VADDPD(p[1], p[0], p[0])
				four = p[0]
			}
			two := XMM()
			VEXTRACTF128(Imm(1), four, two)
			VADDPD(two, four.AsX(), two)
			one := XMM()
			VPERMILPD(Imm(1), two, one)
			VADDSD(one, two, two)
			VMOVSD(two, Mem{Base: out, Disp: 8 * i})
		}
	}, func() {
		ADDQ(Imm(24), out)
		ADDQ(Imm(64), now)
		ADDQ(Imm(64), then)
	})
	vector.End()
}
