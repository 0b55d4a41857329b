package spmv

import (
	"math"
	"unsafe"

	"ndls/internal/half"
	"ndls/internal/invariants"
	"ndls/internal/kernels"
	"ndls/internal/packed"
)

// Precision is the type of the rows of a column block. Sums are float32 either
// way.
type Precision int

const (
	Float32 Precision = iota
	Float16
)

func (p Precision) String() string { return [...]string{"float32", "float16"}[p] }

// Decoded is a buffer for the edges that a kernel decodes before it adds their rows.
// Its contents mean nothing between calls. Each goroutine has its own.
type Decoded [2 * 32]uint64

// Kernel is one implementation of the inner loops. All kernels give the same
// bits.
type Kernel struct {
	name        string
	accumulate  [2][3][2]accumulateFunc                    // by precision; 16, 32, 64 columns; narrow, wide words
	widen       func(dst *float32, src *uint16, n uintptr) // n is a multiple of PanelColumns
	narrow      func(dst *uint16, src *float32, n uintptr)
	squareNorms func(out *float64, rows *float32, n, bytes uintptr)
	copyRows    func(to, from *float32, roles *byte, n, bytes uintptr)
	divideSome  func(rows *float32, divisors *float64, roles *byte, n, bytes uintptr, share float32)

	accumulateWeighted [2][3][2]accumulateWeightedFunc // for edges with weights

	divideRows   func(rows *float32, divisors *float64, n, bytes uintptr, share float32)
	startRows    func(rows, self *float32, divisors *float64, n, bytes uintptr, share float32)
	addRows      func(sum, rows *float32, hops *uint16, n, bytes uintptr, hop uint16, weight float32)
	addWeighed   func(sum, rows *float32, counts *uint16, weights *float32, n, bytes uintptr)
	weightedSums func(sums *[32]float64, rows *float32, weights *float64, n, bytes uintptr)
}

// Strides are in bytes; z is row base, the row of source id base.
type (
	accumulateFunc func(acc *float32, accStride uintptr, z *byte, zStride uintptr, words *byte, edges uint64, src,
		base uint32, buf *uint64)
	accumulateWeightedFunc func(acc *float32, accStride uintptr, z *byte, zStride uintptr, words *byte, edges uint64, src,
		base uint32, buf *uint64, weights *byte)
)

// Name is "go", "avx2" or "avx512".
func (k *Kernel) Name() string { return k.name }

// Select returns the kernel of that name, or the fastest this processor runs
// for "auto" and "". A kernel the processor or the build lacks is an error.
func Select(name string) (*Kernel, error) { return kernels.Select(available(), name) }

// goKernel is the reference that the assembly is tested against.
var goKernel = &Kernel{
	name: "go",
	accumulate: [2][3][2]accumulateFunc{
		{accumulateGo(16, addFloats), accumulateGo(32, addFloats), accumulateGo(64, addFloats)},
		{accumulateGo(16, addHalves), accumulateGo(32, addHalves), accumulateGo(64, addHalves)},
	},
	widen:       widenGo,
	narrow:      narrowGo,
	squareNorms: squareNormsGo,
	copyRows:    copyComputedGo,
	divideSome:  divideComputedGo,
	accumulateWeighted: [2][3][2]accumulateWeightedFunc{
		{accumulateWeightedGo(16, addFloatsTimes), accumulateWeightedGo(32, addFloatsTimes), accumulateWeightedGo(64, addFloatsTimes)},
		{accumulateWeightedGo(16, addHalvesTimes), accumulateWeightedGo(32, addHalvesTimes), accumulateWeightedGo(64, addHalvesTimes)},
	},
	divideRows:   divideRowsGo,
	startRows:    startRowsGo,
	addRows:      addRowsGo,
	addWeighed:   addWeighedGo,
	weightedSums: weightedSumsGo,
}

// addFloats adds cols values at from, a row of float32, to those at to.
func addFloats(to *float32, from unsafe.Pointer, cols int) {
	for g := 0; g < cols; g += packed.PanelColumns {
		// Arrays of known length spare the bounds checks.
		a := (*[packed.PanelColumns]float32)(unsafe.Add(unsafe.Pointer(to), g*4))
		b := (*[packed.PanelColumns]float32)(unsafe.Add(from, g*4))
		for c := 0; c < packed.PanelColumns; c += 4 {
			a[c] += b[c]
			a[c+1] += b[c+1]
			a[c+2] += b[c+2]
			a[c+3] += b[c+3]
		}
	}
}

