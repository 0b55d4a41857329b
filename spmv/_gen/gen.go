// Command gen writes the assembly kernels of package spmv, command roles, below it, those for
// hops that compute a part of the rows, and command loops the loops that package bench/pass compares a pass with.
//
//go:generate go run . -out ../kernel_amd64.s -stubs ../stubs_amd64.go -pkg spmv
//go:generate go run ./roles -out ../roles_amd64.s -stubs ../stubs_roles_amd64.go -pkg spmv
//go:generate go run ./loops -out ../../bench/pass/loops_amd64.s -stubs ../../bench/pass/stubs_amd64.go -pkg pass
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"ndls/spmv/gen/vector"
)

const (
	rowBits = 15
	rowMask = 1<<rowBits - 1
	// batch is the number of edges that are decoded, and whose rows are prefetched, ahead of their
	// sums: enough to keep all line fill buffers busy, and so few that the first-level cache loses
	// none of the rows before they are added.
	batch = 32
)

// widths are the sizes of a word in bytes.
var widths = []int{3, 4}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, v := range vector.ISAs {
		for _, z := range vector.Precisions {
			for _, cols := range vector.Columns {
				for _, width := range widths {
					accumulate(v, z, cols, width, false)
				}
			}
		}
		widen(v)
		narrow(v)
		divideRows(v)
		startRows(v)
		addRows(v)
		addWeighed(v)
		squareNorms(v)
		weightedSums(v)
	}
	for _, v := range vector.ISAs {
		for _, z := range vector.Precisions {
			for _, cols := range vector.Columns {
				for _, width := range widths {
					accumulate(v, z, cols, width, true)
				}
			}
		}
	}
	Generate()
}

// accumulate: for every packed edge, acc[dst] += z[src-base], cols columns wide; if weighted,
// acc[dst] += weight·z[src-base], with the product rounded before it is added.
//
// A word has width bytes, but four are read: the row in the lowest bits, then the
// difference, then what is not of the word.
//
// buf is a ring of batch edges, each the addresses of its two rows. An edge is
// decoded, and both rows prefetched, batch edges before its sum, so that neither
// waits for memory. PREFETCHNTA would leave the outer caches to the accumulators, but some
// processors keep such lines in a small part of the first-level cache and lose them.
func accumulate(v vector.ISA, p vector.Precision, cols, width int, weighted bool) {
	size := map[int]string{3: "Narrow", 4: "Wide"}[width]
	name := fmt.Sprintf("accumulate%s%d%s%s", p.Name, cols, size, v.Name)
	what, more := "z[src-base]", ""
	if weighted {
		name = fmt.Sprintf("accumulateWeighted%s%d%s%s", p.Name, cols, size, v.Name)
		what, more = "weight times z[src-base]", ", weights *byte"
	}
	TEXT(name, NOSPLIT, "func(acc *float32, accStride uintptr, z *byte, zStride uintptr, words *byte, edges uint64, src, base uint32, buf *uint64"+more+")")
	Doc(name + fmt.Sprintf(" adds %s to acc[dst] for each of the edges packed in words of %d bytes, %d columns wide; strides are in bytes, buf holds %d words.", what, width, cols, 2*batch))
	d := decoder{
		p: p, cols: cols, width: width, escape: 1<<(8*width-rowBits) - 1,
		acc: Load(Param("acc"), GP64()), accStride: Load(Param("accStride"), GP64()),
		z: Load(Param("z"), GP64()), zStride: Load(Param("zStride"), GP64()),
		words: Load(Param("words"), GP64()), src: GP64(), buf: Load(Param("buf"), GP64()), at: GP64(),
	}
	if weighted {
		d.weights = Load(Param("weights"), GP64())
	}
	left := Load(Param("edges"), GP64())
	Load(Param("src"), d.src.(GPVirtual).As32())
	base := GP64()
	Load(Param("base"), base.As32())
	IMULQ(d.zStride, base)
	SUBQ(base, d.z)

	// Up to batch edges fill the ring.
	sums := GP64()
	MOVQ(left, sums)
	CMPQ(left, Imm(batch))
	JLS(LabelRef("few"))
	MOVQ(U32(batch), sums)
	Label("few")
	SUBQ(sums, left)
	warm := GP64()
	MOVQ(sums, warm)
	XORQ(d.at, d.at)
	Label("warm")
	TESTQ(warm, warm)
	JZ(LabelRef("full"))
	warmRow := d.decode("warm")
	ADDQ(Imm(16), d.at)
	DECQ(warm)
	JMP(LabelRef("warm"))

	Label("full")
	XORQ(d.at, d.at)
	TESTQ(left, left)
	JZ(LabelRef("drain"))
	Label("edge")
	from, to := d.take()
	row := d.decode("edge")
	d.sum(v, from, to)
	DECQ(left)
	JNZ(LabelRef("edge"))

	Label("drain")
	TESTQ(sums, sums)
	JZ(LabelRef("done"))
	from, to = d.take()
	d.sum(v, from, to)
	DECQ(sums)
	JMP(LabelRef("drain"))
	Label("done")
	VZEROUPPER()
	RET()
	d.skip("warm", warmRow)
	d.skip("edge", row)
}

