package spmv

import (
	"fmt"
	"math"
	"unsafe"

	"ndls/internal/packed"
)

// Granule is the unit of width: 16 float32 columns, 64 bytes.
const Granule = 16

// Kernel is one implementation of the inner loops. All kernels give the same
// bits.
type Kernel struct {
	name         string
	accumulate   [3]accumulateFunc // 16, 32, 64 columns
	sumCSR       [3]sumCSRFunc
	gather       [3]gatherFunc
	divideRows   func(rows *float32, degree *uint32, n, bytes uintptr)
	addRows      func(sum, rows *float32, hops *uint16, n, bytes uintptr, hop uint16, weight float32)
	squareNorms  func(out *float64, rows *float32, n, bytes uintptr)
	weightedSums func(sums *[32]float64, rows *float32, degree *uint32, n, bytes uintptr)
}

type (
	accumulateFunc func(acc, z *float32, stride uintptr, words *uint32, edges uint64, src uint32)
	sumCSRFunc     func(next, z *float32, stride uintptr, offsets, src *uint32, first, n uint64)
	gatherFunc     func(out, z *float32, stride uintptr, ids *uint32, n uint64)
)

// Name is "go", "avx2" or "avx512".
func (k *Kernel) Name() string { return k.name }

// Select returns the kernel of that name, or the fastest this processor runs
// for "auto" and "". A kernel the processor or the build lacks is an error.
func Select(name string) (*Kernel, error) {
	all := available()
	if name == "" || name == "auto" {
		return all[0], nil
	}
	var names []string
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	return nil, fmt.Errorf("spmv: kernel %q is not available here; there are auto and %v", name, names)
}

// goKernel is the reference that the assembly is tested against.
var goKernel = &Kernel{
	name:         "go",
	accumulate:   [3]accumulateFunc{accumulateGo(16), accumulateGo(32), accumulateGo(64)},
	sumCSR:       [3]sumCSRFunc{sumCSRGo(16), sumCSRGo(32), sumCSRGo(64)},
	gather:       [3]gatherFunc{gatherGo(16), gatherGo(32), gatherGo(64)},
	divideRows:   divideRowsGo,
	addRows:      addRowsGo,
	squareNorms:  squareNormsGo,
	weightedSums: weightedSumsGo,
}

func accumulateGo(cols int) accumulateFunc {
	return func(acc, z *float32, stride uintptr, words *uint32, edges uint64, src uint32) {
		w := unsafe.Pointer(words)
		next := func() uint32 {
			x := *(*uint32)(w)
			w = unsafe.Add(w, 4)
			return x
		}
		for range edges {
			x := next()
			if d := x >> packed.BlockShift; d < packed.Escape {
				src += d
			} else {
				src = next()
			}
			row := uintptr(x & (packed.BlockRows - 1))
			to := unsafe.Add(unsafe.Pointer(acc), row*stride)
			from := unsafe.Add(unsafe.Pointer(z), uintptr(src)*stride)
			for g := 0; g < cols; g += Granule {
				// Arrays of known length spare the bounds checks.
				a, b := (*[Granule]float32)(unsafe.Add(to, g*4)), (*[Granule]float32)(unsafe.Add(from, g*4))
				for c := 0; c < Granule; c += 4 {
					a[c] += b[c]
					a[c+1] += b[c+1]
					a[c+2] += b[c+2]
					a[c+3] += b[c+3]
				}
			}
		}
	}
}

func sumCSRGo(cols int) sumCSRFunc {
	return func(next, z *float32, stride uintptr, offsets, src *uint32, first, n uint64) {
		off := unsafe.Slice(offsets, n+1)
		for i := range n {
			to := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(next), uintptr(first+i)*stride)), cols)
			copy(to, unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(z), uintptr(first+i)*stride)), cols))
			for e := off[i]; e < off[i+1]; e++ {
				s := *(*uint32)(unsafe.Add(unsafe.Pointer(src), uintptr(e)*4))
				for c, x := range unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(z), uintptr(s)*stride)), cols) {
					to[c] += x
				}
			}
		}
	}
}

func gatherGo(cols int) gatherFunc {
	return func(out, z *float32, stride uintptr, ids *uint32, n uint64) {
		to := unsafe.Slice(out, cols)
		clear(to)
		for _, id := range unsafe.Slice(ids, n) {
			for c, x := range unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(z), uintptr(id)*stride)), cols) {
				to[c] += x
			}
		}
	}
}

