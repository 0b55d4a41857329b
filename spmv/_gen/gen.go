// Command gen writes the assembly kernels of package spmv.
//
//go:generate go run . -out ../kernel_amd64.s -stubs ../stubs_amd64.go -pkg spmv
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	blockShift = 20
	rowMask    = 1<<blockShift - 1
	escape     = 1<<(32-blockShift) - 1
	// ahead is how many edges the prefetch runs before the sum.
	ahead = 16
)

// isa is an instruction set: how wide a register is and how to get one.
type isa struct {
	name  string
	lanes int
	reg   func() VecVirtual
}

var isas = []isa{
	{"AVX512", 16, ZMM},
	{"AVX2", 8, YMM},
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, v := range isas {
		for _, cols := range []int{16, 32, 64} {
			accumulate(v, cols)
			sumCSR(v, cols)
			gather(v, cols)
		}
		divideRows(v)
		addRows(v)
		squareNorms(v)
		weightedSums(v)
	}
	Generate()
}

// accumulate: for every packed edge, acc[dst] += z[src], cols columns wide.
func accumulate(v isa, cols int) {
	name := fmt.Sprintf("accumulate%d%s", cols, v.name)
	TEXT(name, NOSPLIT, "func(acc, z *float32, stride uintptr, words *uint32, edges uint64, src uint32)")
	Doc(name + " adds z[src] to acc[dst] for each of the packed edges, " + fmt.Sprint(cols) + " columns wide; rows are stride bytes apart.")
	acc := Load(Param("acc"), GP64())
	z := Load(Param("z"), GP64())
	stride := Load(Param("stride"), GP64())
	words := Load(Param("words"), GP64())
	edges := Load(Param("edges"), GP64())
	src := GP64()
	Load(Param("src"), src.As32())

	// The second cursor (words2, src2) runs ahead of the sum and prefetches.
	words2, src2, left2 := GP64(), GP64(), GP64()
	MOVQ(words, words2)
	MOVL(src.As32(), src2.As32())
	MOVQ(edges, left2)

	warm := GP64()
	MOVQ(U32(ahead), warm)
	Label("warm")
	TESTQ(left2, left2)
	JZ(LabelRef("main"))
	step(words2, src2, nil, "warm")
	DECQ(left2)
	DECQ(warm)
	JNZ(LabelRef("warm"))

	Label("main")
	TESTQ(edges, edges)
	JZ(LabelRef("done"))

	Label("edge")
	TESTQ(left2, left2)
	JZ(LabelRef("sum"))
	row2 := GP64()
	step(words2, src2, row2, "fetch")
	DECQ(left2)
	at := GP64()
	MOVQ(src2, at)
	IMULQ(stride, at)
	for b := 0; b < cols*4; b += 64 {
		PREFETCHT0(Mem{Base: z, Index: at, Scale: 1, Disp: b})
	}
	IMULQ(stride, row2)
	for b := 0; b < cols*4; b += 64 {
		PREFETCHT0(Mem{Base: acc, Index: row2, Scale: 1, Disp: b})
	}

	Label("sum")
	row := GP64()
	step(words, src, row, "sum")
	from := GP64()
	MOVQ(src, from)
	IMULQ(stride, from)
	IMULQ(stride, row)
	for c := 0; c < cols; c += v.lanes {
		x := v.reg()
		VMOVUPS(Mem{Base: acc, Index: row, Scale: 1, Disp: c * 4}, x)
		VADDPS(Mem{Base: z, Index: from, Scale: 1, Disp: c * 4}, x, x)
		VMOVUPS(x, Mem{Base: acc, Index: row, Scale: 1, Disp: c * 4})
	}
	DECQ(edges)
	JNZ(LabelRef("edge"))
	Label("done")
	VZEROUPPER()
	RET()
}

