// Command gen writes the assembly of package dense.
//
//go:generate go run . -out ../kernels_amd64.s -stubs ../stubs_amd64.go -pkg dense
package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set, with the tile of sums that its registers hold.
type isa struct {
	name   string
	lanes  int
	rows   int // of a tile, whose columns are two vectors
	vector func() VecVirtual
}

func main() {
	ConstraintExpr("amd64,!noasm")
	zmm := func() VecVirtual { return ZMM() }
	ymm := func() VecVirtual { return YMM() }
	for _, v := range []isa{{"AVX512", 16, 12, zmm}, {"AVX2", 8, 6, ymm}} {
		for _, vectors := range []int{2, 1} {
			for _, l := range []layout{packed, rows, columns} {
				tile(v, vectors, l, false)
			}
			tile(v, vectors, columns, true)
		}
		exps(v)
		scale(v)
		largest(v)
		rectify(v)
		sum(v)
		drop(v)
		adam(v)
	}
	Generate()
}

// layout is how the left-hand side of a product lies in memory.
type layout int

const (
	// packed: k columns, of as many values as a tile has rows.
	packed layout = iota
	// rows: rows of k values, gap bytes apart.
	rows
	// columns: k columns, gap bytes apart.
	columns
)

// tile: c += a·b, or c = a·b where it is fresh, for rows × vectors·lanes sums, those on the left of a tile.
func tile(v isa, vectors int, l layout, fresh bool) {
	name := map[layout]string{packed: "tile", rows: "tileRows", columns: "tileColumns"}[l]
	does := "adds a·b to c"
	if fresh {
		name, does = "fresh"+strings.TrimPrefix(name, "tile"), "sets c to a·b"
	}
	if vectors == 1 {
		name += "Half"
	}
	name += v.name
	what := map[layout]string{
		packed:  fmt.Sprintf("a has k columns of %d values", v.rows),
		rows:    "a has rows of k values, gap bytes apart",
		columns: fmt.Sprintf("a has k columns of %d values, gap bytes apart", v.rows),
	}[l]
	if l == packed {
		TEXT(name, NOSPLIT, "func(k uintptr, a, b, c *float32, stride uintptr)")
	} else {
		TEXT(name, NOSPLIT, "func(k uintptr, a *float32, gap uintptr, b, c *float32, stride uintptr)")
	}
	Doc(fmt.Sprintf("%s %s, %d rows of %d columns: %s, b has k rows of %d values; stride of c is in bytes.", name, does, v.rows, vectors*v.lanes, what, 2*v.lanes))
	k := Load(Param("k"), GP64())
	left := leftOf(v, l)
	b := pointer("b")
	c := pointer("c")
	stride := Load(Param("stride"), GP64())
	sums := make([][]VecVirtual, v.rows)
	at := GP64()
	MOVQ(c.Base, at)
	for i := range sums {
		for j := range vectors {
			sum := v.vector()
			if fresh {
				VXORPS(sum, sum, sum)
			} else {
				VMOVUPS(Mem{Base: at, Disp: 4 * v.lanes * j}, sum)
			}
			sums[i] = append(sums[i], sum)
		}
		ADDQ(stride, at)
	}
	var right []VecVirtual
	for range vectors {
		right = append(right, v.vector())
	}
	TESTQ(k, k)
	JZ(LabelRef("store"))
	Label("inner")
	for j, r := range right {
		VMOVUPS(b.Offset(4*v.lanes*j), r)
	}
	for i := range sums {
		if v.lanes == 16 && l != rows {
			for j, r := range right {
				VFMADD231PS_BCST(left.of(i), r, sums[i][j])
			}
			continue
		}
		// One load for all sums: processors split a sum whose operand in memory has an index.
		x := v.vector()
		VBROADCASTSS(left.of(i), x)
		for j, r := range right {
			VFMADD231PS(x, r, sums[i][j])
		}
	}
	left.next()
	ADDQ(Imm(uint64(8*v.lanes)), b.Base)
	DECQ(k)
	JNZ(LabelRef("inner"))
	Label("store")
	for i := range sums {
		for j := range sums[i] {
			VMOVUPS(sums[i][j], Mem{Base: c.Base, Disp: 4 * v.lanes * j})
		}
		ADDQ(stride, c.Base)
	}
	VZEROUPPER()
	RET()
}

