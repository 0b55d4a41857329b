// Command loops writes the loops that package bench/pass compares a pass with.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"ndls/spmv/gen/vector"
)

// ahead is the number of rows that the loops prefetch ahead.
const ahead = 64

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, v := range vector.ISAs {
		for _, z := range vector.Precisions {
			for _, cols := range vector.Columns {
				sumCSR(v, z, cols)
				gather(v, z, cols)
			}
		}
	}
	Generate()
}

// sumCSR: next[i] = z[first+i] + Σ z[src], by rows of a CSR matrix.
func sumCSR(v vector.ISA, p vector.Precision, cols int) {
	name := fmt.Sprintf("sumCSR%s%d%s", p.Name, cols, v.Name)
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
	for c := 0; c < cols; c += v.Lanes {
		x := v.Reg()
		p.Load(Mem{Base: z, Index: self, Scale: 1, Disp: c * p.Bytes}, x)
		acc = append(acc, x)
	}
	Label("edge")
	CMPQ(at, end)
	JEQ(LabelRef("store"))
	from := fetchAhead(z, stride, src, at, cols*p.Bytes)
	for i, x := range acc {
		p.Add(v, Mem{Base: z, Index: from, Scale: 1, Disp: i * v.Lanes * p.Bytes}, x)
	}
	INCQ(at)
	JMP(LabelRef("edge"))
	Label("store")
	for i, x := range acc {
		VMOVUPS(x, Mem{Base: next, Disp: i * v.Lanes * 4})
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
func gather(v vector.ISA, p vector.Precision, cols int) {
	name := fmt.Sprintf("gather%s%d%s", p.Name, cols, v.Name)
	TEXT(name, NOSPLIT, "func(out *float32, z *byte, zStride uintptr, ids *uint32, n uint64)")
	Doc(name + " writes the sum of n rows to out, " + fmt.Sprint(cols) + " columns wide; ids may be read 256 bytes past its end.")
	out := Load(Param("out"), GP64())
	z := Load(Param("z"), GP64())
	stride := Load(Param("zStride"), GP64())
	ids := Load(Param("ids"), GP64())
	n := Load(Param("n"), GP64())
	var acc []VecVirtual
	for c := 0; c < cols; c += v.Lanes {
		x := v.Reg()
		VXORPS(x, x, x)
		acc = append(acc, x)
	}
	at := GP64()
	XORQ(at, at)
	Label("row")
	CMPQ(at, n)
	JEQ(LabelRef("done"))
	from := fetchAhead(z, stride, ids, at, cols*p.Bytes)
	for i, x := range acc {
		p.Add(v, Mem{Base: z, Index: from, Scale: 1, Disp: i * v.Lanes * p.Bytes}, x)
	}
	INCQ(at)
	JMP(LabelRef("row"))
	Label("done")
	for i, x := range acc {
		VMOVUPS(x, Mem{Base: out, Disp: i * v.Lanes * 4})
	}
	VZEROUPPER()
	RET()
}