// addHalves is addFloats for a row of float16.
func addHalves(to *float32, from unsafe.Pointer, cols int) {
	a, b := unsafe.Slice(to, cols), unsafe.Slice((*uint16)(from), cols)
	for c, h := range b {
		a[c] += half.Float(h)
	}
}

// addFloatsTimes adds cols values at from, a row of float32, times a weight to those at to.
// The conversion keeps the compiler from fusing product and sum.
func addFloatsTimes(to *float32, from unsafe.Pointer, cols int, weight float32) {
	a, b := unsafe.Slice(to, cols), unsafe.Slice((*float32)(from), cols)
	for c, x := range b {
		a[c] += float32(weight * x)
	}
}

// addHalvesTimes is addFloatsTimes for a row of float16.
func addHalvesTimes(to *float32, from unsafe.Pointer, cols int, weight float32) {
	a, b := unsafe.Slice(to, cols), unsafe.Slice((*uint16)(from), cols)
	for c, h := range b {
		a[c] += float32(weight * half.Float(h))
	}
}

type (
	addFunc      func(to *float32, from unsafe.Pointer, cols int)
	addTimesFunc func(to *float32, from unsafe.Pointer, cols int, weight float32)
)

func accumulateGo(cols int, add addFunc) [2]accumulateFunc {
	return [2]accumulateFunc{accumulateWords(cols, packed.Narrow, add), accumulateWords(cols, packed.Wide, add)}
}

func accumulateWords(cols, width int, add addFunc) accumulateFunc {
	escape := packed.Escape(width)
	return func(acc *float32, accStride uintptr, z *byte, zStride uintptr, words *byte, edges uint64, src, base uint32, _ *uint64) {
		// An index, because no Go pointer may point past the last word.
		at := uintptr(0)
		for range edges {
			w := *(*uint32)(unsafe.Add(unsafe.Pointer(words), at))
			at += uintptr(width)
			row, diff := w&(packed.StripRows-1), w>>packed.RowBits&escape
			for diff == escape {
				src += row * escape
				w = *(*uint32)(unsafe.Add(unsafe.Pointer(words), at))
				at += uintptr(width)
				row, diff = w&(packed.StripRows-1), w>>packed.RowBits&escape
			}
			src += diff
			add((*float32)(unsafe.Add(unsafe.Pointer(acc), uintptr(row)*accStride)), unsafe.Add(unsafe.Pointer(z), uintptr(src-base)*zStride), cols)
		}
	}
}

func accumulateWeightedGo(cols int, add addTimesFunc) [2]accumulateWeightedFunc {
	return [2]accumulateWeightedFunc{accumulateWeightedWords(cols, packed.Narrow, add), accumulateWeightedWords(cols, packed.Wide, add)}
}

func accumulateWeightedWords(cols, width int, add addTimesFunc) accumulateWeightedFunc {
	return func(acc *float32, accStride uintptr, z *byte, zStride uintptr, words *byte, edges uint64, src, base uint32, buf *uint64,
		weights *byte,
	) {
		at := uintptr(0)
		one := accumulateWords(cols, width, func(to *float32, from unsafe.Pointer, cols int) {
			w := *(*uint32)(unsafe.Add(unsafe.Pointer(weights), at))
			at += packed.WeightBytes
			add(to, from, cols, math.Float32frombits(w))
		})
		one(acc, accStride, z, zStride, words, edges, src, base, buf)
	}
}

func widenGo(dst *float32, src *uint16, n uintptr) {
	to := unsafe.Slice(dst, n)
	for i, h := range unsafe.Slice(src, n) {
		to[i] = half.Float(h)
	}
}

func narrowGo(dst *uint16, src *float32, n uintptr) {
	to := unsafe.Slice(dst, n)
	for i, x := range unsafe.Slice(src, n) {
		to[i] = half.FromFloat(x)
	}
}