// sumCSR: next[i] = z[i] + Σ z[src], by rows of a CSR matrix; for measurement.
func sumCSR(v isa, cols int) {
	name := fmt.Sprintf("sumCSR%d%s", cols, v.name)
	TEXT(name, NOSPLIT, "func(next, z *float32, stride uintptr, offsets *uint32, src *uint32, first, n uint64)")
	Doc(name + " sums rows first to first+n of a CSR matrix, " + fmt.Sprint(cols) + " columns wide; offsets counts from the row first, src may be read 64 bytes past its end.")
	next := Load(Param("next"), GP64())
	z := Load(Param("z"), GP64())
	stride := Load(Param("stride"), GP64())
	offsets := Load(Param("offsets"), GP64())
	src := Load(Param("src"), GP64())
	row := Load(Param("first"), GP64())
	n := Load(Param("n"), GP64())
	at, end := GP64(), GP64()
	MOVL(Mem{Base: offsets}, at.As32())
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	MOVL(Mem{Base: offsets, Disp: 4}, end.As32())
	ADDQ(Imm(4), offsets)
	self := GP64()
	MOVQ(row, self)
	IMULQ(stride, self)
	var acc []VecVirtual
	for c := 0; c < cols; c += v.lanes {
		x := v.reg()
		VMOVUPS(Mem{Base: z, Index: self, Scale: 1, Disp: c * 4}, x)
		acc = append(acc, x)
	}
	Label("edge")
	CMPQ(at, end)
	JEQ(LabelRef("store"))
	from := fetchAhead(z, stride, src, at, cols)
	for i, x := range acc {
		VADDPS(Mem{Base: z, Index: from, Scale: 1, Disp: i * v.lanes * 4}, x, x)
	}
	INCQ(at)
	JMP(LabelRef("edge"))
	Label("store")
	for i, x := range acc {
		VMOVUPS(x, Mem{Base: next, Index: self, Scale: 1, Disp: i * v.lanes * 4})
	}
	INCQ(row)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// fetchAhead prefetches the row of a later index and returns the offset of the
// row of index at.
func fetchAhead(z, stride, src, at Register, cols int) Register {
	later := GP64()
	MOVL(Mem{Base: src.(GPVirtual), Index: at.(GPVirtual), Scale: 4, Disp: 4 * ahead}, later.As32())
	IMULQ(stride.(GPVirtual), later)
	for b := 0; b < cols*4; b += 64 {
		PREFETCHT0(Mem{Base: z.(GPVirtual), Index: later, Scale: 1, Disp: b})
	}
	from := GP64()
	MOVL(Mem{Base: src.(GPVirtual), Index: at.(GPVirtual), Scale: 4}, from.As32())
	IMULQ(stride.(GPVirtual), from)
	return from
}

// gather: the sum of the rows z[ids], nothing stored; for measurement.
func gather(v isa, cols int) {
	name := fmt.Sprintf("gather%d%s", cols, v.name)
	TEXT(name, NOSPLIT, "func(out, z *float32, stride uintptr, ids *uint32, n uint64)")
	Doc(name + " writes the sum of n rows to out, " + fmt.Sprint(cols) + " columns wide; ids may be read 64 bytes past its end.")
	out := Load(Param("out"), GP64())
	z := Load(Param("z"), GP64())
	stride := Load(Param("stride"), GP64())
	ids := Load(Param("ids"), GP64())
	n := Load(Param("n"), GP64())
	var acc []VecVirtual
	for c := 0; c < cols; c += v.lanes {
		x := v.reg()
		VXORPS(x, x, x)
		acc = append(acc, x)
	}
	at := GP64()
	XORQ(at, at)
	Label("row")
	CMPQ(at, n)
	JEQ(LabelRef("done"))
	from := fetchAhead(z, stride, ids, at, cols)
	for i, x := range acc {
		VADDPS(Mem{Base: z, Index: from, Scale: 1, Disp: i * v.lanes * 4}, x, x)
	}
	INCQ(at)
	JMP(LabelRef("row"))
	Label("done")
	for i, x := range acc {
		VMOVUPS(x, Mem{Base: out, Disp: i * v.lanes * 4})
	}
	VZEROUPPER()
	RET()
}

// step decodes the word at words, moves words past it and src to its source;
// row, unless nil, receives the destination row.
func step(words, src, row Register, label string) {
	w := GP64()
	MOVL(Mem{Base: words.(GPVirtual)}, w.As32())
	ADDQ(Imm(4), words)
	if row != nil {
		MOVL(w.As32(), row.(GPVirtual).As32())
		ANDL(U32(rowMask), row.(GPVirtual).As32())
	}
	SHRL(Imm(blockShift), w.As32())
	CMPL(w.As32(), U32(escape))
	JEQ(LabelRef(label + "_escape"))
	ADDL(w.As32(), src.(GPVirtual).As32())
	JMP(LabelRef(label + "_decoded"))
	Label(label + "_escape")
	MOVL(Mem{Base: words.(GPVirtual)}, src.(GPVirtual).As32())
	ADDQ(Imm(4), words)
	Label(label + "_decoded")
}

// degree1 loads degree+1 as float32 into x.
func degree1(degree Register, x VecVirtual) {
	d := GP64()
	MOVL(Mem{Base: degree.(GPVirtual)}, d.As32())
	INCQ(d)
	VXORPS(x, x, x)
	VCVTSI2SSQ(d, x, x)
}

// divideRows: rows[i] /= degree[i] + 1.
func divideRows(v isa) {
	name := "divideRows" + v.name
	TEXT(name, NOSPLIT, "func(rows *float32, degree *uint32, n, bytes uintptr)")
	Doc(name + " divides each of n rows of bytes bytes (a multiple of 64, without gaps) by its degree plus one.")
	rows := Load(Param("rows"), GP64())
	degree := Load(Param("degree"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	x := XMM()
	degree1(degree, x)
	d := v.reg()
	VBROADCASTSS(x, d)
	at := GP64()
	XORQ(at, at)
	Label("column")
	for c := 0; c < 16; c += v.lanes {
		y := v.reg()
		VMOVUPS(Mem{Base: rows, Index: at, Scale: 1, Disp: c * 4}, y)
		VDIVPS(d, y, y)
		VMOVUPS(y, Mem{Base: rows, Index: at, Scale: 1, Disp: c * 4})
	}
	ADDQ(Imm(64), at)
	CMPQ(at, bytes)
	JLT(LabelRef("column"))
	ADDQ(bytes, rows)
	ADDQ(Imm(4), degree)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// addRows: sum[i] += weight * rows[i] where hop < hops[i].
func addRows(v isa) {
	name := "addRows" + v.name
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
	wx := XMM()
	Load(Param("weight"), wx)
	w := v.reg()
	VBROADCASTSS(wx, w)
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	h := GP64()
	MOVWLZX(Mem{Base: hops}, h.As32())
	CMPL(hop.As32(), h.As32())
	JCC(LabelRef("next"))
	at := GP64()
	XORQ(at, at)
	Label("column")
	for c := 0; c < 16; c += v.lanes {
		y := v.reg()
		VMULPS(Mem{Base: rows, Index: at, Scale: 1, Disp: c * 4}, w, y)
		VADDPS(Mem{Base: sum, Index: at, Scale: 1, Disp: c * 4}, y, y)
		VMOVUPS(y, Mem{Base: sum, Index: at, Scale: 1, Disp: c * 4})
	}
	ADDQ(Imm(64), at)
	CMPQ(at, bytes)
	JLT(LabelRef("column"))
	Label("next")
	ADDQ(bytes, rows)
	ADDQ(bytes, sum)
	ADDQ(Imm(2), hops)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// squareNorms: out[i] += |rows[i]|^2 in float64, granule by granule.
func squareNorms(v isa) {
	name := "squareNorms" + v.name
	TEXT(name, NOSPLIT, "func(out *float64, rows *float32, n, bytes uintptr)")
	Doc(name + " adds the squared length of each of n rows of bytes bytes (a multiple of 64, without gaps) to out, 16 columns at a time, in float64.")
	out := Load(Param("out"), GP64())
	rows := Load(Param("rows"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	total := XMM()
	VMOVSD(Mem{Base: out}, total)
	at := GP64()
	XORQ(at, at)
	Label("column")
	four := YMM() // lanes 0..3 plus lanes 4..7
	if v.lanes == 16 {
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
	ADDQ(Imm(64), at)
	CMPQ(at, bytes)
	JLT(LabelRef("column"))
	VMOVSD(total, Mem{Base: out})
	ADDQ(Imm(8), out)
	ADDQ(bytes, rows)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// weightedSums: for the first 16 columns, sums[c] += d*x and sums[16+c] += d*|x|.
func weightedSums(v isa) {
	name := "weightedSums" + v.name
	TEXT(name, NOSPLIT, "func(sums *[32]float64, rows *float32, degree *uint32, n, bytes uintptr)")
	Doc(name + " adds, for the first 16 columns of n rows of bytes bytes, (degree+1)·x to sums[0:16] and (degree+1)·|x| to sums[16:32], in float64.")
	sums := Load(Param("sums"), GP64())
	rows := Load(Param("rows"), GP64())
	degree := Load(Param("degree"), GP64())
	n := Load(Param("n"), GP64())
	bytes := Load(Param("bytes"), GP64())
	lanes := v.lanes / 2
	regs := 16 / lanes // of signed sums
	// AVX2 has 16 registers: 4 signed, 4 absolute, and a few to work with.
	signed, absolute := make([]VecVirtual, regs), make([]VecVirtual, regs)
	for i := range signed {
		signed[i], absolute[i] = v.reg(), v.reg()
		VMOVUPD(Mem{Base: sums, Disp: i * lanes * 8}, signed[i])
		VMOVUPD(Mem{Base: sums, Disp: 128 + i*lanes*8}, absolute[i])
	}
	// All bits but the sign.
	abs, ones := v.reg(), GP64()
	MOVQ(U64(0x7fffffffffffffff), ones)
	ax := XMM()
	VMOVQ(ones, ax)
	VPBROADCASTQ(ax, abs)
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	d := GP64()
	MOVL(Mem{Base: degree}, d.As32())
	INCQ(d)
	x := XMM()
	VXORPD(x, x, x)
	VCVTSI2SDQ(d, x, x)
	w := v.reg()
	VBROADCASTSD(x, w)
	for i := range signed {
		y := v.reg()
		VCVTPS2PD(Mem{Base: rows, Disp: i * lanes * 4}, y)
		VMULPD(w, y, y)
		VADDPD(y, signed[i], signed[i])
		and64(v, abs, y)
		VADDPD(y, absolute[i], absolute[i])
	}
	ADDQ(bytes, rows)
	ADDQ(Imm(4), degree)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	for i := range signed {
		VMOVUPD(signed[i], Mem{Base: sums, Disp: i * lanes * 8})
		VMOVUPD(absolute[i], Mem{Base: sums, Disp: 128 + i*lanes*8})
	}
	VZEROUPPER()
	RET()
}

// and64 clears in y the bits that are not in mask.
func and64(v isa, mask, y VecVirtual) {
	if v.lanes == 16 {
		VPANDQ(mask, y, y)
	} else {
		VPAND(mask, y, y)
	}
}
