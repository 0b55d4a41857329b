// Command gen writes the loops that package bench/pass compares a pass with.
//
//go:generate go run . -out ../loops_amd64.s -stubs ../stubs_amd64.go -pkg pass
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ahead is how many rows the loops prefetch ahead.
const ahead = 64

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
		for _, z := range []precision{{"", 4}, {"Half", 2}} {
			for _, cols := range []int{16, 32, 64} {
				sumCSR(v, z, cols)
				gather(v, z, cols)
			}
		}
	}
	Generate()
}

// precision is the type of the rows that are summed.
type precision struct {
	name  string
	bytes int
}

// load loads lanes values at m as float32.
func (z precision) load(m Mem, x VecVirtual) {
	if z.bytes == 2 {
		VCVTPH2PS(m, x)
	} else {
		VMOVUPS(m, x)
	}
}

// add adds the lanes values at m to x.
func (z precision) add(v isa, m Mem, x VecVirtual) {
	if z.bytes == 2 {
		y := v.reg()
		VCVTPH2PS(m, y)
		VADDPS(y, x, x)
	} else {
		VADDPS(m, x, x)
	}
}

// sumCSR: next[i] = z[first+i] + Σ z[src], by rows of a CSR matrix.
func sumCSR(v isa, p precision, cols int) {
	name := fmt.Sprintf("sumCSR%s%d%s", p.name, cols, v.name)
	TEXT(name, NOSPLIT, "func(next *float32, nextStride uintptr, z *byte, zStride uintptr, offsets, src *uint32, first, n uint64)")
	Doc(name + " sums rows first to first+n of a CSR matrix, " + fmt.Sprint(cols) + " columns wide; next and offsets count from the row first, src may be read 256 bytes past its end.")
	next := Load(Param("next"), GP64())
	nextStride := Load(Param("nextStride"), GP64())
	z := Load(Param("z"), GP64())
	stride := Load(Param("zStride"), GP64())
	offsets := Load(Param("offsets"), GP64())
	src := Load(Param("src"), GP64())
	self := Load(Param("first"), GP64())
	IMULQ(stride, self)
	n := Load(Param("n"), GP64())
	at, end := GP64(), GP64()
	MOVL(Mem{Base: offsets}, at.As32())
	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	MOVL(Mem{Base: offsets, Disp: 4}, end.As32())
	ADDQ(Imm(4), offsets)
	var acc []VecVirtual
	for c := 0; c < cols; c += v.lanes {
		x := v.reg()
		p.load(Mem{Base: z, Index: self, Scale: 1, Disp: c * p.bytes}, x)
		acc = append(acc, x)
	}
	Label("edge")
	CMPQ(at, end)
	JEQ(LabelRef("store"))
	from := fetchAhead(z, stride, src, at, cols*p.bytes)
	for i, x := range acc {
		p.add(v, Mem{Base: z, Index: from, Scale: 1, Disp: i * v.lanes * p.bytes}, x)
	}
	INCQ(at)
	JMP(LabelRef("edge"))
	Label("store")
	for i, x := range acc {
		VMOVUPS(x, Mem{Base: next, Disp: i * v.lanes * 4})
	}
	ADDQ(nextStride, next)
	ADDQ(stride, self)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// fetchAhead prefetches the row, of rowBytes bytes, of a later index and returns
// the offset of the row of index at.
func fetchAhead(z, stride, src, at Register, rowBytes int) Register {
	later := GP64()
	MOVL(Mem{Base: src, Index: at, Scale: 4, Disp: 4 * ahead}, later.As32())
	IMULQ(stride, later)
	for b := 0; b < rowBytes; b += 64 {
		PREFETCHT0(Mem{Base: z, Index: later, Scale: 1, Disp: b})
	}
	from := GP64()
	MOVL(Mem{Base: src, Index: at, Scale: 4}, from.As32())
	IMULQ(stride, from)
	return from
}

// gather: the sum of the rows z[ids], nothing stored.
func gather(v isa, p precision, cols int) {
	name := fmt.Sprintf("gather%s%d%s", p.name, cols, v.name)
	TEXT(name, NOSPLIT, "func(out *float32, z *byte, zStride uintptr, ids *uint32, n uint64)")
	Doc(name + " writes the sum of n rows to out, " + fmt.Sprint(cols) + " columns wide; ids may be read 256 bytes past its end.")
	out := Load(Param("out"), GP64())
	z := Load(Param("z"), GP64())
	stride := Load(Param("zStride"), GP64())
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
	from := fetchAhead(z, stride, ids, at, cols*p.bytes)
	for i, x := range acc {
		p.add(v, Mem{Base: z, Index: from, Scale: 1, Disp: i * v.lanes * p.bytes}, x)
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