// left gives the values of a column of a.
type left struct {
	of   func(row int) Mem
	next func()
}

// leftOf walks through the columns of parameter a.
func leftOf(v isa, l layout) left {
	a := pointer("a")
	of := func(row int) Mem { return a.Offset(4 * row) }
	if l == packed {
		return left{of, func() { ADDQ(Imm(uint64(4*v.rows)), a.Base) }}
	}
	gap := Load(Param("gap"), GP64())
	if l == columns {
		return left{of, func() { ADDQ(gap, a.Base) }}
	}
	// Rows 3i, 3i+1 and 3i+2 are reached from one pointer.
	bases := []Register{a.Base}
	for len(bases) < v.rows/3 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: gap, Scale: 2}, next)
		ADDQ(gap, next)
		bases = append(bases, next)
	}
	return left{
		of: func(row int) Mem {
			m := Mem{Base: bases[row/3]}
			if row%3 > 0 {
				m.Index, m.Scale = gap, uint8(row%3)
			}
			return m
		},
		next: func() {
			for _, b := range bases {
				ADDQ(Imm(4), b)
			}
		},
	}
}

// pointer loads a parameter that is a pointer.
func pointer(name string) Mem { return Mem{Base: Load(Param(name), GP64())} }

// begin begins a loop over n values, which may be 0, and repeat ends one that has worked on
// so many of them.
func begin(n Register) {
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("next")
}

func repeat(n Register, values uint64) {
	SUBQ(Imm(values), n)
	JNZ(LabelRef("next"))
	Label("done")
}

