package dense

import (
	"math"
	"sync"
	"unsafe"

	"ndls/internal/kernels"
)

// Kernel is one implementation of the package's operations. All kernels give the same bits.
type Kernel struct {
	name       string
	rows, cols int // of a tile
	// tile adds a·b to c: a has k columns of rows values, b has k rows of cols values,
	// and the rows of c are stride bytes apart. half does so for the left half of the columns.
	tile, half tileFunc
	// tileRows and halfRows do the same for rows of a that are not packed but lie gap bytes apart.
	// tileColumns and halfColumns do the same for its columns; freshColumns and freshHalf start
	// these sums from zero.
	tileRows, halfRows       gapFunc
	tileColumns, halfColumns gapFunc
	freshColumns, freshHalf  gapFunc
	// The others implement Exps, Scale, Largest, Rectify and Sum, for n values: a multiple of 8 for
	// the first two, of 16 for the last two.
	exps    func(p *float64, z *float32, n uintptr, largest float64) float64
	scale   func(to *float32, p *float64, n uintptr, share float64)
	largest func(z *float32, n uintptr) float32
	rectify func(x *float32, n uintptr)
	sum     func(to, x *float32, n uintptr)
	// drop implements Drop, for n values, a multiple of 32. adam implements Adam, for n values, a
	// multiple of 16: c holds its constants, and most the largest magnitude of each of 16 lanes.
	drop func(to, x *float32, n uintptr, state, below uint64, scale float32)
	adam func(w, g, m, s *float32, n uintptr, c *float32, most *uint32)
}

type (
	tileFunc func(k uintptr, a, b, c *float32, stride uintptr)
	gapFunc  func(k uintptr, a *float32, gap uintptr, b, c *float32, stride uintptr)
)

// Name returns "go", "avx2" or "avx512".
func (k *Kernel) Name() string { return k.name }

// Select returns the kernel of that name, or the fastest this processor runs for "auto"
// and "". A kernel that the processor or the build lacks is an error.
func Select(name string) (*Kernel, error) { return kernels.Select(available(), name) }

// goKernel is the twin against which the assembly is tested.
var goKernel = &Kernel{"go", goRows, goCols, tileGo(goCols), tileGo(goCols / 2), tileRowsGo(goCols), tileRowsGo(goCols / 2), tileColumnsGo(goCols), tileColumnsGo(goCols / 2), freshColumnsGo(goCols), freshColumnsGo(goCols / 2), expsGo, scaleGo, largestGo, rectifyGo, plusGo, dropGo, adamGo}

// Both are small, so that few of its slow operations are wasted at the edges.
const goRows, goCols = 4, 8

func tileGo(cols int) tileFunc {
	return func(k uintptr, a, b, c *float32, stride uintptr) {
		left := unsafe.Slice(a, goRows*k)
		sumGo(int(k), cols, func(i, l int) float32 { return left[l*goRows+i] }, b, c, stride)
	}
}

func tileRowsGo(cols int) gapFunc {
	return func(k uintptr, a *float32, gap uintptr, b, c *float32, stride uintptr) {
		left := unsafe.Slice(a, uintptr(goRows-1)*gap/4+k)
		sumGo(int(k), cols, func(i, l int) float32 { return left[uintptr(i)*gap/4+uintptr(l)] }, b, c, stride)
	}
}

func tileColumnsGo(cols int) gapFunc {
	return func(k uintptr, a *float32, gap uintptr, b, c *float32, stride uintptr) {
		left := unsafe.Slice(a, (k-1)*gap/4+goRows)
		sumGo(int(k), cols, func(i, l int) float32 { return left[uintptr(l)*gap/4+uintptr(i)] }, b, c, stride)
	}
}

func freshColumnsGo(cols int) gapFunc {
	tile := tileColumnsGo(cols)
	return func(k uintptr, a *float32, gap uintptr, b, c *float32, stride uintptr) {
		for i := range uintptr(goRows) {
			clear(unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), i*stride)), cols))
		}
		tile(k, a, gap, b, c, stride)
	}
}

// sumGo computes the sum of k products for each of so many columns; left returns the values of row
// i.
func sumGo(k, cols int, left func(i, l int) float32, b, c *float32, stride uintptr) {
	right := unsafe.Slice(b, goCols*k)
	for i := range goRows {
		row := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), uintptr(i)*stride)), cols)
		for l := range k {
			x := float64(left(i, l))
			for j, y := range right[l*goCols : l*goCols+cols] {
				product, addend := x*float64(y), float64(row[j])
				if sum := product + addend; roundsTwice(sum) {
					row[j] = add(product, addend)
				} else {
					row[j] = float32(sum)
				}
			}
		}
	}
}

// roundsTwice reports whether rounding a sum to float64 and then to float32 may differ from
// rounding it to float32 at once. It can if the float64 lies halfway between two float32. Such
// values end in a one and 28 zeros, except below 2^-126, where float32 has fewer digits.
func roundsTwice(sum float64) bool {
	const tail, half, least = 1<<29 - 1, 1 << 28, (1023 - 126) << 52
	b := math.Float64bits(sum)
	return b&tail == half || b&(0x7ff<<52) < least
}

