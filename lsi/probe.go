package lsi

import (
	"context"
	"math"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// Probe is the matrix P, n × Columns, that is propagated in place of the
// identity.
type Probe interface {
	// Columns returns the width s of P.
	Columns() int
	// Sketch reports whether P is random. Rounding its rows to float16 then adds far less error
	// than the probe already has.
	Sketch() bool
	// fill writes columns first, first+1, … of P, multiplied by scale, into the block, and
	// subtracts their stationary rows, which it stores in mean. Columns past the width are zero.
	fill(ctx context.Context, g hops.Graph, b *spmv.Block, first int, scale float32, mean *stationary.Mean) error
}

// Precision returns the precision of a probe's rows between hops: float16 for a sketch of a graph
// without weights, and the asked precision otherwise. With weights, strengths may be so large that
// the rows of a sketch, which are divided by their powers, are too small for float16.
func Precision(sketch, weighted bool, asked spmv.Precision) spmv.Precision {
	if sketch && !weighted {
		return spmv.Float16
	}
	return asked
}

// sketchScale multiplies the rows of a sketch. Their values are at most 2 at hop 0 and shrink from
// hop to hop: without the scale, values near ε of a node with many neighbours would be too small
// for float16. It is a power of two, so that it changes no float32 bit.
const sketchScale = 1 << 13

// scale returns the factor of the rows of p.
func scale(p Probe) float64 {
	if p.Sketch() {
		return sketchScale
	}
	return 1
}

// fill sets the rows of a block to those of the probe, from a panel on.
func fill(ctx context.Context, g hops.Graph, rows *spmv.Block, p Probe, panel int) error {
	mean, err := g.State.NewMean(rows.Layout().Columns)
	if err != nil {
		return err
	}
	defer mean.Free()
	return p.fill(ctx, g, rows, panel*packed.PanelColumns, float32(scale(p)), mean)
}

// Identity returns the probe of the definition, for n nodes.
func Identity(n int64) Probe { return IdentityPart(n, 0) }

// IdentityPart is [Identity] for a worker whose rows begin with row lo.
func IdentityPart(n, lo int64) Probe { return identity{n, lo} }

type identity struct{ n, lo int64 }

func (p identity) Columns() int { return int(p.n) }

func (identity) Sketch() bool { return false }

func (p identity) fill(ctx context.Context, g hops.Graph, b *spmv.Block, first int, scale float32, mean *stationary.Mean) error {
	return g.Make(ctx, b, func(i int64, to []float32) {
		if c := p.lo + i - int64(first); c >= 0 && c < int64(len(to)) {
			to[c] = scale
		}
	}, mean)
}

// Signs returns the random-sign probe of the given width. Entry (i, c) is ±1/√s by a hash of the
// seed, the input id of node i, and c, so that it does not depend on the numbering of nodes.
func Signs(seed uint64, ids []uint32, width int) Probe { return &signs{seed, ids, width} }

type signs struct {
	seed  uint64
	ids   []uint32
	width int
}

func (s *signs) Columns() int { return s.width }

func (*signs) Sketch() bool { return true }

func (s *signs) fill(ctx context.Context, g hops.Graph, b *spmv.Block, first int, scale float32, mean *stationary.Mean) error {
	unit := s.unit(scale)
	return g.Make(ctx, b, func(i int64, to []float32) { s.row(i, first, unit, to[:min(len(to), max(s.width-first, 0))]) }, mean)
}

// unit returns the bits of 1/√s, multiplied by scale.
func (s *signs) unit(scale float32) uint32 {
	return math.Float32bits(float32(1/math.Sqrt(float64(s.width))) * scale)
}

// row sets columns first, first+1, … of row i to plus or minus unit.
func (s *signs) row(i int64, first int, unit uint32, to []float32) {
	bits := uint64(0)
	for j := range to {
		if c := first + j; j == 0 || c%64 == 0 {
			bits = rng.Hash(s.seed, uint64(s.ids[i]), uint64(c/64)) >> (c % 64)
		}
		to[j] = math.Float32frombits(unit | uint32(bits&1)<<31)
		bits >>= 1
	}
}

// sign returns ±1.
func sign(seed, row uint64, column int) float32 {
	return float32(1 - 2*int64(rng.Hash(seed, row, uint64(column))&1))
}

// Columns provides features in column blocks.
type Columns interface {
	// Width returns the number of columns.
	Width() int
	// Rows passes columns [first, first+columns) of all rows to put, in ascending order of row,
	// some rows at a time. Columns past the width are zero. put may change the rows. first and
	// columns are multiples of 16.
	Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error
}

// Features returns the probe of the authors' code: the features with rows divided by their L1 norm.
// norm has the L1 norm of each row, or is nil if rows are normalised already.
func Features(c Columns, norm []float64) Probe { return stored{normalised{c, norm}, false} }

// FeatureSketch returns Features × random signs/√width. It reads all features once for each block.
func FeatureSketch(c Columns, norm []float64, seed uint64, width int) Probe {
	return stored{Mixtures(normalised{c, norm}, seed, width), true}
}

// stored is a probe that reads its columns.
type stored struct {
	columns Columns
	sketch  bool
}

func (p stored) Columns() int { return p.columns.Width() }

func (p stored) Sketch() bool { return p.sketch }

func (p stored) fill(ctx context.Context, g hops.Graph, b *spmv.Block, first int, scale float32, mean *stationary.Mean) error {
	return g.Fill(ctx, b, func(put func([]float32) error) error {
		return p.columns.Rows(ctx, first, b.Layout().Columns, func(rows []float32) error {
			if scale != 1 {
				for i, x := range rows {
					rows[i] = float32(x * scale)
				}
			}
			return put(rows)
		})
	}, mean)
}

// normalised divides the rows of columns by norm, unless norm is nil.
type normalised struct {
	Columns
	norm []float64
}

// Rows implements [Columns].
func (f normalised) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	at := 0
	return f.Columns.Rows(ctx, first, columns, func(rows []float32) error {
		at += divide(rows, columns, f.norm, at)
		return put(rows)
	})
}

// divide divides rows at, at+1, … by their norms and returns their number.
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

// Mixtures returns width random combinations of columns: columns × random signs/√width. It reads
// all columns for each block.
func Mixtures(c Columns, seed uint64, width int) Columns { return &mixtures{c, seed, width} }

type mixtures struct {
	columns Columns
	seed    uint64
	width   int
}

// Width implements [Columns].
func (f *mixtures) Width() int { return f.width }

// Rows implements [Columns].
func (f *mixtures) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
	width := packed.Panels(f.columns.Width()) * packed.PanelColumns
	cols := min(columns, f.width-first)
	scale := float32(1 / math.Sqrt(float64(f.width)))
	signs := make([]float32, width*columns)
	for c := range width {
		for s := range cols {
			signs[c*columns+s] = scale * sign(f.seed, uint64(c), first+s)
		}
	}
	var buf []float32
	return f.columns.Rows(ctx, 0, width, func(rows []float32) error {
		n := len(rows) / width
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