func divideRowsGo(rows *float32, divisors *float64, n, bytes uintptr, share float32) {
	width := int(bytes / 4)
	all := unsafe.Slice(rows, int(n)*width)
	for i, d := range unsafe.Slice(divisors, int(n)) {
		by := share * float32(d)
		for c := i * width; c < (i+1)*width; c++ {
			all[c] /= by
		}
	}
}

func startRowsGo(rows, self *float32, divisors *float64, n, bytes uintptr, share float32) {
	width := int(bytes / 4)
	all, from := unsafe.Slice(rows, int(n)*width), unsafe.Slice(self, int(n)*width)
	for i, d := range unsafe.Slice(divisors, int(n)) {
		by := share * float32(d)
		for c := i * width; c < (i+1)*width; c++ {
			all[c] = from[c] - float32(by*all[c])
		}
	}
}

func addRowsGo(sum, rows *float32, hops *uint16, n, bytes uintptr, hop uint16, weight float32) {
	width := int(bytes / 4)
	to, from := unsafe.Slice(sum, int(n)*width), unsafe.Slice(rows, int(n)*width)
	for i, h := range unsafe.Slice(hops, int(n)) {
		if hop >= h {
			continue
		}
		for c := i * width; c < (i+1)*width; c++ {
			to[c] += float32(weight * from[c])
		}
	}
}

func addWeighedGo(sum, rows *float32, counts *uint16, weights *float32, n, bytes uintptr) {
	width := int(bytes / 4)
	to, from := unsafe.Slice(sum, int(n)*width), unsafe.Slice(rows, int(n)*width)
	for i, count := range unsafe.Slice(counts, int(n)) {
		weight := *(*float32)(unsafe.Add(unsafe.Pointer(weights), 4*uintptr(count)))
		if math.Float32bits(weight) == 0 {
			continue
		}
		for c := i * width; c < (i+1)*width; c++ {
			to[c] += float32(weight * from[c])
		}
	}
}

func squareNormsGo(out *float64, rows *float32, n, bytes uintptr) {
	width := int(bytes / 4)
	all := unsafe.Slice(rows, int(n)*width)
	sums := unsafe.Slice(out, int(n))
	for i := range sums {
		for c := i * width; c < (i+1)*width; c += packed.PanelColumns {
			g := all[c : c+packed.PanelColumns]
			var p [8]float64
			for l := range p {
				a, b := float64(g[l]), float64(g[l+8])
				p[l] = float64(a*a) + float64(b*b)
			}
			sums[i] += ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))
		}
	}
}

func weightedSumsGo(sums *[32]float64, rows *float32, weights *float64, n, bytes uintptr) {
	width := int(bytes / 4)
	all := unsafe.Slice(rows, int(n)*width)
	for i, w := range unsafe.Slice(weights, int(n)) {
		for c, x := range all[i*width : i*width+packed.PanelColumns] {
			y := float64(w * float64(x))
			sums[c] += y
			sums[16+c] += math.Abs(y)
		}
	}
}

// Addition says what the edges of a strip are added to, and where the rows of their
// sources are.
type Addition struct {
	// Acc has the float32 rows of the strip, as wide as Rows. Columns [Col, Col+Cols) of them are
	// added to. Both are multiples of PanelColumns.
	Acc       []float32
	Col, Cols int
	// Rows has the rows of sources First, First+1, …
	Rows  Rows
	First uint32
}

// Add adds the edges of a frame, which has no source outside of a.Rows. Where edges have
// weights, each row is multiplied by that of its edge first.
func (k *Kernel) Add(a Addition, f packed.Frame, buf *Decoded) {
	if f.Edges == 0 {
		return
	}
	if invariants.Enabled {
		checkFrame(a, f)
	}
	p, stride := a.Rows.precision(), uintptr(a.Rows.Stride)
	for col, cols := a.Col, a.Cols; cols > 0; {
		i, w := 0, 16
		switch {
		case cols >= 64:
			i, w = 2, 64
		case cols >= 32:
			i, w = 1, 32
		}
		if len(f.Weights) > 0 {
			k.accumulateWeighted[p][i][f.Width-packed.Narrow](&a.Acc[col], stride*4, a.Rows.at(col), stride*uintptr(p.Bytes()), &f.Words[0],
				uint64(f.Edges), f.Src, a.First, &buf[0], &f.Weights[0])
		} else {
			k.accumulate[p][i][f.Width-packed.Narrow](&a.Acc[col], stride*4, a.Rows.at(col), stride*uintptr(p.Bytes()), &f.Words[0],
				uint64(f.Edges), f.Src, a.First, &buf[0])
		}
		col += w
		cols -= w
	}
}