// decoder holds the registers of accumulate.
type decoder struct {
	p                                      vector.Precision
	cols, width, escape                    int
	acc, accStride, z, zStride, words, src Register
	buf, at                                Register // ring, offset of its oldest edge
	weights                                Register // the weight of the oldest edge; nil without weights
}

func (d decoder) slot(disp int) Mem { return Mem{Base: d.buf, Index: d.at, Scale: 1, Disp: disp} }

// decode puts the next edge in the ring at place at and prefetches its rows. It returns the
// register that has the row of a word.
func (d decoder) decode(label string) (row GPVirtual) {
	src := d.src.(GPVirtual)
	Label(label + "_word")
	w := GP64()
	row = GP64()
	MOVL(Mem{Base: d.words}, w.As32())
	ADDQ(Imm(uint64(d.width)), d.words)
	MOVL(w.As32(), row.As32())
	ANDL(U32(rowMask), row.As32())
	SHRL(Imm(rowBits), w.As32())
	if d.width < 4 {
		ANDL(U32(uint32(d.escape)), w.As32())
	}
	CMPL(w.As32(), U32(uint32(d.escape)))
	JEQ(LabelRef(label + "_skip"))
	ADDL(w.As32(), src.As32())
	from := GP64()
	MOVQ(src, from)
	IMULQ(d.zStride, from)
	ADDQ(d.z, from)
	MOVQ(from, d.slot(0))
	for b := 0; b < d.cols*d.p.Bytes; b += 64 {
		PREFETCHT0(Mem{Base: from, Disp: b})
	}
	IMULQ(d.accStride, row)
	MOVQ(d.acc, RAX)
	ADDQ(row, RAX)
	MOVQ(RAX, d.slot(8))
	for b := 0; b < d.cols*4; b += 64 {
		prefetchW(b)
	}
	return row
}

// skip is the rare way through decode, out of its line: a word that moves the source on by
// as many times escape as it has for a row.
func (d decoder) skip(label string, row GPVirtual) {
	Label(label + "_skip")
	IMUL3L(U32(uint32(d.escape)), row.As32(), row.As32())
	ADDL(row.As32(), d.src.(GPVirtual).As32())
	JMP(LabelRef(label + "_word"))
}

// prefetchW is PREFETCHW disp(AX), which the assembler does not know: 0F 0D /1.
// Processors without it do nothing.
func prefetchW(disp int) {
	for _, b := range []byte{0x0f, 0x0d, 0x88, byte(disp), byte(disp >> 8), 0, 0} {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}, Inputs: []Op{RAX}})
	}
}

// take reads the oldest edge of the ring; at still points to its slot.
func (d decoder) take() (from, to Register) {
	from, to = GP64(), GP64()
	MOVQ(d.slot(0), from)
	MOVQ(d.slot(8), to)
	return from, to
}

