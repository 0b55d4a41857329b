package lsi

import (
	"context"
	"math"

	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/spmv"
)

// Probe is the matrix P, n × Columns, that is propagated in place of the
// identity.
type Probe interface {
	// Columns is the width s of P.
	Columns() int
	// Fill writes columns [first, first+rows.Stride) of P into rows, which
	// are zero; columns past the width stay zero.
	Fill(ctx context.Context, rows spmv.Rows, first int) error
}

// Identity is the probe of the definition, for n nodes.
func Identity(n int64) Probe { return identity(n) }

type identity int64

func (n identity) Columns() int { return int(n) }

func (n identity) Fill(_ context.Context, rows spmv.Rows, first int) error {
	for i := first; i < min(first+rows.Stride, int(n)); i++ {
		rows.Row(int64(i))[i-first] = 1
	}
	return nil
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

func (s *signs) Fill(ctx context.Context, rows spmv.Rows, first int) error {
	x := float32(1 / math.Sqrt(float64(s.width)))
	for i, id := range s.ids {
		row := rows.Row(int64(i))
		bits := uint64(0)
		for c := first; c < min(first+rows.Stride, s.width); c++ {
			if c == first || c%64 == 0 {
				bits = rng.Hash(s.seed, uint64(id), uint64(c/64)) >> (c % 64)
			}
			row[c-first] = x * float32(1-2*int64(bits&1))
			bits >>= 1
		}
		if i&0xffff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// sign is ±1.
func sign(seed, row uint64, column int) float32 {
	return float32(1 - 2*int64(rng.Hash(seed, row, uint64(column))&1))
}

// Columns gives the features as column blocks.
type Columns interface {
	// Width is the number of columns.
	Width() int
	// Load writes columns [16·granule, 16·granule+16) of all rows to columns
	// [at, at+16) of rows, zeros past the width.
	Load(ctx context.Context, granule int, rows spmv.Rows, at int) error
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

func (f *features) Fill(ctx context.Context, rows spmv.Rows, first int) error {
	for at := 0; at < rows.Stride && first+at < f.columns.Width(); at += spmv.Granule {
		if err := f.columns.Load(ctx, (first+at)/spmv.Granule, rows, at); err != nil {
			return err
		}
	}
	divide(rows, f.norm)
	return nil
}

func divide(rows spmv.Rows, norm []float64) {
	for i, l1 := range norm {
		if l1 == 0 {
			continue
		}
		for c, x := range rows.Row(int64(i)) {
			rows.Row(int64(i))[c] = float32(float64(x) / l1)
		}
	}
}

// FeatureSketch is Features × random signs/√width. It reads all features once
// for each block it fills.
func FeatureSketch(c Columns, norm []float64, seed uint64, width int, b *mem.Budget) Probe {
	return &featureSketch{c, norm, seed, width, b}
}

type featureSketch struct {
	columns Columns
	norm    []float64
	seed    uint64
	width   int
	budget  *mem.Budget
}

func (f *featureSketch) Columns() int { return f.width }

func (f *featureSketch) Fill(ctx context.Context, rows spmv.Rows, first int) error {
	n := int64(len(rows.S) / rows.Stride)
	buf, err := mem.Alloc[float32](f.budget, n*spmv.Granule, "feature columns")
	if err != nil {
		return err
	}
	defer buf.Free()
	from := spmv.Rows{Stride: spmv.Granule, S: buf.S}
	scale := float32(1 / math.Sqrt(float64(f.width)))
	signs := make([]float32, spmv.Granule*rows.Stride)
	cols := min(rows.Stride, f.width-first)
	for g := 0; g*spmv.Granule < f.columns.Width(); g++ {
		if err := f.columns.Load(ctx, g, from, 0); err != nil {
			return err
		}
		divide(from, f.norm)
		for c := range spmv.Granule {
			for s := range cols {
				signs[c*rows.Stride+s] = scale * sign(f.seed, uint64(g*spmv.Granule+c), first+s)
			}
		}
		for i := range n {
			to := rows.Row(i)[:cols]
			for c, x := range from.Row(i) {
				if x == 0 {
					continue
				}
				for s, sg := range signs[c*rows.Stride : c*rows.Stride+cols] {
					to[s] += float32(x * sg)
				}
			}
		}
	}
	return nil
}

// L1Norms returns the L1 norm of each of n rows, for probes over features that
// are not normalised. The caller frees the array.
func L1Norms(ctx context.Context, c Columns, n int64, b *mem.Budget) (*mem.Array[float64], error) {
	norm, err := mem.Alloc[float64](b, n, "L1 norms")
	if err != nil {
		return nil, err
	}
	buf, err := mem.Alloc[float32](b, n*spmv.Granule, "feature columns")
	if err != nil {
		norm.Free()
		return nil, err
	}
	defer buf.Free()
	rows := spmv.Rows{Stride: spmv.Granule, S: buf.S}
	for g := 0; g*spmv.Granule < c.Width(); g++ {
		if err := c.Load(ctx, g, rows, 0); err != nil {
			norm.Free()
			return nil, err
		}
		for i := range n {
			for _, x := range rows.Row(i) {
				norm.S[i] += math.Abs(float64(x))
			}
		}
	}
	return norm, nil
}