// exps: p[i] = e^(z[i] - largest), and their sum, for multiples of 8. The sum adds every eighth
// value, and then these eight sums: i and i+4, then i and i+2, then both.
//
// With n the nearest whole number to x/ln 2 and r = x - n ln 2, e^x is 2^n times the series of e^r.
// Adding 2^52 + 2^51 + 1023 to n puts the exponent of 2^n in the lowest bits.
func exps(v isa) {
	name := "exps" + v.name
	TEXT(name, NOSPLIT, "func(p *float64, z *float32, n uintptr, largest float64) float64")
	Doc(fmt.Sprintf("%s sets p[i] to e^(z[i]-largest), for n values, a multiple of 8, and returns their sum.", name))
	p := pointer("p")
	z := pointer("z")
	n := Load(Param("n"), GP64())
	shift := v.vector()
	low := XMM()
	Load(Param("largest"), low)
	VBROADCASTSD(low, shift)
	constant := constants("exps" + v.name + "Constants")
	spread := func(x float64) VecVirtual {
		to := v.vector()
		VBROADCASTSD(constant(x), to)
		return to
	}
	perLog, half := spread(math.Log2E), spread(0.5)
	high, lowLog := spread(6.93147180369123816490e-01), spread(1.90821492927058770002e-10)
	magic := spread(1<<52 + 1<<51 + 1023)
	var sum []VecVirtual
	for range 16 / v.lanes {
		sum = append(sum, v.vector())
	}
	for _, s := range sum {
		VXORPD(s, s, s)
	}
	begin(n)
	for i, s := range sum {
		x, m, r, y := v.vector(), v.vector(), v.vector(), v.vector()
		VCVTPS2PD(z.Offset(2*v.lanes*i), x)
		VSUBPD(shift, x, x)
		VMOVAPD(x, m)
		VFMADD213PD(half, perLog, m)
		if v.lanes == 16 {
			VRNDSCALEPD(Imm(9), m, m)
		} else {
			VROUNDPD(Imm(9), m, m)
		}
		VMOVAPD(x, r)
		VFNMADD231PD(high, m, r)
		VFNMADD231PD(lowLog, m, r)
		c := series()
		VBROADCASTSD(constant(c[len(c)-1]), y)
		for i := len(c) - 2; i >= 0; i-- {
			if v.lanes == 16 {
				VFMADD213PD_BCST(constant(c[i]), r, y)
				continue
			}
			t := v.vector()
			VBROADCASTSD(constant(c[i]), t)
			VFMADD213PD(t, r, y)
		}
		VADDPD(magic, m, m)
		VPSLLQ(Imm(52), m, m)
		VMULPD(m, y, y)
		// What is below leastExp becomes 0.
		least := v.vector()
		VBROADCASTSD(constant(leastExp), least)
		if v.lanes == 16 {
			k := K()
			VCMPPD(Imm(5), least, x, k) // not less than
			VMOVAPD_Z(y, k, y)
		} else {
			VCMPPD(Imm(1), least, x, x) // less than
			VANDNPD(y, x, y)
		}
		VMOVUPD(y, p.Offset(4*v.lanes*i))
		VADDPD(y, s, s)
	}
	ADDQ(Imm(32), z.Base)
	ADDQ(Imm(64), p.Base)
	repeat(n, 8)
	total := fold(v, sum, func(a, b, to Op) { VADDPD(a, b, to) })
	upper := XMM()
	VPERMILPD(Imm(1), total, upper)
	VADDSD(upper, total, total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// constants returns a function that gives each value one place in a table of that name.
func constants(name string) func(float64) Mem {
	table := GLOBL(name, RODATA|NOPTR)
	places := map[float64]int{}
	return func(x float64) Mem {
		place, ok := places[x]
		if !ok {
			place = 8 * len(places)
			places[x] = place
			DATA(place, F64(x))
		}
		return table.Offset(place)
	}
}

// fold makes four lanes of sixteen, or two of eight that are twice as wide: those of each
// half together, twice.
func fold(v isa, all []VecVirtual, op func(a, b, to Op)) VecVirtual {
	half := YMM()
	if v.lanes == 16 {
		VEXTRACTF64X4(Imm(1), all[0], half)
		op(half, all[0].AsY(), half)
	} else {
		op(all[1], all[0], half)
	}
	quarter := XMM()
	VEXTRACTF128(Imm(1), half, quarter)
	op(quarter, half.AsX(), quarter)
	return quarter
}

// scale: to[i] = p[i]·share, rounded to float32, for multiples of 8.
func scale(v isa) {
	name := "scale" + v.name
	TEXT(name, NOSPLIT, "func(to *float32, p *float64, n uintptr, share float64)")
	Doc(fmt.Sprintf("%s sets to[i] to p[i]·share, for n values, a multiple of 8.", name))
	to := pointer("to")
	p := pointer("p")
	n := Load(Param("n"), GP64())
	share := v.vector()
	low := XMM()
	Load(Param("share"), low)
	VBROADCASTSD(low, share)
	begin(n)
	for i := range 16 / v.lanes {
		x := v.vector()
		VMULPD(p.Offset(4*v.lanes*i), share, x)
		if v.lanes == 16 {
			half := YMM()
			VCVTPD2PS(x, half)
			VMOVUPS(half, to)
		} else {
			half := XMM()
			VCVTPD2PSY(x, half)
			VMOVUPS(half, to.Offset(16*i))
		}
	}
	ADDQ(Imm(32), to.Base)
	ADDQ(Imm(64), p.Base)
	repeat(n, 8)
	VZEROUPPER()
	RET()
}

// largest: the largest of z, for multiples of 16.
func largest(v isa) {
	name := "largest" + v.name
	TEXT(name, NOSPLIT, "func(z *float32, n uintptr) float32")
	Doc(fmt.Sprintf("%s returns the largest of n values, a positive multiple of 16.", name))
	z := pointer("z")
	n := Load(Param("n"), GP64())
	var most []VecVirtual
	for i := range 16 / v.lanes {
		m := v.vector()
		VMOVUPS(z.Offset(4*v.lanes*i), m)
		most = append(most, m)
	}
	JMP(LabelRef("step"))
	Label("next")
	for i, m := range most {
		VMAXPS(z.Offset(4*v.lanes*i), m, m)
	}
	Label("step")
	ADDQ(Imm(64), z.Base)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("next"))
	one := fold(v, most, func(a, b, to Op) { VMAXPS(a, b, to) })
	other := XMM()
	for _, order := range []uint8{0x4e, 0xb1} { // halves, then neighbours
		VPERMILPS(Imm(uint64(order)), one, other)
		VMAXPS(other, one, one)
	}
	Store(one, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// rectify: x[i] = max(0, x[i]), for multiples of 16.
func rectify(v isa) {
	name := "rectify" + v.name
	TEXT(name, NOSPLIT, "func(x *float32, n uintptr)")
	Doc(fmt.Sprintf("%s sets what is below 0 to 0, of n values, a multiple of 16.", name))
	x := pointer("x")
	n := Load(Param("n"), GP64())
	zero := v.vector()
	VXORPS(zero, zero, zero)
	begin(n)
	for i := range 16 / v.lanes {
		y := v.vector()
		// Of two values, one of which is no number, the first operand is the result.
		VMAXPS(x.Offset(4*v.lanes*i), zero, y)
		VMOVUPS(y, x.Offset(4*v.lanes*i))
	}
	ADDQ(Imm(64), x.Base)
	repeat(n, 16)
	VZEROUPPER()
	RET()
}

// sum: to[i] += x[i], for multiples of 16.
func sum(v isa) {
	name := "sum" + v.name
	TEXT(name, NOSPLIT, "func(to, x *float32, n uintptr)")
	Doc(fmt.Sprintf("%s adds x[i] onto to[i], for n values, a multiple of 16.", name))
	to := pointer("to")
	x := pointer("x")
	n := Load(Param("n"), GP64())
	begin(n)
	for i := range 16 / v.lanes {
		y := v.vector()
		VMOVUPS(to.Offset(4*v.lanes*i), y)
		VADDPS(x.Offset(4*v.lanes*i), y, y)
		VMOVUPS(y, to.Offset(4*v.lanes*i))
	}
	ADDQ(Imm(64), x.Base)
	ADDQ(Imm(64), to.Base)
	repeat(n, 16)
	VZEROUPPER()
	RET()
}

// drop: to[i] = x[i]·scale, or 0 where the draw for i is below a bound, for multiples of 32. The
// draws come from package rng: numbers of SplitMix64 after a state, each with four draws of 16
// bits.
func drop(v isa) {
	name := "drop" + v.name
	TEXT(name, NOSPLIT, "func(to, x *float32, n uintptr, state, below uint64, scale float32)")
	Doc(fmt.Sprintf("%s sets to[i] to x[i]·scale, or to 0 where draw i after a state is below a bound, for n values, a multiple of 32.", name))
	to := pointer("to")
	x := pointer("x")
	n := Load(Param("n"), GP64())
	numbers := uint64(v.lanes / 2) // of 64 bits in a vector
	table := GLOBL(name+"Constants", RODATA|NOPTR)
	for i := range numbers {
		DATA(int(8*i), U64((i+1)*golden))
	}
	at := int(8 * numbers)
	spread := func(x uint64) VecVirtual {
		DATA(at, U64(x))
		to := v.vector()
		VPBROADCASTQ(table.Offset(at), to)
		at += 8
		return to
	}
	xor := func(a, b, to Op) {
		if v.lanes == 16 {
			VPXORQ(a, b, to)
			return
		}
		VPXOR(a, b, to)
	}
	low := XMM()
	state := v.vector()
	MOVQ(Load(Param("state"), GP64()), low)
	VPBROADCASTQ(low, state)
	VPADDQ(table.Offset(0), state, state)
	below := v.vector()
	MOVQ(Load(Param("below"), GP64()), low)
	VPBROADCASTD(low, below)
	scale := v.vector()
	Load(Param("scale"), low)
	VBROADCASTSS(low, scale)
	step := spread(golden * numbers)
	type factor struct{ whole, high VecVirtual }
	var factors []factor
	for _, x := range []uint64{0xbf58476d1ce4e5b9, 0x94d049bb133111eb} {
		f := factor{whole: spread(x)}
		if v.lanes < 16 {
			f.high = spread(x >> 32)
		}
		factors = append(factors, f)
	}
	begin(n)
	z, t := v.vector(), v.vector()
	VMOVAPS(state, z)
	for i, shift := range []uint64{30, 27, 31} {
		VPSRLQ(Imm(shift), z, t)
		xor(t, z, z)
		if i == len(factors) {
			break
		}
		f := factors[i]
		if v.lanes == 16 {
			VPMULLQ(f.whole, z, z)
			continue
		}
		// The lower 64 bits of a product, of products of 32 bits.
		u := v.vector()
		VPSRLQ(Imm(32), z, t)
		VPMULUDQ(f.whole, t, t)
		VPMULUDQ(f.high, z, u)
		VPADDQ(u, t, t)
		VPSLLQ(Imm(32), t, t)
		VPMULUDQ(f.whole, z, z)
		VPADDQ(t, z, z)
	}
	for half := range 2 {
		draw, y := v.vector(), v.vector()
		switch {
		case v.lanes == 16 && half == 0:
			VPMOVZXWD(z.AsY(), draw)
		case v.lanes == 16:
			upper := YMM()
			VEXTRACTI64X4(Imm(1), z, upper)
			VPMOVZXWD(upper, draw)
		case half == 0:
			VPMOVZXWD(z.AsX(), draw)
		default:
			upper := XMM()
			VEXTRACTI128(Imm(1), z, upper)
			VPMOVZXWD(upper, draw)
		}
		VMULPS(x.Offset(4*v.lanes*half), scale, y)
		if v.lanes == 16 {
			k := K()
			VPCMPUD(Imm(5), below, draw, k) // not less than
			VMOVAPS_Z(y, k, y)
		} else {
			VPCMPGTD(draw, below, draw) // the bound is greater
			VANDNPS(y, draw, y)
		}
		VMOVUPS(y, to.Offset(4*v.lanes*half))
	}
	VPADDQ(step, state, state)
	ADDQ(Imm(uint64(8*v.lanes)), x.Base)
	ADDQ(Imm(uint64(8*v.lanes)), to.Base)
	repeat(n, uint64(2*v.lanes))
	VZEROUPPER()
	RET()
}

// golden is the step of SplitMix64.
const golden uint64 = 0x9e3779b97f4a7c15

// adam: a step of Adam for multiples of 16 parameters. c has the constants in the order of the names
// below. most has the largest magnitudes before and after, as bits.
func adam(v isa) {
	name := "adam" + v.name
	TEXT(name, NOSPLIT, "func(params, grad, mean, square *float32, n uintptr, c *float32, most *uint32)")
	Doc(fmt.Sprintf("%s moves n parameters, a multiple of 16, against their gradients, with the means and squares of these and the constants c. most has 16 largest magnitudes, as bits.", name))
	w, g, m, s := pointer("params"), pointer("grad"), pointer("mean"), pointer("square")
	n := Load(Param("n"), GP64())
	c := pointer("c")
	out := pointer("most")
	place := 0
	constant := func() VecVirtual {
		to := v.vector()
		VBROADCASTSS(c.Offset(4*place), to)
		place++
		return to
	}
	decay, beta1, rest1, beta2, rest2, size, root, small, magnitude := constant(), constant(), constant(), constant(), constant(),
		constant(), constant(), constant(), constant()
	var most []VecVirtual
	for i := range 16 / v.lanes {
		x := v.vector()
		VMOVUPS(out.Offset(4*v.lanes*i), x)
		most = append(most, x)
	}
	begin(n)
	for i, largest := range most {
		here := 4 * v.lanes * i
		x, grad, mean, t := v.vector(), v.vector(), v.vector(), v.vector()
		VMOVUPS(w.Offset(here), x)
		VMULPS(x, decay, grad)
		VADDPS(g.Offset(here), grad, grad)
		VMULPS(m.Offset(here), beta1, mean)
		VMULPS(grad, rest1, t)
		VADDPS(t, mean, mean)
		VMOVUPS(mean, m.Offset(here))
		VMULPS(grad, rest2, t)
		VMULPS(grad, t, t)
		VMULPS(s.Offset(here), beta2, grad)
		VADDPS(t, grad, grad)
		VMOVUPS(grad, s.Offset(here))
		VSQRTPS(grad, grad)
		VDIVPS(root, grad, grad)
		VADDPS(small, grad, grad)
		VMULPS(size, mean, mean)
		VDIVPS(grad, mean, mean)
		VSUBPS(mean, x, x)
		VMOVUPS(x, w.Offset(here))
		VANDPS(magnitude, x, x)
		VPMAXSD(x, largest, largest)
	}
	for _, p := range []Mem{w, g, m, s} {
		ADDQ(Imm(64), p.Base)
	}
	repeat(n, 16)
	for i, x := range most {
		VMOVUPS(x, out.Offset(4*v.lanes*i))
	}
	VZEROUPPER()
	RET()
}

// leastExp is the bound below which 2^n is no normal number.
const leastExp = -708

// series lists the coefficients of e^r.
func series() []float64 {
	c := []float64{1}
	for i := 1; i < 14; i++ {
		c = append(c, c[i-1]/float64(i))
	}
	return c
}