func divideRowsGo(rows *float32, degree *uint32, n, bytes uintptr) {
	width := int(bytes / 4)
	all := unsafe.Slice(rows, int(n)*width)
	for i, d := range unsafe.Slice(degree, int(n)) {
		d1 := float32(int64(d) + 1)
		row := all[i*width : (i+1)*width]
		for c := range row {
			row[c] /= d1
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

func squareNormsGo(out *float64, rows *float32, n, bytes uintptr) {
	width := int(bytes / 4)
	all := unsafe.Slice(rows, int(n)*width)
	sums := unsafe.Slice(out, int(n))
	for i := range sums {
		for c := i * width; c < (i+1)*width; c += Granule {
			g := all[c : c+Granule]
			var p [8]float64
			for l := range p {
				a, b := float64(g[l]), float64(g[l+8])
				p[l] = float64(a*a) + float64(b*b)
			}
			sums[i] += ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))
		}
	}
}

func weightedSumsGo(sums *[32]float64, rows *float32, degree *uint32, n, bytes uintptr) {
	width := int(bytes / 4)
	all := unsafe.Slice(rows, int(n)*width)
	for i, d := range unsafe.Slice(degree, int(n)) {
		d1 := float64(int64(d) + 1)
		for c, x := range all[i*width : i*width+Granule] {
			y := float64(d1 * float64(x))
			sums[c] += y
			sums[16+c] += math.Abs(y)
		}
	}
}

// Rows is a column block: n rows of Stride float32 values, off-heap.
type Rows struct {
	Stride int // columns, a multiple of Granule
	S      []float32
}

// Row returns row i.
func (r Rows) Row(i int64) []float32 {
	s := int64(r.Stride)
	return r.S[i*s : (i+1)*s]
}

// Slice returns rows [lo, hi) without gaps.
func (r Rows) Slice(lo, hi int64) []float32 {
	s := int64(r.Stride)
	return r.S[lo*s : hi*s]
}

// add adds the edges of a frame to columns [col, col+cols) of acc, the rows of
// the frame's block; cols is a multiple of Granule.
func (k *Kernel) add(acc []float32, z Rows, f packed.Frame, col, cols int) {
	stride := uintptr(z.Stride) * 4
	for cols > 0 {
		i, w := 0, 16
		switch {
		case cols >= 64:
			i, w = 2, 64
		case cols >= 32:
			i, w = 1, 32
		}
		k.accumulate[i](&acc[col], &z.S[col], stride, &f.Words[0], uint64(f.Edges), f.Src)
		col += w
		cols -= w
	}
}

// Divide divides each row by its degree plus one. rows holds len(degree) rows.
func (k *Kernel) Divide(rows []float32, degree []uint32) {
	if n := len(degree); n > 0 {
		k.divideRows(&rows[0], &degree[0], uintptr(n), uintptr(len(rows)/n*4))
	}
}

// AddWhere adds weight times row i of rows to row i of sum wherever hop <
// hops[i]. Both hold len(hops) rows of the same width.
func (k *Kernel) AddWhere(sum, rows []float32, hops []uint16, hop uint16, weight float32) {
	if n := len(hops); n > 0 {
		k.addRows(&sum[0], &rows[0], &hops[0], uintptr(n), uintptr(len(rows)/n*4), hop, weight)
	}
}

// SquareNorms adds the squared length of row i to out[i], in float64 and in the
// order the package promises. rows holds len(out) rows.
func (k *Kernel) SquareNorms(out []float64, rows []float32) {
	if n := len(out); n > 0 {
		k.squareNorms(&out[0], &rows[0], uintptr(n), uintptr(len(rows)/n*4))
	}
}

// WeightedSums adds Σ (degree+1)·x of the first 16 columns to sums[0:16], and
// the same of |x| to sums[16:32]. rows holds len(degree) rows.
func (k *Kernel) WeightedSums(sums *[32]float64, rows []float32, degree []uint32) {
	if n := len(degree); n > 0 {
		k.weightedSums(sums, &rows[0], &degree[0], uintptr(n), uintptr(len(rows)/n*4))
	}
}