// sum adds the row at from, times the weight of the edge, to the row at to, and moves on in
// the ring.
func (d decoder) sum(v vector.ISA, from, to Register) {
	var weight VecVirtual
	if d.weights != nil {
		weight = v.Reg()
		VBROADCASTSS(Mem{Base: d.weights}, weight)
		ADDQ(Imm(4), d.weights)
	}
	for c := 0; c < d.cols; c += v.Lanes {
		x := v.Reg()
		d.p.Load(Mem{Base: from, Disp: c * d.p.Bytes}, x)
		if weight != nil {
			VMULPS(weight, x, x)
		}
		VADDPS(Mem{Base: to, Disp: c * 4}, x, x)
		VMOVUPS(x, Mem{Base: to, Disp: c * 4})
	}
	ADDL(Imm(16), d.at.(GPVirtual).As32())
	ANDL(U32(16*batch-1), d.at.(GPVirtual).As32())
}

// widen: float16 to float32, n values, a multiple of 16.
func widen(v vector.ISA) {
	name := "widen" + v.Name
	TEXT(name, NOSPLIT, "func(dst *float32, src *uint16, n uintptr)")
	Doc(name + " converts n values, a multiple of 16.")
	convert(v, 4, 2, func(from, to Mem) {
		x := v.Reg()
		VCVTPH2PS(from, x)
		VMOVUPS(x, to)
	})
}

// narrow: float32 to float16, n values, a multiple of 16, to nearest even.
func narrow(v vector.ISA) {
	name := "narrow" + v.Name
	TEXT(name, NOSPLIT, "func(dst *uint16, src *float32, n uintptr)")
	Doc(name + " rounds n values, a multiple of 16.")
	convert(v, 2, 4, func(from, to Mem) {
		x := v.Reg()
		VMOVUPS(from, x)
		VCVTPS2PH(Imm(0), x, to)
	})
}

// convert loops over n values of from and to bytes, 16 at a time.
func convert(v vector.ISA, toBytes, fromBytes int, one func(from, to Mem)) {
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	Label("panel")
	for c := 0; c < 16; c += v.Lanes {
		one(Mem{Base: src, Disp: c * fromBytes}, Mem{Base: dst, Disp: c * toBytes})
	}
	ADDQ(Imm(uint64(16*fromBytes)), src)
	ADDQ(Imm(uint64(16*toBytes)), dst)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("panel"))
	VZEROUPPER()
	RET()
}

