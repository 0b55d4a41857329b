package lsi

import (
	"context"
	"math"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/spmv"
)

// Probe is the matrix P, n × Columns, that is propagated in place of the
// identity.
type Probe interface {
	// Columns is the width s of P.
	Columns() int
	// Sketch says whether P is random. Rounding its rows to float16 is then far less than
	// the error that the probe has by itself.
	Sketch() bool
	// Rows puts columns [first, first+columns) of all rows of P in ascending
	// order, some at a time; columns past the width are zero. put may change
	// what it is given.
	Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error
}

// Precision is how rows of p are stored between hops: float16 for a sketch, and otherwise
// the precision that is asked for.
func Precision(p Probe, asked spmv.Precision) spmv.Precision {
	if p.Sketch() {
		return spmv.Float16
	}
	return asked
}

// sketchScale multiplies the rows of a sketch, whose values are at most 2 at hop 0 and
// shrink from hop to hop: the values near ε of a node with many neighbours would otherwise
// be too small for float16. It is a power of two, so that it changes no float32 bit.
const sketchScale = 1 << 13

// scale is what the rows of p are multiplied by.
func scale(p Probe) float64 {
	if p.Sketch() {
		return sketchScale
	}
	return 1
}

// batchValues bounds how many values a probe puts at a time.
const batchValues = 1 << 18

// made puts rows that one computes.
func made(ctx context.Context, n int64, columns int, put func([]float32) error, row func(i int64, to []float32)) error {
	batch := int64(max(batchValues/columns, 1))
	buf := make([]float32, min(batch, n)*int64(columns))
	for lo := int64(0); lo < n; lo += batch {
		rows := buf[:min(batch, n-lo)*int64(columns)]
		clear(rows)
		for i := 0; i*columns < len(rows); i++ {
			row(lo+int64(i), rows[i*columns:(i+1)*columns])
		}
		if err := put(rows); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Identity is the probe of the definition, for n nodes.
func Identity(n int64) Probe { return IdentityPart(n, 0, n) }

// IdentityPart is rows [lo, hi) of [Identity], for a worker that has no others.
func IdentityPart(n, lo, hi int64) Probe { return identity{n, lo, hi} }

type identity struct{ n, lo, hi int64 }

func (p identity) Columns() int { return int(p.n) }

func (identity) Sketch() bool { return false }

func (p identity) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	return made(ctx, p.hi-p.lo, columns, put, func(i int64, to []float32) {
		if c := p.lo + i - int64(first); c >= 0 && c < int64(columns) {
			to[c] = 1
		}
	})
}

// Signs is the random-sign probe of the given width: entry (i, c) is ±1/√s by a
// hash of the seed, the input id of node i, and c, so that it does not depend on
// how nodes are numbered.
func Signs(seed uint64, ids []uint32, width int) Probe { return &signs{seed, ids, width} }

type signs struct {
	seed  uint64
	ids   []uint32
	width int
}

func (s *signs) Columns() int { return s.width }

func (*signs) Sketch() bool { return true }

func (s *signs) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	x := float32(1 / math.Sqrt(float64(s.width)))
	return made(ctx, int64(len(s.ids)), columns, put, func(i int64, to []float32) {
		bits := uint64(0)
		for c := first; c < min(first+columns, s.width); c++ {
			if c == first || c%64 == 0 {
				bits = rng.Hash(s.seed, uint64(s.ids[i]), uint64(c/64)) >> (c % 64)
			}
			to[c-first] = x * float32(1-2*int64(bits&1))
			bits >>= 1
		}
	})
}

// sign is ±1.
func sign(seed, row uint64, column int) float32 {
	return float32(1 - 2*int64(rng.Hash(seed, row, uint64(column))&1))
}

// Columns gives features as column blocks.
type Columns interface {
	// Width is the number of columns.
	Width() int
	// Rows is as in [Probe]; first and columns are multiples of 16.
	Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error
}

// Features is the probe of the authors' code: the features with rows divided by
// their L1 norm. norm has the L1 norm of each row, or is nil where rows are
// normalised already.
func Features(c Columns, norm []float64) Probe { return &features{c, norm} }

type features struct {
	columns Columns
	norm    []float64
}

func (f *features) Columns() int { return f.columns.Width() }

func (*features) Sketch() bool { return false }

func (f *features) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	at := 0
	return f.columns.Rows(ctx, first, columns, func(rows []float32) error {
		at += divide(rows, columns, f.norm, at)
		return put(rows)
	})
}

// divide divides rows at, at+1, … by their norms and says how many they are.
func divide(rows []float32, columns int, norm []float64, at int) int {
	n := len(rows) / columns
	if norm == nil {
		return n
	}
	for i, l1 := range norm[at : at+n] {
		if l1 == 0 {
			continue
		}
		row := rows[i*columns : (i+1)*columns]
		for c, x := range row {
			row[c] = float32(float64(x) / l1)
		}
	}
	return n
}

// FeatureSketch is Features × random signs/√width. It reads all features once
// for each block.
func FeatureSketch(c Columns, norm []float64, seed uint64, width int) Probe {
	return &featureSketch{c, norm, seed, width}
}

type featureSketch struct {
	columns Columns
	norm    []float64
	seed    uint64
	width   int
}

func (f *featureSketch) Columns() int { return f.width }

func (*featureSketch) Sketch() bool { return true }

func (f *featureSketch) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	width := packed.Panels(f.columns.Width()) * packed.PanelColumns
	cols := min(columns, f.width-first)
	scale := float32(1 / math.Sqrt(float64(f.width)))
	signs := make([]float32, width*columns)
	for c := range width {
		for s := range cols {
			signs[c*columns+s] = scale * sign(f.seed, uint64(c), first+s)
		}
	}
	at := 0
	var buf []float32
	return f.columns.Rows(ctx, 0, width, func(rows []float32) error {
		n := divide(rows, width, f.norm, at)
		at += n
		if len(buf) < n*columns {
			buf = make([]float32, n*columns)
		}
		out := buf[:n*columns]
		clear(out)
		for i := range n {
			to := out[i*columns : i*columns+cols]
			for c, x := range rows[i*width : (i+1)*width] {
				if x == 0 {
					continue
				}
				for s, sg := range signs[c*columns : c*columns+cols] {
					to[s] += float32(x * sg)
				}
			}
		}
		return put(out)
	})
}

// L1Norms returns the L1 norm of each of n rows, for probes over features that
// are not normalised. The caller frees the array.
func L1Norms(ctx context.Context, c Columns, n int64, b *mem.Budget) (*mem.Array[float64], error) {
	norm, err := mem.Alloc[float64](b, n, "L1 norms")
	if err != nil {
		return nil, err
	}
	width := packed.Panels(c.Width()) * packed.PanelColumns
	at := 0
	err = c.Rows(ctx, 0, width, func(rows []float32) error {
		for ; len(rows) > 0; rows = rows[width:] {
			for _, x := range rows[:width] {
				norm.S[at] += math.Abs(float64(x))
			}
			at++
		}
		return nil
	})
	if err != nil {
		norm.Free()
		return nil, err
	}
	return norm, nil
}