// add is product + addend, both exact, rounded once: to odd in float64, and that to
// float32.
//
//go:noinline
func add(product, addend float64) float32 {
	sum := product + addend
	// The error of the sum, exact for finite numbers (Knuth, TAOCP 2, 4.2.2 theorem B).
	back := sum - product
	lost := (product - (sum - back)) + (addend - back)
	if bits := math.Float64bits(sum); lost != 0 && bits&1 == 0 {
		// Take the odd one of the two neighbours of the exact sum.
		if (lost > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}

// inner is the number of terms l that a tile sums at a time: 256 rows of a panel of 32 columns are
// 32 KiB.
const inner = 256

// panels returns the number of panels of width w of n rows or columns.
func panels(n, w int) int { return (n + w - 1) / w }

// LeftSize returns the number of values of a packed left-hand side of m rows and k columns.
func (k *Kernel) LeftSize(m, inner int) int { return panels(m, k.rows) * k.rows * inner }

// RightSize returns the number of values of a packed right-hand side of inner rows and n columns.
func (k *Kernel) RightSize(inner, n int) int { return panels(n, k.cols) * k.cols * inner }

// PackLeft packs rows [lo, hi) of the m × inner matrix a, whose rows are stride values apart, into
// dst, which is LeftSize(m, inner) long. lo is a multiple of the tile's rows, and so is hi unless
// it is m.
func (k *Kernel) PackLeft(dst, a []float32, lo, hi, inner, stride int) {
	packRows(dst, a, lo, hi, inner, stride, k.rows)
}

// PackRight packs rows [lo, hi) of the inner × n matrix b.
func (k *Kernel) PackRight(dst, b []float32, n, lo, hi, inner, stride int) {
	packColumns(dst, b, n, lo, hi, inner, stride, k.cols)
}

// PackRightT packs the transpose of the whole n × inner matrix b.
func (k *Kernel) PackRightT(dst, b []float32, n, inner, stride int) {
	packRows(dst, b, 0, n, inner, stride, k.cols)
}

// packRows packs panels of width rows of a; rows from hi on are zero.
func packRows(dst, a []float32, lo, hi, inner, stride, width int) {
	row := func(i int) []float32 { return a[i*stride : i*stride+inner] }
	for first := lo; first < hi; first += width {
		panel := dst[first*inner : (first+width)*inner]
		i := first
		// It packs two rows at a time, because most of the time goes into the loop.
		for ; i+1 < min(first+width, hi); i += 2 {
			x, y := row(i), row(i+1)
			for l := range min(len(x), len(y)) {
				pair := panel[l*width+i-first : l*width+i-first+2]
				pair[0], pair[1] = x[l], y[l]
			}
		}
		if i < min(first+width, hi) {
			for l, v := range row(i) {
				panel[l*width+i-first] = v
			}
			i++
		}
		for ; i < first+width; i++ {
			for l := range inner {
				panel[l*width+i-first] = 0
			}
		}
	}
}

// packColumns packs rows [lo, hi) of panels of width columns of a, which has n; columns
// from n on are zero.
func packColumns(dst, a []float32, n, lo, hi, inner, stride, width int) {
	for first := 0; first < n; first += width {
		panel := dst[first*inner : (first+width)*inner]
		if lo < hi && first+width <= n && packPanel(panel[lo*width:hi*width], a[lo*stride+first:], stride, width) {
			continue
		}
		for l := lo; l < hi; l++ {
			to := panel[l*width : (l+1)*width]
			clear(to[copy(to, a[l*stride+first:l*stride+min(first+width, n)]):])
		}
	}
}

// packPanel packs rows of a panel of width columns, one row after the other, if the compiler has a
// copy of that size without a call. Otherwise it returns false.
func packPanel(panel, a []float32, stride, width int) bool {
	switch width {
	case 32:
		for ; len(panel) > 0; panel = panel[32:] {
			*(*[32]float32)(panel) = *(*[32]float32)(a)
			a = a[min(stride, len(a)):]
		}
	case 16:
		for ; len(panel) > 0; panel = panel[16:] {
			*(*[16]float32)(panel) = *(*[16]float32)(a)
			a = a[min(stride, len(a)):]
		}
	default:
		return false
	}
	return true
}

// Area is a part of a product: rows [Top, Bottom) and columns [Left, Right). All four are multiples
// of the tile's sides, except that Bottom and Right may be those of the product.
type Area struct{ Top, Bottom, Left, Right int }

// Add adds an area of the product of packed matrices to c, whose rows are stride values
// apart. depth is the inner dimension.
func (k *Kernel) Add(c []float32, area Area, depth, stride int, left, right []float32) {
	k.add(c, area, depth, 0, depth, stride, right, func(i, from int, d uintptr, half bool, b, to *float32, stride uintptr) {
		tile := k.tile
		if half {
			tile = k.half
		}
		tile(d, &left[i*depth+from*k.rows], b, to, stride)
	})
}

// AddColumns adds an area of the product of the transpose of a and a packed matrix to c, whose rows
// are stride values apart: the terms with inner indices [lo, hi) of depth. With fresh it starts
// from zeros instead of c. The depth rows of a lie one after the other and have m values. The last
// of them may be read beyond its end: a has Rows() values more.
func (k *Kernel) AddColumns(c []float32, area Area, depth, lo, hi, stride int, fresh bool, a []float32, m int, right []float32) {
	_ = a[:depth*m+k.rows]
	k.add(c, area, depth, lo, hi, stride, right, func(i, from int, d uintptr, half bool, b, to *float32, stride uintptr) {
		tile := k.tileColumns
		switch zeros := fresh && from == lo; {
		case zeros && half:
			tile = k.freshHalf
		case zeros:
			tile = k.freshColumns
		case half:
			tile = k.halfColumns
		}
		tile(d, &a[from*m+i], uintptr(4*m), b, to, stride)
	})
}

// AddRows adds the product of a and a packed matrix to c. The rows of a, and those of c, which have
// cols values, lie one after the other. depth is the inner dimension. Rows that fill no tile are
// computed again with rows before them, whose sums are dropped. If there are none before, they are
// packed into space, which is LeftSize(Rows(), depth) long.
func (k *Kernel) AddRows(c, a []float32, depth, cols int, right, space []float32) {
	if depth == 0 || cols == 0 {
		return
	}
	rows := len(c) / cols
	if rows < k.rows {
		k.PackLeft(space, a, 0, rows, depth, depth)
		k.Add(c, Area{Bottom: rows, Right: cols}, depth, cols, space, right)
		return
	}
	tile := func(i, from int, d uintptr, half bool, b, to *float32, stride uintptr) {
		tile := k.tileRows
		if half {
			tile = k.halfRows
		}
		tile(d, &a[i*depth+from], uintptr(4*depth), b, to, stride)
	}
	whole := rows - rows%k.rows
	k.add(c, Area{Bottom: whole, Right: cols}, depth, 0, depth, cols, right, tile)
	if whole < rows {
		k.addLast(c, rows, whole, depth, cols, right, tile)
	}
}

// addLast adds the rows from whole on, which fill no tile, together with rows before them.
func (k *Kernel) addLast(c []float32, rows, whole, depth, cols int, right []float32, tile addFunc) {
	edge := edges.Get().(*[tileValues]float32)
	defer edges.Put(edge)
	first := rows - k.rows
	for from := 0; from < depth; from += inner {
		d := uintptr(min(inner, depth-from))
		for j := 0; j < cols; j += k.cols {
			width := min(k.cols, cols-j)
			for i := whole; i < rows; i++ {
				copy(edge[(i-first)*k.cols:], c[i*cols+j:i*cols+j+width])
			}
			tile(first, from, d, width <= k.cols/2, &right[j*depth+from*k.cols], &edge[0], uintptr(4*k.cols))
			for i := whole; i < rows; i++ {
				copy(c[i*cols+j:i*cols+j+width], edge[(i-first)*k.cols:])
			}
		}
	}
}

// addFunc adds a tile of a product: from row i of the left-hand side on, and for d inner indices
// from one on. half says that the right half of the tile's columns is not needed.
type addFunc func(i, from int, d uintptr, half bool, b, to *float32, stride uintptr)

// add calls tile for each tile of an area, with b for inner indices [lo, hi) of the right-hand side.
func (k *Kernel) add(c []float32, area Area, depth, lo, hi, stride int, right []float32, tile addFunc) {
	edge := edges.Get().(*[tileValues]float32)
	defer edges.Put(edge)
	for from := lo; from < hi; from += inner {
		d := uintptr(min(inner, hi-from))
		for j := area.Left; j < area.Right; j += k.cols {
			b, cols := &right[j*depth+from*k.cols], min(k.cols, area.Right-j)
			half := cols <= k.cols/2
			for i := area.Top; i < area.Bottom; i += k.rows {
				rows := min(k.rows, area.Bottom-i)
				if rows == k.rows && (cols == k.cols || cols == k.cols/2) {
					tile(i, from, d, half, b, &c[i*stride+j], uintptr(4*stride))
					continue
				}
				for r := range rows {
					copy(edge[r*k.cols:], c[(i+r)*stride+j:(i+r)*stride+j+cols])
				}
				tile(i, from, d, half, b, &edge[0], uintptr(4*k.cols))
				for r := range rows {
					copy(c[(i+r)*stride+j:(i+r)*stride+j+cols], edge[r*k.cols:])
				}
			}
		}
	}
}

// tileValues is the size of the largest tile.
const tileValues = 12 * 32

// edges holds memory for tiles that reach beyond their product.
var edges = sync.Pool{New: func() any { return new([tileValues]float32) }}

// Rows returns the number of rows of a tile.
func (k *Kernel) Rows() int { return k.rows }