// divideRows: rows[i] /= share * divisors[i].
func divideRows(v vector.ISA) {
	name := "divideRows" + v.Name
	TEXT(name, NOSPLIT, "func(rows *float32, divisors *float64, n, bytes uintptr, share float32)")
	Doc(name + " divides each of n rows of bytes bytes (a multiple of 64, without gaps) by share times its divisor as float32.")
	rows := Load(Param("rows"), GP64())
	divisors := Load(Param("divisors"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	share := v.Broadcast("share")
	vector.EachRow(n, func() {
		v.DivideRow(rows, bytes, v.Divisor(divisors, share))
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(Imm(8), divisors)
	})
	vector.End()
}

// startRows: rows[i] = self[i] - share * divisors[i] * rows[i].
func startRows(v vector.ISA) {
	name := "startRows" + v.Name
	TEXT(name, NOSPLIT, "func(rows, self *float32, divisors *float64, n, bytes uintptr, share float32)")
	Doc(name + " replaces each of n rows of bytes bytes (a multiple of 64, without gaps) by that of self minus the row times share times its divisor as float32.")
	rows := Load(Param("rows"), GP64())
	self := Load(Param("self"), GP64())
	divisors := Load(Param("divisors"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	share := v.Broadcast("share")
	vector.EachRow(n, func() {
		d := v.Divisor(divisors, share)
		v.EachRegister("column", bytes, func(at Register, disp int) {
			x, y := v.Reg(), v.Reg()
			VMULPS(Mem{Base: rows, Index: at, Scale: 1, Disp: disp}, d, x)
			VMOVUPS(Mem{Base: self, Index: at, Scale: 1, Disp: disp}, y)
			VSUBPS(x, y, y)
			VMOVUPS(y, Mem{Base: rows, Index: at, Scale: 1, Disp: disp})
		})
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(bytes, self)
		ADDQ(Imm(8), divisors)
	})
	vector.End()
}

// addRows: sum[i] += weight * rows[i] where hop < hops[i].
func addRows(v vector.ISA) {
	name := "addRows" + v.Name
	TEXT(name, NOSPLIT, "func(sum, rows *float32, hops *uint16, n, bytes uintptr, hop uint16, weight float32)")
	Doc(name + " adds weight times row i to row i of sum wherever hop < hops[i]; n rows of bytes bytes (a multiple of 64, without gaps).")
	sum := Load(Param("sum"), GP64())
	rows := Load(Param("rows"), GP64())
	hops := Load(Param("hops"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	hop := GP64()
	Load(Param("hop"), hop.As16())
	MOVWLZX(hop.As16(), hop.As32())
	w := v.Broadcast("weight")
	vector.EachRow(n, func() {
		h := GP64()
		MOVWLZX(Mem{Base: hops}, h.As32())
		CMPL(hop.As32(), h.As32())
		JCC(LabelRef("next"))
		v.EachRegister("column", bytes, func(at Register, disp int) {
			y := v.Reg()
			VMULPS(Mem{Base: rows, Index: at, Scale: 1, Disp: disp}, w, y)
			VADDPS(Mem{Base: sum, Index: at, Scale: 1, Disp: disp}, y, y)
			VMOVUPS(y, Mem{Base: sum, Index: at, Scale: 1, Disp: disp})
		})
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(bytes, sum)
		ADDQ(Imm(2), hops)
	})
	vector.End()
}

// addWeighed: sum[i] += weights[counts[i]] * rows[i] where that weight is not zero.
func addWeighed(v vector.ISA) {
	name := "addWeighed" + v.Name
	TEXT(name, NOSPLIT, "func(sum, rows *float32, counts *uint16, weights *float32, n, bytes uintptr)")
	Doc(name + " adds weights[counts[i]] times row i to row i of sum wherever that weight is not zero; n rows of bytes bytes (a multiple of 64, without gaps).")
	sum := Load(Param("sum"), GP64())
	rows := Load(Param("rows"), GP64())
	counts := Load(Param("counts"), GP64())
	weights := Load(Param("weights"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	vector.EachRow(n, func() {
		count := GP64()
		MOVWLZX(Mem{Base: counts}, count.As32())
		CMPL(Mem{Base: weights, Index: count, Scale: 4}, Imm(0))
		JEQ(LabelRef("next"))
		w := v.Reg()
		VBROADCASTSS(Mem{Base: weights, Index: count, Scale: 4}, w)
		v.EachRegister("column", bytes, func(at Register, disp int) {
			y := v.Reg()
			VMULPS(Mem{Base: rows, Index: at, Scale: 1, Disp: disp}, w, y)
			VADDPS(Mem{Base: sum, Index: at, Scale: 1, Disp: disp}, y, y)
			VMOVUPS(y, Mem{Base: sum, Index: at, Scale: 1, Disp: disp})
		})
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(bytes, sum)
		ADDQ(Imm(2), counts)
	})
	vector.End()
}

// squareNorms: out[i] += |rows[i]|^2 in float64, panel by panel.
func squareNorms(v vector.ISA) {
	name := "squareNorms" + v.Name
	TEXT(name, NOSPLIT, "func(out *float64, rows *float32, n, bytes uintptr)")
	Doc(name + " adds the squared length of each of n rows of bytes bytes (a multiple of 64, without gaps) to out, 16 columns at a time, in float64.")
	out := Load(Param("out"), GP64())
	rows := Load(Param("rows"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	vector.EachRow(n, func() {
		total := XMM()
		VMOVSD(Mem{Base: out}, total)
		vector.EachPanel("column", bytes, func(at GPVirtual) {
			four := YMM() // lanes 0..3 plus lanes 4..7
			if v.Lanes == 16 {
				a, b := ZMM(), ZMM()
				VCVTPS2PD(Mem{Base: rows, Index: at, Scale: 1}, a)
				VCVTPS2PD(Mem{Base: rows, Index: at, Scale: 1, Disp: 32}, b)
				VMULPD(a, a, a)
				VMULPD(b, b, b)
				VADDPD(b, a, a)
				VEXTRACTF64X4(Imm(1), a, four)
				VADDPD(four, a.AsY(), four)
			} else {
				var p [2]VecVirtual
				for half := range p {
					a, b := YMM(), YMM()
					VCVTPS2PD(Mem{Base: rows, Index: at, Scale: 1, Disp: 16 * half}, a)
					VCVTPS2PD(Mem{Base: rows, Index: at, Scale: 1, Disp: 32 + 16*half}, b)
					VMULPD(a, a, a)
					VMULPD(b, b, b)
					VADDPD(b, a, a)
					p[half] = a
				}
				VADDPD(p[1], p[0], four)
			}
			two := XMM()
			VEXTRACTF128(Imm(1), four, two)
			VADDPD(two, four.AsX(), two)
			one := XMM()
			VPERMILPD(Imm(1), two, one)
			VADDSD(one, two, two)
			VADDSD(two, total, total)
		})
		VMOVSD(total, Mem{Base: out})
	}, func() {
		ADDQ(Imm(8), out)
		ADDQ(bytes, rows)
	})
	vector.End()
}

// weightedSums: for the first columns, sums[c] += weights[i]*x and sums[16+c] += weights[i]*|x|.
func weightedSums(v vector.ISA) {
	name := "weightedSums" + v.Name
	TEXT(name, NOSPLIT, "func(sums *[32]float64, rows *float32, weights *float64, n, bytes uintptr)")
	Doc(name + " adds, for the first 16 columns of n rows of bytes bytes, weight·x to sums[0:16] and weight·|x| to sums[16:32], in float64.")
	sums := Load(Param("sums"), GP64())
	rows := Load(Param("rows"), GP64())
	weights := Load(Param("weights"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	lanes := v.Lanes / 2
	regs := 16 / lanes // of signed sums
	// AVX2 has 16 registers: 4 signed, 4 absolute, and a few to work with.
	signed, absolute := make([]VecVirtual, regs), make([]VecVirtual, regs)
	for i := range signed {
		signed[i], absolute[i] = v.Reg(), v.Reg()
		VMOVUPD(Mem{Base: sums, Disp: i * lanes * 8}, signed[i])
		VMOVUPD(Mem{Base: sums, Disp: 128 + i*lanes*8}, absolute[i])
	}
	// All bits but the sign.
	abs, ones := v.Reg(), GP64()
	MOVQ(U64(0x7fffffffffffffff), ones)
	ax := XMM()
	VMOVQ(ones, ax)
	VPBROADCASTQ(ax, abs)
	vector.EachRow(n, func() {
		w := v.Reg()
		VBROADCASTSD(Mem{Base: weights}, w)
		for i := range signed {
			y := v.Reg()
			VCVTPS2PD(Mem{Base: rows, Disp: i * lanes * 4}, y)
			VMULPD(w, y, y)
			VADDPD(y, signed[i], signed[i])
			and64(v, abs, y)
			VADDPD(y, absolute[i], absolute[i])
		}
	}, func() {
		ADDQ(bytes, rows)
		ADDQ(Imm(8), weights)
	})
	Label("done")
	for i := range signed {
		VMOVUPD(signed[i], Mem{Base: sums, Disp: i * lanes * 8})
		VMOVUPD(absolute[i], Mem{Base: sums, Disp: 128 + i*lanes*8})
	}
	VZEROUPPER()
	RET()
}

// and64 clears in y the bits that are not in mask.
func and64(v vector.ISA, mask, y VecVirtual) {
	if v.Lanes == 16 {
		VPANDQ(mask, y, y)
	} else {
		VPAND(mask, y, y)
	}
}