// precision is the type of the rows.
func (r Rows) precision() Precision {
	if r.H != nil {
		return Float16
	}
	return Float32
}

// at points to column col of the first row.
func (r Rows) at(col int) *byte {
	if r.H != nil {
		return (*byte)(unsafe.Pointer(&r.H[col]))
	}
	return (*byte)(unsafe.Pointer(&r.S[col]))
}

// Widen converts float16 values to float32, which is exact. dst and src are
// equally long.
func (k *Kernel) Widen(dst []float32, src []uint16) {
	n := len(src) / packed.PanelColumns * packed.PanelColumns
	if n > 0 {
		k.widen(&dst[0], &src[0], uintptr(n))
	}
	for i, h := range src[n:] {
		dst[n+i] = half.Float(h)
	}
}

// Narrow rounds to the nearest float16, ties to even; what is too large becomes
// infinite. dst and src are equally long.
func (k *Kernel) Narrow(dst []uint16, src []float32) {
	n := len(src) / packed.PanelColumns * packed.PanelColumns
	if n > 0 {
		k.narrow(&dst[0], &src[0], uintptr(n))
	}
	for i, x := range src[n:] {
		dst[n+i] = half.FromFloat(x)
	}
}

// Divide divides each row by share times its divisor as float32. rows holds len(divisors) rows.
func (k *Kernel) Divide(rows []float32, divisors []float64, share float32) {
	if n := len(divisors); n > 0 {
		k.divideRows(&rows[0], &divisors[0], uintptr(n), uintptr(len(rows)/n*4), share)
	}
}

// Start replaces each row by that of self minus the row times share times its divisor as float32. rows and self hold
// len(divisors) rows.
func (k *Kernel) Start(rows, self []float32, divisors []float64, share float32) {
	if n := len(divisors); n > 0 {
		_ = self[len(rows)-1]
		k.startRows(&rows[0], &self[0], &divisors[0], uintptr(n), uintptr(len(rows)/n*4), share)
	}
}

// AddWhere adds weight times row i of rows to row i of sum wherever hop <
// hops[i]. Both hold len(hops) rows of the same width.
func (k *Kernel) AddWhere(sum, rows []float32, hops []uint16, hop uint16, weight float32) {
	if n := len(hops); n > 0 {
		k.addRows(&sum[0], &rows[0], &hops[0], uintptr(n), uintptr(len(rows)/n*4), hop, weight)
	}
}

// AddWeighed adds weights[counts[i]] times row i of rows to row i of sum wherever that weight is not zero. Both hold len(counts) rows of
// the same width. No count is outside of weights.
func (k *Kernel) AddWeighed(sum, rows []float32, counts []uint16, weights []float32) {
	if n := len(counts); n > 0 {
		_ = sum[len(rows)-1]
		k.addWeighed(&sum[0], &rows[0], &counts[0], &weights[0], uintptr(n), uintptr(len(rows)/n*4))
	}
}

// SquareNorms adds the squared length of row i to out[i], in float64 and in the
// order the package promises. rows holds len(out) rows.
func (k *Kernel) SquareNorms(out []float64, rows []float32) {
	if n := len(out); n > 0 {
		k.squareNorms(&out[0], &rows[0], uintptr(n), uintptr(len(rows)/n*4))
	}
}

// WeightedSums adds Σ weight·x of the first 16 columns to sums[0:16], and
// the same of |x| to sums[16:32]. rows holds len(weights) rows.
func (k *Kernel) WeightedSums(sums *[32]float64, rows []float32, weights []float64) {
	if n := len(weights); n > 0 {
		k.weightedSums(sums, &rows[0], &weights[0], uintptr(n), uintptr(len(rows)/n*4))
	}
}
